//! Several pools in front of one server that share its connections: counted on the server itself.

use crate::world::*;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use testkit::proxy::{At, Passes, Proxy, Wrong};
use testkit::real::await_blocked;

/// Backends of the whole fleet.
const ALL: usize = 16;

/// Sets the limit, and an account for the pools' own questions that has no privilege.
fn prepare(real: &Real) {
    real.create_user("app", "app");
    real.create_user("other", "other's");
    real.execute(&["CREATE USER monitor@'%' IDENTIFIED BY 'monitor'"]);
}

fn start(real: &Real, extra: &str) -> Pool {
    start_at(&real.address(), real, extra)
}

fn start_at(address: &Address, real: &Real, extra: &str) -> Pool {
    let monitor = "monitor_user = \"monitor\"\nmonitor_password = \"monitor\"\n";
    let lines = format!("backends_max = {ALL}\ngroups = 2\nwait_ms_max = 60000\n{extra}");
    let text = config_to(address, monitor, &lines)
        + "[fleet]\nname = \"shop\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
           admin_user = \"admin\"\nadmin_password = \"admin\"\n";
    pool_from(real, &text)
}

/// Lines of SHOW FLEET: what this pool holds, its share, and the pools there are.
fn seen(console: &mut Client) -> (usize, usize, usize) {
    let rows = console
        .rows("SELECT is_self, held, share FROM fleet")
        .texts();
    let own = rows.iter().find(|row| row[0] == "1");
    let number = |at: usize| own.map_or(0, |row| row[at].parse().unwrap());
    (number(1), number(2), rows.len())
}

fn console(pool: &Pool) -> Client {
    Client::connect(&console_of(pool), &Account::new("admin", "admin")).unwrap()
}

/// Waits until each console tells what it should.
fn await_all(
    what: &str,
    consoles: &mut [&mut Client],
    is_so: impl Fn(&[(usize, usize, usize)]) -> bool,
) {
    until(|| {
        let all: Vec<_> = consoles.iter_mut().map(|console| seen(console)).collect();
        match is_so(&all) {
            true => Ok(()),
            false => Err(format!("{what}: {all:?}")),
        }
    });
}

fn signal(pool: &Pool, signal: Signal) {
    kill_process(Pid::from_raw(pool.pid().cast_signed()).unwrap(), signal).unwrap();
}

/// Starts clients of a pool that run short statements until told to end.
fn load<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    pool: &Pool,
    clients: usize,
    ends: &'scope AtomicBool,
) {
    for _ in 0..clients {
        let address = pool.address.clone();
        scope.spawn(move || {
            let mut client = login(&address, &app());
            while !ends.load(Ordering::SeqCst) && client.query("SELECT SLEEP(0.02)").is_ok() {}
        });
    }
}

