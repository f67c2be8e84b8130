//! A simulated client: its script, its conversation, and its judgement of every reply.
//!
//! The problem: "no client can notice the pool" must be checked by the clients. The mechanism: each
//! speaks the protocol with [`Talk`], which checks packet numbers and shapes; what a reply must say
//! follows from the client's [`Belief`]; where a statement ran, the server's [`Db`] knows.
//!
//! What holds, or the simulation ends with a panic that names the client and its statement:
//! - a reply belongs to its statement and was made under its client's session;
//! - who is told that a statement was done finds it executed once, in its own transaction; who is
//!   told that it was not executed never finds it executed;
//! - a connection ends for a reason only.

mod checks;

use super::fake_mysql::{Db, PASSWORD};
use super::random::Random;
use super::script::{Belief, Held, Kind, PREPARED, TAGS_PER_CLIENT, USER, choose, is_poisoned};
use super::settings::HASHED;
use super::standing::Standing;
use super::tls::{Heard, SimTls};
use crate::frames::Frames;
use crate::reply::{Failure, Outcome, Prepared};
use crate::talk::{Account, Happened, Talk};
use reactor::Time;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::auth::Plugin;
use wire::capabilities as cap;
use wire::command::Command;
use wire::packet::{HEADER_LEN, Header};

/// Bytes of a command that stalls: more than is read of any for nothing.
const STALLED_LEN: usize = 300_000;

/// Most stops of a client in the middle of a reply: all of them take less than a drain.
const STOPS_MAX: u32 = 8;

/// Words of its talk about an error 9511 that is no reply to what it has asked.
const KEEPS_TOO_MUCH: &str = "packet number 0, expected 1: [ff, 27, 25";

/// Bytes of an OK, and what a frame and a record of its own add.
const OK_LEN: usize = 11;
const FRAME_HEADER_LEN: usize = 7;
const RECORD_LEN: usize = 22;

/// Commands that a client sends at once that floods, before all others.
pub(crate) const FLOOD: usize = 200;

/// Manners that the world has decided for all clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    /// No transactions and no pins.
    pub(crate) tame: bool,
    /// Several statements may be sent before the first is answered.
    pub(crate) pipelined: bool,
    /// All clients have one session, and mostly read: they are pipelined with each other.
    pub(crate) uniform: bool,
    /// Clients log in as users with full authentication, some with a wrong password, and some
    /// leave while they do.
    pub(crate) guesses: bool,
    /// Some clients speak in compressed frames.
    pub(crate) packs: bool,
    /// Some are under TLS.
    pub(crate) secures: bool,
    /// Some stop amid a command.
    pub(crate) stalls: bool,
    /// Clients may keep fewer backends than there are.
    pub(crate) keeps_few: bool,
    /// Their reads go to other servers.
    pub(crate) reads_elsewhere: bool,
    /// The first one sends [`FLOOD`] commands at once that need no server.
    pub(crate) floods: bool,
    /// True if it does so within its first transaction, if it has one.
    pub(crate) floods_inside: bool,
    /// True if clients ask for long replies, and stop amid them.
    pub(crate) readers_stop: bool,
    /// Number of kinds of backends that the clients need.
    pub(crate) kinds: u64,
    /// True for worlds of one kind: all clients are without CLIENT_DEPRECATE_EOF.
    pub(crate) eofs: bool,
    /// Statements of one client.
    pub(crate) statements: u64,
    pub(crate) wait_max: Duration,
    /// Statements of several clients that may be in flight on a backend.
    pub(crate) pipeline_max: u64,
}

/// Phase of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not connected yet.
    New,
    LoggingIn,
    In,
    /// Stalled: it has sent the front of a command, and neither sends nor takes anything more.
    Stalled,
    /// Gone on its own, with COM_QUIT or without.
    Left,
    /// Its connection has ended.
    Gone,
}

#[derive(Clone, Debug)]
struct Asked {
    tag: u64,
    kind: Kind,
}

