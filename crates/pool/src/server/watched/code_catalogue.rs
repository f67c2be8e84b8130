//! The catalogue of triggers, views and columns that may change a session unseen: what all groups
//! share, and what each has taken of it.
//!
//! `triggers_and_views.rs` reads it from the server, `stored_code.rs` judges statements by it.
//! What is defined through the pool counts from the moment that it is sent until a look has read it
//! back.

use crate::config::{Settings, StoredCode};
use crate::observe::log::{Event, note};
use reactor::tls_errors::plain;
use session::statement::NOT_JUDGED;
use session::stored_code::{Besides, Names, Object, resolve};
use sql::classify::stored::{Definition, fold_bare};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects that are told of in the log at once; SIGQUIT tells of all.
const SAID_MAX: usize = 8;

/// Definitions that go through the pool and are remembered until they have been read back.
const DEFINITIONS_MAX: usize = 1024;

/// The catalogue, which all groups share.
#[derive(Debug)]
pub(crate) struct CodeCatalogue {
    /// True if anything is looked for at all.
    pub(crate) on: bool,
    /// Counts the changes of the names.
    pub(crate) version: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) names: Arc<Names>,
    /// Objects that the last look found.
    found: Vec<Object>,
    /// Objects that looks before found and the last one did not, each beside a definition under
    /// way: MariaDB does not show the triggers of a table just while it is renamed.
    before: Vec<Object>,
    besides: Besides,
    /// Definitions of statements through the pool that are under way.
    coming: Vec<Defining>,
    defined: u64,
    /// Looks that have begun.
    looks: u64,
    asked: bool,
    /// Look until whose beginning there was more code than is read, or more defined than is
    /// remembered until it is read; `None`: not so.
    too_much: Option<u64>,
    /// Statements under way that define code.
    under_way: usize,
    /// Code that the account may not see, as said last.
    unseen: String,
}

/// Objects that one statement defines.
#[derive(Debug)]
pub(crate) struct Defining {
    number: u64,
    objects: Vec<Object>,
    /// Looks that had begun when it was answered.
    ended: Option<u64>,
}

/// Catalogue as a group has seen it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) version: u64,
    pub(crate) names: Arc<Names>,
}

impl Seen {
    /// Takes the latest names, if there are later ones.
    pub(crate) fn renew(&mut self, catalogue: &CodeCatalogue) {
        if catalogue.version.load(Ordering::Acquire) != self.version {
            *self = catalogue.seen();
        }
    }

    /// Its version in short: only that it differs counts, and only for as long as one statement
    /// waits. It is never [`NOT_JUDGED`].
    pub(crate) fn short(&self) -> u16 {
        short(self.version)
    }
}

fn short(version: u64) -> u16 {
    u16::try_from(version % 0xffff).unwrap_or(0) + 1
}

