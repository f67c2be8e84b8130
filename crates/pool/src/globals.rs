//! Global values: what a session's variables are before it has set any, and stay.
//!
//! The problem: a session takes the server's global values when it logs in and keeps them, whatever
//! SET GLOBAL makes of them later. A backend outlives such a change, and clients of before it share
//! backends with clients of after it. The mechanism: the pool knows the global value of every
//! variable that a session may set ([`Globals`]), and each session, of a client as of a backend,
//! refers to those of its own beginning. Where two sessions began under different ones, their
//! difference counts like any other and is written back as values (`session.rs`).
//!
//! [`crate::watch`] asks the server once a second, and after each SET GLOBAL through the pool;
//! groups take what is new at the begin of a turn.
//!
//! A backend that was dialled between two looks of which the second found a change may have begun
//! under either values. It serves nobody once that is known.
//!
//! Invariant: two sessions with the same version of this began under the same values.

use crate::backend::BackendState;
use crate::group::{Group, Shared};
use crate::log::{Event, note};
use crate::probe::{Connection, ProbeError, Rows};
use crate::session::Text;
use reactor::{Key, Net, Time};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Stands for NULL where the server is asked; no value has it.
const NULL: u8 = 1;

/// MariaDB tells which variables a session may set.
const MARIADB_NAMES: &str = "SELECT LOWER(VARIABLE_NAME) FROM information_schema.SYSTEM_VARIABLES \
     WHERE VARIABLE_SCOPE='SESSION' AND READ_ONLY='NO'";
/// MySQL does not: each is tried.
const MYSQL_NAMES: &str = "SHOW SESSION VARIABLES";
/// So many in one write: it and its answers, of 200 bytes each or so, fit into a socket's buffer.
const TRIED_AT_ONCE: usize = 64;
/// No session may set these (errors 1621 and 1238), though MySQL shows a session's own of them.
const FIXED: [&str; 5] = [
    "gtid_executed",
    "gtid_owned",
    "max_allowed_packet",
    "max_user_connections",
    "net_buffer_length",
];

/// The global values of all variables that a session may set, as they were at one moment.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    /// Counts the changes of any; 0 where nothing is known.
    version: u64,
    /// Sorted.
    names: Arc<[Text]>,
    /// In the order of the names; `None` for NULL.
    values: Vec<Option<Text>>,
    /// What the server runs for who logs in.
    init_connect: Text,
}

impl Globals {
    fn tell_difference(&self, old: &Globals) {
        let pairs = self.values.iter().zip(&old.values);
        let all = self.names.iter().zip(pairs);
        let changed = all.filter(|(_, (one, two))| one != two);
        let mut names: Vec<_> = changed
            .map(|(name, _)| String::from_utf8_lossy(name))
            .collect();
        if self.init_connect != old.init_connect {
            names.push("init_connect".into());
        }
        note(
            Event::Globals,
            format_args!(
                "the server's global values have changed ({}): they hold for who logs in from now \
                 on",
                names.join(", ")
            ),
        );
    }
}

/// Those that a session began under. It is compared by its version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Arc<Globals>);

impl PartialEq for Begun {
    fn eq(&self, other: &Self) -> bool {
        self.0.version == other.0.version
    }
}

impl Eq for Begun {}

impl Hash for Begun {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.version.hash(state);
    }
}

impl Begun {
    /// The variables, in the order of [`Begun::read`].
    pub(crate) fn names(&self) -> &[Text] {
        &self.0.names
    }

    /// What the server runs for who logs in (see [`crate::init_connect`]).
    pub(crate) fn init_connect(&self) -> &[u8] {
        &self.0.init_connect
    }

    /// The expression that tells all variables of the session that asks.
    pub(crate) fn question(&self) -> String {
        question(&self.0.names, "session")
    }

    /// What that expression has told.
    pub(crate) fn read(&self, told: &[u8]) -> Option<Vec<Option<Text>>> {
        read_told(told, self.0.names.len())
    }

    /// The value of a variable then, if it is known and no NULL.
    pub(crate) fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let place = self.0.names.binary_search_by(|n| (**n).cmp(name)).ok()?;
        self.0.values[place].as_deref()
    }

    /// Variables that had other values then than in `other`, but for those that are `listed` under
    /// any of their names.
    pub(crate) fn differing<'a>(
        &'a self,
        other: &'a Begun,
        listed: impl Fn(&[u8]) -> bool + 'a,
    ) -> impl Iterator<Item = &'a [u8]> {
        let same = self == other;
        let pairs = self.0.values.iter().zip(&other.0.values);
        let all = self.0.names.iter().zip(pairs);
        let differ = all.filter(move |(_, (one, two))| !same && one != two);
        let names = differ.map(|(name, _)| &**name);
        names.filter(move |name| !listed(name) && !alias_of(name).is_some_and(&listed))
    }
}