/// One client.
pub(crate) struct SimClient {
    pub(crate) id: usize,
    pub(crate) wire: Option<usize>,
    pub(crate) phase: Phase,
    pub(crate) acts_at: Time,
    /// Moment before which it takes nothing.
    pub(crate) frozen_until: Time,
    /// True if it has taken something since.
    has_taken: bool,
    /// Stops in the middle of a reply that are left.
    stops_left: u32,
    /// Moment since which it waits for an answer.
    pub(crate) since: Time,
    pub(crate) belief: Belief,
    /// Variables that its login has set; a reset goes back to them.
    login_variables: BTreeMap<String, String>,
    talk: Talk,
    /// Its TLS, if it is one that asks for that.
    tls: Option<SimTls>,
    /// Its frames, once it is in and they were agreed on.
    frames: Option<Frames>,
    /// Bytes of its login that are no whole packet yet.
    raw: Vec<u8>,
    /// Its password is wrong.
    guesses: bool,
    asked: VecDeque<Asked>,
    made: u64,
    has_flooded: bool,
    /// The highest id of a prepared statement.
    highest: u32,
    last: Option<Kind>,
    /// The statement before the last one failed.
    failed_before: bool,
    last_failed: bool,
    /// The pool has a reason to end the connection.
    pub(crate) ends: bool,
    /// The pool drains.
    pub(crate) drained: bool,
    /// Another client has killed a statement of its.
    pub(crate) hunted: bool,
    /// Statements that were not executed, by the pool's word.
    not_executed: Vec<u64>,
    /// Rows that are in the log, by the server's word, and rows that are not.
    pub(crate) kept: Vec<u64>,
    dropped: Vec<u64>,
    pub(crate) answered: u64,
    /// Restoring commands that failed in front of its statements, and before them.
    pub(crate) unrestored: [u64; 2],
    /// Statements that found no backend of their client's: they run in the order of their arrival.
    pub(crate) plain: Vec<u64>,
}

impl SimClient {
    pub(crate) fn new(
        id: usize,
        random: &mut Random,
        starts_at: Time,
        manners: &Manners,
    ) -> SimClient {
        let mut account = Account::new("app", PASSWORD);
        let guesses = manners.guesses && random.chance(300);
        if manners.guesses && (guesses || random.chance(800)) {
            let password = if guesses { "a guess" } else { PASSWORD };
            let user = *random.pick(&HASHED);
            account = Account::new(user, password).plugin(Plugin::CachingSha2);
        }
        let mut standing = Standing::default();
        if manners.uniform {
            account = account.schema("a");
            standing.schema = Some("a".into());
        } else if random.chance(600) {
            let schema = *random.pick(&["a", "a", "b", "nowhere"]);
            account = account.schema(schema);
            standing.schema = Some(schema.into());
        }
        if !manners.uniform && random.chance(200) {
            account = account.with(cap::MULTI_STATEMENTS);
            standing.multi = true;
        }
        if (manners.kinds == 1 && manners.eofs) || (manners.kinds > 1 && random.chance(300)) {
            account = account.without(cap::DEPRECATE_EOF);
        }
        if manners.kinds > 2 && random.chance(400) {
            account = account.with(cap::FOUND_ROWS);
        }
        if !manners.uniform && random.chance(150) {
            account.collation = 8;
            for name in super::standing::DEFAULTS[..3].iter().map(|(name, _)| name) {
                standing.set(name, "latin1");
            }
            standing.set("collation_connection", "latin1_swedish_ci");
        }
        if manners.packs && id.is_multiple_of(2) {
            account = account.with(cap::COMPRESS);
        }
        let secures = manners.secures && (id / 2).is_multiple_of(2);
        if secures {
            account = account.with(cap::SSL);
        }
        let schema = account.schema.as_ref().map_or(0, |_| cap::CONNECT_WITH_DB);
        let tls = secures.then(|| SimTls::new(account.capabilities | schema));
        SimClient {
            id,
            wire: None,
            phase: Phase::New,
            acts_at: starts_at,
            frozen_until: Time(0),
            has_taken: false,
            stops_left: STOPS_MAX,
            since: Time(0),
            login_variables: standing.variables.clone(),
            belief: Belief {
                standing,
                ..Belief::default()
            },
            talk: Talk::new(account, false),
            tls,
            frames: None,
            raw: Vec::new(),
            guesses,
            asked: VecDeque::new(),
            made: 0,
            has_flooded: false,
            highest: 0,
            last: None,
            failed_before: false,
            last_failed: false,
            ends: false,
            drained: false,
            hunted: false,
            not_executed: Vec::new(),
            kept: Vec::new(),
            dropped: Vec::new(),
            answered: 0,
            unrestored: [0; 2],
            plain: Vec::new(),
        }
    }

