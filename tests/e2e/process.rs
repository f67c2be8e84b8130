//! The pool as a process: how it begins, what it says about mistakes, how it ends.

use crate::world::*;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use testkit::onramp::{Target, loopback};

fn pool_with(arguments: &[&str]) -> Ran {
    let mut all = vec!["pool"];
    all.extend_from_slice(arguments);
    run(binary(), &all, LIMIT)
}

/// One clear line, status 2.
fn refused_in_one_line(ran: &Ran, parts: &[&str]) {
    assert_eq!(ran.status.code(), Some(2), "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 1, "{ran:?}");
    parts.iter().for_each(|part| says(lines[0], part));
}

#[test]
fn check_prints_every_mistake_and_opens_nothing() {
    let folder = Folder::new("check");
    let file = folder.0.join("pool.toml");
    let path = file.to_str().unwrap();
    // Nobody may listen at port 1, and no server is there: neither is tried.
    let good = "listen = [\"127.0.0.1:1\"]\nbackends_max = 8\n\
                [backend]\naddress = \"127.0.0.1:2\"\n[[user]]\nname = \"app\"\npassword = \"a\"\n";
    std::fs::write(&file, good).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = pool_with(&["--config", path, "--check"]).ends(0);
    assert_eq!(ran.stdout, "onramp pool: the settings can be used");
    assert_eq!(ran.stderr, "", "{ran:?}");
    let bad = "clients_maximum = 5\nlisten = [\"nowhere\"]\nbackends_max = 0\n\
               wait_ms_max = \"long\"\n[backend]\naddres = \"127.0.0.1:2\"\n\
               [tls]\ncert = \"/nowhere.pem\"\nkey = \"/nowhere.pem\"\n\
               [console]\nlisten = \"127.0.0.1:3\"\n\
               [[user]]\nname = \"app\"\npassword = \"hush\"\npriority = \"great\"\n\
               [[user]]\nname = \"other\"\n[[user]]\nname = \"app\"\npassword = \"hush\"\n";
    std::fs::write(&file, bad).unwrap();
    let ran = pool_with(&["--config", path, "--check"]).ends(2);
    assert_eq!(ran.stdout, "");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    for parts in [
        ["line 1, ", "clients_maximum"],
        ["line 2, ", "nowhere"],
        ["line 3, ", "backends_max"],
        ["line 4, ", "wait_ms_max"],
        ["line 6, ", "address meant?"],
        ["backend.address", "expected"],
        ["tls.cert", "/nowhere.pem"],
        ["console.listen", "nobody could log in"],
        ["line 15, ", "priority"],
        ["user 'other'", "expected either a password"],
    ] {
        let is_it = |line: &&&str| parts.iter().all(|part| line.contains(part));
        assert_eq!(lines.iter().filter(is_it).count(), 1, "{parts:?}: {ran:?}");
    }
    assert_eq!(lines.len(), 10, "{ran:?}");
    assert!(!ran.stderr.contains("hush"), "{ran:?}");
    std::fs::write(&file, "listen = [").unwrap();
    let ran = pool_with(&["--config", path, "--check"]);
    refused_in_one_line(&ran, &["pool.toml: line 1, "]);
}

#[test]
fn check_asks_the_server_where_that_is_wanted() {
    let Some(real) = pooled(server) else { return };
    let asks =
        |backend: &str, check| pool_with(&["--listen", "127.0.0.1:1", "--backend", backend, check]);
    let good = format!("mysql://app:app@{}", real.address());
    let ran = asks(&good, "--check=server").ends(0);
    assert!(ran.stdout.contains("; 1 account can log in"), "{ran:?}");
    let nobody = format!("mysql://app:app@{}", loopback(free_port()));
    for (backend, part) in [
        (good.replace("app:app", "app:wrong"), "account 'app': "),
        (nobody, "account 'app': "),
    ] {
        let ran = asks(&backend, "--check=server").ends(1);
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        assert_eq!(asks(&backend, "--check").status.code(), Some(0));
    }
}

/// A runbook's signal to every process of this name must not end another command.
#[test]
fn signals_for_a_pool_do_not_end_other_commands() {
    let Some(real) = pooled(server) else { return };
    let target = Target::start(binary(), "tcp", &[]).unwrap();
    target.signal_as_a_pool();
    assert!(std::net::TcpStream::connect(&target.address).is_ok());
    let (status, said) = target.end();
    assert_eq!(status.code(), Some(0), "{said}");
    real.execute(&["CREATE DATABASE signals"]);
    let at = format!("mysql://app:app@{}/signals", real.address());
    let select = |job: &str| format!("load select {job} --target {at} --table-size 10");
    onramp(&select("prepare")).ends(0);
    let mut command = std::process::Command::new(binary());
    let rest = "--preflight off --connections 1 --time 3 --report-interval 1";
    command.args(words(&format!("{} {rest}", select("run"))));
    let mut load = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(load.stdout.take().unwrap()));
    let is_report = |line: &std::io::Result<String>| line.as_ref().unwrap().contains("[ 1s ]");
    assert!(lines.any(|line| is_report(&line)));
    for signal in [Signal::USR1, Signal::USR2] {
        kill_process(Pid::from_child(&load), signal).unwrap();
    }
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(load.wait().unwrap().code(), Some(0), "{rest:?}");
}