/// The most connections of the account that the server has had, until told to end.
fn count(real: &Real, ends: &AtomicBool, most: &AtomicUsize) {
    let mut admin = real.admin();
    while !ends.load(Ordering::SeqCst) {
        let count = admin.value(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER IN ('app','other')",
        );
        most.fetch_max(count.parse().unwrap(), Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn pools_of_a_fleet_never_have_more_than_one_alone() {
    for real in own_servers(&[]) {
        prepare(&real);
        // The server counts too, between two looks, and while pools start.
        real.execute(&[&format!(
            "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS {ALL}"
        )]);
        let (ends, most) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let _end = Stop(&ends);
            scope.spawn(|| count(&real, &ends, &most));
            let one = start(&real, "");
            let mut first = console(&one);
            await_all("one alone", &mut [&mut first], |all| all[0].0 == ALL);
            load(scope, &one, 30, &ends);
            let (two, three) = (start(&real, ""), start(&real, ""));
            let (mut second, mut third) = (console(&two), console(&three));
            load(scope, &two, 20, &ends);
            load(scope, &three, 10, &ends);
            // By demand, about 30, 20 and 10 of 60, with a floor of 2.
            let near = |all: &[(usize, usize, usize)]| {
                let wanted = [(7, 8), (4, 6), (2, 4)];
                let each = all.iter().zip(wanted);
                each.clone()
                    .all(|(seen, (least, most))| (least..=most).contains(&seen.0))
                    && all.iter().all(|seen| seen.2 == 3)
            };
            await_all("three", &mut [&mut first, &mut second, &mut third], near);
            // Its statements run on at the server.
            let mut long = login(&one.address, &app());
            send(&mut long, "SELECT SLEEP(4)");
            signal(&one, Signal::KILL);
            let whole = |all: &[(usize, usize, usize)]| {
                all.iter().map(|seen| seen.0).sum::<usize>() == ALL
                    && all.iter().all(|seen| seen.2 == 2)
            };
            await_all("one killed", &mut [&mut second, &mut third], whole);
            // Stopped, with the connection that holds its claims gone, it keeps its backends.
            let own = second.value("SELECT connection FROM fleet WHERE is_self = 1");
            signal(&two, Signal::STOP);
            real.execute(&[&format!("KILL {own}")]);
            await_all("two stopped", &mut [&mut third], |all| all[0].2 == 1);
            std::thread::sleep(Duration::from_millis(1500));
            signal(&two, Signal::CONT);
            await_all("two goes on", &mut [&mut second, &mut third], whole);
            // A connection that is cut costs nobody a backend.
            let own = third.value("SELECT connection FROM fleet WHERE is_self = 1");
            real.execute(&[&format!("KILL {own}")]);
            two.wait_for("fleet-back").unwrap();
            three.wait_for("fleet-back").unwrap();
            await_all("three cut", &mut [&mut second, &mut third], whole);
            assert_eq!(login(&three.address, &app()).value("SELECT 7"), "7");
            ends.store(true, Ordering::SeqCst);
            for pool in [one, two, three] {
                assert!(!pool.said().contains("1226"), "{}", pool.said());
            }
        });
        let most = most.into_inner();
        println!("at most {most} of {ALL}");
        assert!(most <= ALL, "{most}");
    }
}

#[test]
fn a_pool_that_is_cut_off_from_the_server_keeps_what_the_server_has_of_it() {
    for real in own_servers(&[]) {
        prepare(&real);
        real.execute(&[&format!(
            "ALTER USER app@'%' WITH MAX_USER_CONNECTIONS {ALL}"
        )]);
        let proxy = Proxy::start(([127, 0, 0, 1], real.port()).into());
        let (ends, most) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let _end = Stop(&ends);
            scope.spawn(|| count(&real, &ends, &most));
            let one = start(&real, "");
            let two = start_at(&proxy.address, &real, "");
            let (mut first, mut second) = (console(&one), console(&two));
            load(scope, &one, 20, &ends);
            load(scope, &two, 20, &ends);
            let evenly = |all: &[(usize, usize, usize)]| {
                all.iter()
                    .all(|seen| (7..=9).contains(&seen.0) && seen.2 == 2)
            };
            await_all("two", &mut [&mut first, &mut second], evenly);
            // Whatever either says comes nowhere, and the server hears of no end.
            proxy.go_wrong(At::Said(b"SELECT"), Passes::Nothing, Wrong::Silent);
            two.wait_for("fleet-lost").unwrap();
            await_all("one alone", &mut [&mut first], |all| all[0].2 == 1);
            let mut client = login(&one.address, &app());
            (0..100).for_each(|_| _ = client.must("SELECT SLEEP(0.02)"));
            proxy.mend();
            two.wait_for("fleet-back").unwrap();
            await_all("two again", &mut [&mut first, &mut second], |all| {
                all.iter().all(|seen| seen.0 > 0 && seen.2 == 2)
            });
            // Its backends answer again as each of them hears what the server says.
            let mut client = login(&two.address, &app());
            wait_while(|| match &client.query("SELECT 7").unwrap()[..] {
                [Outcome::Failed(failure)] if failure.code == 9507 => true,
                answer => matches!(answer, [Outcome::Failed(_)]) && panic!("{answer:?}"),
            });
            ends.store(true, Ordering::SeqCst);
            signal(&two, Signal::KILL);
            for pool in [one, two] {
                assert!(!pool.said().contains("1226"), "{}", pool.said());
            }
        });
        let most = most.into_inner();
        assert!(most <= ALL, "{most}");
    }
}