#[cfg(test)]
impl CodeCatalogue {
    /// Catalogue that is looked for, and of which nothing has been read.
    pub(crate) fn empty() -> CodeCatalogue {
        CodeCatalogue {
            on: true,
            version: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }
}

impl CodeCatalogue {
    pub(crate) fn new(settings: &Settings) -> CodeCatalogue {
        let on = settings.stored_code != StoredCode::Trust;
        CodeCatalogue {
            on: on && settings.stored_code_refresh.is_some(),
            version: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Catalogue as it is known now.
    pub(crate) fn seen(&self) -> Seen {
        let state = self.lock();
        Seen {
            version: self.version.load(Ordering::Acquire),
            names: state.names.clone(),
        }
    }

    /// True if what was judged by this version, in short, would be judged so now.
    pub(crate) fn holds(&self, judged: u16) -> bool {
        judged == NOT_JUDGED || judged == short(self.version.load(Ordering::Acquire))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every object that was found, in a line for people, and how recent that is.
    pub(crate) fn lines(&self) -> Vec<String> {
        if !self.on {
            return Vec::new();
        }
        let state = self.lock();
        let lines = state.names.lines.iter();
        let mut lines: Vec<String> = lines
            .map(|line| format!("triggers and views: {line}"))
            .collect();
        let objects = lines.len();
        let unknown = state.names.unknown.iter();
        lines.extend(unknown.map(|line| format!("stored code: {line}")));
        lines.push(format!(
            "triggers and views that matter: {} objects; read {} times, \
             {} definitions not read yet",
            objects,
            state.looks,
            state.coming.len()
        ));
        if !state.unseen.is_empty() {
            lines.push(state.unseen.clone());
        }
        lines
    }

    /// Recomputes the names. The version is stored before the lock is given up.
    fn publish(&self, state: &mut State) {
        let coming = state.coming.iter().flat_map(|one| &one.objects);
        let found = state.found.iter().chain(&state.before);
        let objects: Vec<&Object> = found.chain(coming).collect();
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
    pub(crate) fn defines(&self, objects: Vec<Object>) -> u64 {
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
                say_too_much(&too_many("not yet read back from the server"));
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

    /// Ends a definition that has been answered, or was never sent.
    pub(crate) fn is_defined(&self, number: u64) {
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

    /// True if anything is looked for at all.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// True if a look is asked for: what statements through the pool have defined is to be read.
    pub(crate) fn is_asked(&self) -> bool {
        self.lock().asked
    }

    /// Asks for a look.
    pub(crate) fn ask(&self) {
        self.lock().asked = true;
    }

    /// Begins a look; returns its number.
    pub(crate) fn looks(&self) -> u64 {
        let mut state = self.lock();
        state.asked = false;
        state.looks += 1;
        state.looks
    }

    /// Empties the catalogue after look `number` has found more than is read.
    pub(crate) fn found_too_much(&self, number: u64, why: &str) {
        let mut state = self.lock();
        let later = |one: &Defining| one.ended.is_none_or(|ended| ended >= number);
        state.coming.retain(later);
        (state.found, state.before) = Default::default();
        state.besides = Besides::default();
        // The next look may find less.
        if state.too_much.replace(number).is_none() {
            say_too_much(why);
        }
        self.publish(&mut state);
    }

    /// Takes what look `number` found, and what the account may not see.
    pub(crate) fn looked(
        &self,
        number: u64,
        (found, besides): (Vec<Object>, Besides),
        unseen: String,
    ) {
        let mut state = self.lock();
        // What was answered before the look began is among what it found.
        let later = |one: &Defining| one.ended.is_none_or(|ended| ended >= number);
        state.coming.retain(later);
        let may_be_later = state.under_way > 0;
        state.too_much = (state.too_much).filter(|looks| *looks >= number || may_be_later);
        if unseen != state.unseen && !unseen.is_empty() {
            note(Event::CodeUnseen, format_args!("{unseen}"));
        }
        state.unseen = unseen;
        let titles: BTreeSet<&str> = found.iter().map(|one| &*one.title).collect();
        let overlaps = !state.coming.is_empty();
        let mut before = std::mem::take(&mut state.before);
        before.append(&mut state.found);
        before.retain(|one| overlaps && !titles.contains(&*one.title));
        if before.len() > DEFINITIONS_MAX {
            before.clear();
            if state.too_much.replace(number).is_none() {
                say_too_much(&too_many("seen by the look before and not by this one"));
            }
        }
        (state.found, state.before, state.besides) = (found, before, besides);
        self.publish(&mut state);
    }
}

fn too_many(what: &str) -> String {
    format!("{DEFINITIONS_MAX} definitions of triggers, views and routines are {what}")
}

/// Logs that there is more code than is read.
fn say_too_much(why: &str) {
    note(
        Event::CodeUnread,
        format_args!(
            "{why}: each statement counts as one that runs stored code; if no code of the server \
             changes its session unseen, set stored_code = \"trust\""
        ),
    );
}

fn say_new(old: &[String], lines: &[String]) {
    let new: Vec<&str> = (lines
        .iter()
        .filter(|line| !old.contains(line))
        .map(|l| &**l))
    .collect();
    if new.is_empty() {
        return;
    }
    let more = match new.len().saturating_sub(SAID_MAX) {
        0 => String::new(),
        more => format!("; and {more} more (SIGQUIT lists all)"),
    };
    let said = new[..new.len().min(SAID_MAX)].join("; ");
    note(
        Event::CodeCatalogue,
        format_args!(
            "triggers and views may change a session in ways that the server does not report; \
             statements that reach it count as stored_code: {said}{more}"
        ),
    );
}

pub(crate) fn object_of(definition: Definition, schema: Option<&[u8]>) -> Object {
    let Definition {
        kind,
        path,
        scanned,
    } = definition;
    let schema = (path.schema.or_else(|| schema.map(fold_bare))).unwrap_or_default();
    let name = String::from_utf8_lossy(&path.name).into_owned();
    let shown = String::from_utf8_lossy(&schema);
    Object {
        title: format!("{} of {shown}.{name}, being defined", plain(&kind)).to_lowercase(),
        kind,
        schema,
        name: path.name,
        scanned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::classify::stored::{Defined, body, fold};
    use sql::lex::LexMode;

    fn trigger(n: usize) -> Vec<Object> {
        let scanned = body(b"SET NEW.a = 1", LexMode::default(), &BTreeSet::new());
        vec![Object {
            kind: Defined::Trigger,
            schema: fold(b"shop"),
            name: fold(format!("t{n}").as_bytes()),
            title: String::new(),
            scanned,
        }]
    }

    fn reaches(catalogue: &CodeCatalogue) -> bool {
        let names = catalogue.lock().names.clone();
        let text = (&b"INSERT INTO orders VALUES (1)"[..], LexMode::default());
        names.named_in(text, Some(b"shop"), false).pins()
    }

    #[test]
    fn more_definitions_than_are_remembered_make_every_statement_one_with_stored_code() {
        let catalogue = CodeCatalogue::empty();
        for n in 0..DEFINITIONS_MAX {
            let number = catalogue.defines(trigger(n));
            catalogue.is_defined(number);
            // One that defines no object is not remembered for long.
            let other = catalogue.defines(Vec::new());
            catalogue.is_defined(other);
        }
        assert!(!reaches(&catalogue));
        assert!(catalogue.lock().coming.len() <= DEFINITIONS_MAX);
        // A look that has begun before may not have seen it.
        let early = catalogue.looks();
        let number = catalogue.defines(trigger(0));
        catalogue.is_defined(number);
        assert!(reaches(&catalogue));
        assert_eq!(catalogue.lock().coming.len(), DEFINITIONS_MAX);
        catalogue.looked(early, Default::default(), String::new());
        assert!(reaches(&catalogue));
        let late = catalogue.looks();
        catalogue.looked(late, Default::default(), String::new());
        assert!(!reaches(&catalogue));
        assert_eq!(catalogue.lock().coming.len(), 0);
    }

    /// A trigger that takes a lock, on this table of `shop`.
    fn takes(table: &[u8]) -> Object {
        Object {
            kind: Defined::Trigger,
            schema: fold(b"shop"),
            name: fold(table),
            title: format!("trigger on {}", String::from_utf8_lossy(table)),
            scanned: body(b"DO GET_LOCK('l', 1)", LexMode::default(), &BTreeSet::new()),
        }
    }

    /// Looks once, and finds these.
    fn look(catalogue: &CodeCatalogue, found: Vec<Object>) {
        let look = catalogue.looks();
        catalogue.looked(look, (found, Besides::default()), String::new());
    }

    #[test]
    fn what_looks_beside_definitions_have_not_found_stays_until_one_beside_none() {
        let catalogue = CodeCatalogue::empty();
        look(&catalogue, vec![takes(b"orders")]);
        assert!(reaches(&catalogue));
        // While a table is renamed, the server shows its trigger nowhere; and then once more.
        let number = catalogue.defines(trigger(0));
        look(&catalogue, Vec::new());
        assert!(reaches(&catalogue));
        look(&catalogue, Vec::new());
        assert!(reaches(&catalogue));
        catalogue.is_defined(number);
        look(&catalogue, vec![takes(b"sold")]);
        assert!(!reaches(&catalogue));
    }

    #[test]
    fn more_that_looks_have_not_found_again_than_is_kept_makes_every_statement_one_with_code() {
        let catalogue = CodeCatalogue::empty();
        let number = catalogue.defines(trigger(0));
        let many = |count| (0..count).map(|n| takes(format!("t{n}").as_bytes()));
        look(&catalogue, many(DEFINITIONS_MAX).collect());
        look(&catalogue, Vec::new());
        assert!(!reaches(&catalogue), "the bound is not passed yet");
        look(&catalogue, vec![takes(b"one more")]);
        look(&catalogue, Vec::new());
        assert!(reaches(&catalogue));
        assert!(catalogue.lock().before.is_empty());
        catalogue.is_defined(number);
        look(&catalogue, Vec::new());
        assert!(!reaches(&catalogue));
    }

    #[test]
    fn more_code_than_is_read_makes_every_statement_one_with_stored_code() {
        let catalogue = CodeCatalogue::empty();
        let look = catalogue.looks();
        catalogue.found_too_much(look, "the answer has more than 64 MiB");
        assert!(reaches(&catalogue));
        let look = catalogue.looks();
        catalogue.found_too_much(look, "the answer has more than 64 MiB");
        assert!(reaches(&catalogue));
        let look = catalogue.looks();
        catalogue.looked(look, Default::default(), String::new());
        assert!(!reaches(&catalogue));
    }
}