    /// True if it waits for something.
    pub(crate) fn waits(&self) -> bool {
        self.phase == Phase::LoggingIn || (self.phase == Phase::In && !self.asked.is_empty())
    }

    /// True if it waits for a long reply, or is in the middle of one.
    pub(crate) fn is_amid_long_reply(&self) -> bool {
        let is_long = |asked: &Asked| matches!(asked.kind, Kind::Big);
        self.phase == Phase::In && self.asked.iter().any(is_long)
    }

    /// True if it may stop now in the middle of a long reply.
    pub(crate) fn may_stop(&self) -> bool {
        self.is_amid_long_reply() && self.has_taken && self.stops_left > 0
    }

    /// Takes nothing before this moment.
    pub(crate) fn freeze(&mut self, until: Time) {
        self.frozen_until = until;
        self.has_taken = false;
    }

    /// Stops reading in the middle of a reply.
    pub(crate) fn stop_reading(&mut self, until: Time) {
        self.freeze(until);
        self.stops_left -= 1;
    }

    /// True if it is the one that floods.
    pub(crate) fn floods(&self, manners: &Manners) -> bool {
        manners.floods && self.id == 0
    }

    /// Bytes of an OK to it on the wire, at most.
    pub(crate) fn ok_len(&self) -> usize {
        let frame = self.frames.as_ref().map_or(0, |_| FRAME_HEADER_LEN);
        let record = self.tls.as_ref().map_or(0, |_| RECORD_LEN);
        OK_LEN + frame + record
    }

    /// True if more than a few of its commands are unanswered.
    pub(crate) fn is_amid_flood(&self) -> bool {
        self.asked.len() > FLOOD / 4
    }

    /// True if it may send something now.
    pub(crate) fn may_act(&self, now: Time, manners: &Manners, leaving: bool) -> bool {
        let ready = match self.phase {
            Phase::New => true,
            Phase::In if self.asked.is_empty() => true,
            Phase::In => {
                let more = !leaving && self.made < manners.statements;
                manners.pipelined && more && self.asked.len() < 4
            }
            _ => false,
        };
        ready && self.acts_at <= now
    }

    /// Sends the next statement, or says good-bye. `leaving`: finishes what it has begun only.
    pub(crate) fn act(
        &mut self,
        random: &mut Random,
        manners: &Manners,
        leaving: bool,
        prey: Option<u32>,
        out: &mut Vec<u8>,
    ) -> String {
        let mut said = Vec::new();
        let words = self.speak(random, manners, leaving, prey, &mut said);
        if let Some(frames) = self.frames.as_mut().filter(|_| !said.is_empty()) {
            said = frames.pack(&said, true);
        }
        self.send(&said, out);
        words
    }

    /// Bytes on the wire for these bytes.
    fn send(&mut self, said: &[u8], out: &mut Vec<u8>) {
        match &mut self.tls {
            Some(tls) => tls.say(said, out),
            None => out.extend_from_slice(said),
        }
    }

