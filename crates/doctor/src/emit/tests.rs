//! Fragments of one host, looked at as files of their kind.
use super::*;
use crate::catalog::check;
use crate::facts::{Files, Server};
use crate::question::Way;

fn fragment_for(form: Form, ways: &[Way], connections: u64, facts: &Facts) -> String {
    let question = Question {
        connections: Some(connections),
        ways: ways.to_vec(),
        ..Question::default()
    };
    fragment(form, &check(facts, &question), facts, &question)
}

/// Facts of this host, with the kernel's settings as they are by default, whatever it has been set
/// to.
fn here() -> Facts {
    let mut facts = Facts::read(&Files::of_kernel(), None);
    facts.this.nofile_soft = Some(1_024);
    facts.this.nproc_soft = Some(600);
    let defaults = [
        ("vm.max_map_count", 65_530),
        ("kernel.pid_max", 32_768),
        ("fs.file-max", 100_000),
    ];
    for (name, value) in defaults {
        facts.host.sysctls.insert(name.to_owned(), vec![value]);
    }
    // What the kernel has counted since its start is no property of its settings.
    facts.host.counts.values_mut().for_each(|count| *count = 0);
    facts
}

/// `name = value` of the lines that are no comment.
fn values(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.split_once('=')?;
        Some((name.trim().to_owned(), value.trim().to_owned()))
    };
    lines.filter_map(pair).collect()
}

fn value(text: &str, name: &str) -> u64 {
    let values = values(text);
    let found = values.iter().find(|(known, _)| known == name);
    found
        .unwrap_or_else(|| panic!("no {name} in\n{text}"))
        .1
        .parse()
        .unwrap()
}

#[test]
fn kernel_settings_suffice_for_the_number_and_never_shrink() {
    let direct = fragment_for(Form::Sysctl, &[Way::Direct], 100_000, &here());
    assert!(value(&direct, "vm.max_map_count") >= 200_000);
    assert!(value(&direct, "kernel.pid_max") >= 100_000);
    let onramp = fragment_for(Form::Sysctl, &[Way::Onramp], 1_000_000, &here());
    assert!(value(&onramp, "fs.file-max") >= 2_000_000);
    assert!(
        !onramp.contains("vm.max_map_count"),
        "no thread for each: {onramp}"
    );
}

#[test]
fn what_is_right_or_not_there_is_left_out_and_named() {
    let mut facts = here();
    let sysctls = &mut facts.host.sysctls;
    sysctls.insert("fs.file-max".to_owned(), vec![1 << 60]);
    facts.this.nofile_soft = Some(1 << 30);
    let has = |text: &str, name: &str| values(text).iter().any(|(known, _)| known == name);
    for form in [Form::Sysctl, Form::Ansible] {
        let text = fragment_for(form, &Way::ALL, 100_000, &facts);
        assert!(
            !text.contains("{name: fs.file-max") && !has(&text, "fs.file-max"),
            "{text}"
        );
        assert!(text.contains("stand so already: "), "{text}");
        assert!(text.replace("\n#", "").contains("fs.file-max"), "{text}");
        assert!(text.contains("vm.max_map_count"), "{text}");
    }
    let first = fragment_for(Form::Sysctl, &[Way::Direct], 100_000, &here());
    for (name, _) in values(&first) {
        let mut without = here();
        without.host.sysctls.remove(&name);
        let text = fragment_for(Form::Sysctl, &[Way::Direct], 100_000, &without);
        assert!(!has(&text, &name), "this kernel has no {name}: {text}");
        let is_named = text.replace("\n#", "").contains(&name);
        assert!(
            !is_named || text.contains("this kernel does not have"),
            "{text}"
        );
    }
    // What the fragment sets is right afterwards, and the next one is empty.
    let mut set = here();
    for (name, value) in values(&first) {
        let numbers = value.split(' ').map(|number| number.parse().unwrap());
        set.host.sysctls.insert(name, numbers.collect());
    }
    let second = fragment_for(Form::Sysctl, &[Way::Direct], 100_000, &set);
    assert_eq!(values(&second), [], "{second}");
    let limits = fragment_for(Form::Limits, &[Way::Direct], 100_000, &facts);
    assert!(
        !limits.contains("  nofile  ") && limits.contains("already: nofile"),
        "{limits}"
    );
    assert!(limits.contains("hard  nproc "), "{limits}");
}

