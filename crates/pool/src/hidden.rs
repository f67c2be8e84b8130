//! Hidden code: triggers, views and columns that run stored code which no statement's text shows.
//!
//! The problem: what such code does to its session may be reported by no tracker (a named lock, a
//! user variable set by INTO, on MariaDB whatever it did before it failed; docs/trackers.md), and
//! would stay on a backend that others share. The mechanism: a catalogue of all that has code, read
//! from the server at start, every `stored_code_refresh_s` and after each statement through the
//! pool that defines code ([`look`]), judged by `sql` ([`sql::classify::stored`]) and brought
//! down to the names of tables and views ([`session::stored_code`]). A statement whose text names
//! one of them counts as one that calls stored code: the policy `stored_code` decides.
//!
//! A definition counts from the moment that its statement is sent, by its own text, and until a
//! look that began after its reply has told what has become of it. A statement that was judged
//! before such a change and is sent after it is judged again.
//!
//! Where no such code exists, which is the rule, a statement costs the load of one number. Not
//! covered: code that is defined past the pool, or inside of other code, until the next look, which
//! follows within about a second ([`crate::watch`]). What a client's own text calls is in
//! [`calls`].

mod calls;
mod look;

use crate::backend::Purpose;
use crate::config::{Settings, StoredCode};
use crate::group::{Group, Shared};
use crate::log::{Event, note};
use crate::reasons::PinReason;
use crate::statements::payload_of;
pub(crate) use look::look_once;
use reactor::{Key, Net};
use session::statement::{Code, NOT_JUDGED};
use session::stored_code::{Besides, Names, Object, resolve};
use sql::classify::stored::{Definition, definitions, fold};
use sql::classify::{self, PinCause, Verb, classify};
use sql::lex::LexMode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::attributes::{Form, header_len};
use wire::command::Command;

/// Objects that are told of in the log at once; SIGUSR2 tells of all.
const SAID_MAX: usize = 8;
/// Definitions that go through the pool and are remembered until they have been read back.
const DEFINITIONS_MAX: usize = 1024;

/// The catalogue, which all groups share.
#[derive(Debug)]
pub(crate) struct Hidden {
    /// Whether anything is looked for at all.
    on: bool,
    /// Counts the changes of the names.
    version: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    names: Arc<Names>,
    /// What the last look found.
    found: Vec<Object>,
    besides: Besides,
    /// What statements through the pool define.
    coming: Vec<Defining>,
    defined: u64,
    /// Looks that have begun.
    looks: u64,
    asked: bool,
    /// There is more code than is read, or more has been defined than is remembered until it is
    /// read. It was so until this look had begun; `None`: it is not so.
    too_much: Option<u64>,
    /// Statements under way that define code.
    under_way: usize,
    /// What the account may not see, as said last.
    unseen: String,
}

/// What one statement defines.
#[derive(Debug)]
struct Defining {
    number: u64,
    objects: Vec<Object>,
    /// Looks that had begun when it was answered.
    ended: Option<u64>,
}

/// Held while a statement that defines code is under way.
#[derive(Debug)]
pub(crate) struct Coming {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.shared.hidden.is_defined(self.number);
        self.shared.bell.ring();
    }
}

/// What a group knows of the catalogue.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    version: u64,
    names: Arc<Names>,
}

