//! The doctor's fragments, given to the programs that read them.
//!
//! Each is checked by its own reader, for a small and a large number of connections: HAProxy,
//! systemd, the servers, sysctl, Ansible, the pool. Where a reader only warns about what it does
//! not know, the test holds on to the warning, and shows that there is one for a wrong file.
//! Readers that are not installed are skipped by name.

use crate::walls::has;
use crate::world::*;
use std::fs;

const NUMBERS: [&str; 2] = ["2000", "100000"];

/// The fragment of this form.
fn emitted(form: &str, connections: &str, more: &[&str]) -> String {
    let line = ["doctor", "--emit", form, "--connections", connections];
    let ran = run(binary(), &[&line[..], more].concat(), LIMIT);
    assert!(ran.status.success(), "{form}: {ran:?}");
    ran.stdout + "\n"
}

/// A host with small limits, as it was recorded: what is right on this one would be left out.
fn small_host() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/doctor/src/catalog");
    let file = folder.join("fixtures/recorded/small.json");
    file.display().to_string()
}

/// Runs a reader to its end.
fn reader(program: &str, arguments: &[&str]) -> Ran {
    run(Path::new(program), arguments, LIMIT)
}

/// `name = value` of the lines that are settings.
fn settings(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let pair = |(name, value): (&str, &str)| (name.trim().to_owned(), value.trim().to_owned());
    pairs.map(pair).collect()
}

fn number(text: &str, name: &str) -> u64 {
    let found = settings(text).into_iter().find(|(known, _)| known == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in\n{text}"));
    found.1.parse().unwrap()
}

#[test]
fn haproxy_takes_its_fragment() {
    if !has(&["haproxy"]) {
        return;
    }
    let folder = Folder::new("fragment-haproxy");
    for connections in NUMBERS {
        let text = emitted("haproxy", connections, &[]);
        let text = text.replace("SERVER_ADDRESS", "127.0.0.1");
        let file = folder.put("haproxy.cfg", &text.replace("SOURCE_", "127.0.0."));
        let ran = reader("haproxy", &["-c", "-f", &file]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.status.success(), "{text}\n{said}");
        let is_warned = said.contains("[WARNING]") || said.contains("[ALERT]");
        assert!(!is_warned, "{said}");
    }
    let wrong = folder.put("wrong.cfg", "global\n    maxcon 5\n");
    assert!(!reader("haproxy", &["-c", "-f", &wrong]).status.success());
}

#[test]
fn systemd_takes_its_fragment() {
    if !has(&["systemd-analyze"]) {
        return;
    }
    // It goes on after what it does not know, so what it says of the drop-in counts.
    let said = |drop_in: &str| {
        let folder = Folder::new("fragment-systemd");
        let unit = folder.put("onramp-test.service", "[Service]\nExecStart=/bin/true\n");
        folder.put("onramp-test.service.d/90-onramp.conf", drop_in);
        let ran = reader("systemd-analyze", &["verify", &unit]);
        let lines = ran.stderr.lines().filter(|line| line.contains("90-onramp"));
        lines.collect::<Vec<_>>().join("\n")
    };
    for connections in NUMBERS {
        for way in ["direct", "onramp"] {
            let text = emitted("systemd", connections, &["--way", way]);
            assert!(number(&text, "LimitNOFILE") > 1_000, "{text}");
            assert_eq!(said(&text), "", "{text}");
        }
    }
    let wrong = said("[Service]\nLimitNOFIL=5\nTasksMax=many\n");
    says(&wrong, "LimitNOFIL");
    says(&wrong, "many");
}

#[test]
fn sysctl_knows_every_name_of_its_fragment() {
    if !has(&["sysctl"]) {
        return;
    }
    let folder = Folder::new("fragment-sysctl");
    let dry = |text: &str| {
        let file = folder.put("90-onramp.conf", text);
        reader("sysctl", &["--dry-run", "-p", &file])
    };
    if dry("kernel.pid_max = 32768\n").stderr.contains("dry-run") {
        return skip("this sysctl has no --dry-run (procps before 4.0)");
    }
    for connections in NUMBERS {
        for way in ["direct", "onramp"] {
            let text = emitted("sysctl", connections, &["--way", way]);
            let ran = dry(&text);
            let is_taken = ran.status.success() && ran.stderr.is_empty();
            assert!(is_taken, "{text}\n{ran:?}");
            let line = |(name, value): &(String, String)| format!("{name} = {value}");
            let lines: Vec<String> = settings(&text).iter().map(line).collect();
            assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), lines);
        }
    }
    assert!(!dry("net.core.somaxcon = 5\n").status.success());
}

