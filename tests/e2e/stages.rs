//! A connection to the server that goes wrong at each stage of a conversation: whoever waits for it
//! hears the truth within a bound, no write is lost that was said to be done or done that was said
//! not to be, its slot is free again, and everything goes on.
//!
//! Each stage has a proxy and a pool of its own, on each server.

use crate::world::*;
use std::io::ErrorKind;
use testkit::proxy::Wrong::{self};
use testkit::proxy::Wrong::{Closed, Silent};
use testkit::proxy::{At, Passes, Proxy};

/// Said by the server, or by the pool, when a statement was given up in front of its sending.
const NOT_SENT: [u16; 1] = [9501];
/// Errors of a statement that may have been executed.
const UNKNOWN: [u16; 2] = [3024, 1158];

const LIMITS: &str = "backends_min = 0\ngroups = 1\nbackends_reserved = 0\ndial_ms_max = 1000\n\
    wait_ms_max = 3000\nstatement_ms_max = 2000\nserver_down_fail_ms = 60000\n\
    stored_code_refresh_s = 0\n";

/// A pool whose connections to the server go through a proxy.
struct Stage {
    real: &'static Real,
    proxy: Proxy,
    pool: Pool,
    /// Named by the running test.
    schema: String,
}

/// Backends of a stage's pool.
const BACKENDS: usize = 2;

/// The stage on both servers, at the same time: most of it is waiting. Plays what is to go wrong in
/// either way.
fn on_both(play: impl Fn(&Stage, Wrong) + Sync) {
    let schema = pooled(|test| Some(test.replace("::", "_")));
    let schema = schema.unwrap_or_default();
    std::thread::scope(|scope| {
        for real in pooled_servers() {
            let (play, schema) = (&play, &schema);
            scope.spawn(move || {
                let stage = Stage::new(real, schema);
                play(&stage, Silent);
                play(&stage, Closed);
            });
        }
    });
}

impl Stage {
    fn new(real: &'static Real, schema: &str) -> Stage {
        fresh_schema(real, schema);
        real.execute(&[&format!(
            "CREATE TABLE {schema}.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE=InnoDB"
        )]);
        let Address::Tcp(address) = real.address() else {
            panic!("{schema}: the server has no port")
        };
        let proxy = Proxy::start(address);
        let limits = format!("backends_max = {BACKENDS}\n{LIMITS}");
        let text = config(&proxy.address, &limits);
        let pool = pool_from(real, &text);
        Stage {
            real,
            proxy,
            pool,
            schema: schema.to_owned(),
        }
    }

    fn client(&self) -> Client {
        login(&self.pool.address, &app().schema(&self.schema))
    }

    fn say(&self, what: &str) -> String {
        format!("{:?}: {what}: {}", self.real.flavour(), self.pool.said())
    }

    /// Rows of the table, as the server has them.
    fn rows(&self) -> u64 {
        let sql = format!("SELECT COUNT(*) FROM {}.t", self.schema);
        self.real.admin().value(&sql).parse().unwrap()
    }

    /// Number of rows that [`Stage::writes_again`] has written.
    fn rows_of_others(&self) -> u64 {
        let sql = format!("SELECT COUNT(*) FROM {}.t WHERE v = 0", self.schema);
        self.real.admin().value(&sql).parse().unwrap()
    }

    /// Checks that every slot can be used, all at once.
    fn all_slots_work(&self) {
        let mut all: Vec<Client> = (0..BACKENDS).map(|_| self.client()).collect();
        for client in &mut all {
            client.must(HOLD);
            assert_eq!(client.value("SELECT 1"), "1", "{}", self.say("a slot"));
        }
    }

