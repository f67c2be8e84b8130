//! Real clusters of three, from `scripts/cluster.sh`, behind a pool, with a bank that is checked.
//!
//! The pool sees each server through a relay of the test's, which can be slow, late with every
//! second answer, or silent. What else goes wrong is the servers' own: they are killed, stopped,
//! and cut from each other. A promotion where the cluster makes none is the script's.
//!
//! Faults are drawn from a seed for as long as `ONRAMP_CLUSTER_SECONDS` says, see
//! `scripts/cluster-faults.sh`; without it the writer is killed once.

use crate::bank::{self, Course, found_bank};
use crate::console::rows;
use crate::world::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;
use testkit::relay::{self, Way};

/// Exit status of the script where programs are not installed.
const NOT_INSTALLED: i32 = 77;
/// Longest wait for an answer of a server, and for the cluster to be whole again.
const ANSWER_MAX: Duration = Duration::from_secs(20);
const WHOLE_MAX: Duration = Duration::from_secs(150);
/// The most backends of a pool, or of two pools of a fleet on any server.
const BACKENDS: usize = 12;
/// Interval of looks at what nobody tells.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Wait of a server that is not whole again before it is started anew.
const REVIVED_AFTER: Duration = Duration::from_secs(45);

/// Treatment of what a server says to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    Whole,
    Slow(Duration),
    EverySecondLate(Duration),
    Silent,
}

type Rule = Arc<(Mutex<Passing>, Condvar)>;

/// A relay between the pool and one server.
struct Relay {
    address: Address,
    rule: Rule,
}

impl Relay {
    fn start(server: &Address) -> Relay {
        let rule: Rule = Arc::new((Mutex::new(Passing::Whole), Condvar::new()));
        let all = rule.clone();
        let address = relay::start(tcp(server), Vec::new(), move |way, at, _| {
            hold_up(&all, way == Way::ToClient, at + 1);
        });
        Relay { address, rule }
    }

    fn set(&self, passing: Passing) {
        *self.rule.0.lock().unwrap() = passing;
        self.rule.1.notify_all();
    }
}

/// Holds a piece up as the rule says, until that changes.
fn hold_up((rule, changed): &(Mutex<Passing>, Condvar), answers: bool, count: usize) {
    let passing = changed.wait_while(rule.lock().unwrap(), |it| *it == Passing::Silent);
    let passing = passing.unwrap();
    let late = match *passing {
        Passing::Slow(late) if answers => late,
        Passing::EverySecondLate(late) if answers && count.is_multiple_of(2) => late,
        _ => Duration::ZERO,
    };
    let as_it_is = *passing;
    drop(
        changed
            .wait_timeout_while(passing, late, |it| *it == as_it_is)
            .unwrap(),
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    MariaDb,
    MySql,
    Galera,
    Group,
}

impl Kind {
    fn of(word: &str) -> Kind {
        match word {
            "mariadb" => Kind::MariaDb,
            "mysql" => Kind::MySql,
            "galera" => Kind::Galera,
            "group" => Kind::Group,
            other => panic!("no kind '{other}'"),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Kind::MariaDb => "mariadb",
            Kind::MySql => "mysql",
            Kind::Galera => "galera",
            Kind::Group => "group",
        }
    }

    fn is_replication(self) -> bool {
        matches!(self, Kind::MariaDb | Kind::MySql)
    }

    fn settings(self) -> &'static str {
        match self {
            Kind::MariaDb | Kind::MySql => "kind = \"replication\"\nwriter_lost = \"replace\"",
            Kind::Galera => "kind = \"galera\"",
            Kind::Group => "kind = \"group_replication\"",
        }
    }
}

struct Node {
    address: Address,
    folder: String,
    relay: Relay,
}

/// A cluster that ends with this value, also if the tests are killed: its input ends then.
struct Cluster {
    kind: Kind,
    script: Child,
    nodes: Vec<Node>,
}

