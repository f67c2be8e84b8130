//! The prelude of the tests: servers and pools that they share, and what nearly all of them name.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) use reactor::Address;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::time::{Duration, Instant};
pub(crate) use testkit::client::{Client, ClientError};
pub(crate) use testkit::onramp::{Pool, Ran, free_port, run};
pub(crate) use testkit::real::{Flavour, Real, skipped};
pub(crate) use testkit::reply::{Failure, Outcome};
pub(crate) use testkit::talk::Account;
pub(crate) use wire::capabilities as cap;
pub(crate) use wire::command::Command;

/// Value of an option; where there is none, as where a server is not installed, the test returns.
macro_rules! or_return {
    ($found:expr) => {{
        let Some(found) = $found else { return };
        found
    }};
}
pub(crate) use or_return;

/// The longest that a program may run, or that anything is waited for: far more than any of it
/// takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(180);
/// Pause between two looks at something that tells of no change.
const LOOKS_APART: Duration = Duration::from_millis(5);

/// A caching_sha2 password that is longer than a nonce.
pub(crate) const SHA_PASSWORD: &str = "a pass phrase that is longer than any nonce";

/// Tells the threads of a test to end, also where the test has failed.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The program under test.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_onramp"))
}

/// The shared server; `None`, said on stderr, where MariaDB is not installed.
pub(crate) fn server(test: &str) -> Option<&'static Real> {
    static SERVER: OnceLock<Result<Real, String>> = OnceLock::new();
    let server = SERVER.get_or_init(|| Ok(with_accounts(Real::start(&[])?)));
    found(server.as_ref(), test)
}

/// The shared MySQL; `None`, said on stderr, where there is none.
pub(crate) fn mysql(test: &str) -> Option<&'static Real> {
    static SERVER: OnceLock<Result<Real, String>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let real = with_accounts(Real::start_mysql(&[])?);
        real.execute(&["INSTALL COMPONENT 'file://component_query_attributes'"]);
        Ok(real)
    });
    found(server.as_ref(), test)
}

/// A shared server with its schemas and accounts.
fn with_accounts(real: Real) -> Real {
    real.create_user("app", "app");
    real.create_user("other", "other's");
    real.execute(&[
        "CREATE DATABASE shop",
        "CREATE DATABASE closed",
        "CREATE USER small@'%' IDENTIFIED BY 'small'",
        "GRANT ALL ON shop.* TO small@'%'",
        "CREATE USER bare@'%' IDENTIFIED BY ''",
        "GRANT ALL ON shop.* TO bare@'%'",
        "CREATE USER roled@'%' IDENTIFIED BY 'roled'",
        "GRANT ALL ON shop.* TO roled@'%'",
    ]);
    real
}

/// Result of `start` for the running test, which is named after itself where something is skipped.
pub(crate) fn pooled<T>(start: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    start(std::thread::current().name().unwrap_or("a test"))
}

/// One of MariaDB and, with `true`, one of MySQL, as far as they are installed.
pub(crate) fn on_both<T>(start: fn(&str, bool) -> Option<T>) -> impl Iterator<Item = T> {
    let of = move |is_mysql| pooled(|test| start(test, is_mysql));
    [false, true].into_iter().filter_map(of)
}

/// The shared servers of both kinds, as far as they are installed.
pub(crate) fn pooled_servers() -> impl Iterator<Item = &'static Real> {
    [pooled(server), pooled(mysql)].into_iter().flatten()
}

/// Says that the running test is skipped, or a part of it, and why.
pub(crate) fn skip(why: &str) {
    pooled(|test| {
        skipped(test, why);
        Some(())
    });
}

/// A server of the test's own, with the account `app`.
pub(crate) fn own(started: Result<Real, String>) -> Option<Real> {
    let real = pooled(|test| found(started, test))?;
    real.create_user("app", "app");
    Some(real)
}

/// A MariaDB of the test's own, to be killed.
pub(crate) fn own_server(_: &str) -> Option<Real> {
    own(Real::start(&[]))
}

/// A MySQL of the test's own.
pub(crate) fn own_mysql(_: &str) -> Option<Real> {
    own(Real::start_mysql(&[]))
}

/// Servers of both kinds for a test of the pool alone, one after the other.
pub(crate) fn own_servers(arguments: &[&str]) -> impl Iterator<Item = Real> {
    [false, true]
        .into_iter()
        .filter_map(move |is_mysql| match is_mysql {
            false => own(Real::start(arguments)),
            true => own(Real::start_mysql(arguments)),
        })
}

/// Started server; `None`, said on stderr, where MariaDB is not installed.
pub(crate) fn found<T, E: AsRef<str>>(started: Result<T, E>, test: &str) -> Option<T> {
    match started {
        Ok(real) => Some(real),
        Err(why) if why.as_ref().contains("is not installed") => {
            skipped(test, why.as_ref());
            None
        }
        Err(why) => panic!("{}", why.as_ref()),
    }
}

