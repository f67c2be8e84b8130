//! Every wall as a table: the facts, and how many connections they allow on each way. Whole hosts,
//! recorded and composed, are in `hosts.rs`.
use super::*;
use crate::facts::{Group, Link, NO_LIMIT, Process, Server};
use crate::finding::Status;
use crate::question::{PerWay, Role, Way};
use crate::verdict::limit;

/// A host and a server with room for everything.
fn roomy() -> Facts {
    let mut facts = Facts::default();
    let sysctls: [(&str, &[u64]); 16] = [
        ("fs.epoll.max_user_watches", &[50_000_000]),
        ("fs.file-max", &[50_000_000]),
        ("fs.nr_open", &[50_000_000]),
        ("kernel.pid_max", &[4_194_304]),
        ("kernel.threads-max", &[4_000_000]),
        ("net.core.netdev_max_backlog", &[1_000]),
        ("net.core.somaxconn", &[65_535]),
        ("net.ipv4.ip_local_port_range", &[32_768, 60_999]),
        ("net.ipv4.tcp_max_orphans", &[10_000_000]),
        ("net.ipv4.tcp_max_syn_backlog", &[4_096]),
        ("net.ipv4.tcp_mem", &[5_000_000, 7_500_000, 10_000_000]),
        ("net.ipv4.tcp_rmem", &[4_096, 131_072, 6_291_456]),
        ("net.ipv4.tcp_syncookies", &[1]),
        ("net.ipv4.tcp_wmem", &[4_096, 16_384, 4_194_304]),
        ("vm.max_map_count", &[50_000_000]),
        ("vm.overcommit_memory", &[0]),
    ];
    for (name, values) in sysctls {
        facts.host.sysctls.insert(name.into(), values.to_vec());
    }
    let counts = [
        ("memory_available_bytes", 1 << 40),
        ("memory_bytes", 1 << 40),
    ];
    facts.host.counts = counts.map(|(name, count)| (name.to_owned(), count)).into();
    facts.host.cpus = Some(64);
    facts.this = process();
    facts.server_process = Some(process());
    let mut server = Server {
        is_local: true,
        version: "10.11.14-MariaDB".into(),
        ..Server::default()
    };
    for (name, value) in [
        ("max_connections", "100000"),
        ("max_prepared_stmt_count", "1048576"),
        ("max_user_connections", "0"),
        ("back_log", "65535"),
    ] {
        server.variables.insert(name.into(), value.into());
    }
    facts.server = Some(server);
    facts
}

fn process() -> Process {
    Process {
        nofile_soft: Some(10_000_000),
        nofile_hard: Some(10_000_000),
        nproc_soft: Some(NO_LIMIT),
        nproc_hard: Some(NO_LIMIT),
        threads: Some(11),
        files: Some(40),
        maps: Some(200),
        user_threads: Some(11),
        group: Group {
            pids_max: Some(NO_LIMIT),
            memory_max: Some(NO_LIMIT),
            ..Group::default()
        },
        ..Process::default()
    }
}

/// Connections that the check `name` allows after `change`.
fn holds(name: &str, change: impl Fn(&mut Facts, &mut Question)) -> PerWay<Option<u64>> {
    let (mut facts, mut question) = (roomy(), Question::default());
    change(&mut facts, &mut question);
    let findings = check(&facts, &question);
    let finding = findings.iter().find(|finding| finding.name == name);
    finding.unwrap_or_else(|| panic!("no check {name}")).holds
}

fn sysctl(facts: &mut Facts, name: &str, values: &[u64]) {
    facts.host.sysctls.insert(name.to_owned(), values.to_vec());
}

fn count(facts: &mut Facts, name: &str, count: u64) {
    facts.host.counts.insert(name.to_owned(), count);
}

fn server_process(facts: &mut Facts) -> &mut Process {
    facts.server_process.as_mut().unwrap()
}

fn variable(facts: &mut Facts, name: &str, value: &str) {
    let server = facts.server.as_mut().unwrap();
    server.variables.insert(name.to_owned(), value.to_owned());
}