/// The other name of a variable of MariaDB's that has two.
fn alias_of(name: &[u8]) -> Option<&'static [u8]> {
    const PAIRS: [(&str, &str); 6] = [
        ("default_storage_engine", "storage_engine"),
        ("log_slow_min_examined_row_limit", "min_examined_row_limit"),
        ("log_slow_query", "slow_query_log"),
        ("log_slow_query_time", "long_query_time"),
        ("transaction_isolation", "tx_isolation"),
        ("transaction_read_only", "tx_read_only"),
    ];
    let other = |(one, two): &(&'static str, &'static str)| match name {
        _ if name == one.as_bytes() => Some(two.as_bytes()),
        _ if name == two.as_bytes() => Some(one.as_bytes()),
        _ => None,
    };
    PAIRS.iter().find_map(other)
}

/// What all groups share of it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The version of `state.now`.
    version: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Arc<Globals>,
    /// The last look that found `now` as it is, at its begin.
    seen: Time,
    /// The last look that found something else; backends dialled later may be of either kind.
    before: Time,
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self, names: Vec<Text>) {
        self.lock().now = Arc::new(Globals {
            names: names.into(),
            ..Globals::default()
        });
    }

    /// A look that began at `begun` has found these values.
    fn note(&self, begun: Time, (values, init_connect): (Vec<Option<Text>>, Text)) {
        let mut state = self.lock();
        let old = state.now.clone();
        if old.values != values || old.init_connect != init_connect {
            state.before = state.seen;
            state.now = Arc::new(Globals {
                version: old.version + 1,
                names: old.names.clone(),
                values,
                init_connect,
            });
            self.version.store(state.now.version, Release);
            if old.version > 0 {
                state.now.tell_difference(&old);
            }
        }
        state.seen = begun;
    }

    /// Whether it is known already what to ask for.
    pub(crate) fn is_named(&self) -> bool {
        !self.lock().now.names.is_empty()
    }

    /// The statement that asks for all global values.
    pub(crate) fn question(&self) -> String {
        let names = self.lock().now.names.clone();
        let values = question(&names, "global");
        format!("SELECT {values},@@global.init_connect,@@global.max_connections")
    }

    /// What it was answered that was asked at `begun`; gives how many connections the server takes.
    ///
    /// # Errors
    /// [`ProbeError`]: these are not the values.
    pub(crate) fn answered(&self, begun: Time, rows: Rows) -> Result<usize, ProbeError> {
        let names = self.lock().now.names.len();
        let row = rows.into_iter().next();
        let told = row.and_then(|row| <[Text; 3]>::try_from(row).ok());
        let read = told.and_then(|[told, init, most]| {
            let most = std::str::from_utf8(&most).ok()?.parse().ok()?;
            Some(((read_told(&told, names)?, init), most))
        });
        let error = ProbeError::passing("the server did not tell its global values");
        let (values, most) = read.ok_or(error)?;
        self.note(begun, values);
        Ok(most)
    }
}

/// Held while a statement that sets a global variable is under way.
#[derive(Debug)]
pub(crate) struct Setting(pub(crate) Arc<Shared>);

impl Drop for Setting {
    fn drop(&mut self) {
        self.0.bell.ring();
    }
}

impl<N: Net> Group<N> {
    /// Takes what the last look has found, if that is new.
    pub(crate) fn take_globals(&mut self) {
        let version = self.shared.globals.version.load(Acquire);
        if version == self.begun.0.version {
            return;
        }
        let state = self.shared.globals.lock();
        let (now, before) = (state.now.clone(), state.before);
        drop(state);
        let others = now.init_connect != self.begun.0.init_connect;
        self.begun = Begun(now);
        let longest = self.shared.settings.dial_max;
        let unsure = |key: &Key| {
            let backend = self.backends.get(*key);
            others || backend.is_some_and(|backend| backend.born + longest >= before)
        };
        let unsure: Vec<Key> = self.backends.keys().into_iter().filter(unsure).collect();
        for key in unsure {
            match self.backends.get_mut(key) {
                Some(backend) if backend.state() == BackendState::Leased => backend.spoiled = true,
                _ => self.retire(key),
            }
        }
    }
}