#[test]
fn ids_are_unique_in_a_fleet_and_kill_finds_any_client() {
    for real in own_servers(&[]) {
        prepare(&real);
        let pools = [start(&real, ""), start(&real, "")];
        let mut consoles = pools.each_ref().map(console);
        let [one, two] = &mut consoles;
        await_all("two", &mut [one, two], |all| {
            all.iter().all(|seen| seen.2 == 2)
        });
        let [mut here, mut there] = pools.each_ref().map(|pool| login(&pool.address, &app()));
        let (mine, theirs) = (
            here.value("SELECT CONNECTION_ID()"),
            there.value("SELECT CONNECTION_ID()"),
        );
        assert_ne!(mine, theirs);
        send(&mut there, "SELECT SLEEP(60)");
        await_blocked(&mut real.admin(), &there, "SELECT SLEEP(60)");
        here.must(&format!("KILL QUERY {theirs}"));
        there.receive().unwrap();
        assert_eq!(there.value("SELECT CONNECTION_ID()"), theirs);
        // Nobody else's client, and none that is not there.
        let mut other = login(&pools[0].address, &Account::new("other", "other's"));
        assert_eq!(other.failure(&format!("KILL {theirs}")).code, 1095);
        let nobody: u32 = theirs.parse::<u32>().unwrap() + 1000;
        assert_eq!(here.failure(&format!("KILL {nobody}")).code, 1094);
        here.must(&format!("KILL {theirs}"));
        assert!(there.query("SELECT 1").is_err());
        assert_eq!(here.value("SELECT CONNECTION_ID()"), mine);
        // An administrator ends anybody's, of any pool.
        let others = other.value("SELECT CONNECTION_ID()");
        send(&mut other, "SELECT SLEEP(60)");
        await_blocked(&mut real.admin(), &other, "SELECT SLEEP(60)");
        two.must(&format!("KILL QUERY {others}"));
        other.receive().unwrap();
        assert_eq!(other.value("SELECT CONNECTION_ID()"), others);
        two.must(&format!("KILL {others}"));
        assert!(other.query("SELECT 1").is_err());
        pools[0].wait_for("said at another pool's console").unwrap();
        assert_eq!(here.value("SELECT CONNECTION_ID()"), mine);
        let refused = two.failure(&format!("KILL {nobody}"));
        says(&refused.message, "SHOW CLIENTS of each pool of the fleet");
        let said = format!("{:?}", two.must("KILL USER 'app'"));
        says(&said, "0 clients of this pool are closed; say the same");
    }
}

#[test]
fn a_fleet_shares_the_limit_of_an_account() {
    for real in own_servers(&[]) {
        prepare(&real);
        let lines = "account_backends_max = 4";
        let pools = [start(&real, lines), start(&real, lines)];
        let (ends, most) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let _end = Stop(&ends);
            scope.spawn(|| count(&real, &ends, &most));
            let done: Vec<_> = (0..12)
                .map(|n: usize| {
                    let address = pools[n % 2].address.clone();
                    scope.spawn(move || {
                        let mut client = login(&address, &app());
                        (0..20).for_each(|_| _ = client.must("SELECT SLEEP(0.05)"));
                    })
                })
                .collect();
            done.into_iter().for_each(|one| one.join().unwrap());
        });
        let most = most.into_inner();
        assert!((1..=4).contains(&most), "{most}");
    }
}

#[test]
fn a_pool_of_a_fleet_ends_no_connection_of_others_after_a_restart_of_the_server() {
    for mut real in own_servers(&[]) {
        prepare(&real);
        let proxy = Proxy::start(([127, 0, 0, 1], real.port()).into());
        // Numbers up to its connection's are given out again after a restart.
        (0..200).for_each(|_| drop(real.admin()));
        let pool = start_at(&proxy.address, &real, "");
        loop {
            let own = console(&pool).value("SELECT connection FROM fleet WHERE is_self = 1");
            let own: u64 = own.parse().unwrap();
            proxy.go_wrong(At::Said(b"monitor"), Passes::Nothing, Wrong::Closed);
            real.restart().unwrap();
            pool.wait_for("fleet-lost").unwrap();
            let monitor = Account::new("monitor", "monitor");
            let connect = || Client::connect(&real.address(), &monitor).unwrap();
            let mut clients = std::iter::repeat_with(connect);
            let id = |client: &mut Client| client.value("SELECT CONNECTION_ID()").parse::<u64>();
            let found = clients.find_map(|mut client| {
                let id = id(&mut client).unwrap();
                (id >= own).then_some((client, id))
            });
            let (mut victim, number) = found.unwrap();
            proxy.mend();
            pool.wait_for("fleet-back").unwrap();
            if number == own {
                assert_eq!(victim.value("SELECT 7"), "7");
                break;
            }
        }
    }
}
