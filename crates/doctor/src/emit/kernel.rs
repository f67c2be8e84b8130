//! Fragments of what the kernel and systemd keep: settings, limits of users and of services.
//!
//! The values are the findings' settings; each stands with the numbers and the reason of the
//! finding that wants it.

use super::{comment, head, most, settings};
use crate::facts::{Fact, Facts};
use crate::finding::Finding;
use crate::question::Question;
use crate::setting::Setting;
use std::fmt::Write as _;

/// Kernel settings, each once.
#[derive(Default)]
struct Sysctls<'a> {
    /// Settings to be made: name, values, and the finding that wants them.
    wanted: Vec<(&'static str, String, &'a Finding)>,
    /// Settings that have their values already.
    right: Vec<&'static str>,
    /// Settings that this kernel does not have.
    absent: Vec<&'static str>,
}

impl Sysctls<'_> {
    fn of<'a>(findings: &'a [Finding], facts: &Facts) -> Sysctls<'a> {
        let mut all = Sysctls::default();
        let have = &facts.host.sysctls;
        for (finding, setting) in settings(findings) {
            let Setting::Sysctl(name, values) = setting else {
                continue;
            };
            let is_known = |known: &&'static str| known == name;
            if all.wanted.iter().any(|(known, ..)| known == name)
                || all.right.iter().chain(&all.absent).any(is_known)
            {
                continue;
            }
            match have.get(*name) {
                // Without any, the host's settings are not known at all.
                None if !have.is_empty() => all.absent.push(name),
                Some(now) if now == values => all.right.push(name),
                _ => {
                    let values: Vec<String> = values.iter().map(u64::to_string).collect();
                    all.wanted.push((name, values.join(" "), finding));
                }
            }
        }
        all
    }

    /// Settings that are left out, as comments.
    fn left_out(&self) -> String {
        let mut out = String::new();
        if !self.right.is_empty() {
            out.push_str(&comment(&format!(
                "Left out, because they stand so already: {}. One that was set by hand and is in \
                 no file is lost at the next boot.",
                self.right.join(", ")
            )));
        }
        if !self.absent.is_empty() {
            out.push_str(&comment(&format!(
                "Left out, because this kernel does not have them (now; a module may bring them): \
                 {}.",
                self.absent.join(", ")
            )));
        }
        out
    }
}

fn descriptors(findings: &[Finding]) -> u64 {
    let most = most(findings, |setting| match setting {
        Setting::Descriptors(value)
        | Setting::ServerDescriptors {
            at_start: value, ..
        } => Some(*value),
        _ => None,
    });
    most.unwrap_or_default().max(1_024)
}

fn threads(findings: &[Finding]) -> Option<u64> {
    most(findings, |setting| match setting {
        Setting::Threads(value) | Setting::Tasks(value) => Some(*value),
        _ => None,
    })
}

pub(super) fn sysctl(findings: &[Finding], facts: &Facts, question: &Question) -> String {
    let mut out = head(
        "/etc/sysctl.d/90-onramp.conf",
        "Load it with: sysctl --system.",
        facts,
        question,
    );
    let sysctls = Sysctls::of(findings, facts);
    out.push_str(&sysctls.left_out());
    for (name, values, finding) in &sysctls.wanted {
        let _ = write!(out, "\n{}{name} = {values}\n", comment(&reason(finding)));
    }
    out
}

/// The numbers and the reason of a finding.
fn reason(finding: &Finding) -> String {
    format!(
        "{} (have {}, need {}): {}",
        finding.name,
        finding.shown(&finding.have),
        finding.shown(&finding.need),
        finding.why
    )
}

pub(super) fn limits(findings: &[Finding], facts: &Facts, question: &Question) -> String {
    let mut out = head(
        "/etc/security/limits.d/90-onramp.conf",
        "It holds for logins (PAM) from the next one on; a service takes its limits from its unit \
         instead, and what runs keeps those it was started with (/proc/PID/limits). \
         90-nproc.conf and the like in the same folder are read in order: this one comes last.",
        facts,
        question,
    );
    let items = logins(findings, facts);
    for (name, _) in items.iter().filter(|(_, value)| value.is_none()) {
        out.push_str(&comment(&format!(
            "Left out, because this login has as much already: {name}."
        )));
    }
    let _ = writeln!(out, "\n# domain  type  item    value");
    for domain in ["*", "root"] {
        for kind in ["soft", "hard"] {
            for (name, value) in &items {
                if let Some(value) = value {
                    let _ = writeln!(out, "{domain:<9} {kind}  {name:<6}  {value}");
                }
            }
        }
    }
    out
}