impl Cluster {
    fn start(kind: Kind, test: &str) -> Option<Cluster> {
        let mut script = Command::new("bash");
        script
            .args(["scripts/cluster.sh", kind.word()])
            .stdin(Stdio::piped());
        script.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut script = script.spawn().unwrap();
        let lines = BufReader::new(script.stdout.take().unwrap()).lines();
        let mut nodes = Vec::new();
        for line in lines.map_while(Result::ok) {
            match line.split(' ').collect::<Vec<_>>()[..] {
                [_, address, _, folder] => {
                    let (address, folder) = (Address::parse(address).unwrap(), folder.into());
                    let relay = Relay::start(&address);
                    nodes.push(Node {
                        address,
                        folder,
                        relay,
                    });
                }
                _ if line.starts_with("ready ") => {
                    let cluster = Cluster {
                        kind,
                        script,
                        nodes,
                    };
                    found_bank(&mut cluster.admin(0).unwrap());
                    return Some(cluster);
                }
                _ => {}
            }
        }
        let mut why = String::new();
        let mut said = script.stderr.take().unwrap();
        said.read_to_string(&mut why).unwrap();
        assert_eq!(script.wait().unwrap().code(), Some(NOT_INSTALLED), "{why}");
        skipped(test, why.trim());
        None
    }

    fn pool(&self, name: &str, more: &str, user: &str) -> Pool {
        let relays = self.nodes.iter().map(|node| node.relay.address.to_string());
        self.pool_at(&relays.collect::<Vec<_>>(), name, more, user)
    }

    /// A pool that is told of the servers at these addresses.
    fn pool_at(&self, addresses: &[String], name: &str, more: &str, user: &str) -> Pool {
        let servers: String = (addresses.iter().zip(1..))
            .map(|(at, number)| format!("[[server]]\nname = \"db{number}\"\naddress = \"{at}\"\n"))
            .collect();
        let text = format!(
            "backends_max = {BACKENDS}\ngroups = 2\nwait_ms_max = 60000\n\
             [backend]\nmonitor_user = \"app\"\nmonitor_password = \"app\"\n{servers}\
             [cluster]\n{}\n{more}\
             [console]\nlisten = \"127.0.0.1:{}\"\nadmin_user = \"admin\"\n\
             admin_password = \"admin\"\n[[user]]\nname = \"bank\"\npassword = \"bank\"\n{user}\n",
            self.kind.settings(),
            free_port()
        );
        let file = format!("{}/../{name}.toml", self.nodes[0].folder);
        std::fs::write(&file, text).unwrap();
        Pool::start(binary(), &["--config", &file]).unwrap_or_else(|why| panic!("{why}"))
    }

    fn admin(&self, at: usize) -> Option<Client> {
        let account = Account::new("app", "app");
        let client = Client::connect(&self.nodes[at].address, &account).ok()?;
        client.wait_at_most(ANSWER_MAX).unwrap();
        Some(client)
    }