#[test]
fn a_mistake_in_the_configuration_is_one_line_and_status_2() {
    let folder = Folder::new("config");
    let negative = config(&loopback(1), "backends_max = -1");
    for (text, part) in [(&*negative, "backends_max"), ("listen = [", "pool.toml")] {
        let path = folder.put("pool.toml", text);
        refused_in_one_line(&pool_with(&["--config", &path]), &[part]);
    }
    let missing = folder.0.join("missing.toml");
    let missing = missing.to_str().unwrap();
    refused_in_one_line(&pool_with(&["--config", missing]), &["missing.toml"]);
}

#[test]
fn a_mistake_in_an_option_is_status_2() {
    let known = "--backend mysql://app:app@127.0.0.1:1";
    let mistakes = format!(
        "--backend localhost:3306 => mysql://
         --backend mysql://app:app@nowhere:99999 => 99999
         --listen 127.0.0.1:0 => backend
         {known} --no-such-option => --no-such-option
         {known} --clients-mx 5 => '--clients-max'
         {known} --clients-max many => many
         {known} --backends-max 0 => backends"
    );
    for [line, part] in table(&mistakes) {
        let ran = pool_with(&[&["--listen", "127.0.0.1:0"], &words(line)[..]].concat()).ends(2);
        says(&ran.stderr, part);
    }
}

/// The help of a command and of those below it.
fn helps_of(command: &[&str]) -> Vec<(String, String)> {
    let help = run(binary(), &[command, &["--help"]].concat(), LIMIT).stdout;
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let below = below.take_while(|line| !line.is_empty());
    let below: Vec<String> = (below.filter_map(|line| line.split_whitespace().next()))
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect();
    let mut helps = vec![(command.join(" "), help)];
    for name in &below {
        helps.extend(helps_of(&[command, &[name]].concat()));
    }
    helps
}

#[test]
fn help_is_plain_text() {
    let mut helps = helps_of(&[]);
    assert!(helps.len() > 12, "{helps:?}");
    // What has a command line of its own.
    for words in [
        ["load", "tcp-hold"],
        ["load", "http://h"],
        ["load", "./x.lua"],
    ] {
        helps.extend(helps_of(&words));
    }
    for (command, help) in &helps {
        assert!(!help.is_empty(), "onramp {command} --help says nothing");
        for mark in ["`", "**", "]("] {
            let line = help.lines().find(|line| line.contains(mark));
            assert_eq!(line, None, "onramp {command} --help has a mark of Markdown");
        }
    }
}

#[test]
fn an_address_in_use_is_said_and_ends_the_pool() {
    let Some(real) = pooled(server) else { return };
    let port = real.port();
    let url = format!("mysql://app:app@localhost?socket={}", real.socket());
    let listen = format!("127.0.0.1:{port}");
    let ran = pool_with(&["--listen", &listen, "--backend", &url]).ends(1);
    assert!(ran.stderr.contains(&listen), "{ran:?}");
}

#[test]
fn a_refused_account_is_said_and_ends_the_pool() {
    let Some(real) = pooled(server) else { return };
    let url = format!("mysql://app:wrong@127.0.0.1:{}", real.port());
    let listen = format!("127.0.0.1:{}", free_port());
    let ran = pool_with(&["--listen", &listen, "--backend", &url]).ends(1);
    assert!(ran.stderr.contains("Access denied"), "{ran:?}");
    assert!(
        !ran.stderr.contains("wrong"),
        "a password must not be printed: {ran:?}"
    );
}