#[test]
fn walls_of_threads_stand_on_the_direct_way_only() {
    // 200 maps, of which 10 threads besides the first have 2 each: 180 are the server's own.
    let found = holds("max_map_count", |f, _| {
        sysctl(f, "vm.max_map_count", &[65_530])
    });
    assert_eq!(found, [Some((65_530 - 180) / 2), None, None]);
    let found = holds("pid_max", |f, _| {
        sysctl(f, "kernel.pid_max", &[32_768]);
        count(f, "pids", 68);
    });
    assert_eq!(found, [Some(32_768 - 300 - 68), None, None]);
    let found = holds("threads_max", |f, _| {
        sysctl(f, "kernel.threads-max", &[10_000]);
        count(f, "threads", 96);
    });
    assert_eq!(found, [Some(9_904), None, None]);
    let found = holds("group_pids", |f, _| {
        let group = &mut server_process(f).group;
        (group.pids_max, group.pids_now) = (Some(4_915), Some(15));
    });
    assert_eq!(found, [Some(4_900), None, None]);
    let found = holds("user_processes", |f, _| {
        server_process(f).nproc_soft = Some(1_024)
    });
    assert_eq!(found, [Some(1_013), None, None]);
    let root = holds("user_processes", |f, _| {
        let process = server_process(f);
        (process.nproc_soft, process.nproc_is_free) = (Some(1_024), true);
    });
    assert_eq!(
        root[0],
        Some(NO_LIMIT),
        "root's threads are not counted against it"
    );
    let found = holds("overcommit", |f, _| {
        sysctl(f, "vm.overcommit_memory", &[2]);
        variable(f, "thread_stack", "1048576");
        count(f, "commit_limit_bytes", 101 << 20);
        count(f, "committed_bytes", 1 << 20);
    });
    assert_eq!(found, [Some(100), None, None]);
}

#[test]
fn walls_of_descriptors() {
    let found = holds("server_descriptors", |f, _| {
        server_process(f).nofile_soft = Some(5_000)
    });
    assert_eq!(found, [Some(4_960), Some(4_960), Some(NO_LIMIT)]);
    let found = holds("server_descriptors", |f, q| {
        server_process(f).nofile_soft = Some(100);
        q.backends = 61;
    });
    assert_eq!(found[2], Some(0), "not even the backends have descriptors");
    let found = holds("server_descriptors", |f, _| {
        f.server_process = None;
        variable(f, "open_files_limit", "1474");
    });
    assert_eq!(
        found[0],
        Some(1_024),
        "what the server says, where its process is not seen"
    );
    let found = holds("nr_open", |f, _| sysctl(f, "fs.nr_open", &[20_040]));
    assert_eq!(found, [Some(20_000), Some(20_000), Some(NO_LIMIT)]);
    let found = holds("file_max", |f, _| {
        sysctl(f, "fs.file-max", &[201_128]);
        count(f, "files_open", 1_000);
    });
    assert_eq!(found, [Some(100_064), Some(100_064), Some(100_000)]);
    let found = holds("file_max", |f, q| {
        sysctl(f, "fs.file-max", &[100_000]);
        q.role = Role::Client;
    });
    assert_eq!(found, [Some(100_000); 3], "one end is here");
    let root = holds("file_max", |f, _| {
        sysctl(f, "fs.file-max", &[100]);
        f.this.file_max_is_free = true;
        server_process(f).file_max_is_free = true;
    });
    assert_eq!(root, [Some(NO_LIMIT); 3], "root opens files past it");
    let found = holds("pool_descriptors", |f, q| {
        f.this.nofile_hard = Some(1_024);
        q.backends = 1;
    });
    assert_eq!(found, [None, None, Some(1_024 - 64 - 2)]);
    let found = holds("client_descriptors", |f, _| {
        f.this.nofile_hard = Some(1_024)
    });
    assert!(
        found[0] > Some(200_000),
        "a table for each group: {found:?}"
    );
}