#[test]
fn every_line_is_a_comment_or_a_setting() {
    for form in [Form::Sysctl, Form::Systemd, Form::MyCnf] {
        for ways in [&[Way::Direct][..], &[Way::Onramp], &Way::ALL] {
            let text = fragment_for(form, ways, 50_000, &here());
            for line in text.lines() {
                let is_setting = line.split_once('=').is_some_and(|(name, value)| {
                    !name.trim().is_empty() && !value.trim().is_empty()
                });
                let is_other = line.is_empty() || line.starts_with('#') || line.starts_with('[');
                assert!(is_setting || is_other, "{form:?}: {line}");
            }
        }
    }
}

#[test]
fn limits_and_unit_agree() {
    let limits = fragment_for(Form::Limits, &[Way::Direct], 100_000, &here());
    let unit = fragment_for(Form::Systemd, &[Way::Direct], 100_000, &here());
    let files = value(&unit, "LimitNOFILE");
    assert!(files >= 100_000);
    assert!(
        limits.contains(&format!("hard  nofile  {files}")),
        "{limits}"
    );
    assert!(value(&unit, "TasksMax") >= 100_000 && limits.contains("nproc"));
    let onramp = fragment_for(Form::Systemd, &[Way::Onramp], 100_000, &here());
    assert!(
        value(&onramp, "LimitNOFILE") < 100_000,
        "groups have tables of their own"
    );
    assert!(!onramp.contains("TasksMax"));
}

#[test]
fn the_servers_settings_follow_the_way() {
    let direct = fragment_for(Form::MyCnf, &[Way::Direct], 20_000, &here());
    assert!(value(&direct, "max_connections") >= 20_050);
    assert!(!direct.contains("thread_handling"));
    let pool = fragment_for(Form::MyCnf, &[Way::ServerPool], 20_000, &here());
    assert!(pool.contains("thread_handling = pool-of-threads"));
    let onramp = fragment_for(Form::MyCnf, &[Way::Onramp], 1_000_000, &here());
    assert_eq!(value(&onramp, "max_connections"), 120, "64 backends and 50");
    assert_eq!(value(&onramp, "max_prepared_stmt_count"), 16_382);
    let mut facts = here();
    let mut server = Server::default();
    server
        .variables
        .insert("max_connections".into(), "5000".into());
    facts.server = Some(server);
    let onramp = fragment_for(Form::MyCnf, &[Way::Onramp], 1_000, &facts);
    let names: Vec<String> = values(&onramp).into_iter().map(|(name, _)| name).collect();
    assert!(
        !names.contains(&"max_connections".to_owned()),
        "what is larger stays as it is: {onramp}"
    );
    assert!(
        onramp.contains("has them so already: max_connections."),
        "{onramp}"
    );
}

#[test]
fn haproxy_gets_an_address_for_each_range_of_ports() {
    let mut facts = here();
    let range = vec![32_768, 60_999];
    facts
        .host
        .sysctls
        .insert("net.ipv4.ip_local_port_range".into(), range);
    let text = fragment_for(Form::Haproxy, &[Way::Direct], 100_000, &facts);
    let servers = text
        .lines()
        .filter(|line| line.trim().starts_with("server "))
        .count();
    assert_eq!(servers, 4, "{text}");
    assert!(text.contains("maxconn 100000") && text.contains("ulimit-n 201000"));
}

#[test]
fn ansible_has_each_kernel_setting_once() {
    let text = fragment_for(Form::Ansible, &[Way::Direct], 100_000, &here());
    assert_eq!(text.matches("name: vm.max_map_count").count(), 1, "{text}");
    assert!(text.lines().all(|line| !line.contains('\t')));
    let unit = fragment_for(Form::Systemd, &[Way::Direct], 100_000, &here());
    let files = value(&unit, "LimitNOFILE");
    assert!(
        text.contains(&format!("      LimitNOFILE={files}")),
        "{text}"
    );
}

#[test]
fn the_pools_settings_are_for_all_clients() {
    let text = fragment_for(Form::Onramp, &[Way::Onramp], 1_000_000, &here());
    assert_eq!(value(&text, "clients_max"), 1_000_000);
    assert_eq!(value(&text, "wait_ms_max"), 200_000);
    assert!(text.contains("[[user]]") && text.contains("[backend]"));
}