/// Limits of a login, by their name in limits.conf; None where this one has as much already, in
/// force and not only as far as it may raise it.
fn logins(findings: &[Finding], facts: &Facts) -> Vec<(&'static str, Option<u64>)> {
    let this = &facts.this;
    let wanted = |value: u64, soft: Fact| (soft.is_none_or(|soft| soft < value)).then_some(value);
    let files = descriptors(findings);
    let mut items = vec![("nofile", wanted(files, this.nofile_soft))];
    if let Some(threads) = threads(findings) {
        items.push(("nproc", wanted(threads, this.nproc_soft)));
    }
    items
}

pub(super) fn systemd(findings: &[Finding], facts: &Facts, question: &Question) -> String {
    let mut out = head(
        "/etc/systemd/system/UNIT.service.d/90-onramp.conf",
        "UNIT is mariadb, mysql or the pool's; then systemctl daemon-reload and a restart of the \
         unit.",
        facts,
        question,
    );
    out.push_str("\n[Service]\n");
    out.push_str(&drop_in(findings));
    out
}

/// The lines below `[Service]`.
fn drop_in(findings: &[Finding]) -> String {
    let mut out =
        comment("Descriptors of a process; the pool's groups have a table of this size each.");
    let _ = writeln!(out, "LimitNOFILE={}", descriptors(findings));
    if let Some(threads) = threads(findings) {
        out.push_str(&comment(
            "Threads of the user, and of the unit's control group (systemd's default for TasksMax \
             is 15 % of what the host allows).",
        ));
        let _ = writeln!(out, "LimitNPROC={threads}\nTasksMax={threads}");
    }
    out
}

pub(super) fn ansible(findings: &[Finding], facts: &Facts, question: &Question) -> String {
    let mut out = head(
        "tasks/onramp.yml",
        "Needs the collections ansible.posix and community.general; unit is mariadb, mysql or the \
         pool's.",
        facts,
        question,
    );
    out.push_str(&Sysctls::of(findings, facts).left_out());
    out.push_str("---\n- name: Kernel settings for many connections\n  ansible.posix.sysctl:\n");
    out.push_str("    name: \"{{ item.name }}\"\n    value: \"{{ item.value }}\"\n");
    out.push_str("    sysctl_file: /etc/sysctl.d/90-onramp.conf\n    reload: true\n  loop:\n");
    let sysctls = Sysctls::of(findings, facts);
    if sysctls.wanted.is_empty() {
        out.push_str("    []\n");
    }
    for (name, values, finding) in &sysctls.wanted {
        let about = format!(
            "{} (have {}, need {})",
            finding.name, finding.have, finding.need
        );
        let _ = writeln!(
            out,
            "    # {about}\n    - {{name: {name}, value: \"{values}\"}}"
        );
    }
    out.push_str("\n- name: Limits of logins\n  community.general.pam_limits:\n");
    out.push_str("    domain: \"*\"\n    limit_type: \"-\"\n    limit_item: \"{{ item.item }}\"\n");
    out.push_str("    value: \"{{ item.value }}\"\n");
    out.push_str("    dest: /etc/security/limits.d/90-onramp.conf\n  loop:\n");
    let items = logins(findings, facts);
    if items.iter().all(|(_, value)| value.is_none()) {
        out.push_str("    []\n");
    }
    for (name, value) in items {
        if let Some(value) = value {
            let _ = writeln!(out, "    - {{item: {name}, value: {value}}}");
        }
    }
    out.push_str("\n- name: Folder for the limits of the service\n  ansible.builtin.file:\n");
    out.push_str("    path: \"/etc/systemd/system/{{ unit }}.service.d\"\n    state: directory\n");
    out.push_str("    mode: \"0755\"\n\n- name: Limits of the service, from its next restart on\n");
    out.push_str("  ansible.builtin.copy:\n");
    out.push_str("    dest: \"/etc/systemd/system/{{ unit }}.service.d/90-onramp.conf\"\n");
    out.push_str("    mode: \"0644\"\n    content: |\n      [Service]\n");
    for line in drop_in(findings).lines() {
        let _ = writeln!(out, "      {line}");
    }
    out.push_str("\n- name: systemd reads its units again\n  ansible.builtin.systemd_service:\n");
    out.push_str("    daemon_reload: true\n");
    out
}