/// Finds out which variables a session may set.
///
/// # Errors
/// [`ProbeError`], or what the server has against the question.
pub(crate) fn find_names(shared: &Shared, connection: &mut Connection) -> Result<(), ProbeError> {
    let mysql = shared.server.flavour.is_mysql();
    let asked = if mysql { MYSQL_NAMES } else { MARIADB_NAMES };
    let rows = connection.query(asked)?;
    let listed = rows.into_iter().filter_map(|row| row.into_iter().next());
    let mut names: Vec<Text> = listed.filter(may_be_set).collect();
    if mysql {
        names = settable(connection, &names)?;
    }
    names.sort_unstable();
    shared.globals.name(names);
    Ok(())
}

fn may_be_set(name: &Text) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let fixed = FIXED.iter().any(|fixed| fixed.as_bytes() == &**name);
    !fixed && name.iter().all(plain)
}

/// Those of which the server tells a session's value and a global one.
fn settable(connection: &mut Connection, names: &[Text]) -> Result<Vec<Text>, ProbeError> {
    let mut found = Vec::new();
    for some in names.chunks(TRIED_AT_ONCE) {
        let texts = some.iter().map(|name| {
            let shown = String::from_utf8_lossy(name);
            format!("SELECT @@session.{shown},@@global.{shown}")
        });
        let texts: Vec<String> = texts.collect();
        let answers = connection.ask(&texts)?;
        let pairs = some.iter().zip(answers);
        found.extend(pairs.filter_map(|(name, answer)| answer.is_ok().then(|| name.clone())));
    }
    Ok(found)
}

/// One column of bytes with all values: a column each would cost the server more than the values.
fn question(names: &[Text], scope: &str) -> String {
    let mut sql = String::from("CONCAT_WS(x'00'");
    for name in names {
        let name = String::from_utf8_lossy(name);
        sql.push_str(&format!(",IFNULL(@@{scope}.{name},x'01')"));
    }
    sql.push(')');
    sql
}

fn read_told(told: &[u8], names: usize) -> Option<Vec<Option<Text>>> {
    let parts = told.split(|&byte| byte == 0);
    let values: Vec<Option<Text>> = parts
        .map(|value| (value != [NULL]).then(|| value.into()))
        .collect();
    (values.len() == names).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(version: u64, pairs: &[(&str, Option<&str>)]) -> Begun {
        let text = |text: &str| Text::from(text.as_bytes());
        Begun(Arc::new(Globals {
            version,
            names: pairs.iter().map(|(name, _)| text(name)).collect(),
            values: pairs.iter().map(|(_, value)| value.map(text)).collect(),
            init_connect: Text::default(),
        }))
    }

    #[test]
    fn what_differs_is_named_unless_it_is_listed_under_one_of_its_names() {
        let old = begun(
            1,
            &[
                ("a", Some("1")),
                ("b", None),
                ("long_query_time", Some("3")),
            ],
        );
        let new = begun(
            2,
            &[
                ("a", Some("2")),
                ("b", None),
                ("long_query_time", Some("4")),
            ],
        );
        let names = |listed: &'static [u8]| {
            let all = old.differing(&new, move |name| name == listed);
            all.map(|name| String::from_utf8_lossy(name).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(b""), ["a", "long_query_time"]);
        assert_eq!(names(b"a"), ["long_query_time"]);
        assert_eq!(names(b"log_slow_query_time"), ["a"]);
        assert_eq!(old.differing(&old.clone(), |_| false).count(), 0);
        assert_eq!(old.value(b"a"), Some(&b"1"[..]));
        assert_eq!((old.value(b"b"), old.value(b"c")), (None, None));
    }

    #[test]
    fn a_version_stands_for_values_and_what_is_equal_is_none() {
        let watch = Watch::default();
        watch.name(vec![Text::from(&b"a"[..])]);
        let value = |text: &str| (vec![Some(Text::from(text.as_bytes()))], Text::default());
        watch.note(Time(10), value("1"));
        assert_eq!(watch.version.load(Acquire), 1);
        watch.note(Time(20), value("1"));
        assert_eq!(watch.version.load(Acquire), 1);
        watch.note(Time(30), value("2"));
        assert_eq!(watch.version.load(Acquire), 2);
        // What was dialled after the last look that found the old value may have either.
        assert_eq!(watch.lock().before, Time(20));
    }
}