/// A MySQL of the test's own that numbers its transactions; `None` where it is not installed.
pub(crate) fn mysql_with_gtids(_: &str) -> Option<Real> {
    let numbers = "--log-bin=log --gtid-mode=ON --enforce-gtid-consistency=ON";
    own(Real::start_mysql(&words(numbers)))
}

/// The words of a line, as arguments of a program.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// A configuration for every account of the tests; `extra` are lines of its top level.
pub(crate) fn config(backend: &Address, extra: &str) -> String {
    config_to(backend, "", extra)
}

/// The configuration of [`config`] with more settings below `[backend]`.
pub(crate) fn config_to(backend: &Address, more: &str, extra: &str) -> String {
    format!(
        "{extra}\n[backend]\naddress = \"{backend}\"\n{more}\
         [[user]]\nname = \"app\"\npassword = \"app\"\n\
         [[user]]\nname = \"other\"\npassword = \"other's\"\n\
         [[user]]\nname = \"small\"\npassword = \"small\"\n\
         [[user]]\nname = \"bare\"\npassword = \"\"\n\
         [[user]]\nname = \"roled\"\npassword = \"roled\"\n\
         [[user]]\nname = \"hashed\"\n\
         password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"\n\
         backend_user = \"app\"\nbackend_password = \"app\"\n\
         [[user]]\nname = \"sha\"\npassword = \"{SHA_PASSWORD}\"\n\
         auth = \"caching_sha2_password\"\nbackend_user = \"app\"\nbackend_password = \"app\"\n\
         [[user]]\nname = \"hashed_sha\"\n\
         password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"\n\
         auth = \"caching_sha2_password\"\nbackend_user = \"app\"\nbackend_password = \"app\"\n"
    )
}

/// Writes a configuration into the server's folder.
pub(crate) fn config_file(real: &Real, name: &str, text: &str) -> PathBuf {
    let path = real.folder().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A folder that goes away with its test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("onramp-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    /// Writes a file; its path as text.
    pub(crate) fn put(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An address of TCP as sockets take it.
pub(crate) fn tcp(address: &Address) -> std::net::SocketAddr {
    match address {
        Address::Tcp(address) => *address,
        Address::Unix(path) => panic!("{} has no port", path.display()),
    }
}

/// The port of an address of TCP.
pub(crate) fn port_of(address: &Address) -> String {
    tcp(address).port().to_string()
}

/// Fails with the whole text where it lacks these words.
#[track_caller]
pub(crate) fn says(text: &str, words: &str) {
    assert!(text.contains(words), "no '{words}' in: {text}");
}

/// Waits for a line of a pool's log with this part; it must have these words too.
#[track_caller]
pub(crate) fn logs(pool: &Pool, part: &str, words: &str) {
    says(&pool.wait_for(part).unwrap(), words);
}

/// Waits for as long as this holds; fails after [`LIMIT`].
#[track_caller]
pub(crate) fn wait_while(mut holds: impl FnMut() -> bool) {
    until(|| match holds() {
        true => Err("what is waited for has not come".into()),
        false => Ok(()),
    });
}

/// Looks again and again until there is something; fails after [`LIMIT`] with the last reason
/// against it.
#[track_caller]
pub(crate) fn until<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(begun.elapsed() < LIMIT, "after {LIMIT:?}: {why}"),
        }
        // There is no event to wait for: a pool, a server or another program is asked.
        std::thread::sleep(LOOKS_APART);
    }
}

/// Runs the program with the words of a line to its end.
pub(crate) fn onramp(line: &str) -> Ran {
    run(binary(), &words(line), LIMIT)
}

/// Rows of a table that is a text: a line each, its columns apart by `=>`.
pub(crate) fn table<const COLUMNS: usize>(text: &str) -> Vec<[&str; COLUMNS]> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let rows = lines.map(|line| line.split("=>").map(str::trim).collect::<Vec<_>>());
    rows.map(|row| row.try_into().unwrap()).collect()
}

/// Waits for the end of a pool, which must succeed; everything it said.
pub(crate) fn ended(pool: Pool) -> String {
    let (status, said) = pool.wait();
    assert!(status.success(), "{said}");
    said
}

/// Sends a statement.
pub(crate) fn send(client: &mut Client, sql: &str) {
    client.send(&[(Command::Query, sql.as_bytes())]).unwrap();
}

/// Sends a statement and waits for the first bytes of its reply.
pub(crate) fn begin(client: &mut Client, sql: &str) {
    send(client, sql);
    assert!(client.await_answer().unwrap());
}

/// The number that stands behind a name in a census.
pub(crate) fn number_of(census: &str, name: &str) -> u64 {
    let (_, rest) = census.split_once(&format!(" {name}: ")).expect(name);
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap().parse().unwrap()
}

/// Bytes of a pool's memory: resident now (`VmRSS`), or at the most so far (`VmHWM`).
pub(crate) fn memory_of(pool: &Pool, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pool.pid())).unwrap();
    let (_, rest) = status.split_once(&format!("{line}:")).unwrap();
    let kib: u64 = rest.split_whitespace().next().unwrap().parse().unwrap();
    kib * 1024
}