    fn speak(
        &mut self,
        random: &mut Random,
        manners: &Manners,
        leaving: bool,
        prey: Option<u32>,
        out: &mut Vec<u8>,
    ) -> String {
        let behind = !self.asked.is_empty();
        let is_inside = self.belief.transaction.is_some();
        let may_flood = !behind && !self.has_flooded && is_inside == manners.floods_inside;
        if self.floods(manners) && may_flood {
            self.has_flooded = true;
            self.made += 1;
            for _ in 0..FLOOD {
                self.talk.command(out, Command::Ping, b"");
                let (tag, kind) = (0, Kind::Ping);
                self.asked.push_back(Asked { tag, kind });
            }
            return "floods".into();
        }
        let over = self.made >= manners.statements || leaving;
        let kind = match self.belief.transaction {
            Some(_) if over => Kind::Commit,
            None if over && !leaving && manners.stalls && self.id.is_multiple_of(3) => {
                self.phase = Phase::Stalled;
                self.ends = true;
                self.talk.command(out, Command::Query, &[b'x'; STALLED_LEN]);
                out.truncate(out.len() * 2 / 3);
                return "stalls".into();
            }
            None if over => {
                self.phase = Phase::Left;
                // One in three goes without a word.
                if !random.chance(300) {
                    self.talk.command(out, Command::Quit, b"");
                }
                return "leaves".into();
            }
            _ if let Some(id) = prey => Kind::Kill(id, random.chance(700)),
            // Such code tells nobody what it has set; an EOF packet does not either, and the next
            // OK does (docs/pool/limits.md).
            _ if self.talk.capabilities & cap::DEPRECATE_EOF == 0 && self.is_behind_poison() => {
                Kind::Ping
            }
            None if manners.readers_stop && random.chance(150) => Kind::Big,
            _ if manners.uniform && random.chance(200) => Kind::Poison,
            _ if manners.uniform && random.chance(600) => Kind::Point,
            _ => choose(random, &self.belief, behind, manners.tame),
        };
        self.made += 1;
        let tag = (self.id as u64 + 1) * TAGS_PER_CLIENT + self.made;
        let tag = match &kind {
            Kind::Execute(id, _) => self.belief.prepared[id].long.unwrap_or(tag),
            _ => tag,
        };
        let (command, arguments) = kind.command(tag, &self.belief);
        self.talk.command(out, command, &arguments);
        let words = format!("asks {command:?} {kind:?} {tag}");
        self.believe_sent(&kind, tag);
        if kind.is_unanswered() {
            return words;
        }
        let has_backend = self.belief.may_be_bound() || self.owes_read_back();
        if kind.is_tagged() && !behind && !has_backend {
            self.plain.push(tag);
        }
        self.asked.push_back(Asked { tag, kind });
        words
    }

    /// Changes of a statement that its sending makes, whatever its answer.
    fn believe_sent(&mut self, kind: &Kind, tag: u64) {
        let prepared = &mut self.belief.prepared;
        match kind {
            Kind::Close(id) => drop(prepared.remove(id)),
            Kind::LongData(id) => {
                prepared.entry(*id).and_modify(|held| held.long = Some(tag));
            }
            Kind::Execute(id, says) => {
                prepared.entry(*id).and_modify(|held| {
                    held.long = None;
                    held.kind = says.or(held.kind);
                });
            }
            _ => {}
        }
    }

    /// Takes bytes that have come; answers to the login go to `out`. The words are for the trace.
    pub(crate) fn hear(&mut self, db: &Db, manners: &Manners, bytes: &[u8], out: &mut Vec<u8>) {
        self.has_taken = true;
        let words = match &mut self.tls {
            None => bytes.to_vec(),
            Some(tls) => match tls.hear(bytes, out) {
                Heard::Words(words) => words,
                Heard::Greeting(greeting) => {
                    self.talk.is_under_tls();
                    greeting
                }
            },
        };
        let mut said = Vec::new();
        self.hear_words(db, manners, words, &mut said);
        self.send(&said, out);
    }