/// Lines of pam_limits: domain, type, item, value; a number of descriptors above fs.nr_open
/// would keep everybody from logging in.
#[test]
fn limits_are_lines_as_pam_reads_them() {
    for connections in NUMBERS {
        let small = small_host();
        let more = ["--way", "direct", "--facts", &small];
        let text = emitted("limits", connections, &more);
        let kernel = emitted("sysctl", connections, &more);
        // Left out where it is right already.
        let mut settings = settings(&kernel).into_iter();
        let opened = settings.find(|(name, _)| name == "fs.nr_open");
        let opened = opened.map_or(1_048_576, |(_, value)| value.parse().unwrap());
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let mut items = Vec::new();
        for line in lines.iter().filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [domain, kind, item, value] = words[..] else {
                panic!("four words: {line}");
            };
            assert!(["*", "root"].contains(&domain), "{line}");
            assert!(["soft", "hard"].contains(&kind), "{line}");
            let value: u64 = value.parse().unwrap();
            if item == "nofile" {
                assert!(value <= opened, "{line}\n{kernel}");
            } else {
                assert_eq!(item, "nproc", "{line}");
            }
            items.push((domain, kind, item));
        }
        let unique: std::collections::BTreeSet<_> = items.iter().collect();
        assert_eq!((items.len(), unique.len()), (8, 8), "{text}");
    }
}

/// A server's messages about a file, and the settings that it makes of it.
fn server_reads(program: &[&str], file: &str, more: &[&str]) -> (Ran, String) {
    let option = format!("--defaults-file={file}");
    let line = [&program[1..], &[&option], more, &["--user=root"]].concat();
    let ran = reader(program[0], &line);
    let settings = ran.stdout.clone();
    (ran, settings)
}

/// The value in a line as `max-connections      2100`.
fn told(text: &str, name: &str) -> String {
    let mut lines = text.lines().map(words);
    let line = lines.find(|words| words.first() == Some(&name));
    let line = line.unwrap_or_else(|| panic!("no {name}: {text}"));
    line.get(1).copied().unwrap_or_default().to_owned()
}

#[test]
fn mariadb_takes_its_fragment_and_cuts_nothing_of_it() {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin";
    let program = std::env::split_paths(&path).map(|folder| folder.join("mariadbd"));
    let Some(program) = program.into_iter().find(|file| file.is_file()) else {
        return skip("mariadbd is not installed (Debian: mariadb-server)");
    };
    let program = program.display().to_string();
    let folder = Folder::new("fragment-mariadbd");
    for (way, handling) in [
        ("direct", "one-thread-per-connection"),
        ("server-pool", "pool-of-threads"),
        ("onramp", "one-thread-per-connection"),
    ] {
        let text = emitted("my.cnf", "2000", &["--way", way]);
        let file = folder.put("90-onramp.cnf", &text);
        // With the descriptors that the unit's fragment gives it.
        let unit = emitted("systemd", "2000", &["--way", way]);
        let files = number(&unit, "LimitNOFILE");
        assert!(files >= number(&text, "open_files_limit"), "{unit}\n{text}");
        let limited = format!("--nofile={files}:{files}");
        let line = ["prlimit", &limited, &program];
        let limits = fs::read_to_string("/proc/self/limits").unwrap();
        let hard = limits.split("Max open files").nth(1).unwrap();
        let hard = hard.split_whitespace().nth(1).unwrap();
        let hard: u64 = hard.parse().unwrap_or(u64::MAX);
        let behind = usize::from(hard < files || !has(&["prlimit"])) * 2;
        let (ran, made) = server_reads(&line[behind..], &file, &["--help", "--verbose"]);
        assert!(ran.status.success(), "{text}\n{}", ran.stderr);
        if behind == 0 {
            // It asks for more yet, and makes do with fewer instances of its table cache.
            assert!(!ran.stderr.contains("Changed limits"), "{}", ran.stderr);
        }
        for name in "max_connections back_log max_prepared_stmt_count wait_timeout".split(' ') {
            let given = number(&text, name).to_string();
            assert_eq!(told(&made, &name.replace('_', "-")), given, "{name}");
        }
        assert_eq!(told(&made, "thread-handling"), handling, "{text}");
        let log = told(&made, "innodb-log-file-size");
        assert_eq!(log, (2_u64 << 30).to_string());
    }
    let wrong = folder.put("wrong.cnf", "[mysqld]\nmax_connection_s = 5\n");
    let (ran, _) = server_reads(&[&program], &wrong, &["--help", "--verbose"]);
    assert!(ran.stderr.contains("max_connection_s"), "{ran:?}");
}

