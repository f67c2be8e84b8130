//! Guards of the pool: limits by address and network, privileges given up, passwords overwritten.

use crate::proxy_header::{connected, packet};
use crate::walls::is_root;
use crate::world::*;
use std::fs::{File, Permissions};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use testkit::client::ANSWER_MAX;
use wire::auth::{Credential, native};
use wire::client_login::{self, ClientLogin, Progress};

/// First words that a connection hears: the greeting, or the words of an error.
fn knock_with(pool: &Address, last: u8, header: &[u8]) -> Result<TcpStream, String> {
    let mut stream = connected(pool, last);
    if !header.is_empty() {
        stream.write_all(header).unwrap();
    }
    let (_, payload) = packet(&mut stream).unwrap();
    match payload[0] {
        10 => Ok(stream),
        _ => {
            assert_eq!(payload[..3], [0xff, 0x10, 0x04], "error 1040");
            Err(String::from_utf8_lossy(&payload[3..]).into_owned())
        }
    }
}

/// Connects from 127.0.0.`last` without a header.
fn knock(pool: &Address, last: u8) -> Result<TcpStream, String> {
    knock_with(pool, last, b"")
}

/// A refusal that names this setting.
fn refused(knocked: Result<TcpStream, String>, setting: &str) {
    let why = knocked.expect_err("one too many was greeted");
    assert!(why.contains(setting), "{why}");
}

#[test]
fn an_address_has_as_many_connections_as_it_may() {
    let extra = "groups = 4\nbackends_max = 32\nclients_per_address_max = 5\n\
                 clients_per_network_max = 8\n\
                 unlimited_networks = [\"127.0.1.0/24\", \"127.0.0.9\"]";
    let (_, pool) = or_return!(shared_pool(extra));
    let address = &pool.address;
    // The kernel deals them to all groups: what counts is the sum.
    let mut first: Vec<TcpStream> = (0..5).map(|_| knock(address, 2).unwrap()).collect();
    for _ in 0..8 {
        refused(knock(address, 2), "clients_per_address_max");
    }
    let _second: Vec<TcpStream> = (0..3).map(|_| knock(address, 3).unwrap()).collect();
    refused(knock(address, 4), "clients_per_network_max");
    let exempt: Vec<TcpStream> = (0..9).map(|_| knock(address, 9).unwrap()).collect();
    assert_eq!(exempt.len(), 9);
    // Who leaves makes room for one, and one only.
    first.pop();
    let _again = until(|| knock(address, 2));
    refused(knock(address, 2), "clients_per_address_max");
    // One that was greeted can log in.
    first.clear();
    let mut client = until(|| Client::connect(address, &app()).map_err(|why| why.to_string()));
    assert_eq!(client.value("SELECT 1"), "1");
    // Counted by reason, and logged.
    pool.wait_for("reason=address-clients").unwrap();
    pool.wait_for("reason=network-clients").unwrap();
    pool.wait_for_census("address-clients: ").unwrap();
}

#[test]
fn as_many_logins_begin_in_a_second_as_may() {
    let extra = "groups = 2\nlogins_per_s_per_address_max = 1";
    let (_, pool) = or_return!(shared_pool(extra));
    let mut refusals = 0;
    // However slow the machine is, two of so many come within a second.
    let tried = (0..10_000).find_map(|_| knock(&pool.address, 2).err());
    refused(Err(tried.unwrap()), "logins_per_s_per_address_max");
    // Another address is not held up by it, and this one gets in again, while it tries on.
    knock(&pool.address, 3).unwrap();
    let _in = until(|| {
        knock(&pool.address, 2).inspect_err(|why| {
            refusals += 1;
            assert!(why.contains("logins_per_s_per_address_max"), "{why}");
        })
    });
    pool.wait_for("reason=address-logins").unwrap();
}