    /// Plays what goes wrong at this point, and everything goes on: the slots, a write, and the
    /// client that was hit, unless it was closed.
    fn goes_wrong(
        &self,
        (at, passes, wrong): (At, Passes, Wrong),
        hit: &mut Client,
        play: impl Fn(&mut Client) -> Heard,
    ) -> Heard {
        let before = self.rows();
        self.proxy.go_wrong(at, passes, wrong);
        let heard = play(hit);
        let count = self.proxy.mend();
        assert!(count > 0, "{}", self.say("nothing went wrong"));
        let written = self.rows() - before;
        let (least, most) = heard.writes();
        let case = self.say(&format!("{heard:?}, and {written} rows"));
        assert!((least..=most).contains(&written), "{case}");
        let (before, others) = (self.rows(), self.rows_of_others());
        self.writes_again();
        assert_eq!(self.rows_of_others(), others + 1);
        // What went wrong may still take effect, if nobody knows whether it has.
        let late = match heard {
            Heard::Done => 0,
            _ => most - written,
        };
        let more = self.rows() - before - 1;
        assert!(more <= late, "{}", self.say(&format!("{more} rows late")));
        if !matches!(heard, Heard::Closed) {
            match hit.query("SELECT 'goes on'") {
                Ok(outcomes) => {
                    assert!(matches!(outcomes[..], [Outcome::Rows(_)]), "{outcomes:?}");
                }
                // Said to be gone, and gone.
                Err(error) => assert!(is_end(&error), "{error}"),
            }
        }
        self.all_slots_work();
        heard
    }
}

/// Answer that a client got to one statement.
#[derive(Debug)]
enum Heard {
    /// Success.
    Done,
    Failed(Failure),
    /// Its connection ended.
    Closed,
}

/// True if the connection has ended, in place of an answer that did not come in time.
fn is_end(error: &ClientError) -> bool {
    let ends = [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::BrokenPipe,
    ];
    matches!(error, ClientError::Io(error) if ends.contains(&error.kind()))
}

impl Heard {
    fn of(reply: Result<Vec<Outcome>, ClientError>) -> Heard {
        match reply {
            Ok(outcomes) => match outcomes.last() {
                Some(Outcome::Failed(failure)) => Heard::Failed(failure.clone()),
                Some(_) => Heard::Done,
                None => panic!("no outcome"),
            },
            Err(error) if is_end(&error) => Heard::Closed,
            Err(ClientError::Refused(failure)) => Heard::Failed(failure),
            Err(error) => panic!("neither an answer nor an end: {error}"),
        }
    }

    /// Rows that a statement which inserts one may have left, by what was said of it.
    fn writes(&self) -> (u64, u64) {
        match self {
            Heard::Done => (0, 1),
            Heard::Failed(failure) if failure.message.contains("unknown") => (0, 1),
            Heard::Failed(_) => (0, 0),
            Heard::Closed => (0, 1),
        }
    }

    fn must_be(&self, codes: &[u16]) {
        match self {
            Heard::Failed(failure) => assert!(codes.contains(&failure.code), "{failure}"),
            other => panic!("expected an error, got {other:?}"),
        }
    }
}

const INSERT: &str = "INSERT INTO t (v) VALUES (1234567)";
const READ: &str = "SELECT CONCAT('sta', 'ge'), REPEAT('x', 3000), 'read'";
const RESTORED: &[u8] = b"lock_wait_timeout";

fn query(sql: &'static str) -> impl Fn(&mut Client) -> Heard {
    move |client| Heard::of(client.query(sql))
}

/// A statement needs a new connection, which comes to nothing: it is not executed, and says so.
fn opening(point: impl Fn(Flavour) -> (At, Passes) + Sync) {
    on_both(|stage, wrong| {
        let (at, passes) = point(stage.real.flavour());
        let mut hit = login(&stage.pool.address, &app());
        hit.must("SELECT 1");
        stage.close_backends();
        let heard = stage.goes_wrong((at, passes, wrong), &mut hit, |client| {
            Heard::of(client.query(&format!("INSERT INTO {}.t (v) VALUES (1)", stage.schema)))
        });
        heard.must_be(&NOT_SENT);
        assert_eq!(hit.value("SELECT 1"), "1", "{}", stage.say("its session"));
    });
}