impl Hidden {
    pub(crate) fn new(settings: &Settings) -> Hidden {
        let on = settings.stored_code != StoredCode::Trust;
        Hidden {
            on: on && settings.stored_code_refresh.is_some(),
            version: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every object that was found, in a line for people, and how recent that is.
    pub(crate) fn lines(&self) -> Vec<String> {
        if !self.on {
            return Vec::new();
        }
        let state = self.lock();
        let lines = state.names.lines.iter();
        let mut lines: Vec<String> = lines.map(|line| format!("hidden code: {line}")).collect();
        let objects = lines.len();
        let unknown = state.names.unknown.iter();
        lines.extend(unknown.map(|line| format!("stored code: {line}")));
        lines.push(format!(
            "hidden code that matters: {} objects; read {} times, {} definitions not read yet",
            objects,
            state.looks,
            state.coming.len()
        ));
        if !state.unseen.is_empty() {
            lines.push(state.unseen.clone());
        }
        lines
    }

    /// Works the names out anew. The version is stored before the lock is given up.
    fn publish(&self, state: &mut State) {
        let coming = state.coming.iter().flat_map(|one| &one.objects);
        let objects: Vec<&Object> = state.found.iter().chain(coming).collect();
        let mut names = match state.too_much {
            None => resolve(&objects),
            Some(_) => Names::all(),
        };
        names.besides = state.besides.clone();
        if names != *state.names {
            say_new(&state.names.lines, &names.lines);
            state.names = Arc::new(names);
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// A statement that defines these is about to be sent.
    fn defines(&self, objects: Vec<Object>) -> u64 {
        let mut state = self.lock();
        state.defined += 1;
        state.under_way += 1;
        let number = state.defined;
        let mut news = !objects.is_empty();
        if state.coming.len() >= DEFINITIONS_MAX {
            // Those that define no object only ask for a look.
            state.coming.retain(|one| !one.objects.is_empty());
        }
        if state.coming.len() >= DEFINITIONS_MAX {
            let looks = state.looks;
            news = news && state.too_much.replace(looks).is_none();
            if news {
                say_too_much(&format!(
                    "{DEFINITIONS_MAX} definitions of triggers, views and routines have not been \
                     read back from the server"
                ));
            }
        } else {
            state.coming.push(Defining {
                number,
                objects,
                ended: None,
            });
        }
        if news {
            self.publish(&mut state);
        }
        number
    }

    /// It has been answered, or was never sent.
    fn is_defined(&self, number: u64) {
        let mut state = self.lock();
        let looks = state.looks;
        state.under_way -= 1;
        let one = state.coming.iter_mut().find(|one| one.number == number);
        if let Some(one) = one {
            one.ended = Some(looks);
        } else if let Some(before) = &mut state.too_much {
            *before = looks;
        }
        state.asked = true;
    }

    /// Whether anything is looked for at all.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Whether a look is asked for: what statements through the pool have defined is to be read.
    pub(crate) fn is_asked(&self) -> bool {
        self.lock().asked
    }

    /// Asks for a look.
    pub(crate) fn ask(&self) {
        self.lock().asked = true;
    }

    /// A look begins; gives its number.
    fn looks(&self) -> u64 {
        let mut state = self.lock();
        state.asked = false;
        state.looks += 1;
        state.looks
    }

    /// Look `number` has found more than is read.
    fn found_too_much(&self, number: u64, why: &str) {
        let mut state = self.lock();
        let later = |one: &Defining| one.ended.is_none_or(|ended| ended >= number);
        state.coming.retain(later);
        (state.found, state.besides) = (Vec::new(), Besides::default());
        // The next look may find less.
        if state.too_much.replace(number).is_none() {
            say_too_much(why);
        }
        self.publish(&mut state);
    }

    /// What look `number` found, and what the account may not see.
    fn looked(&self, number: u64, (found, besides): (Vec<Object>, Besides), unseen: String) {
        let mut state = self.lock();
        // What was answered before the look began is among what it found.
        let later = |one: &Defining| one.ended.is_none_or(|ended| ended >= number);
        state.coming.retain(later);
        let may_be_later = state.under_way > 0;
        state.too_much = (state.too_much).filter(|looks| *looks >= number || may_be_later);
        if unseen != state.unseen && !unseen.is_empty() {
            note(Event::HiddenUnseen, format_args!("{unseen}"));
        }
        state.unseen = unseen;
        (state.found, state.besides) = (found, besides);
        self.publish(&mut state);
    }
}

/// What is said where there is more code than is read.
fn say_too_much(why: &str) {
    note(
        Event::HiddenUnread,
        format_args!(
            "{why}: each statement counts as one that runs stored code; if no code of the server \
             changes its session unseen, set stored_code = \"trust\""
        ),
    );
}

fn say_new(old: &[String], lines: &[String]) {
    let new: Vec<&str> = lines
        .iter()
        .filter(|line| !old.contains(line))
        .map(|l| &**l)
        .collect();
    if new.is_empty() {
        return;
    }
    let more = match new.len().saturating_sub(SAID_MAX) {
        0 => String::new(),
        more => format!("; and {more} more (SIGUSR2 lists all)"),
    };
    let said = new[..new.len().min(SAID_MAX)].join("; ");
    note(
        Event::HiddenCode,
        format_args!(
            "hidden code may change its session in ways that the server does not report; \
             statements that reach it count as stored_code: {said}{more}"
        ),
    );
}

/// Statements that write to no table: no trigger fires.
fn reads(found: &classify::Statement) -> bool {
    use Verb::{
        Begin, Commit, Ddl, Diagnostics, Do, Empty, Kill, Lock, Rollback, Savepoint, Select, Set,
        Show, Use,
    };
    let verb = matches!(
        found.verb,
        Begin
            | Commit
            | Ddl
            | Diagnostics
            | Do
            | Empty
            | Kill
            | Lock
            | Rollback
            | Savepoint
            | Select
            | Set
            | Show
            | Use
    );
    verb && !found.multi
}

/// A version in short: only that it differs counts, and only for as long as one statement waits.
fn short(version: u64) -> u16 {
    u16::try_from(version % 0xffff).unwrap_or(0) + 1
}

fn object_of(definition: Definition, schema: Option<&[u8]>) -> Object {
    let Definition { kind, path, judged } = definition;
    let schema = path.schema.or_else(|| schema.map(fold)).unwrap_or_default();
    let name = String::from_utf8_lossy(&path.name).into_owned();
    let shown = String::from_utf8_lossy(&schema);
    Object {
        title: format!("{kind:?} of {shown}.{name}, being defined").to_lowercase(),
        kind,
        schema,
        name: path.name,
        judged,
    }
}

impl<N: Net> Group<N> {
    /// Whether a text may run hidden code; `schema` is its default schema, empty where there is
    /// none, if that is certain.
    pub(crate) fn runs_hidden(
        &mut self,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
    ) -> bool {
        self.see_hidden();
        let names = &self.hidden.names;
        !names.is_empty() && names.reached_by((sql, mode), schema, reads(found))
    }

    /// Sees the latest names, and gives their version in short: never [`NOT_JUDGED`].
    pub(crate) fn see_hidden(&mut self) -> u16 {
        let hidden = &self.shared.hidden;
        if hidden.version.load(Ordering::Acquire) != self.hidden.version {
            let state = hidden.lock();
            self.hidden = Seen {
                version: hidden.version.load(Ordering::Acquire),
                names: state.names.clone(),
            };
        }
        short(self.hidden.version)
    }

    /// Whether this is the version of the names that count now.
    pub(crate) fn is_judged(&self, judged: u16) -> bool {
        judged == NOT_JUDGED || judged == short(self.shared.hidden.version.load(Ordering::Acquire))
    }

    /// What a text defines, if it defines code; from here on that counts.
    pub(crate) fn defines_hidden(
        &mut self,
        (sql, mode): (&[u8], LexMode),
        found: &classify::Statement,
        schema: Option<&[u8]>,
    ) -> Option<Coming> {
        if !self.shared.hidden.on || !(found.verb == Verb::Ddl || found.multi) {
            return None;
        }
        self.see_hidden();
        let defined = definitions(sql, mode);
        let tables = defined.tables && !self.hidden.names.is_empty();
        if !defined.code && !tables && defined.list.is_empty() {
            return None;
        }
        let objects = defined.list.into_iter();
        let objects = objects.map(|one| object_of(one, schema)).collect();
        let number = self.shared.hidden.defines(objects);
        let shared = self.shared.clone();
        Some(Coming { shared, number })
    }

    /// Whether a command would ride behind others' statements on this backend.
    fn runs_behind_others(&self, lease: Key) -> bool {
        let backend = self.backends.get(lease);
        backend.is_some_and(|backend| {
            let mut flight = backend.flight().iter();
            flight.any(|command| command.purpose == Purpose::Statement)
        })
    }

    /// Judges a command again that is about to be sent, if the names have changed since it was
    /// judged: it has waited for a backend, and hidden code has come into being meanwhile.
    pub(crate) fn judge_again(&mut self, key: Key, lease: Key, message: &[u8]) {
        // Who rides was chosen by the present names (`leases.rs: takes_rider`).
        if self.runs_behind_others(lease) {
            return;
        }
        let version = self.see_hidden();
        let Some(client) = self.clients.get(key) else {
            return;
        };
        let judged = client.statement.judged;
        if judged == NOT_JUDGED || judged == version {
            return;
        }
        let payload = payload_of(message);
        let under_way = client.prepared.as_ref().and_then(|p| p.under_way.as_ref());
        let (sql, session) = match under_way {
            Some(under_way) => {
                let definition = &under_way.definition;
                (definition.sql.to_vec(), definition.session.clone())
            }
            None if payload.first() == Some(&Command::Query.byte()) => {
                let form = Form::of(client.capabilities);
                let len = header_len(form, &payload[1..]).unwrap_or(0);
                (payload[1 + len..].to_vec(), client.session.clone())
            }
            None => return,
        };
        let mode = self.lex_mode(&session, client.capabilities);
        let found = classify(&sql, mode);
        // The text that EXECUTE IMMEDIATE runs is not at hand any more.
        let within = found.causes.contains(PinCause::TextPrepare);
        let schema = Some(session.schema.as_deref().unwrap_or_default());
        let known = matches!(client.statement.code, Code::Known | Code::Reported);
        let unknown = known
            && self
                .known_code((&sql, mode), &found, schema, &session)
                .is_none();
        if within || unknown || self.runs_hidden((&sql, mode), &found, schema) {
            let policy = self.shared.settings.stored_code;
            if policy == StoredCode::Pin {
                self.pin_by(key, PinReason::HiddenCode, &sql);
            }
            if let Some(client) = self.clients.get_mut(key) {
                client.statement.spoils |= policy == StoredCode::Transaction;
                client.statement.ride = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::stored::{Defined, body};
    use std::collections::BTreeSet;

    fn hidden() -> Hidden {
        Hidden {
            on: true,
            version: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    fn trigger(n: usize) -> Vec<Object> {
        let judged = body(b"SET NEW.a = 1", LexMode::default(), &BTreeSet::new());
        vec![Object {
            kind: Defined::Trigger,
            schema: fold(b"shop"),
            name: fold(format!("t{n}").as_bytes()),
            title: String::new(),
            judged,
        }]
    }

    fn reaches(hidden: &Hidden) -> bool {
        let names = hidden.lock().names.clone();
        let text = (&b"INSERT INTO orders VALUES (1)"[..], LexMode::default());
        !names.is_empty() && names.reached_by(text, Some(b"shop"), false)
    }

    #[test]
    fn more_definitions_than_are_remembered_make_every_statement_one_with_stored_code() {
        let hidden = hidden();
        for n in 0..DEFINITIONS_MAX {
            let number = hidden.defines(trigger(n));
            hidden.is_defined(number);
            // One that defines no object is not remembered for long.
            let other = hidden.defines(Vec::new());
            hidden.is_defined(other);
        }
        assert!(!reaches(&hidden));
        assert!(hidden.lock().coming.len() <= DEFINITIONS_MAX);
        // A look that has begun before may not have seen it.
        let early = hidden.looks();
        let number = hidden.defines(trigger(0));
        hidden.is_defined(number);
        assert!(reaches(&hidden));
        assert_eq!(hidden.lock().coming.len(), DEFINITIONS_MAX);
        hidden.looked(early, Default::default(), String::new());
        assert!(reaches(&hidden));
        let late = hidden.looks();
        hidden.looked(late, Default::default(), String::new());
        assert!(!reaches(&hidden));
        assert_eq!(hidden.lock().coming.len(), 0);
    }

    #[test]
    fn more_code_than_is_read_makes_every_statement_one_with_stored_code() {
        let hidden = hidden();
        let look = hidden.looks();
        hidden.found_too_much(look, "the answer has more than 64 MiB");
        assert!(reaches(&hidden));
        let look = hidden.looks();
        hidden.found_too_much(look, "the answer has more than 64 MiB");
        assert!(reaches(&hidden));
        let look = hidden.looks();
        hidden.looked(look, Default::default(), String::new());
        assert!(!reaches(&hidden));
    }
}