#[test]
fn behind_a_proxy_the_headers_address_counts() {
    let extra = "groups = 2\nclients_per_address_max = 2\n\
                 proxy_protocol_networks = [\"127.0.0.1\"]";
    let (_, pool) = or_return!(shared_pool(extra));
    let from = |header: &str| knock_with(&pool.address, 1, header.as_bytes());
    let one = "PROXY TCP4 192.0.2.1 192.0.2.9 4660 3306\r\n";
    // The same address, in the form that it has behind a listener of IPv6.
    let same = "PROXY TCP6 ::ffff:192.0.2.1 ::1 4660 3306\r\n";
    let other = "PROXY TCP4 192.0.2.2 192.0.2.9 4660 3306\r\n";
    let mut held = vec![from(one).unwrap(), from(same).unwrap()];
    refused(from(one), "clients_per_address_max");
    refused(from(same), "clients_per_address_max");
    held.push(from(other).unwrap());
    // The proxy's own connections, its health checks, have no limit; nor do those whose header
    // is still to come.
    let own: Vec<TcpStream> = (0..4).map(|_| from("PROXY UNKNOWN\r\n").unwrap()).collect();
    let silent: Vec<TcpStream> = (0..4).map(|_| connected(&pool.address, 1)).collect();
    held.push(from(other).unwrap());
    assert_eq!((own.len(), silent.len(), held.len()), (4, 4, 4));
    held.remove(0);
    until(|| from(one));
}

#[test]
fn a_limit_that_comes_by_reload_counts_who_is_here() {
    let Some(real) = pooled(server) else { return };
    let name = "per-reload.toml";
    let write = |extra: &str| {
        let text = config(&real.address(), &format!("groups = 2\n{extra}"));
        config_file(real, name, &text)
    };
    let file = write("");
    let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
    let mut held: Vec<TcpStream> = (0..4).map(|_| knock(&pool.address, 2).unwrap()).collect();
    write("clients_per_address_max = 3");
    pool.hang_up().unwrap();
    pool.wait_for("clients_per_address_max: no limit -> 3")
        .unwrap();
    // Each group takes the settings in its next turn; nobody is closed for them.
    until(|| match knock(&pool.address, 2) {
        Ok(_) => Err("the limit does not hold yet".to_owned()),
        Err(_) => Ok(()),
    });
    held.truncate(2);
    held.push(until(|| knock(&pool.address, 2)));
    refused(knock(&pool.address, 2), "clients_per_address_max");
    // Without the limit there is none.
    write("");
    pool.hang_up().unwrap();
    held.push(until(|| knock(&pool.address, 2)));
}

#[test]
fn who_comes_along_in_an_upgrade_counts() {
    let Some(real) = pooled(server) else { return };
    let text = config(&real.address(), "groups = 2\nclients_per_address_max = 3");
    let file = config_file(real, "per-upgrade.toml", &text);
    let arguments = ["--config", file.to_str().unwrap()];
    let old = Pool::start(binary(), &arguments).unwrap();
    let mut clients: Vec<_> = (0..3).map(|_| login(&old.address, &app())).collect();
    refused(knock(&old.address, 1), "clients_per_address_max");
    let new = old.succeed(binary(), &arguments).unwrap();
    ended(old);
    for client in &mut clients {
        assert_eq!(client.value("SELECT 1"), "1");
    }
    refused(knock(&new.address, 1), "clients_per_address_max");
    clients.pop();
    until(|| knock(&new.address, 1));
}

/// The kernel's status of each thread of a process.
fn threads_of(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status"));
    // One that has ended meanwhile says nothing.
    tasks
        .filter_map(|task| status(task.unwrap()).ok())
        .collect()
}

/// A line of it, behind its name.
fn line_of<'s>(status: &'s str, name: &str) -> Vec<&'s str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().split_whitespace().collect()
}

/// Checks that every thread is this user, of this group alone, without a capability.
fn is_nobody(pid: u32) {
    let threads = threads_of(pid);
    assert!(threads.len() > 3, "{}", threads.len());
    for status in threads {
        assert_eq!(line_of(&status, "Uid:"), [NOBODY; 4], "{status}");
        assert_eq!(line_of(&status, "Gid:"), [NOBODY; 4], "{status}");
        assert_eq!(line_of(&status, "Groups:"), [NOBODY], "{status}");
        assert_eq!(line_of(&status, "CapPrm:"), ["0000000000000000"]);
        assert_eq!(line_of(&status, "CapEff:"), ["0000000000000000"]);
    }
}

/// A user and a group that no file of the tests belongs to.
const NOBODY: &str = "65534";

/// A port that root alone may listen on, and nobody does.
fn low_port() -> u16 {
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (600..1024).find(is_free).unwrap()
}