    fn hear_words(&mut self, db: &Db, manners: &Manners, mut bytes: Vec<u8>, out: &mut Vec<u8>) {
        if let Some(frames) = &mut self.frames {
            bytes = frames
                .unpack(&bytes)
                .unwrap_or_else(|error| panic!("client {}: {error}", self.id));
            self.talk.feed(&bytes);
            return self.hear_on(db, manners, out);
        }
        self.raw.append(&mut bytes);
        // Packet by packet: what stands behind the OK of the login may be frames.
        while let Some(header) = Header::read(&self.raw) {
            let total = HEADER_LEN + header.len;
            if self.raw.len() < total {
                return;
            }
            let rest = self.raw.split_off(total);
            let packet = std::mem::replace(&mut self.raw, rest);
            self.talk.feed(&packet);
            self.hear_on(db, manners, out);
            if self.frames.is_some() {
                let rest = std::mem::take(&mut self.raw);
                return self.hear_words(db, manners, rest, out);
            }
        }
    }

    fn hear_on(&mut self, db: &Db, manners: &Manners, out: &mut Vec<u8>) {
        loop {
            let happened = match self.talk.next(out) {
                // It is closed for what it keeps, and had asked something when it was told so.
                Err(error) if manners.keeps_few && error.contains(KEEPS_TOO_MUCH) => {
                    self.ends = true;
                    return;
                }
                happened => happened.unwrap_or_else(|error| self.wrong(&error)),
            };
            match happened {
                None => return,
                Some(Happened::In) => {
                    assert!(
                        !self.guesses,
                        "client {} was let in with a wrong password",
                        self.id
                    );
                    assert!(
                        self.belief.standing.schema.as_deref() != Some("nowhere"),
                        "client {} was let in to a schema that is not there",
                        self.id
                    );
                    self.phase = Phase::In;
                    self.frames = Frames::agreed(self.talk.capabilities, 3);
                }
                Some(Happened::Refused(failure)) => self.on_refused(&failure),
                Some(Happened::Reply(outcomes)) if self.phase == Phase::Stalled => {
                    let code = outcomes.first().map(|outcome| outcome.failure().code);
                    if outcomes.len() != 1 || !matches!(code, Some(1053 | 1153)) {
                        self.wrong::<()>(&format!("its unfinished command got {outcomes:?}"));
                    }
                }
                Some(Happened::Reply(outcomes)) => self.on_reply(db, manners, &outcomes),
                Some(Happened::FileWanted(name)) => self.wrong(&format!("wants a file: {name}")),
            }
        }
    }

    /// The id in the pool's greeting.
    pub(crate) fn connection_id(&self) -> Option<u32> {
        self.talk
            .greeting
            .as_ref()
            .map(|greeting| greeting.connection_id)
    }

    /// True if its words go over the wire in records of TLS.
    pub(crate) fn is_under_tls(&self) -> bool {
        self.tls.as_ref().is_some_and(SimTls::has_begun)
    }

    /// The number of those that it has asked to kill, and whether wholly, since it was asked last.
    pub(crate) fn killed(&self) -> Option<(u32, bool)> {
        match self.asked.back().map(|asked| &asked.kind) {
            Some(Kind::Kill(id, query)) => Some((*id, *query)),
            _ => None,
        }
    }

    /// Event that it waits for, in words.
    pub(crate) fn words(&self) -> String {
        format!("{:?} {:?} {:?}", self.phase, self.asked, self.belief)
    }

    /// True if the pool may be reading something back. A statement that comes at once puts off what
    /// is asked behind one that failed.
    fn owes_read_back(&self) -> bool {
        self.failed_before || self.last.as_ref().is_some_and(Kind::is_read_back)
    }

    /// Notes that it was told that a statement was not executed. A read that was pipelined may have
    /// been, once: what it was answered was dropped.
    fn note_not_executed(&mut self, tag: u64, kind: &Kind, manners: &Manners) {
        let ran = self.belief.ran(kind);
        // A read that was sent to another server may run on the writer, or not.
        let may_run = manners.reads_elsewhere && ran.is_read();
        if !may_run && (manners.pipeline_max == 1 || !ran.may_pipeline()) {
            self.not_executed.push(tag);
        }
    }