#[test]
fn walls_of_the_network() {
    let ports = |sources, targets, reserved| {
        holds("local_ports", |f, q| {
            q.role = Role::Client;
            (q.sources, q.targets) = (Some(sources), targets);
            count(f, "ports_reserved", reserved);
            count(f, "ports_listening", 2);
        })
    };
    assert_eq!(ports(1, 1, 0), [Some(28_230); 3]);
    assert_eq!(ports(2, 3, 30), [Some(6 * 28_200); 3]);
    assert_eq!(
        holds("local_ports", |_, _| {}),
        [Some(NO_LIMIT); 3],
        "127.0.0.0/8 is all ours"
    );
    let waiting = holds("local_ports", |f, q| {
        q.sources = Some(1);
        sysctl(f, "net.ipv4.tcp_tw_reuse", &[0]);
        count(f, "tcp_time_wait", 8_232);
    });
    assert_eq!(waiting, [Some(20_000); 3]);
    let tracked = |entries| {
        holds("conntrack", |f, _| {
            sysctl(f, "net.netfilter.nf_conntrack_max", &[65_536]);
            count(f, "conntrack_entries", entries);
            count(f, "tcp_sockets", 500);
        })
    };
    assert_eq!(tracked(536), [Some(65_000), Some(65_000), Some(64_936)]);
    assert_eq!(
        tracked(0),
        [Some(NO_LIMIT); 3],
        "loaded, but no rule wants it"
    );
    let watches = holds("epoll_watches", |f, _| {
        sysctl(f, "fs.epoll.max_user_watches", &[200_064])
    });
    assert_eq!(watches, [Some(200_064), Some(100_032), Some(100_000)]);
}

#[test]
fn walls_of_memory() {
    let memory = |role, group: Option<u64>| {
        holds("memory", |f, q| {
            q.role = role;
            count(f, "memory_available_bytes", 8_504_000_000);
            f.this.group.memory_max = group;
            f.this.group.memory_now = Some(500);
        })
    };
    // Both ends in the kernel, 160 bytes in the load, 256 in the pool.
    assert_eq!(
        memory(Role::AllInOne, None)[2],
        Some(8_504_000_000 / (8_192 + 416))
    );
    assert_eq!(
        memory(Role::Pool, None)[2],
        Some(8_504_000_000 / (4_096 + 256))
    );
    assert_eq!(
        memory(Role::Client, Some(4_256_500))[0],
        Some(1_000),
        "the group has less"
    );
    assert!(memory(Role::AllInOne, None)[0] < memory(Role::AllInOne, None)[1]);
}

#[test]
fn the_servers_control_group_has_memory_of_its_own() {
    let group = |now| {
        holds("group_memory", |f, q| {
            let group = &mut server_process(f).group;
            (group.memory_max, group.memory_now) = (Some(2_000_000_000), Some(now));
            q.backends = 64;
        })
    };
    // 106,500 of the process, 21,500 for the thread, 4,096 for the socket.
    let left = 2_000_000_000 - 79_040_000;
    assert_eq!(
        group(79_040_000),
        [Some(left / 132_096), Some(left / 87_096), Some(NO_LIMIT)]
    );
    assert_eq!(group(1_999_000_000)[2], Some(0), "not even the backends");
    assert_eq!(holds("group_memory", |_, _| {}), [Some(NO_LIMIT); 3]);
}

#[test]
fn walls_of_the_server() {
    let found = holds("max_connections", |f, _| {
        variable(f, "max_connections", "151");
        let server = f.server.as_mut().unwrap();
        server
            .status
            .insert("Threads_connected".into(), "12".into());
    });
    assert_eq!(found, [Some(140), Some(140), Some(NO_LIMIT)]);
    let found = holds("max_connections", |f, _| {
        variable(f, "max_connections", "50")
    });
    assert_eq!(found[2], Some(0), "fewer than the backends");
    let found = holds("max_user_connections", |f, _| {
        variable(f, "max_user_connections", "3")
    });
    assert_eq!(found, [Some(3), Some(3), Some(NO_LIMIT)]);
    let found = holds("max_user_connections", |f, _| {
        variable(f, "max_user_connections", "1")
    });
    assert_eq!(found[2], Some(0), "the watch has that one");
    let statements = |said| {
        holds("max_prepared_stmt_count", |f, q| {
            variable(f, "max_prepared_stmt_count", "16382");
            q.statements = said;
        })
    };
    assert_eq!(statements(Some(91)), [Some(180), Some(180), Some(NO_LIMIT)]);
    assert_eq!(
        statements(None),
        [None; 3],
        "who did not say so is only warned"
    );
}