impl Stage {
    /// Ends all of the pool's backends at the server, and waits until the pool knows.
    fn close_backends(&self) {
        let mut holds: Vec<Client> = (0..BACKENDS).map(|_| self.client()).collect();
        // All at once: a FLUSH PRIVILEGES of another test gives them connections of their own, and
        // those from before it are closed only where all others are in use.
        for client in &mut holds {
            client.must(HOLD);
        }
        for client in &mut holds {
            let id = client.talk().greeting.as_ref().unwrap().connection_id;
            let line = self.pool.report_of(id).unwrap();
            let thread = line.split("on thread ").nth(1).unwrap();
            let thread = thread.split([',', ' ']).next().unwrap();
            self.real.execute(&[&format!("KILL {thread}")]);
            let words = format!("thread {thread} of the server");
            self.pool.wait_for(&words).unwrap();
        }
    }

    /// A client that comes is served: at once, or, where all backends still wait for an answer, by
    /// its next attempt but one, since that wait has its bound.
    fn writes_again(&self) {
        let mut client = self.client();
        for _ in 0..3 {
            match Heard::of(client.query("INSERT INTO t (v) VALUES (0)")) {
                Heard::Done => return,
                heard => heard.must_be(&NOT_SENT),
            }
        }
        panic!("{}", self.say("nobody is served"));
    }
}

fn greeting(flavour: Flavour) -> At {
    At::Heard(match flavour {
        Flavour::MySql => b"caching_sha2_password",
        Flavour::MariaDb => b"mysql_native_password",
    })
}

/// Sends a statement to a backend that was another client's, so its session is restored in front.
fn restored(at: At, passes: Passes, sql: &'static str, codes: &[u16]) {
    on_both(|stage, wrong| {
        let mut hit = stage.client();
        hit.must("SET lock_wait_timeout = 77");
        stage.all_slots_work();
        let heard = stage.goes_wrong((at, passes, wrong), &mut hit, query(sql));
        if !matches!(heard, Heard::Closed) || passes != Passes::Half {
            heard.must_be(codes);
        }
        if let Ok(outcomes) = hit.query("SELECT @@lock_wait_timeout") {
            let value = outcomes[0].rows().only();
            assert_eq!(value, "77", "its session goes on as it was");
        }
    });
}

const EITHER: [u16; 3] = [9501, 1158, 3024];

/// A client's own change, and the server's word of it.
fn changed() {
    on_both(|stage, wrong| {
        let mut hit = stage.client();
        hit.must("SET lock_wait_timeout = 77");
        let point = (At::Answered(b"= 78"), Passes::TwoBytes, wrong);
        let heard = stage.goes_wrong(point, &mut hit, query("SET lock_wait_timeout = 78"));
        heard.must_be(&UNKNOWN);
        if let Ok(outcomes) = hit.query("SELECT @@lock_wait_timeout") {
            assert_eq!(outcomes[0].rows().only(), "77");
        }
    });
}

fn commit(at: At, rows: u64) {
    on_both(|stage, wrong| {
        let before = stage.rows();
        let mut hit = stage.client();
        hit.must(HOLD);
        hit.must(INSERT);
        let heard = stage.goes_wrong((at, Passes::Nothing, wrong), &mut hit, query("COMMIT"));
        heard.must_be(&UNKNOWN);
        let Heard::Failed(failure) = heard else {
            return;
        };
        says(&failure.message, "took effect is unknown");
        assert!(hit.query("SELECT 1").is_err(), "its session is gone");
        // One more is of what went on.
        assert_eq!(stage.rows() - before - 1, rows);
    });
}

/// A value that a statement left, and no reply tells, is read behind it: its client gets the value,
/// or hears that it is lost, and never another value.
fn read_back(at: At) {
    on_both(|stage, wrong| {
        let mut hit = stage.client();
        stage.goes_wrong((at, Passes::Nothing, wrong), &mut hit, |client| {
            assert_eq!(client.value("SELECT LAST_INSERT_ID(41)"), "41");
            let reply = client.query("SELECT @@last_insert_id");
            if let Ok(outcomes) = &reply
                && let Outcome::Rows(rows) = &outcomes[0]
            {
                assert_eq!(rows.only(), "41");
            }
            Heard::of(reply)
        });
    });
}