    /// True if its next statement stands behind stored code that no text shows.
    fn is_behind_poison(&self) -> bool {
        let last = self.asked.back().map(|asked| &asked.kind);
        last.or(self.last.as_ref()) == Some(&Kind::Poison)
    }

    fn wrong<T>(&self, what: &str) -> T {
        panic!(
            "client {}: {what}; unanswered: {:?}; last: {:?}; belief: {:?}",
            self.id,
            self.asked.front(),
            self.last,
            self.belief
        )
    }

    fn on_refused(&mut self, failure: &Failure) {
        let text = &failure.message;
        let fair = match failure.code {
            1045 => self.guesses,
            1049 => self.belief.standing.schema.as_deref() == Some("nowhere"),
            1043 | 1053 | 9501..=9504 | 9507 | 9511 => true,
            1153 => self.phase == Phase::Stalled,
            // The server did not take the session's state.
            1231 => text == "on purpose",
            _ => false,
        };
        if !fair {
            self.wrong::<()>(&format!("refused without reason: {text}"));
        }
        self.ends = true;
    }

    fn on_reply(&mut self, db: &Db, manners: &Manners, outcomes: &[Outcome]) {
        let Some(asked) = self.asked.pop_front() else {
            return self.wrong("a reply that nobody asked for");
        };
        self.answered += 1;
        let [outcome] = outcomes else {
            return self.wrong(&format!("{} results for {asked:?}", outcomes.len()));
        };
        let failure = match outcome {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Rows(_) | Outcome::Done(_) => None,
            Outcome::Prepared(_) if matches!(asked.kind, Kind::Prepare(_)) => None,
            other => return self.wrong(&format!("{asked:?} got {other:?}")),
        };
        match failure {
            Some(failure) => self.on_failure(manners, &asked, failure),
            None => self.on_success(db, &asked, outcome),
        }
        // On MariaDB 10.11 a statement without tables leaves the warnings as they are.
        if failure.is_some() || !self.belief.keeps_warnings(&asked.kind) {
            self.belief.warned = match (&self.belief.ran(&asked.kind), failure) {
                (Kind::Warn, None) => Some(asked.tag),
                (Kind::Fail, Some(failure)) if failure.code == 1146 => Some(asked.tag),
                _ => None,
            };
            self.belief.unsure = failure.is_some_and(|failure| failure.code != 1146);
        }
        // These the pool answers itself, whatever it reads back meanwhile.
        if !matches!(asked.kind, Kind::Ping | Kind::Option(_) | Kind::Kill(..)) {
            self.last = Some(asked.kind);
            self.failed_before = std::mem::replace(&mut self.last_failed, failure.is_some());
        }
    }