/// A client of the account `app`, as a line of the log names it.
pub(crate) fn named(client: &Client) -> String {
    let greeting = client.talk().greeting.as_ref().unwrap();
    format!("id={} account=\"app\"", greeting.connection_id)
}

/// Address of this pool's console, once it is served.
pub(crate) fn console_of(pool: &Pool) -> Address {
    let line = pool.wait_for("console at ").unwrap();
    let (_, place) = line.split_once("console at ").unwrap();
    Address::parse(place.trim()).unwrap()
}

/// Text by which a client holds a backend from here on: a BEGIN without a comment waits for its
/// first statement.
pub(crate) const HOLD: &str = "BEGIN /* now */";

/// Starts a pool in front of `real` with these lines of configuration.
pub(crate) fn fresh_pool(real: &Real, extra: &str) -> Pool {
    pool_from(real, &config(&real.address(), extra))
}

/// Starts a pool with this whole configuration, in a file below the server's folder that no other
/// pool has.
pub(crate) fn pool_from(real: &Real, text: &str) -> Pool {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = config_file(real, &format!("pool-{number}.toml"), text);
    let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]);
    pool.unwrap_or_else(|why| panic!("{why}"))
}

/// Starts one whose configuration has a name, so that the test can change it.
pub(crate) fn start_pool(real: &Real, name: &str, extra: &str) -> Pool {
    start_pool_with(real, name, extra, &[])
}

pub(crate) fn start_pool_with(real: &Real, name: &str, extra: &str, more: &[&str]) -> Pool {
    let file = config_file(real, name, &config(&real.address(), extra));
    let mut arguments = vec!["--config", file.to_str().unwrap()];
    arguments.extend_from_slice(more);
    Pool::start(binary(), &arguments).unwrap_or_else(|why| panic!("{why}"))
}

/// The way of a test to the server: a pool of its own.
pub(crate) struct Way {
    /// The Unix socket.
    pub(crate) socket: Address,
    /// Ends with the test.
    pool: Pool,
}

impl Way {
    pub(crate) fn into_pool(self) -> Pool {
        self.pool
    }
}

impl std::ops::Deref for Way {
    type Target = Address;
    fn deref(&self) -> &Address {
        &self.pool.address
    }
}

/// The settings of TLS with the tests' own certificate.
pub(crate) fn tls(real: &Real, mode: &str) -> String {
    let (cert, key) = testkit::tls::files(real.folder());
    let (cert, key) = (cert.display(), key.display());
    format!("[tls]\nmode = \"{mode}\"\ncert = \"{cert}\"\nkey = \"{key}\"\n")
}

/// A new pool with at most so many backends, in one group, so that clients share them. Each test
/// has its own: clients that keep a backend are a part of many stories.
pub(crate) fn through(real: &Real, backends: usize) -> Way {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let socket = real.folder().join(format!("pool{number}.sock"));
    let secured = tls(real, "optional");
    let extra = format!("backends_max = {backends}\ngroups = 1\n{secured}");
    let more = ["--listen", socket.to_str().unwrap()];
    let pool = start_pool_with(real, &format!("pool{number}.toml"), &extra, &more);
    Way {
        socket: Address::Unix(socket),
        pool,
    }
}

/// The shared MariaDB behind such a pool.
pub(crate) fn shared(backends: usize) -> Option<(&'static Real, Way)> {
    pooled(server).map(|real| (real, through(real, backends)))
}

/// The shared MariaDB behind a pool with these lines of configuration.
pub(crate) fn shared_pool(extra: &str) -> Option<(&'static Real, Pool)> {
    pooled(server).map(|real| (real, fresh_pool(real, extra)))
}

/// A process that ends with its test.
pub(crate) struct Ended(pub(crate) std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The usual account.
pub(crate) fn app() -> Account {
    Account::new("app", "app")
}

/// Logs in, which must succeed.
pub(crate) fn login(address: &Address, account: &Account) -> Client {
    Client::connect(address, account)
        .unwrap_or_else(|error| panic!("{} at {address}: {error}", account.user))
}

/// Tries to log in, which must be refused.
pub(crate) fn refusal(address: &Address, account: &Account) -> Failure {
    match Client::connect(address, account) {
        Err(ClientError::Refused(failure)) => failure,
        other => panic!("{}: expected an ERR packet, got {other:?}", account.user),
    }
}

/// Makes an empty schema of this name. Tests run at once: MySQL may choose one of them as the
/// victim of a deadlock in its dictionary.
pub(crate) fn fresh_schema(real: &Real, name: &str) {
    let mut admin = real.admin();
    for job in ["DROP DATABASE IF EXISTS", "CREATE DATABASE"] {
        let sql = format!("{job} {name}");
        while let Some(Outcome::Failed(failure)) = admin.query(&sql).unwrap().pop() {
            assert_eq!(failure.code, 1213, "{sql}: {failure}");
        }
    }
}

/// Numbers from a seed, which is not 0.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }

    pub(crate) fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}