const RESET: &[u8] = b"\x01\0\0\0\x1f";

/// A client that holds a lock gives its session up, and its backend does not answer: the lock is
/// free all the same, and the client hears of it.
fn giving_up(at: At, play: impl Fn(&mut Client) -> Heard + Sync) {
    on_both(|stage, wrong| {
        let mut hit = stage.client();
        let lock = format!("SELECT GET_LOCK('{}', 30)", stage.schema);
        assert_eq!(hit.value(&lock), "1");
        stage.goes_wrong((at, Passes::Nothing, wrong), &mut hit, &play);
        let mut next = stage.real.admin();
        assert_eq!(next.value(&lock), "1", "{}", stage.say("the lock"));
    });
}

fn reset(client: &mut Client) -> Heard {
    Heard::of(client.run(Command::ResetConnection, b""))
}

fn preparing(at: At) {
    on_both(|stage, wrong| {
        let mut hit = stage.client();
        let point = (at, Passes::Nothing, wrong);
        let heard = stage.goes_wrong(point, &mut hit, |client| {
            Heard::of(client.run(Command::StmtPrepare, INSERT.as_bytes()))
        });
        heard.must_be(&EITHER);
        // On a backend that lacks it, in front of its execution.
        let mut hit = stage.client();
        let prepared = hit.prepare(INSERT);
        stage.close_backends();
        let heard = stage.goes_wrong(point, &mut hit, |client| {
            Heard::of(client.execute(prepared.id, &[], false))
        });
        heard.must_be(&EITHER);
    });
}

/// Makes a test of each stage.
macro_rules! stages {
    ($($name:ident: $play:expr;)*) => {
        $(#[test]
        fn $name() {
            $play
        })*
    };
}

stages! {
    the_greeting: opening(|flavour| (greeting(flavour), Passes::Nothing));
    the_middle_of_the_greeting: opening(|flavour| (greeting(flavour), Passes::Half));
    the_login: opening(|_| (At::Said(b"app\0"), Passes::Nothing));
    the_answer_to_the_login: opening(|_| (At::Answered(b"app\0"), Passes::TwoBytes));
    the_preparation_of_a_backend: opening(|_| (At::Said(b"session_track"), Passes::Nothing));
    the_answer_to_the_preparation: opening(|_| (At::Answered(b"session_track"), Passes::Half));
    the_restoring_of_a_session: restored(At::Said(RESTORED), Passes::Nothing, INSERT, &EITHER);
    // The server tells of a variable that has changed; the statement may stand behind it.
    the_answer_to_the_restoring: restored(At::Answered(RESTORED), Passes::Nothing, INSERT, &EITHER);
    the_statement: restored(At::Said(b"1234567"), Passes::Nothing, INSERT, &EITHER);
    the_answer_to_the_statement:
        restored(At::Answered(b"1234567"), Passes::Nothing, INSERT, &UNKNOWN);
    the_header_of_a_reply: restored(At::Heard(b"xxxxxxxx"), Passes::TwoBytes, READ, &UNKNOWN);
    the_middle_of_a_reply: restored(At::Heard(b"xxxxxxxx"), Passes::Half, READ, &UNKNOWN);
    the_report_of_a_change: changed();
    a_commit: commit(At::Said(b"COMMIT"), 0);
    the_answer_to_a_commit: commit(At::Answered(b"COMMIT"), 1);
    a_read_back: read_back(At::Said(b"LAST_INSERT_ID()"));
    the_answer_to_a_read_back: read_back(At::Answered(b"LAST_INSERT_ID()"));
    a_reset: giving_up(At::Said(RESET), reset);
    the_answer_to_a_reset: giving_up(At::Answered(RESET), reset);
    a_change_of_user: giving_up(At::Said(RESET), |client| {
        Heard::of(client.change_user(&app()))
    });
    the_preparing_of_a_statement: preparing(At::Said(b"1234567"));
    the_answer_to_the_preparing: preparing(At::Answered(b"1234567"));
}