#[test]
fn the_server_may_be_reached_by_its_unix_socket() {
    let Some(real) = pooled(server) else { return };
    let url = format!("mysql://app:app@localhost?socket={}", real.socket());
    let pool = Pool::start(binary(), &["--backend", &url, "--backends-max", "2"]).unwrap();
    let mut client = login(&pool.address, &app().schema("shop"));
    assert_eq!(client.value("SELECT DATABASE()"), "shop");
}

#[test]
fn sigterm_drains_and_a_hangup_ends_neither_the_pool_nor_the_drain() {
    let Some(real) = pooled(server) else { return };
    crate::world::fresh_schema(real, "drains");
    real.execute(&["CREATE TABLE drains.t (v INT) ENGINE=InnoDB"]);
    let pool = fresh_pool(real, "backends_max = 3\ngroups = 1");
    pool.hang_up().unwrap();
    let account = app().schema("drains");
    let mut idle = login(&pool.address, &account);
    let mut inside = login(&pool.address, &account);
    let mut running = login(&pool.address, &account);
    idle.must("SET time_zone = '+01:00'");
    inside.must(HOLD);
    inside.must("INSERT INTO t VALUES (1)");
    send(&mut running, "SELECT SLEEP(3)");
    await_sleep(real);
    pool.terminate();
    // An idle client is closed; that is the sign that the drain has begun.
    match idle.wait() {
        Err(ClientError::Io(_)) => {}
        other => panic!("an idle client is closed, with or without words: {other:?}"),
    }
    let is_full = Client::connect(&pool.address, &account).is_err();
    assert!(is_full, "a drain takes no new clients");
    // A second signal would end the drain; this one does not count as such.
    pool.hang_up().unwrap();
    inside.script("INSERT INTO t VALUES (2); COMMIT");
    assert_eq!(running.receive().unwrap()[0].rows().only(), "0");
    let said = ended(pool);
    assert!(!said.contains("second signal"), "{said}");
    assert_eq!(real.admin().value("SELECT COUNT(*) FROM drains.t"), "2");
}

#[test]
fn a_hangup_does_not_end_the_wait_for_the_server() {
    let backend = format!("mysql://app@127.0.0.1:{}", free_port());
    let pool = Pool::start_waiting(binary(), &["--backend", &backend], "waiting").unwrap();
    pool.hang_up().unwrap();
    pool.terminate();
    ended(pool);
}

#[test]
fn the_sockets_file_has_the_mode_and_the_owner_of_the_settings() {
    use std::os::unix::fs::MetadataExt as _;
    let Some(real) = pooled(server) else { return };
    let me = std::fs::metadata(real.folder()).unwrap().uid();
    let cases = [
        ("plain", String::new(), 0o777, None),
        ("narrow", "socket_mode = \"0640\"".to_string(), 0o640, None),
        (
            "owned",
            "socket_mode = \"0660\"\nsocket_owner = \"12345\"\nsocket_group = \"daemon\"".into(),
            0o660,
            Some(12345),
        ),
    ];
    for (name, lines, mode, owner) in cases {
        if owner.is_some() && me != 0 {
            skip("giving a file away needs root");
            continue;
        }
        let socket = real.folder().join(format!("{name}.sock"));
        let text = config(&real.address(), &lines);
        let file = config_file(real, &format!("{name}.toml"), &text);
        let (config, listen) = (file.to_str().unwrap(), socket.to_str().unwrap());
        let arguments = ["--config", config, "--listen", listen];
        let pool = Pool::start(binary(), &arguments).unwrap();
        let file = std::fs::symlink_metadata(&socket).unwrap();
        assert_eq!(file.permissions().mode() & 0o7777, mode, "{name}");
        assert_eq!(file.uid(), owner.unwrap_or(me), "{name}");
        if owner.is_some() {
            assert_ne!(file.gid(), 0, "{name}");
        }
        let address = reactor::Address::Unix(socket);
        assert_eq!(login(&address, &app()).value("SELECT 1"), "1");
        drop(pool);
    }
}

/// The arguments of a process, as every account of the host reads them.
fn arguments_of(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    String::from_utf8(bytes).unwrap().replace('\0', " ")
}

