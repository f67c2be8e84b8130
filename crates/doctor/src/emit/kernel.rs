//! Fragments of what the kernel and systemd keep: settings, limits of users and of services.
//!
//! The values are the findings' settings; each stands with the numbers and the reason of the
//! finding that wants it.

use super::{comment, head, most, settings};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::question::Question;
use crate::setting::Setting;
use std::fmt::Write as _;

/// Name, values and finding of each kernel setting, each once.
fn sysctls(findings: &[Finding]) -> Vec<(&'static str, String, &Finding)> {
    let mut all: Vec<(&'static str, String, &Finding)> = Vec::new();
    for (finding, setting) in settings(findings) {
        if let Setting::Sysctl(name, values) = setting {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            if all.iter().all(|(known, ..)| known != name) {
                all.push((name, values.join(" "), finding));
            }
        }
    }
    all
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
    for (name, values, finding) in sysctls(findings) {
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
    let _ = writeln!(out, "\n# domain  type  item    value");
    for domain in ["*", "root"] {
        for kind in ["soft", "hard"] {
            let _ = writeln!(out, "{domain:<9} {kind}  nofile  {}", descriptors(findings));
            if let Some(threads) = threads(findings) {
                let _ = writeln!(out, "{domain:<9} {kind}  nproc   {threads}");
            }
        }
    }
    out
}

pub(super) fn systemd(findings: &[Finding], facts: &Facts, question: &Question) -> String {
    let mut out = head(
        "/etc/systemd/system/UNIT.service.d/90-onramp.conf",
        "UNIT is mariadb, mysql or the pooler's; then systemctl daemon-reload and a restart of the \
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
        comment("Descriptors of a process; the pooler's groups have a table of this size each.");
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
         pooler's.",
        facts,
        question,
    );
    out.push_str("---\n- name: Kernel settings for many connections\n  ansible.posix.sysctl:\n");
    out.push_str("    name: \"{{ item.name }}\"\n    value: \"{{ item.value }}\"\n");
    out.push_str("    sysctl_file: /etc/sysctl.d/90-onramp.conf\n    reload: true\n  loop:\n");
    for (name, values, finding) in sysctls(findings) {
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
    let _ = writeln!(
        out,
        "    - {{item: nofile, value: {}}}",
        descriptors(findings)
    );
    if let Some(threads) = threads(findings) {
        let _ = writeln!(out, "    - {{item: nproc, value: {threads}}}");
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