/// A folder of the test's own, and a file with a pool's settings in it.
fn own_file(real: &Real, name: &str, extra: &str) -> (Folder, PathBuf) {
    let folder = Folder::new(name);
    set_mode(&folder.0, 0o755);
    // The server's socket is not for everybody.
    let backend = testkit::onramp::loopback(real.port());
    let file = folder.put("pool.toml", &config(&backend, extra));
    (folder, file.into())
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn run_as_nobody() -> String {
    format!("run_as_user = \"{NOBODY}\"\nrun_as_group = \"{NOBODY}\"")
}

#[test]
fn privileges_are_given_up_once_the_pool_listens() {
    let Some(real) = pooled(server) else { return };
    if !is_root() {
        return skip("it is about a pool that root starts");
    }
    let extra = format!("groups = 2\nbackends_max = 4\n{}", run_as_nobody());
    let (_folder, file) = own_file(real, "nobody", &extra);
    set_mode(&file, 0o644);
    let port = low_port();
    let listen = format!("127.0.0.1:{port}");
    let arguments = ["--listen", &listen, "--config", file.to_str().unwrap()];
    let pool = Pool::start(binary(), &arguments).unwrap();
    pool.wait_for("the pool is user 65534 of group 65534 from now on")
        .unwrap();
    is_nobody(pool.pid());
    // A process whose user may read it owns it.
    assert_eq!(owner_of_memory(pool.pid()), 0);
    let mut client = login(&pool.address, &app());
    assert_eq!(client.value("SELECT 1"), "1");
    assert!(!pool.said().contains("cannot read the settings again"));
    // It may read its settings: a reload and an upgrade work, at that port too.
    pool.hang_up().unwrap();
    pool.wait_for("nothing has changed").unwrap();
    client.must("SET @a = 'kept'");
    let new = pool.succeed(binary(), &["--config", file.to_str().unwrap()]);
    let new = new.unwrap();
    ended(pool);
    is_nobody(new.pid());
    assert_eq!(client.value("SELECT @a"), "kept");
    assert_eq!(login(&new.address, &app()).value("SELECT 1"), "1");
}

#[test]
fn what_the_user_cannot_have_later_is_said_at_start() {
    let Some(real) = pooled(server) else { return };
    if !is_root() {
        return skip("it is about a pool that root starts");
    }
    let extra = format!("groups = 1\nbackends_max = 2\n{}", run_as_nobody());
    let (folder, file) = own_file(real, "unread", &extra);
    set_mode(&file, 0o600);
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--config",
        file.to_str().unwrap(),
    ];
    let pool = Pool::start(binary(), &arguments).unwrap();
    pool.wait_for("cannot read the settings again").unwrap();
    let mut client = login(&pool.address, &app());
    // Nothing changes by a reload that cannot be.
    pool.hang_up().unwrap();
    pool.wait_for("event=settings-kept").unwrap();
    assert_eq!(client.value("SELECT 1"), "1");
    drop(pool);
    // Where replies cannot be stored, it does not start.
    let spool = folder.0.join("spool");
    std::fs::create_dir(&spool).unwrap();
    set_mode(&spool, 0o700);
    let extra = format!("{extra}\nspool_folder = \"{}\"", spool.display());
    let backend = testkit::onramp::loopback(real.port());
    folder.put("pool.toml", &config(&backend, &extra));
    let why = Pool::start(binary(), &arguments).unwrap_err();
    assert!(why.contains("run_as_user) can write no file in"), "{why}");
}

#[test]
fn a_pool_that_stays_root_says_so() {
    let (_, pool) = or_return!(shared_pool("groups = 1\nbackends_max = 2"));
    let warned = pool.said().contains("the pool runs as root");
    assert_eq!(warned, is_root(), "{}", pool.said());
}

/// Owner of the file of a process's memory: root, where its own user may not read it.
fn owner_of_memory(pid: u32) -> u32 {
    std::fs::metadata(format!("/proc/{pid}/mem")).unwrap().uid()
}

#[test]
fn the_memory_of_the_pool_is_for_nobody_else() {
    let Some(real) = pooled(server) else { return };
    if !is_root() {
        return skip("it is about a pool that root starts");
    }
    for (core_dumps, owner) in [(false, 0), (true, 65534)] {
        let top = "groups = 1\nbackends_max = 2\ncore_dumps =";
        let extra = format!("{top} {core_dumps}\n{}", run_as_nobody());
        let (_folder, file) = own_file(real, &format!("dumps-{core_dumps}"), &extra);
        set_mode(&file, 0o644);
        let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]).unwrap();
        pool.wait_for("from now on").unwrap();
        assert_eq!(owner_of_memory(pool.pid()), owner);
    }
}