    /// Judges an error.
    fn on_failure(&mut self, manners: &Manners, asked: &Asked, failure: &Failure) {
        let (text, kind) = (&failure.message, &asked.kind);
        let bound = self.belief.is_bound();
        let says = |what: &str| text.contains(what);
        let fair = match (failure.code, kind) {
            (1146, Kind::Prepare(text)) => *text == PREPARED.len(),
            (1213, _) if says("was lost with its server") => {
                let had_one = self.belief.transaction.is_some();
                self.believe_rolled_back(kind);
                manners.reads_elsewhere && had_one
            }
            (1213, _) => self.believe_rolled_back(kind),
            // Something that no text showed holds it on a server that is read.
            (1792, _) => {
                self.note_not_executed(asked.tag, kind, manners);
                self.ends = true;
                manners.reads_elsewhere && self.belief.may_be_bound()
            }
            // It waited in vain; what the transaction did before stays.
            (1205, _) => self.belief.transaction.is_some() && self.belief.ran(kind) == Kind::Insert,
            (1146, kind) if self.belief.ran(kind) == Kind::Fail => {
                let words = format!("{} {}", asked.tag, self.belief.words(kind));
                if self.belief.heard(text) != words {
                    self.wrong::<()>(&format!("{asked:?} failed elsewhere: {text}"));
                }
                true
            }
            (1049, Kind::Use("nowhere") | Kind::InitDb("nowhere")) => true,
            // The one that is meant is gone, or cannot be reached.
            (1094 | 1105, Kind::Kill(..)) => true,
            // Interrupted, before it ran or while it did.
            (1317, _) => self.hunted,
            (1235, Kind::ShowWarnings) => {
                self.belief.maybe_pinned = true;
                true
            }
            // It may have run, in a state that is not its own.
            (9510, _) if says("on purpose") => {
                self.unrestored[0] += 1;
                let sets = matches!(kind, Kind::SetUser(_));
                self.ends |= sets || self.belief.may_be_bound() || self.owes_read_back();
                true
            }
            (1105, _) if says("on purpose") => {
                self.unrestored[1] += 1;
                self.note_not_executed(asked.tag, kind, manners);
                self.belief.lose_schema(text);
                self.ends |= self.belief.may_be_bound() || self.owes_read_back();
                true
            }
            (9507, _) => {
                self.note_not_executed(asked.tag, kind, manners);
                !self.belief.has_transaction_there() && says("nothing was executed")
            }
            (9501..=9504, _) => {
                self.check_wait(manners, text);
                self.note_not_executed(asked.tag, kind, manners);
                !self.belief.has_transaction_there()
                    && (says("not executed") || says("nothing was"))
            }
            (1053, _) => {
                self.note_not_executed(asked.tag, kind, manners);
                self.ends = true;
                !bound
            }
            (9511, _) if says("nothing was executed") => {
                self.note_not_executed(asked.tag, kind, manners);
                manners.keeps_few && !self.belief.has_transaction_there()
            }
            // Behind a statement whose text did not tell that it keeps a backend.
            (9511, _) => {
                self.ends = true;
                manners.keeps_few
            }
            // The connection's end took the session with it.
            (1158, _) => {
                let sets = matches!(kind, Kind::SetUser(_));
                self.ends |= sets || self.belief.may_be_bound() || self.owes_read_back();
                if manners.reads_elsewhere {
                    // It goes on with another server, and nobody knows of its COMMIT.
                    let commits = matches!(self.belief.ran(kind), Kind::Commit | Kind::PlainCommit);
                    if commits {
                        self.belief.rows.clear();
                    }
                    self.believe_rolled_back(kind);
                }
                true
            }
            _ => false,
        };
        if !fair {
            self.wrong::<()>(&format!("{asked:?} failed: {failure}"));
        }
    }

    /// Believes that the server has rolled its transaction back; true if it could.
    fn believe_rolled_back(&mut self, kind: &Kind) -> bool {
        self.dropped.append(&mut self.belief.rows);
        self.belief.transaction.take().is_some() && self.belief.ran(kind) == Kind::Insert
    }

    fn check_wait(&self, manners: &Manners, text: &str) {
        let waited = text.split_once("waited ").map(|(_, rest)| rest);
        let ms = waited.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        let longest = u64::try_from(manners.wait_max.as_millis()).unwrap() + 60;
        if ms.is_some_and(|ms| ms > longest) {
            self.wrong::<()>(&format!("waited longer than {longest} ms: {text}"));
        }
    }

