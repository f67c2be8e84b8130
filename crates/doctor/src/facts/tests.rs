//! Facts of a tree that looks like the kernel's, and of this host.
use super::*;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory that is gone when the test ends.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Tree {
        let path = std::env::temp_dir().join(format!("doctor-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Tree(path)
    }

    fn put(&self, path: &str, text: &str) -> &Tree {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, text).unwrap();
        self
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_host_is_read_from_its_files() {
    let tree = Tree::new("host");
    tree.put("/proc/loadavg", "0.48 0.18 0.10 2/96 13094\n")
        .put("/proc/sys/fs/file-nr", "3136\t0\t2466193\n")
        .put("/proc/sys/fs/file-max", "2466193\n")
        .put("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")
        .put(
            "/proc/sys/net/ipv4/ip_local_reserved_ports",
            "40000-40009\n",
        )
        .put("/proc/meminfo", "MemTotal: 24 kB\nMemAvailable: 20 kB\n")
        .put(
            "/proc/7/status",
            "Name:\tmysqld\nUid:\t27\t27\nThreads:\t40\n",
        )
        .put("/proc/9/status", "Name:\tbash\nUid:\t0\t0\nThreads:\t2\n");
    let host = host::read(&Files::below(&tree.0));
    assert_eq!(host.count("threads"), Some(96));
    assert_eq!(host.count("pids"), Some(42));
    assert_eq!(host.count("files_open"), Some(3_136));
    assert_eq!(host.sysctl("fs.file-max"), Some(2_466_193));
    assert_eq!(
        host.sysctl_last("net.ipv4.ip_local_port_range"),
        Some(60_999)
    );
    assert_eq!(host.count("ports_reserved"), Some(10));
    assert_eq!(host.count("memory_available_bytes"), Some(20 * 1024));
    assert_eq!(
        host.count("conntrack_entries"),
        None,
        "the module is not loaded"
    );
    assert_eq!(host.sysctl("vm.max_map_count"), None);
}

#[test]
fn the_tightest_group_on_the_way_up_counts() {
    let tree = Tree::new("groups");
    let unit = "/sys/fs/cgroup/system.slice/db.service";
    tree.put(
        "/proc/self/mountinfo",
        "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    )
    .put(&format!("{unit}/pids.max"), "max\n")
    .put(&format!("{unit}/pids.current"), "40\n")
    .put(&format!("{unit}/memory.max"), "1000000\n")
    .put(&format!("{unit}/memory.current"), "1000\n")
    .put(
        &format!("{unit}/memory.stat"),
        "anon 900\ninactive_file 300\nactive_file 7\n",
    )
    .put("/sys/fs/cgroup/system.slice/pids.max", "4915\n")
    .put("/sys/fs/cgroup/system.slice/pids.current", "100\n");
    let group = cgroup::read(&Files::below(&tree.0), "0::/system.slice/db.service\n");
    assert_eq!((group.pids_max, group.pids_now), (Some(4_915), Some(100)));
    assert_eq!(group.pids_path, "/system.slice");
    assert_eq!(group.pids_file, "/sys/fs/cgroup/system.slice/pids.max");
    assert_eq!(
        (group.memory_max, group.memory_now),
        (Some(1_000_000), Some(700)),
        "pages of files give way"
    );
}

#[test]
fn servers_are_found_with_where_they_listen() {
    let tree = Tree::new("servers");
    let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  \
               timeout inode\n\
        0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000  27 0 501 1 0\n\
        1: 0100007F:0CEB 00000000:0000 0A 00000000:00000000 00:00000000 00000000  27 0 601 1 0\n\
        2: 0100007F:0CEA 0100007F:9999 01 00000000:00000000 00:00000000 00000000  27 0 503 1 0\n";
    let unix = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        0000000000000000: 00000002 00000000 00010000 0001 01   502 /run/mysqld/mysqld.sock\n\
        0000000000000000: 00000002 00000000 00010000 0001 01   602 /tmp/other.sock\n\
        0000000000000000: 00000003 00000000 00000000 0001 03   504\n";
    tree.put("/proc/7/comm", "mariadbd\n")
        .put("/proc/7/net/tcp", tcp)
        .put("/proc/7/net/unix", unix)
        .put("/proc/8/comm", "bash\n");
    let fds = tree.0.join("proc/7/fd");
    fs::create_dir_all(&fds).unwrap();
    for (fd, to) in ["/dev/null", "socket:[501]", "socket:[502]", "socket:[503]"]
        .iter()
        .enumerate()
    {
        std::os::unix::fs::symlink(to, fds.join(fd.to_string())).unwrap();
    }
    let found = servers(&Files::below(&tree.0));
    let said = "mariadbd, process 7 (port 3306, socket /run/mysqld/mysqld.sock)";
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), said);
    // Of another account, only what it was started with is seen.
    tree.put("/proc/9/comm", "mysqld\n").put(
        "/proc/9/cmdline",
        "mysqld\0--port=3307\0--socket=/run/b.sock\0--port=3308\0",
    );
    let found = servers(&Files::below(&tree.0));
    let said = "mysqld, process 9 (port 3308, socket /run/b.sock)";
    assert_eq!((found.len(), found[1].to_string().as_str()), (2, said));
}

#[test]
fn it_is_said_whose_limits_are_not_looked_at() {
    let one = |pid, port| Running {
        pid,
        name: "mysqld".to_owned(),
        ports: vec![port],
        sockets: Vec::new(),
    };
    let mut facts = Facts::default();
    assert_eq!(facts.choice(), None);
    facts.servers = vec![one(7, 3306), one(9, 3307)];
    let said = facts.choice().unwrap();
    assert!(
        said.contains("none of their limits are looked at"),
        "{said}"
    );
    assert!(
        said.contains("mysqld, process 7 (port 3306); mysqld, process 9"),
        "{said}"
    );
    assert!(said.contains("--server-pid PID"), "{said}");
    facts.server_process = Some(Process {
        pid: 9,
        ..Process::default()
    });
    let said = facts.choice().unwrap();
    assert!(
        said.starts_with("also on this host, and not looked at: mysqld, process 7"),
        "{said}"
    );
    facts.servers.remove(0);
    assert_eq!(facts.choice(), None);
}

#[test]
fn this_host_has_facts_and_they_survive_json() {
    let facts = Facts::read(&Files::of_kernel(), None);
    assert!(facts.host.cpus >= Some(1) && facts.host.sysctl("fs.file-max") > Some(0));
    assert!(facts.host.count("memory_available_bytes") > Some(0));
    let text = serde_json::to_string(&facts).unwrap();
    assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
}