#[test]
fn a_password_in_the_command_line_is_overwritten_at_once() {
    let port = free_port();
    let backend = format!("mysql://app:unheard-of@127.0.0.1:{port}");
    let more = ["--backend", &backend, "--clients-max", "77"];
    let pool = Pool::start_waiting(binary(), &more, "waiting for the server").unwrap();
    let seen = arguments_of(pool.pid());
    // What stands around it stays as it was, and where it was.
    let expected = format!(" --backend mysql://app:**********@127.0.0.1:{port} --clients-max 77 ");
    assert!(seen.ends_with(&expected), "{seen}");
    let said = pool.said();
    says(&said, "warning: a password in the command line");
    assert!(said.contains("?password_file=FILE"), "{said}");
    assert!(!said.contains("unheard-of"), "{said}");
    drop(pool);
    let line = "load select run --target mysql://app:unheard-of@h:0/t";
    let ran = onramp(line).ends(2);
    assert!(!format!("{ran:?}").contains("unheard-of"), "{ran:?}");
}

#[test]
fn a_password_file_is_all_that_a_command_line_names() {
    let Some(real) = pooled(server) else { return };
    let file = real.folder().join("other.password");
    std::fs::write(&file, "other's\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o604)).unwrap();
    let (socket, file) = (real.socket(), file.display());
    let backend = format!("mysql://other@localhost?socket={socket}&password_file={file}");
    let pool = Pool::start(binary(), &["--backend", &backend]).unwrap();
    let account = Account::new("other", "other's");
    let mut client = login(&pool.address, &account);
    client.must("SELECT GET_LOCK('file', 1)");
    assert_eq!(client.value("SELECT 1"), "1");
    pool.wait_for_census("logins: 1").unwrap();
    pool.ask_for_report();
    pool.wait_for("client ").unwrap();
    assert!(arguments_of(pool.pid()).contains(&backend));
    pool.terminate();
    let said = ended(pool);
    assert!(!said.contains("other's"), "{said}");
    let warns = |line: &&str| line.contains("warning") && !line.contains("runs as root");
    let warnings: Vec<&str> = said.lines().filter(warns).collect();
    assert_eq!(warnings.len(), 1, "{said}");
    assert!(warnings[0].contains("(mode 0604): chmod o-r"), "{said}");
}

#[test]
fn a_password_in_the_environment_is_named_by_its_variable_alone() {
    let Some(real) = pooled(server) else { return };
    let place = format!("localhost?socket={}", real.socket());
    let backend = format!("mysql://other@{place}&password_env=OTHER_PASSWORD");
    let prefix = ["env", "OTHER_PASSWORD=other's"];
    let pool = Pool::start_behind(&prefix, binary(), &["--backend", &backend]).unwrap();
    let mut client = login(&pool.address, &Account::new("other", "other's"));
    assert_eq!(client.value("SELECT 1"), "1");
    assert!(arguments_of(pool.pid()).contains(&backend));
    assert!(!pool.said().contains("other's"), "{}", pool.said());
    drop((client, pool));
    // In a file of settings, for another user; and where it is not set, that is said.
    let text = format!(
        "[backend]\naddress = \"{}\"\n[[user]]\nname = \"app\"\npassword_env = \"APP_PASSWORD\"\n",
        real.address()
    );
    let file = config_file(real, "environment.toml", &text);
    let arguments = ["--config", file.to_str().unwrap()];
    let prefix = ["env", "APP_PASSWORD=app"];
    let pool = Pool::start_behind(&prefix, binary(), &arguments).unwrap();
    assert_eq!(login(&pool.address, &app()).value("SELECT 1"), "1");
    let ran = pool_with(&arguments);
    refused_in_one_line(&ran, &["APP_PASSWORD"]);
}

#[test]
fn a_server_that_says_nothing_is_named_with_the_time_that_was_waited() {
    // It is connected to, and never greets.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = mute.local_addr().unwrap();
    let folder = Folder::new("mute");
    for (limit, time) in [("10000", "10 s"), ("300", "300 ms")] {
        let text = format!(
            "dial_ms_max = {limit}\n[backend]\naddress = \"{place}\"\n\
             [[user]]\nname = \"app\"\npassword = \"app\"\n"
        );
        let more = ["--config", &folder.put("mute.toml", &text)];
        let pool = Pool::start_waiting(binary(), &more, "waiting for the server: ").unwrap();
        pool.wait_for(&format!("no answer within {time}")).unwrap();
        let said = pool.said();
        assert!(!said.contains("os error 11"), "{said}");
        assert!(!said.contains("temporarily unavailable"), "{said}");
    }
}

/// Waits until the server runs a SLEEP.
fn await_sleep(real: &testkit::real::Real) {
    let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'";
    let mut admin = real.admin();
    wait_while(|| admin.value(sql) == "0");
}

#[test]
fn the_limit_on_clients_is_kept_and_said() {
    let (_, pool) = or_return!(shared_pool("clients_max = 3\nbackends_max = 1\ngroups = 1"));
    let mut clients: Vec<Client> = (0..3).map(|_| login(&pool.address, &app())).collect();
    let failure = refusal(&pool.address, &app());
    assert_eq!(failure.code, 1040);
    says(&failure.message, "clients_max");
    clients[0].run(Command::Quit, b"").unwrap();
    assert!(
        clients[0].wait().is_err(),
        "the pool closes behind COM_QUIT"
    );
    assert_eq!(login(&pool.address, &app()).value("SELECT 1"), "1");
    clients[1].must("DO 1");
}

#[test]
fn help_and_version_go_to_stdout() {
    let help = pool_with(&["--help"]).ends(0);
    for option in "--listen --backend --config --clients-max --backends-max".split(' ') {
        says(&help.stdout, option);
    }
    let version = run(binary(), &["--version"], LIMIT);
    assert!(version.stdout.starts_with("onramp "), "{version:?}");
}

#[test]
fn a_pool_may_start_before_its_server() {
    let mut real = or_return!(pooled(crate::world::own_server));
    real.stop();
    let text = config(&real.address(), "backends_max = 2");
    let file = config_file(&real, "early.toml", &text);
    let starts = std::thread::spawn(move || {
        let path: &Path = &file;
        Pool::start(binary(), &["--config", path.to_str().unwrap()])
    });
    real.restart().unwrap();
    let pool = starts.join().unwrap().unwrap();
    assert_eq!(login(&pool.address, &app()).value("SELECT 1"), "1");
}

/// Becomes the program behind it, which may not call `unshare`: what the usual filter of containers
/// does to a process without CAP_SYS_ADMIN.
const WITHOUT_UNSHARE: &str = r#"
import ctypes, os, platform, struct, sys
number = {"x86_64": 272, "aarch64": 97}[platform.machine()]
# Load the call's number; if it is this one, fail with EPERM, else allow it.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
for arguments in [(38, 1, 0, 0, 0), (22, 2, ctypes.addressof(program), 0, 0)]:
    if libc.prctl(*[ctypes.c_ulong(argument) for argument in arguments]) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn groups_have_their_own_tables_where_unshare_is_forbidden() {
    let Some(real) = pooled(server) else { return };
    let text = config(&real.address(), "groups = 2");
    let file = config_file(real, "unshare.toml", &text);
    let prefix = ["python3", "-c", WITHOUT_UNSHARE];
    let arguments = ["--config", file.to_str().unwrap()];
    let pool = Pool::start_behind(&prefix, binary(), &arguments).unwrap();
    login(&pool.address, &app()).must("SELECT 1");
}

#[test]
fn a_service_manager_is_told_when_the_pool_is_ready_well_and_ending() {
    let Some(real) = pooled(server) else { return };
    let place = real.folder().join("notify");
    let manager = UnixDatagram::bind(&place).unwrap();
    manager.set_read_timeout(Some(LIMIT)).unwrap();
    let heard = || {
        let mut message = [0; 256];
        let len = manager.recv(&mut message).unwrap();
        String::from_utf8(message[..len].to_vec()).unwrap()
    };
    let file = config_file(real, "notify.toml", &config(&real.address(), ""));
    let socket = format!("NOTIFY_SOCKET={}", place.display());
    let prefix = ["env", &socket, "WATCHDOG_USEC=300000"];
    let arguments = ["--config", file.to_str().unwrap()];
    let pool = Pool::start_behind(&prefix, binary(), &arguments).unwrap();
    assert_eq!(heard().trim(), "READY=1");
    login(&pool.address, &app()).must("SELECT 1");
    assert_eq!(heard().trim(), "WATCHDOG=1");
    pool.hang_up().unwrap();
    let mut said = heard();
    while said.trim() == "WATCHDOG=1" {
        said = heard();
    }
    let (first, moment) = said.trim().split_once('\n').unwrap();
    assert_eq!(first, "RELOADING=1");
    assert!(moment.starts_with("MONOTONIC_USEC="), "{said}");
    while heard().trim() != "READY=1" {}
    pool.terminate();
    while heard().trim() != "STOPPING=1" {}
    assert!(pool.wait().0.success());
}

/// Listens at each `--listen` of the program behind it, and becomes that program, which is given
/// the sockets, as a service manager does.
const WITH_SOCKETS: &str = r#"
import os, socket, sys
words = sys.argv[1:]
places = [word for before, word in zip(words, words[1:]) if before == "--listen"]
places += os.environ.get("BESIDES", "").split()
listeners = []
for place in places:
    if place.startswith("/"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(place)
    else:
        listener = socket.socket()
        listener.bind((place.split(":")[0], int(place.split(":")[1])))
    if "DEAF" not in os.environ:
        listener.listen()
    listeners.append(listener)
high = [os.dup2(listener.fileno(), 100 + at) for at, listener in enumerate(listeners)]
for at, number in enumerate(high):
    os.dup2(number, 3 + at)
os.environ["LISTEN_FDS"] = str(len(listeners))
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(words[0], words)
"#;

#[test]
fn sockets_of_a_service_manager_are_taken_and_go_to_the_next_process() {
    let Some(real) = pooled(server) else { return };
    let path = real.folder().join("given.sock");
    let unix = path.to_str().unwrap();
    let file = config_file(real, "given.toml", &config(&real.address(), "groups = 2"));
    let arguments = ["--config", file.to_str().unwrap(), "--listen", unix];
    let prefix = ["python3", "-c", WITH_SOCKETS];
    let pool = Pool::start_behind(&prefix, binary(), &arguments).unwrap();
    let mut client = login(&pool.address, &app());
    client.must("SET @a = 1");
    let socket = Address::Unix(path.clone());
    let mut local = login(&socket, &app());
    assert_eq!(local.value("SELECT 1"), "1");
    let next = pool.succeed(binary(), &arguments).unwrap();
    assert!(pool.wait().0.success());
    assert_eq!(client.value("SELECT @a"), "1");
    for address in [&next.address, &socket] {
        assert_eq!(login(address, &app()).value("SELECT 1"), "1");
    }
    // The file is the service manager's.
    drop((client, local, next));
    std::fs::remove_file(&path).unwrap();
    let pool = Pool::start_behind(&prefix, binary(), &arguments).unwrap();
    pool.terminate();
    assert!(pool.wait().0.success());
    assert!(path.exists());
}

#[test]
fn sockets_that_cannot_be_served_are_refused_with_the_reason() {
    let Some(real) = pooled(server) else { return };
    let file = config_file(real, "not-given.toml", &config(&real.address(), ""));
    let arguments = ["--config", file.to_str().unwrap()];
    let other = format!("BESIDES=127.0.0.1:{}", testkit::onramp::free_port());
    let many = format!("BESIDES={}", "127.0.0.1:0 ".repeat(64));
    let cases = [
        (many.as_str(), "expected at most 64 sockets, got 65"),
        (other.as_str(), "which is not in listen; add it"),
        (
            "DEAF=1",
            "descriptor 3: expected a listening stream socket, but it does not listen",
        ),
    ];
    for (variable, why) in cases {
        let prefix = ["env", variable, "python3", "-c", WITH_SOCKETS];
        let refused = Pool::start_behind(&prefix, binary(), &arguments).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn manual_pages_and_completions_are_made_for_each_command() {
    let folder = Folder::new("pages");
    let to = folder.0.to_str().unwrap();
    let make = |what: &str| run(binary(), &["generate", what, to], LIMIT);
    assert!(make("man").status.success());
    assert!(make("completions").status.success());
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).unwrap();
    assert!(read("onramp-pool.1").contains("backends"));
    for name in "onramp.1 onramp-load.1 onramp-doctor.1 onramp-climb.1".split(' ') {
        assert!(read(name).starts_with(".ie"), "{name}");
    }
    for name in ["onramp.bash", "_onramp", "onramp.fish"] {
        assert!(read(name).contains("sysbench"), "{name}");
    }
    let nowhere = run(binary(), &["generate", "man", "/nonexistent/x"], LIMIT).ends(1);
    assert!(nowhere.stderr.contains("/nonexistent/x"), "{nowhere:?}");
}