#[test]
fn mysql_takes_its_fragment() {
    let real = or_return!(pooled(own_mysql));
    let (program, first) = real.program();
    let target = format!("mysql://root@/?socket={}", real.socket());
    let program = [&[program.to_str().unwrap()][..], &first].concat();
    let more = ["--validate-config", "--secure-file-priv="];
    for way in ["direct", "server-pool", "onramp"] {
        // For any server, and for this one.
        for named in [&[][..], &["--target", &target]] {
            let text = emitted("my.cnf", "2000", &[&["--way", way], named].concat());
            let file = real.folder().join("90-onramp.cnf");
            fs::write(&file, &text).unwrap();
            let (ran, _) = server_reads(&program, file.to_str().unwrap(), &more);
            assert!(ran.status.success(), "{way}: {text}\n{}", ran.stderr);
        }
    }
}

/// Ansible's own check where it is installed; at the least it is YAML with a module in each task.
#[test]
fn ansible_takes_its_fragment() {
    let folder = Folder::new("fragment-ansible");
    if !has(&["python3"]) {
        return;
    }
    let more = ["--way", "direct", "--facts", &small_host()];
    let tasks = folder.put("onramp.yml", &emitted("ansible", "100000", &more));
    let script = r#"
import sys, yaml
tasks = yaml.safe_load(open(sys.argv[1]))
for task in tasks:
    modules = [key for key in task if "." in key]
    assert "name" in task and len(modules) == 1, task
settings = [item["name"] for item in tasks[0]["loop"]]
assert "vm.max_map_count" in settings and len(set(settings)) == len(settings), settings
assert all(isinstance(item["value"], str) for item in tasks[0]["loop"])
limits = {item["item"]: item["value"] for item in tasks[1]["loop"]}
drop_in = tasks[3]["ansible.builtin.copy"]["content"]
assert f"\nLimitNOFILE={limits['nofile']}\n" in drop_in, drop_in
assert drop_in.startswith("[Service]\n"), drop_in
"#;
    if reader("python3", &["-c", "import yaml"]).status.success() {
        let ran = reader("python3", &["-c", script, &tasks]);
        assert!(ran.status.success(), "{ran:?}");
    } else {
        skip("python3 with PyYAML is not installed: in part");
    }
    if has(&["ansible-playbook"]) {
        let book = "- hosts: localhost\n  vars: {unit: mariadb}\n  tasks:\n    \
                    - ansible.builtin.import_tasks: onramp.yml\n";
        let book = folder.put("book.yml", book);
        let ran = reader("ansible-playbook", &["--syntax-check", &book]);
        if ran.stderr.contains("couldn't resolve module") {
            return skip("ansible.posix or community.general is not installed: in part");
        }
        assert!(ran.status.success(), "{ran:?}");
    }
}

/// The pool's fragment, with names put in, serves.
#[test]
fn the_pool_takes_its_fragment_and_serves() {
    let Some(server) = pooled(server) else { return };
    let text = emitted("onramp", "2000", &[]);
    let listen = format!("127.0.0.1:{}", free_port());
    let text = text.replace("0.0.0.0:6033", &listen);
    let text = text.replace("SERVER_ADDRESS:3306", &server.address().to_string());
    let text = text.replace("\"USER\"", "\"app\"");
    let text = text.replace("\"PASSWORD\"", "\"app\"");
    let folder = Folder::new("fragment-serves");
    let file = folder.put("pool.toml", &text);
    let pool = Pool::start(binary(), &["--config", &file]);
    let pool = pool.unwrap_or_else(|why| panic!("{text}\n{why}"));
    assert_eq!(login(&pool.address, &app()).value("SELECT 41 + 1"), "42");
}