/// The status of a check for `connections`, and its amounts.
fn status(
    name: &str,
    connections: u64,
    change: impl Fn(&mut Facts, &mut Question),
) -> (Status, String, String) {
    let (mut facts, mut question) = (roomy(), Question::default());
    question.connections = Some(connections);
    change(&mut facts, &mut question);
    let findings = check(&facts, &question);
    let finding = findings
        .iter()
        .find(|finding| finding.name == name)
        .unwrap();
    (
        finding.status,
        finding.have.to_string(),
        finding.need.to_string(),
    )
}

#[test]
fn strains_warn_and_do_not_bound() {
    let words = |a: &str, b: &str| (Status::Warn, a.to_owned(), b.to_owned());
    let found = status("accept_queue", 100_000, |f, _| {
        variable(f, "back_log", "80")
    });
    assert_eq!(found, words("81", "5,000"));
    let found = status("accept_queue", 100_000, |f, _| {
        sysctl(f, "net.core.somaxconn", &[128])
    });
    assert_eq!(found, words("129", "5,000"));
    let found = status("syn_queue", 100_000, |f, _| {
        sysctl(f, "net.ipv4.tcp_syncookies", &[0])
    });
    assert_eq!(found, words("4,096", "5,000"));
    let tight = [50_576, 64_768, 98_152];
    let found = status("tcp_mem", 100_000, |f, _| {
        sysctl(f, "net.ipv4.tcp_mem", &tight)
    });
    assert_eq!(found, words("98,152", "100,000"));
    let table = |connections| {
        status("connection_table", connections, |f, _| {
            count(f, "connection_table_places", 262_144);
            count(f, "tcp_sockets", 100);
        })
    };
    assert_eq!(table(1_000_000).0, Status::Ok);
    assert_eq!(table(2_000_000), words("2,097,152", "4,000,100"));
    let found = status("orphans", 100_000, |f, _| {
        sysctl(f, "net.ipv4.tcp_max_orphans", &[10_240])
    });
    assert_eq!(found, words("10,240", "100,000"));
    for (name, counted) in [
        ("listen_drops", "listen_drops"),
        ("netdev_backlog", "backlog_drops"),
        ("time_wait_overflows", "time_wait_overflows"),
    ] {
        let seen = |times| {
            status(name, 1, |f, _| {
                for other in ["listen_overflows", "listen_drops", "backlog_drops"] {
                    count(f, other, 0);
                }
                sysctl(f, "net.ipv4.tcp_max_tw_buckets", &[1_000]);
                count(f, counted, times);
            })
        };
        assert_eq!(seen(0).0, Status::Ok, "{name}");
        assert_eq!(seen(7), words("7", "0"), "{name}");
    }
    let large = [16_385, 20_000, 30_000];
    let found = status("tcp_buffers", 1, |f, _| {
        sysctl(f, "net.ipv4.tcp_rmem", &large)
    });
    assert_eq!(found.0, Status::Warn);
    assert_eq!(
        status("cpus", 1, |f, _| f.host.cpus = Some(1)).0,
        Status::Warn
    );
    assert_eq!(
        status("steal", 1, |f, _| f.host.steal_permille = Some(21)),
        words("2.1 %", "2.0 %")
    );
    let clock =
        |name: &'static str| status("clock_source", 1, |f, _| f.host.clock_source = name.into());
    assert_eq!(
        (clock("hpet").0, clock("tsc").0),
        (Status::Warn, Status::Ok)
    );
}