    /// Judges a result, and moves the belief on.
    fn on_success(&mut self, db: &Db, asked: &Asked, outcome: &Outcome) {
        let ran = self.belief.ran(&asked.kind);
        if ran.is_tagged() {
            self.check_execution(db, asked);
            self.belief.deferred = false;
        }
        match outcome {
            Outcome::Rows(rows) => self.check_rows(asked, rows),
            Outcome::Prepared(prepared) => return self.believe_prepared(asked, prepared),
            _ if ran.may_pipeline() => {
                self.wrong::<()>(&format!("{asked:?} got {outcome:?}"));
            }
            _ => {}
        }
        let belief = &mut self.belief;
        match &ran {
            // Stored code that no text shows: what else it has done is unknown.
            Kind::Poison if is_poisoned(asked.tag) => {
                belief.standing.set("time_zone", "+09:00");
                belief.pinned = true;
            }
            Kind::Use(schema) | Kind::InitDb(schema) => {
                belief.standing.schema = Some((*schema).into());
            }
            Kind::Set(name, value) => self.believe_variable(name, value),
            Kind::Begin => belief.transaction = Some(asked.tag),
            Kind::PlainBegin => {
                belief.transaction = Some(asked.tag);
                belief.deferred = true;
            }
            Kind::Commit | Kind::Rollback | Kind::PlainCommit | Kind::PlainRollback => {
                let to = match asked.kind {
                    Kind::Commit | Kind::PlainCommit => &mut self.kept,
                    _ => &mut self.dropped,
                };
                to.append(&mut belief.rows);
                belief.transaction = None;
            }
            Kind::Insert => {
                belief.insert_id = asked.tag;
                match belief.transaction {
                    Some(_) => belief.rows.push(asked.tag),
                    None => self.kept.push(asked.tag),
                }
            }
            Kind::SetUser(name) => {
                belief.user[*name] = Some(asked.tag);
                // In another character set nobody can tell which name that is.
                let utf8 = !belief
                    .standing
                    .variables
                    .contains_key("character_set_client");
                belief.maybe_pinned |= !utf8 && !USER[*name].is_ascii();
            }
            Kind::Reset => self.believe_reset(),
            Kind::Option(multi) => belief.standing.multi = *multi,
            _ => {}
        }
    }

    fn believe_prepared(&mut self, asked: &Asked, prepared: &Prepared) {
        let Kind::Prepare(text) = asked.kind else {
            return self.wrong("prepared what nobody wanted");
        };
        let columns = match PREPARED.get(text) {
            Some((_, Kind::Insert)) => 0,
            Some(_) => 2,
            None => return self.wrong("prepared what cannot be"),
        };
        let fits = prepared.params.len() == 1 && prepared.columns.len() == columns;
        if !fits || prepared.id <= self.highest {
            self.wrong::<()>(&format!("{prepared:?} after id {}", self.highest));
        }
        self.highest = prepared.id;
        let held = Held::new(text, &self.belief.standing);
        self.belief.prepared.insert(prepared.id, held);
    }

    fn believe_variable(&mut self, name: &str, value: &str) {
        let value = match value.trim_matches('\'') {
            "1" if name == "sql_safe_updates" => "ON",
            "0" if name == "sql_safe_updates" => "OFF",
            value => value,
        };
        let standing = &mut self.belief.standing;
        standing.set(name, value);
        if name == "character_set_connection" {
            standing.set("collation_connection", "latin1_swedish_ci");
        }
    }

    fn believe_reset(&mut self) {
        self.dropped.append(&mut self.belief.rows);
        let standing = &self.belief.standing;
        let standing = Standing {
            variables: self.login_variables.clone(),
            ..standing.clone()
        };
        self.belief = Belief {
            standing,
            ..Belief::default()
        };
    }

    /// Takes the end of the connection. `faults`: connections to the server were lost in this
    /// world.
    pub(crate) fn on_end(&mut self, faults: bool, manners: &Manners) {
        let fair = match self.phase {
            _ if self.drained && !self.belief.is_bound() => true,
            Phase::Left | Phase::Gone | Phase::Stalled => true,
            Phase::LoggingIn => self.ends || faults,
            Phase::New | Phase::In => {
                let between = self.asked.is_empty();
                // Of several servers another one goes on, with the number of its row.
                let has_left = self.owes_read_back()
                    && !(manners.reads_elsewhere && self.last == Some(Kind::Insert));
                let bound = self.belief.may_be_bound() || has_left;
                self.ends || (faults && (!between || bound))
            }
        };
        if !fair {
            self.wrong::<()>("the connection was closed without a reason");
        }
        self.phase = Phase::Gone;
    }
}