/// Number of times that these bytes stand in the writable memory of a process; `None` where that
/// cannot be read.
fn count_in_memory(pid: u32, needle: &[u8]) -> Option<usize> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut found = 0;
    for line in maps.lines() {
        let mut words = line.split(' ');
        let (range, rights) = (words.next().unwrap(), words.next().unwrap());
        if !rights.starts_with("rw") {
            continue;
        }
        let (start, end) = range.split_once('-').unwrap();
        let [mut at, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        let mut part = vec![0; 4 << 20];
        while at < end {
            let len = part.len().min(usize::try_from(end - at).unwrap());
            // What has gone meanwhile cannot be read.
            let Ok(len) = memory.read_at(&mut part[..len], at) else {
                break;
            };
            let windows = part[..len].windows(needle.len());
            found += windows.filter(|window| *window == needle).count();
            // One may lie across the end.
            let is_last = at + len as u64 == end;
            at += (if is_last { len } else { len - needle.len() }) as u64;
        }
    }
    Some(found)
}

/// A login over the Unix socket, in pieces of so many bytes. False where it was refused.
fn log_in_by_pieces(socket: &Path, user: &str, password: &str, piece: usize) -> bool {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
    let account = client_login::Account {
        user: user.as_bytes(),
        credential: Credential::Password(password.as_bytes()),
        schema: b"",
        private: true,
        wanted: cap::BACKEND_ALWAYS,
        extended: 0,
        required: 0,
        collation: client_login::COLLATION,
        server_key: client_login::ServerKey::Sent,
    };
    let mut login = ClientLogin::new();
    loop {
        let (seq, payload) = packet(&mut stream).unwrap();
        let mut out = Vec::new();
        match login.on_packet(&account, seq, &payload, &mut out) {
            Ok(Progress::Done) => return true,
            Ok(Progress::Waits) => out.chunks(piece).for_each(|piece| {
                stream.write_all(piece).unwrap();
            }),
            Err(_) => return false,
        }
    }
}

#[test]
fn a_password_is_not_in_memory_once_the_login_has_ended() {
    let Some(real) = pooled(server) else { return };
    // The pool knows their hashes alone, so the first login of each brings the password.
    let user = |name: &str| {
        let hash = native::stored(password_of(name).as_bytes());
        let hash: String = hash.iter().map(|byte| format!("{byte:02X}")).collect();
        format!(
            "[[user]]\nname = \"{name}\"\npassword_hash = \"*{hash}\"\n\
             auth = \"caching_sha2_password\"\nbackend_user = \"app\"\n\
             backend_password = \"app\"\n"
        )
    };
    let names = ["by-key", "in-clear", "in-pieces", "in-threes", "refused"];
    let users: String = names.iter().map(|name| user(name)).collect();
    let socket = real.folder().join("wiped.sock");
    let extra = "groups = 1\nbackends_max = 2\ncore_dumps = true";
    let text = config(&real.address(), extra);
    let file = config_file(real, "wiped.toml", &format!("{text}{users}"));
    let listen = socket.to_str().unwrap();
    let arguments = ["--config", file.to_str().unwrap(), "--listen", listen];
    let pool = Pool::start(binary(), &arguments).unwrap();
    let by_key = Account::new("by-key", &password_of("by-key"));
    let mut client = login(&pool.address, &by_key);
    assert_eq!(client.value("SELECT 1"), "1");
    let wrong = password_of("wrong");
    assert!(!log_in_by_pieces(&socket, "refused", &wrong, 7));
    // The last one is followed by nothing that is as long, where buffers are used again.
    for (name, piece) in [("in-pieces", 1), ("in-threes", 3), ("in-clear", 4096)] {
        let is_in = log_in_by_pieces(&socket, name, &password_of(name), piece);
        assert!(is_in, "{name}");
    }
    // The one group has done with the turns of all of them.
    assert_eq!(client.value("SELECT 1"), "1");
    // What is there is found.
    match count_in_memory(pool.pid(), b"in-threes") {
        None => return skip("the memory of another process cannot be read here"),
        Some(found) => assert!(found > 0, "the name of a user"),
    }
    for name in names.iter().chain(&["wrong"]) {
        let password = password_of(name);
        let end = password.trim_start_matches('.').as_bytes();
        let found = count_in_memory(pool.pid(), end);
        assert_eq!(found, Some(0), "{name}");
    }
}

/// A password whose end stands nowhere else; it is long, so that a little that is written over its
/// beginning does not hide it.
fn password_of(name: &str) -> String {
    format!("{}{name}-Qz7Kp2Xv9 is secret", ".".repeat(120))
}