#[test]
fn the_servers_health_is_told() {
    let of = |name: &str, variables: &[(&str, &str)], states: &[(&str, &str)], age| {
        status(name, 10_000, |f, _| {
            for (name, value) in variables {
                variable(f, name, value);
            }
            let server = f.server.as_mut().unwrap();
            for (name, value) in states {
                server.status.insert((*name).into(), (*value).into());
            }
            server.checkpoint_age = age;
        })
        .0
    };
    // The article's: 78,511,054 bytes of 2 x 50 MB.
    let redo = [
        ("innodb_log_file_size", "50000000"),
        ("innodb_log_files_in_group", "2"),
    ];
    assert_eq!(of("redo_log", &redo, &[], Some(78_511_054)), Status::Warn);
    assert_eq!(of("redo_log", &redo, &[], Some(60_000_000)), Status::Ok);
    assert_eq!(of("redo_log", &redo, &[], None), Status::Skipped);
    let capacity = [("innodb_redo_log_capacity", "104857600")];
    assert_eq!(of("redo_log", &capacity, &[], Some(78_511_054)), Status::Ok);
    assert_eq!(
        of("wait_timeout", &[("wait_timeout", "60")], &[], None),
        Status::Warn
    );
    let errors = [("max_connect_errors", "100")];
    assert_eq!(of("max_connect_errors", &errors, &[], None), Status::Warn);
    let no_names = [("max_connect_errors", "100"), ("skip_name_resolve", "ON")];
    assert_eq!(of("max_connect_errors", &no_names, &[], None), Status::Ok);
    assert_eq!(of("skip_name_resolve", &[], &[], None), Status::Warn);
    let cache = [("query_cache_size", "1048576"), ("query_cache_type", "ON")];
    assert_eq!(of("query_cache", &cache, &[], None), Status::Warn);
    let aborted = [("Aborted_connects", "11"), ("Connections", "1000")];
    assert_eq!(of("aborted_connects", &[], &aborted, None), Status::Warn);
    let refused = [
        ("Connection_errors_max_connections", "3"),
        ("Connection_errors_accept", "0"),
    ];
    assert_eq!(of("connection_errors", &[], &refused, None), Status::Warn);
    assert_eq!(
        of("threads_running", &[], &[("Threads_running", "600")], None),
        Status::Warn
    );
    let handling = [("thread_handling", "one-thread-per-connection")];
    assert_eq!(of("thread_handling", &handling, &[], None), Status::Warn);
    let pool = [("thread_handling", "pool-of-threads")];
    assert_eq!(of("thread_handling", &pool, &[], None), Status::Ok);
    let cache = [("table_open_cache", "2000")];
    assert_eq!(of("table_open_cache", &cache, &[], None), Status::Warn);
    let size = [("innodb_buffer_pool_size", "1099511627776")];
    assert_eq!(of("buffer_pool", &size, &[], None), Status::Warn);
}

#[test]
fn a_check_that_lacks_its_fact_is_skipped_and_bounds_nothing() {
    let findings = check(
        &Facts::default(),
        &Question {
            connections: Some(10),
            ..Question::default()
        },
    );
    for finding in findings.iter().filter(|finding| finding.severity.is_some()) {
        let unknown = finding
            .holds
            .iter()
            .flatten()
            .all(|holds| *holds == NO_LIMIT);
        assert!(unknown, "{finding:?}");
        assert_ne!(finding.status, Status::Fail, "{finding:?}");
    }
    let server = findings
        .iter()
        .find(|finding| finding.name == "server")
        .unwrap();
    assert_eq!(server.status, Status::Skipped);
    let silent = Facts {
        missing: vec!["cannot connect to h:3306: refused".into()],
        ..Facts::default()
    };
    let findings = check(&silent, &Question::default());
    let server = findings
        .iter()
        .find(|finding| finding.name == "server")
        .unwrap();
    assert_eq!(server.status, Status::Fail);
    assert!(server.why.contains("refused"));
}

#[test]
fn with_room_everywhere_every_way_reaches_a_hundred_thousand_but_for_the_servers_own_bound() {
    let question = Question {
        connections: Some(100_000),
        ..Question::default()
    };
    let findings = check(&roomy(), &question);
    let failed: Vec<_> = findings
        .iter()
        .filter(|f| f.status == Status::Fail)
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_eq!(
        limit(&findings, Way::Direct).unwrap().finding.name,
        "max_connections"
    );
    assert!(limit(&findings, Way::Onramp).unwrap().connections > 1_000_000);
}

mod hosts;

#[test]
fn a_server_elsewhere_has_to_prove_who_it_is() {
    let of = |is_local, link| {
        let mut facts = roomy();
        let server = facts.server.as_mut().unwrap();
        (server.is_local, server.link) = (is_local, link);
        let findings = check(&facts, &Question::default());
        let found = findings.iter().find(|one| one.name == "server_identity");
        found.map(|finding| finding.status)
    };
    assert_eq!(of(false, Some(Link::Clear)), Some(Status::Warn));
    assert_eq!(of(false, Some(Link::Unchecked)), Some(Status::Warn));
    assert_eq!(of(false, Some(Link::Checked)), Some(Status::Ok));
    assert_eq!(of(true, Some(Link::Clear)), None);
    assert_eq!(of(false, None), None, "nobody has looked");
}