    /// Runs a command of the script, and gives what it printed.
    fn run(&self, command: &str, of: &str) -> String {
        let arguments = ["scripts/cluster.sh", command, of];
        let done = Command::new("bash").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{command} {of}: {said}");
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    fn on(&self, command: &str, at: usize) -> String {
        self.run(command, &self.nodes[at].folder)
    }

    fn signal(&self, signal: &str, at: usize) {
        let pid = std::fs::read_to_string(format!("{}/pid", self.nodes[at].folder)).unwrap();
        let sent = Command::new("kill").args([signal, pid.trim()]).status();
        assert!(sent.unwrap().success());
    }

    /// Makes another server take the writes where the cluster does not see to that itself.
    fn fail_over(&self) {
        if self.kind.is_replication() {
            let folder = &self.nodes[0].folder;
            self.run("failover", folder.rsplit_once('/').unwrap().0);
        }
    }

    /// Starts a server that was killed.
    fn start_again(&self, at: usize) {
        let command = match self.kind.is_replication() {
            true => "rejoin",
            false => "start",
        };
        self.on(command, at);
    }

    /// Waits for the moment from which another server than `lost` takes writes, past the pool.
    fn await_writer(&self, lost: usize) -> Instant {
        let deadline = Instant::now() + WHOLE_MAX;
        let others = || (0..self.nodes.len()).filter(|&at| at != lost);
        // One with all rights would write on a replica, too; the bank's are counted.
        let probe = Account::new("probe", "probe");
        let write = |address: &Address| {
            let mut client = Client::connect(address, &probe).ok()?;
            client.wait_at_most(ANSWER_MAX).ok()?;
            client.query("INSERT INTO bank.probe VALUES ()").ok()
        };
        let takes = |done: &Vec<Outcome>| !matches!(done[..], [Outcome::Failed(_)]);
        while Instant::now() < deadline {
            let mut done = others().filter_map(|at| write(&self.nodes[at].address));
            if done.any(|done| takes(&done)) {
                return Instant::now();
            }
            std::thread::sleep(LOOK_EVERY);
        }
        panic!("no server takes writes");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}

/// The console of a pool, with an eye on its servers.
struct Servers(Client);

impl Servers {
    fn of(pool: &Pool) -> Servers {
        let place = crate::world::console_of(pool);
        Servers(login(&place, &Account::new("admin", "admin")))
    }

    /// State of each, with the reason.
    fn states(&mut self) -> Vec<(String, String)> {
        let all = rows(&mut self.0, "SELECT state, why FROM servers");
        all.into_iter()
            .map(|row| (row[0].clone(), row[1].clone()))
            .collect()
    }

    fn writer(&mut self) -> Option<usize> {
        let states = self.states();
        states
            .iter()
            .position(|(state, _)| ["writer", "full"].contains(&&**state))
    }

    /// Waits for a writer, with all others readers. Gives those that are none in time.
    fn until_whole(&mut self, limit: Duration) -> Result<usize, Vec<(String, String)>> {
        let deadline = Instant::now() + limit;
        loop {
            let states = self.states();
            let count = |word| states.iter().filter(|(state, _)| state == word).count();
            if (count("writer"), count("reader")) == (1, states.len() - 1) {
                return Ok(self.writer().unwrap_or(0));
            }
            if Instant::now() > deadline {
                return Err(states);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Kills the writer; returns how long it takes behind the moment from which the cluster has
/// another.
fn lose_writer(cluster: &Cluster, servers: &mut Servers, course: &Course) -> (usize, i128) {
    let lost = servers.until_whole(WHOLE_MAX).unwrap();
    cluster.signal("-9", lost);
    course.mark();
    cluster.fail_over();
    let writer_at = cluster.await_writer(lost);
    let first = course.first_after();
    let later = first.checked_duration_since(writer_at).map_or_else(
        || -(writer_at.duration_since(first).as_millis().cast_signed()),
        |it| it.as_millis().cast_signed(),
    );
    (lost, later)
}

/// Runs short statements of clients of another pool of the fleet, and counts the connections that
/// the fleet has on each server.
fn use_another(cluster: &Cluster, pool: &Pool, ends: &AtomicBool) {
    std::thread::scope(|scope| {
        for _ in 0..BACKENDS {
            scope.spawn(|| {
                let mut client = login(&pool.address, &bank::bank());
                while !ends.load(SeqCst) && client.query("SELECT SLEEP(0.02)").is_ok() {}
            });
        }
        for at in 0..cluster.nodes.len() {
            scope.spawn(move || {
                while !ends.load(SeqCst) {
                    let asked = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                                 WHERE USER = 'bank'";
                    if let Some(mut admin) = cluster.admin(at) {
                        while let Ok([Outcome::Rows(rows)]) = admin.query(asked).as_deref()
                            && !ends.load(SeqCst)
                        {
                            let count: usize = rows.texts()[0][0].parse().unwrap();
                            assert!(count <= BACKENDS, "{count} on server {at}");
                            std::thread::sleep(LOOK_EVERY);
                        }
                    }
                }
            });
        }
    });
}

/// Waits until both pools of the fleet see that they have all backends together.
fn await_fleet(pools: [&Pool; 2]) {
    let begun = Instant::now();
    let mut consoles = pools.map(|pool| Servers::of(pool).0);
    let asked = "SELECT COUNT(*), SUM(held) FROM fleet";
    let all = [["2".to_owned(), BACKENDS.to_string()]];
    while !consoles.iter_mut().all(|it| rows(it, asked) == all) {
        assert!(
            begun.elapsed() < WHOLE_MAX,
            "{:?}",
            rows(&mut consoles[0], asked)
        );
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Clients write on one server and read on the others, by what the kind numbers writes with.
/// `ONRAMP_ORACLE_SEEDS` says how many.
fn sees_its_own_writes(cluster: &Cluster) {
    let seeds = std::env::var("ONRAMP_ORACLE_SEEDS").map_or(8, |text| text.parse().unwrap());
    let admin = &mut cluster.admin(0).unwrap();
    admin.must("CREATE TABLE bank.t (id INT PRIMARY KEY, v INT) ENGINE=InnoDB");
    let pool = cluster.pool("reads", "", "read_from = \"readers\"");
    let mut servers = Servers::of(&pool);
    servers.until_whole(WHOLE_MAX).unwrap();
    let broken = crate::reads::scripts(&pool, seeds);
    let asked = "SELECT SUM(reads) FROM servers WHERE state = 'reader'";
    let reads = rows(&mut servers.0, asked);
    let word = cluster.kind.word();
    eprintln!("{word}: {seeds} seeds, {broken} broken off, {reads:?} reads on readers");
    assert_ne!(reads[0][0], "0");
}

/// A pool that is told of the writer finds the others, goes on with one of them when the writer is
/// killed, and leaves one that is a member no more.
fn finds_the_others(cluster: &Cluster) {
    let listed = [cluster.nodes[0].address.to_string()];
    let told = "discover = true\ndiscover_keep_ms = 1000\ndiscover_networks =";
    let narrow = cluster.pool_at(&listed, "narrow", &format!("{told} [\"127.0.0.1\"]\n"), "");
    let line = format!(
        "event=server-refused message='{}' is named by the cluster, and not used: 127.0.0.2 is \
         not in discover_networks",
        cluster.nodes[1].address
    );
    narrow.wait_for(&line).unwrap();
    assert_eq!(Servers::of(&narrow).states().len(), 1);
    let wide = format!("{told} [\"127.0.0.0/8\"]\n");
    let pool = cluster.pool_at(&listed, "wide", &wide, "read_from = \"readers\"");
    let mut servers = Servers::of(&pool);
    let count = |servers: &mut Servers, count| {
        let deadline = Instant::now() + WHOLE_MAX;
        while servers.states().len() != count {
            assert!(Instant::now() < deadline, "{:?}", servers.states());
            std::thread::sleep(LOOK_EVERY);
        }
    };
    count(&mut servers, 3);
    servers.until_whole(WHOLE_MAX).unwrap();
    let found = rows(
        &mut servers.0,
        "SELECT role, COUNT(*) FROM servers GROUP BY role",
    );
    assert!(
        found.contains(&vec!["discovered".to_owned(), "2".into()]),
        "{found:?}"
    );
    let mut client = login(&pool.address, &bank::bank());
    client.must("SELECT COUNT(*) FROM bank.ledger");
    let (_, ledgers) = bank::under_load(&pool.address, |course| {
        lose_writer(cluster, &mut servers, course)
    });
    let is_cut = ledgers.iter().any(|it| it.cut > 0);
    assert!(!is_cut, "a client was disconnected");
    let names = "SELECT name FROM servers WHERE state =";
    let writer = rows(&mut servers.0, &format!("{names} 'writer'")).concat();
    let addresses = cluster.nodes.iter().map(|it| it.address.to_string());
    let writer = addresses
        .into_iter()
        .position(|it| it == writer[0])
        .expect("it was found");
    bank::check(&mut cluster.admin(writer).unwrap(), &ledgers);
    let leaves = 3 - writer;
    match cluster.kind {
        Kind::Galera => cluster.signal("-TERM", leaves),
        kind => {
            cluster.admin(leaves).unwrap().must(match kind {
                Kind::MariaDb => "STOP SLAVE",
                Kind::MySql => "STOP REPLICA",
                Kind::Group | Kind::Galera => "STOP GROUP_REPLICATION",
            });
        }
    }
    count(&mut servers, 2);
    let part = &cluster.nodes[leaves].address;
    let gone = format!("event=server-gone message='{part}' ");
    pool.wait_for(&gone).unwrap();
    client.must("SELECT COUNT(*) FROM bank.ledger");
}

fn others_are_found(kind: Kind) {
    if let Some(cluster) = pooled(|test| Cluster::start(kind, test)) {
        finds_the_others(&cluster);
    }
}

/// Makes a test of each kind.
macro_rules! clusters {
    ($($name:ident: $play:ident($kind:ident);)*) => {
        $(#[test]
        fn $name() {
            $play(Kind::$kind);
        })*
    };
}

clusters! {
    the_replicas_of_a_mariadb_are_found: others_are_found(MariaDb);
    the_replicas_of_a_mysql_are_found: others_are_found(MySql);
    the_nodes_of_a_galera_are_found: others_are_found(Galera);
    the_members_of_a_group_are_found: others_are_found(Group);
    a_killed_writer_of_galera_is_left_for_another_node: a_killed_writer(Galera);
    a_killed_primary_of_a_group_is_left_for_the_elected_one: a_killed_writer(Group);
}

fn a_killed_writer(kind: Kind) {
    if std::env::var("ONRAMP_CLUSTER_SECONDS").is_ok() {
        return;
    }
    let cluster = or_return!(pooled(|test| Cluster::start(kind, test)));
    sees_its_own_writes(&cluster);
    let fleet = "[fleet]\nname = \"shop\"\n";
    let [pool, other] = ["one", "two"].map(|name| cluster.pool(name, fleet, ""));
    let (mut servers, ends) = (Servers::of(&pool), AtomicBool::new(false));
    let act = |course: &Course| {
        await_fleet([&pool, &other]);
        let (lost, later) = lose_writer(&cluster, &mut servers, course);
        eprintln!(
            "{}: a write {later} ms behind the cluster's own",
            kind.word()
        );
        cluster.start_again(lost);
        let whole = servers.until_whole(WHOLE_MAX);
        assert_ne!(whole, Ok(lost), "it did not take its place back");
        whole.unwrap();
        await_fleet([&pool, &other]);
    };
    let ledgers = std::thread::scope(|scope| {
        let _end = Stop(&ends);
        scope.spawn(|| use_another(&cluster, &other, &ends));
        bank::under_load(&pool.address, act).1
    });
    eprintln!("{}: {}", kind.word(), bank::told(&ledgers));
    let writer = servers.until_whole(WHOLE_MAX).unwrap();
    bank::check(&mut cluster.admin(writer).unwrap(), &ledgers);
    let is_cut = ledgers.iter().any(|ledger| ledger.cut > 0);
    assert!(!is_cut, "a client was disconnected");
}

const FAULTS: &str = "kill stop half slow silent switch full cut cut-all";

/// Fills the disk of a server, which is small; the file is removed again.
fn fill(node: &Node) -> std::path::PathBuf {
    let path = std::path::Path::new(&node.folder).join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    while file.write_all(&[0; 1 << 16]).is_ok() {}
    while file.write_all(&[0]).is_ok() {}
    path
}

/// Setting of `scripts/cluster-faults.sh`.
fn given(name: &str) -> Option<String> {
    std::env::var(format!("ONRAMP_CLUSTER_{name}")).ok()
}

/// One fault, and its end.
fn fault(
    what: &str,
    cluster: &Cluster,
    servers: &mut Servers,
    course: &Course,
    random: &mut Random,
) {
    let writer = servers.writer().unwrap_or(0);
    let drawn = (random.below(3), random.ms(500, 9_000));
    let (at, lasts) = match given("LASTS_MS") {
        Some(lasts) => (writer, Duration::from_millis(lasts.parse().unwrap())),
        // Two of three hit the writer.
        None if drawn.0 == 0 => ((writer + 1) % cluster.nodes.len(), drawn.1),
        None => (writer, drawn.1),
    };
    eprintln!(
        "fault: {what} db{} for {} ms; the writer is db{}",
        at + 1,
        lasts.as_millis(),
        writer + 1
    );
    let relay = &cluster.nodes[at].relay;
    match what {
        "kill" => {
            let lost = match at == writer {
                true => {
                    let (lost, later) = lose_writer(cluster, servers, course);
                    eprintln!("figure: {later} ms from the cluster's write to the pool's");
                    lost
                }
                false => {
                    cluster.signal("-9", at);
                    at
                }
            };
            std::thread::sleep(lasts);
            cluster.start_again(lost);
        }
        "stop" => {
            cluster.signal("-STOP", at);
            std::thread::sleep(lasts);
            cluster.signal("-CONT", at);
        }
        "half" => {
            relay.set(Passing::EverySecondLate(random.ms(900, 3_000)));
            std::thread::sleep(lasts * 2);
        }
        "slow" => {
            relay.set(Passing::Slow(random.ms(50, 400)));
            std::thread::sleep(lasts);
        }
        "silent" => {
            relay.set(Passing::Silent);
            std::thread::sleep(lasts);
        }
        "full" => {
            let filler = fill(&cluster.nodes[at]);
            std::thread::sleep(lasts * 2);
            std::fs::remove_file(filler).unwrap();
        }
        "switch" => {
            let to = format!("SWITCH TO db{}", (writer + 1) % cluster.nodes.len() + 1);
            let begun = Instant::now();
            let outcome = servers.0.query(&to).unwrap();
            eprintln!("{to}: {outcome:?} in {} ms", begun.elapsed().as_millis());
            // What the pool's own statements leave to an orchestrator.
            let done = !matches!(outcome[..], [Outcome::Failed(_)]);
            if done && cluster.kind.is_replication() {
                cluster.on("promote", (writer + 1) % cluster.nodes.len());
            }
        }
        "cut" | "cut-all" => {
            cluster.on("cut", at);
            if what == "cut-all" {
                relay.set(Passing::Silent);
            }
            std::thread::sleep(lasts);
            cluster.on("mend", at);
        }
        other => panic!("no fault '{other}'; there are {FAULTS:?}"),
    }
    relay.set(Passing::Whole);
}

/// Waits until all servers serve again; one that does not come back by itself is started anew.
fn revive(cluster: &Cluster, servers: &mut Servers) {
    let Err(states) = servers.until_whole(REVIVED_AFTER) else {
        return;
    };
    eprintln!("not whole: {states:?}");
    for (at, (state, _)) in states.iter().enumerate() {
        if !matches!(state.as_str(), "writer" | "full" | "reader") {
            cluster.signal("-9", at);
            cluster.start_again(at);
        }
    }
    servers.until_whole(WHOLE_MAX).unwrap();
}

/// Faults from a seed, for as long as is asked for.
#[test]
fn faults_from_a_seed() {
    let (Some(kind), Some(seconds)) = (given("KIND"), given("SECONDS")) else {
        return;
    };
    let (kind, seconds) = (Kind::of(&kind), seconds.parse().unwrap());
    let seed = given("SEED").map_or(1, |it| it.parse().unwrap());
    let apart = std::env::var("ONRAMP_NAMESPACES").is_ok();
    let is_small = std::env::var("ONRAMP_DISK_MB").is_ok();
    let all: Vec<&str> = (FAULTS.split(' '))
        .filter(|it| apart || !it.starts_with("cut"))
        .filter(|it| is_small || *it != "full")
        .collect();
    let chosen = given("FAULTS").unwrap_or_else(|| all.join(","));
    let faults: Vec<&str> = chosen.split(',').collect();
    let cluster = Cluster::start(kind, "real_clusters::faults_from_a_seed").unwrap();
    let pool = cluster.pool("pool", "", "");
    let mut servers = Servers::of(&pool);
    let mut random = Random(seed);
    random.below(1);
    let begun = Instant::now();
    let (_, ledgers) = bank::under_load(&pool.address, |course| {
        servers.until_whole(WHOLE_MAX).unwrap();
        while begun.elapsed() < Duration::from_secs(seconds) {
            let what = faults[usize::try_from(random.below(faults.len() as u64)).unwrap()];
            fault(what, &cluster, &mut servers, course, &mut random);
            revive(&cluster, &mut servers);
            course.wait_for(50);
        }
    });
    let said = pool.said();
    let moves: Vec<_> = said
        .lines()
        .filter(|it| it.contains("event=writer-moved"))
        .collect();
    eprintln!("{}", moves.join("\n"));
    let words = kind.word();
    println!(
        "{words}, seed {seed}, {seconds} s: {}, {} moves",
        bank::told(&ledgers),
        moves.len()
    );
    let writer = servers.until_whole(WHOLE_MAX).unwrap();
    bank::check(&mut cluster.admin(writer).unwrap(), &ledgers);
    println!("lost 0, doubled 0, wrongly reported 0");
}
