//! The session state that follows a client from backend to backend, and its difference.
//!
//! The problem: a statement must run under its client's schema, character sets and session
//! variables, on whatever backend it gets, without a round trip to put them there. The mechanism:
//! a [`Session`] is a value; the server's trackers report every change of it; equal sessions are
//! one shared object ([`Interner`]), so "does this backend stand as the client left it" is a
//! comparison of pointers, and thousands of clients of one application cost one object. Where they
//! differ, [`restore`] writes the commands that go out in front of the statement (`written.rs`: the
//! SET among them).
//!
//! Invariants:
//! - a variable that is not listed has the value with which the session began ([`GlobalDefaults`]),
//!   or, where that is not known, its default (`SET x=DEFAULT` restores it, with two exceptions);
//! - the four character set variables are always listed, because their defaults depend on how a
//!   connection logged in;
//! - values and names are in UTF-8, as the servers report them, whatever the client speaks; a
//!   backend that speaks otherwise is made to speak it before a name that is not ASCII is written.

mod interner;
mod user;
mod written;

pub use interner::Interner;
pub use user::{UserVariables, is_tricky};
pub use written::quoted_variable;

use crate::global_defaults::{GlobalDefaults, alias_of};
use crate::text::Text;
use crate::uncompared::{Accepted, Uncompared};
use sql::lex::{Charset, LexMode, Server};
use sql::plain_set::Assignment;
use sql::tracking::Tracked;
use std::borrow::Cow;
use std::rc::Rc;
use wire::attributes::{Form, put_query};
use wire::capabilities::INTERACTIVE;
use wire::command::{Command, put_command};
use written::set_of;

/// The four variables that a login sets by its collation, in the order in which they are restored:
/// setting `character_set_connection` resets the collation, so that comes last.
pub const CHARSET_VARIABLES: [&str; 4] = [
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
];

/// The one of them whose collation no variable shows.
const RESULTS: &[u8] = b"character_set_results";

/// Variables that trackers report but that are no lasting state of a session of ours: set by each
/// statement, read-only, kept elsewhere, used up (their clients are pinned meanwhile), or of
/// MariaDB's replication, though it reports them as the session's.
const NOT_STATE: [&str; 12] = [
    "statement_id",
    "last_insert_id",
    "identity",
    "insert_id",
    "warning_count",
    "error_count",
    "rand_seed1",
    "rand_seed2",
    "gtid_next",
    "gtid_seq_no",
    "max_relay_log_size",
    "sql_slave_skip_counter",
];

/// Variables that a session has of its default schema beside the name. USE sets both, whatever they
/// were; a reset puts them to the server's own and keeps the schema (MariaDB 10.11, MySQL 9.7).
/// Listed are those that are not their schema's.
pub const SCHEMA_VARIABLES: [&str; 2] = ["character_set_database", "collation_database"];

/// Character sets and their collations: a SET of either sets both, and the server reports the one
/// that was named. A session lists the one that was set last; behind a reset both of its schema.
const PAIRS: [[&[u8]; 2]; 2] = [
    [b"character_set_database", b"collation_database"],
    [b"character_set_server", b"collation_server"],
];

/// The other variable that a SET of this one sets, and whether that is the collation.
fn partner(name: &[u8]) -> Option<(&'static [u8], bool)> {
    PAIRS.iter().find_map(|&[charset, collation]| {
        let other = (name == charset).then_some((collation, true));
        other.or((name == collation).then_some((charset, false)))
    })
}

/// True if this variable is a collation, of those that are set together with their character sets,
/// or such a character set. An OK that reports both says what they are by the collation.
#[must_use]
pub fn is_paired_collation(name: &[u8]) -> Option<bool> {
    partner(name).map(|(_, other_is_collation)| !other_is_collation)
}

/// A SET of this one also sets [`BIG_SELECTS`], to whether there is no limit; servers report this
/// one alone.
const JOIN_SIZE: &[u8] = b"max_join_size";
/// An OK that reports both says what they are by this one.
pub const BIG_SELECTS: &[u8] = b"sql_big_selects";
/// [`JOIN_SIZE`] without a limit.
const NO_LIMIT: &[u8] = b"18446744073709551615";

/// Names of the variable that says how transactions are isolated: a server has one or both.
pub const LEVEL_NAMES: [&[u8]; 2] = [b"transaction_isolation", b"tx_isolation"];

/// Variable that makes MySQL report the number of each transaction.
const GTIDS: &[u8] = b"session_track_gtids";
/// Variable with the further effect of COMMIT and ROLLBACK.
const COMPLETION: &[u8] = b"completion_type";
/// Decides types in stored code on MySQL, when a session first runs it and for as long as that
/// lasts.
const TYPING: &[u8] = b"div_precision_increment";
/// The clock, while it stands still.
pub const CLOCK: &[u8] = b"timestamp";
/// Variables that a transaction depends on: to set `autocommit` to ON ends it, the others are
/// refused in one (errors 1685, 1679 and 1694). None of them is a matter of how a text is read.
const OF_TRANSACTION: [&[u8]; 4] = [
    b"autocommit",
    b"binlog_direct_non_transactional_updates",
    b"binlog_format",
    b"sql_log_bin",
];

/// Makes a server read names in the character set in which the pool has them. It cannot fail.
const SPEAK_UTF8: &[u8] = b"SET character_set_client=utf8mb4";

/// State that a client's statements run under.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Session {
    /// The default schema.
    pub schema: Option<Text>,
    /// True if several statements may stand in one text.
    pub multi_statements: bool,
    /// The collation in which the columns of results are described, if it is known: no variable
    /// shows it. `character_set_results` has a collation besides its name, which is that of the
    /// login, of SET NAMES, or the name's default. A number where the variable takes that, else the
    /// collation's name.
    pub results_collation: Option<Text>,
    /// The global values under which it began.
    pub defaults: GlobalDefaults,
    /// Variables that have changed since, sorted by name, and the character set family.
    pub(crate) variables: Vec<(Text, Text)>,
    /// Argument of `SET ROLE` to be in its role; `None` for the role of its backend's login.
    pub role: Option<Text>,
    /// User variables and the literals that make their values.
    pub(crate) user: UserVariables,
    /// COMMIT and ROLLBACK end its connection (`completion_type` is RELEASE).
    pub releases: bool,
    /// Settings of the client's trackers, if it has set them; backends report everything.
    pub tracked: Option<Rc<Tracked>>,
    /// True if its values can be set again for certain.
    pub accepted: Accepted,
    /// Mode in which its texts are cut, once that was asked: it is asked for each statement.
    pub(crate) lex_mode: Uncompared<Option<LexMode>>,
}

/// True if a value of which servers report is `value`; a switch may stand there as a number.
fn is_same(has: &[u8], value: &[u8]) -> bool {
    has == value || matches!((has, value), (b"1", b"ON") | (b"0", b"OFF"))
}

/// A variable cannot be named in a SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRestorable;

impl Session {
    /// Bytes of memory that it takes, but for its user variables.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.schema, &self.results_collation, &self.role];
        let texts = texts.into_iter().flatten().map(|text| text.len());
        let pairs = self.variables.iter();
        let pairs = pairs.map(|(name, value)| size_of::<(Text, Text)>() + name.len() + value.len());
        size_of::<Session>() + texts.chain(pairs).sum::<usize>()
    }

    /// The session of a client that has just logged in with these character sets (client,
    /// connection, results, collation).
    #[must_use]
    pub fn at_login(
        schema: &[u8],
        multi_statements: bool,
        charsets: &[Text; 4],
        defaults: &GlobalDefaults,
    ) -> Session {
        let mut session = Session {
            defaults: defaults.clone(),
            schema: (!schema.is_empty()).then(|| schema.into()),
            multi_statements,
            results_collation: None,
            variables: Vec::new(),
            role: None,
            user: UserVariables::default(),
            releases: false,
            tracked: None,
            accepted: Accepted::default(),
            lex_mode: Uncompared::default(),
        };
        for (name, value) in CHARSET_VARIABLES.iter().zip(charsets) {
            session.put(name.as_bytes(), value);
        }
        session.releases = session.defaults.value(COMPLETION) == Some(b"RELEASE");
        session
    }

    /// Session that follows this one on a connection that is reset: the schema, the role and
    /// CLIENT_MULTI_STATEMENTS stay; the schema's character set does not.
    #[must_use]
    pub fn after_reset(&self, charsets: &[Text; 4], defaults: &GlobalDefaults) -> Session {
        let mut session = Session::at_login(b"", self.multi_statements, charsets, defaults);
        session.schema.clone_from(&self.schema);
        session.forget_schema_charset();
        session.role.clone_from(&self.role);
        session
    }

    /// Sets the `wait_timeout` with which the login of an interactive client begins.
    pub fn begin_interactive(&mut self, capabilities: u32) {
        let wait = self.defaults.value(b"interactive_timeout");
        if capabilities & INTERACTIVE != 0
            && wait != self.defaults.value(b"wait_timeout")
            && let Some(wait) = wait.map(Text::from)
        {
            self.put(b"wait_timeout", &wait);
        }
    }

    /// The session of a backend that has not said yet what it is like.
    pub fn not_known(defaults: &GlobalDefaults) -> Session {
        Session {
            defaults: defaults.clone(),
            ..Session::default()
        }
    }

    /// Puts the word of a login's CLIENT_IGNORE_SPACE into `sql_mode`, at the place where servers
    /// list it: behind the three modes that come first. `default` is what it would be, where that
    /// is not known of the session.
    pub fn ignore_space(&mut self, default: &str) {
        const WORD: &str = "IGNORE_SPACE";
        const BEFORE: [&str; 3] = ["REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES"];
        let modes = self.value(b"sql_mode").map(String::from_utf8_lossy);
        let all = modes.map_or(default.to_string(), std::borrow::Cow::into_owned);
        let mut words: Vec<&str> = all.split(',').filter(|word| !word.is_empty()).collect();
        if !words.contains(&WORD) {
            let place = words.iter().take_while(|word| BEFORE.contains(word));
            words.insert(place.count(), WORD);
            self.put(b"sql_mode", words.join(",").as_bytes());
        }
    }

    /// The value of a listed variable.
    #[must_use]
    pub fn variable(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self
            .variables
            .binary_search_by(|(n, _)| (**n).cmp(name))
            .ok()?;
        Some(&self.variables[found].1)
    }

    /// The value of any variable, as far as it is known.
    #[must_use]
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        self.variable(name).or_else(|| self.defaults.value(name))
    }

    /// Notes a change of a variable that the server reported.
    ///
    /// # Errors
    /// [`NotRestorable`] when its name is none that a SET could have; nothing is noted then.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), NotRestorable> {
        if NOT_STATE.iter().any(|other| other.as_bytes() == name) {
            return Ok(());
        }
        if !is_name(name) {
            return Err(NotRestorable);
        }
        if name == RESULTS && self.variable(RESULTS) != Some(value) {
            // Their collation is another's now, until it has been read.
            self.results_collation = None;
        }
        self.put(name, value);
        if let Some((other, _)) = partner(name) {
            self.unset(other);
        }
        if let Some(other) = alias_of(name) {
            // It is one variable, and listed by the name by which it was set last.
            self.unset(other);
        }
        if name == JOIN_SIZE {
            let big: &[u8] = if value == NO_LIMIT { b"ON" } else { b"OFF" };
            self.put(BIG_SELECTS, big);
        }
        Ok(())
    }

    /// Notes a variable of this name, which a SET can have.
    pub fn put(&mut self, name: &[u8], value: &[u8]) {
        self.lex_mode.set(None);
        if name == COMPLETION {
            self.releases = value == b"RELEASE";
        }
        match self.variables.binary_search_by(|(n, _)| (**n).cmp(name)) {
            Ok(found) => self.variables[found].1 = value.into(),
            Err(place) => self.variables.insert(place, (name.into(), value.into())),
        }
    }

    /// Forgets a variable: it has its default again.
    pub fn unset(&mut self, name: &[u8]) {
        self.variables.retain(|(listed, _)| **listed != *name);
    }

    /// Its user variables.
    pub fn user_variables(&self) -> &UserVariables {
        &self.user
    }

    /// Sets these user variables, in place of those before.
    pub fn set_user_variables(&mut self, user: UserVariables) {
        self.user = user;
    }

    /// Literal behind `SET @name=` for a user variable; its name in lower case.
    pub fn user_variable(&self, name: &[u8]) -> Option<&[u8]> {
        self.user.get(name)
    }

    /// Session with the parts of `other` that are no matter for how a text is read, and may not be
    /// known whole yet or must stay as they are while a transaction is open: user variables, the
    /// role, the clock and what a transaction depends on.
    pub fn with_unread_of(&self, other: &Session) -> Session {
        let mut session = self.clone();
        session.user = other.user.clone();
        session.role.clone_from(&other.role);
        for name in [CLOCK].iter().chain(&OF_TRANSACTION) {
            match other.variable(name) {
                Some(value) => session.put(name, value),
                None => session.unset(name),
            }
        }
        session
    }

    /// True if its texts are in UTF-8.
    pub fn speaks_utf8(&self) -> bool {
        let client = self.variable(CHARSET_VARIABLES[0].as_bytes());
        client.is_some_and(|name| name.starts_with(b"utf8"))
    }

    /// The schema of a login, if it is in a character set that is not the pool's. What utf8mb3
    /// cannot say is refused in other words than what the pool's cannot.
    pub fn schema_as_sent(&self) -> Option<&Text> {
        let schema = self.schema.as_ref()?;
        let ours = self.variable(CHARSET_VARIABLES[0].as_bytes()) == Some(b"utf8mb4");
        (!schema.is_ascii() && !ours).then_some(schema)
    }

    /// Session with the schema of `from` in place of one as it was sent, and that one.
    pub fn without_schema_as_sent(&self, from: &Session) -> (Session, Option<&Text>) {
        let mut session = self.clone();
        let sent = self.schema_as_sent();
        if sent.is_some() {
            session.schema.clone_from(&from.schema);
        }
        (session, sent)
    }

    /// True if a name or a schema in what brings another session to this one is not ASCII. A
    /// session that begins anew keeps its schema, and is told it once more for its character set.
    fn is_foreign(&self, other: &Session) -> bool {
        let schema = other.schema_to_set(self);
        let schema = schema.is_some_and(|schema| !schema.is_ascii());
        let user = self.user != other.user && (self.user.is_foreign() || other.user.is_foreign());
        schema || user
    }

    /// Sets the character set to the global default in place of its schema's, as behind a reset.
    pub fn forget_schema_charset(&mut self) {
        for name in SCHEMA_VARIABLES {
            let known = self.defaults.value(name.as_bytes()).map(Text::from);
            if self.schema.is_some()
                && let Some(value) = known
            {
                self.put(name.as_bytes(), &value);
            }
        }
    }

    /// Sets the default schema, whose character set is the session's.
    pub fn use_schema(&mut self, schema: Option<Text>) {
        self.schema = schema;
        self.variables.retain(|(name, _)| {
            !SCHEMA_VARIABLES
                .iter()
                .any(|other| other.as_bytes() == &**name)
        });
    }

    /// True if it has another character set than its schema.
    fn has_odd_schema_charset(&self) -> bool {
        SCHEMA_VARIABLES
            .iter()
            .any(|name| self.variable(name.as_bytes()).is_some())
    }

    /// Value that decides types in stored code on MySQL ([`TYPING`]), where that is not the one
    /// that the session began with.
    #[must_use]
    pub fn typing(&self) -> Option<&[u8]> {
        let typing = self.variable(TYPING);
        typing.filter(|_| typing != self.defaults.value(TYPING))
    }

    /// True if only a reset may bring a session like this one to `to`: MySQL lets none but
    /// administrators set what a reset has left of the character set of a schema. `defaults`: with
    /// which global values a reset session begins.
    pub fn needs_reset_for(&self, to: &Session, defaults: &GlobalDefaults) -> bool {
        !self.stands_in_schema_of(to) && to.is_as_reset(defaults)
    }

    /// True if it has the server's character set in place of its schema's, as a reset leaves it.
    pub fn is_as_reset(&self, defaults: &GlobalDefaults) -> bool {
        SCHEMA_VARIABLES.iter().all(|name| {
            let default = defaults.value(name.as_bytes());
            default.is_some() && self.variable(name.as_bytes()) == default
        })
    }

    /// True if it has the same default schema as another one, and the same of that beside the name.
    pub fn stands_in_schema_of(&self, other: &Session) -> bool {
        let same = |name: &&str| self.variable(name.as_bytes()) == other.variable(name.as_bytes());
        self.schema == other.schema && SCHEMA_VARIABLES.iter().all(same)
    }

    /// Takes the default schema of another one, and what that has of it beside the name.
    pub fn move_to_schema_of(&mut self, other: &Session) {
        self.use_schema(other.schema.clone());
        for name in SCHEMA_VARIABLES.map(str::as_bytes) {
            if let Some(value) = other.variable(name) {
                self.put(name, value);
            }
        }
    }

    /// The schema that is to be set to get to `to` from here, if one is.
    pub fn schema_to_set<'a>(&self, to: &'a Session) -> Option<&'a Text> {
        let same = |name: &&str| {
            let listed = self.variable(name.as_bytes());
            listed.is_none() || listed == to.variable(name.as_bytes())
        };
        let stands = self.schema == to.schema && SCHEMA_VARIABLES.iter().all(same);
        to.schema.as_ref().filter(|_| !stands)
    }

    /// True if any system variable differs.
    pub fn variables_differ(&self, other: &Session) -> bool {
        self.variables != other.variables
            || self.results_collation != other.results_collation
            || self.defaults != other.defaults
    }

    /// True if the two differ in nothing but whether several statements may stand in one text.
    pub fn equals_but_for_multi(&self, other: &Session) -> bool {
        let same = self.schema == other.schema && self.role == other.role;
        same && !self.variables_differ(other) && self.user == other.user
    }

    /// Names of the variables that a restoring command between the two sets.
    pub fn differing_variables<'a>(&'a self, other: &'a Session) -> impl Iterator<Item = &'a [u8]> {
        let changed = other.variables.iter();
        let changed = changed.filter(|(name, value)| self.variable(name) != Some(value));
        let dropped = self.variables.iter();
        let dropped = dropped.filter(|(name, _)| other.variable(name).is_none());
        let listed = changed.chain(dropped).map(|(name, _)| &**name);
        listed.chain(self.begun_otherwise(other))
    }

    /// Names of the variables that neither has changed, and that began otherwise.
    fn begun_otherwise<'a>(&'a self, other: &'a Session) -> impl Iterator<Item = &'a [u8]> {
        let listed = |name: &[u8]| self.variable(name).or(other.variable(name)).is_some();
        self.defaults.differing(&other.defaults, listed)
    }

    /// Mode in which this server cuts the session's texts; `default` is its `sql_mode` for fresh
    /// sessions, where that of this one is not known.
    #[must_use]
    pub fn lex_mode(&self, default: &str, server: Server) -> LexMode {
        if let Some(mode) = self.lex_mode.get() {
            return mode;
        }
        let mode = self.read_lex_mode(default, server);
        self.lex_mode.set(Some(mode));
        mode
    }

    fn read_lex_mode(&self, default: &str, server: Server) -> LexMode {
        let sql_mode = self.value(b"sql_mode").unwrap_or(default.as_bytes());
        let has = |word: &str| has_word(sql_mode, word);
        LexMode {
            ansi_quotes: has("ANSI_QUOTES"),
            no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
            ignore_space: has("IGNORE_SPACE"),
            no_schema: false,
            charset: Charset::of_name(self.variable(b"character_set_client").unwrap_or(b"")),
            server,
        }
    }

    /// True if `autocommit` is on, as it is where nothing else is known.
    #[must_use]
    pub fn commits(&self) -> bool {
        !matches!(self.value(b"autocommit"), Some(b"OFF" | b"0"))
    }

    /// True if COMMIT and ROLLBACK do nothing besides, as far as `completion_type` is known.
    #[must_use]
    pub fn completes_plainly(&self) -> bool {
        matches!(self.value(COMPLETION), Some(b"NO_CHAIN" | b"0"))
    }

    /// True if its isolation level is SERIALIZABLE.
    #[must_use]
    pub fn is_serializable(&self) -> bool {
        (LEVEL_NAMES.iter()).any(|name| self.value(name) == Some(b"SERIALIZABLE"))
    }

    /// True if the server reports the numbers of its transactions (MySQL's `session_track_gtids`).
    #[must_use]
    pub fn tracks_gtids(&self) -> bool {
        let tracks = self.value(GTIDS);
        tracks.is_some_and(|value| !matches!(value, b"0" | b"OFF"))
    }

    /// True if replicas are not told of what it writes.
    #[must_use]
    pub fn is_unlogged(&self) -> bool {
        let logs = self.value(b"sql_log_bin");
        logs.is_some_and(|value| matches!(value, b"0" | b"OFF"))
    }

    /// True if an assignment would leave it as it is, for certain. `described` is what
    /// [`Session::results_collation`] is under a collation of this name.
    #[must_use]
    pub fn stands_at(
        &self,
        assignment: &Assignment<'_>,
        described: impl Fn(&[u8]) -> Option<Text>,
    ) -> bool {
        let is_at = |name: &[u8], value| self.value(name).is_some_and(|has| is_same(has, value));
        let is_not_at = |name: &[u8], value| self.value(name).is_some() && !is_at(name, value);
        match *assignment {
            // Of two names the SET has the one that a server does not warn of. The session may have
            // been set by the other: by the name of the SET, what it began with is known then.
            Assignment::Variable(name, value) => {
                let other = alias_of(name.as_bytes());
                is_at(name.as_bytes(), value) && !other.is_some_and(|name| is_not_at(name, value))
            }
            Assignment::Level(level) => {
                LEVEL_NAMES.iter().any(|name| is_at(name, level))
                    && !LEVEL_NAMES.iter().any(|name| is_not_at(name, level))
            }
            Assignment::Names(charset, collation) => {
                let wanted = [charset, charset, charset, collation];
                let results = described(&collation.to_ascii_lowercase());
                let is_at = |(name, wanted): (&str, &[u8])| {
                    let has = self.variable(name.as_bytes());
                    has.is_some_and(|has| has.eq_ignore_ascii_case(wanted))
                };
                CHARSET_VARIABLES.into_iter().zip(wanted).all(is_at)
                    && results.is_some()
                    && results == self.results_collation
            }
        }
    }

    /// True if its `sql_mode` is known and has this word.
    #[must_use]
    pub fn sql_mode_has(&self, mode: &str) -> bool {
        has_word(self.value(b"sql_mode").unwrap_or_default(), mode)
    }
}

fn has_word(list: &[u8], word: &str) -> bool {
    list.split(|&byte| byte == b',')
        .any(|listed| listed.eq_ignore_ascii_case(word.as_bytes()))
}

pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'))
}

/// The backend that is brought into a session.
#[derive(Clone, Copy, Debug)]
pub struct On {
    /// Form of commands on it.
    pub form: Form,
    /// Kind of server.
    pub server: Server,
    /// The server's number of it.
    pub thread: u32,
}

/// Appends the commands that bring a backend from `from` to `to`, and returns how many there are;
/// each is answered by OK or ERR. `insert_id` is a LAST_INSERT_ID() to be set besides.
pub fn restore(
    out: &mut Vec<u8>,
    on: On,
    (from, to): (&Session, &Session),
    insert_id: Option<u64>,
) -> usize {
    let mut commands = 0;
    let mut from = Cow::Borrowed(from);
    let foreign = to.is_foreign(&from);
    if foreign && !from.speaks_utf8() {
        put_query(out, on.form, SPEAK_UTF8);
        from.to_mut()
            .put(CHARSET_VARIABLES[0].as_bytes(), b"utf8mb4");
        commands += 1;
    }
    let schema = from.schema_to_set(to);
    // A schema's name is read in the character set of the moment; and it sets its own.
    let first = foreign || to.has_odd_schema_charset();
    if let Some(schema) = schema.filter(|_| first) {
        put_command(out, Command::InitDb, schema);
        from.to_mut().use_schema(Some(schema.clone()));
        commands += 1;
    }
    let set = set_of((&from, to), insert_id, on);
    if !set.is_empty() {
        put_query(out, on.form, &set);
        commands += 1;
    }
    if from.multi_statements != to.multi_statements {
        put_multi(out, to.multi_statements);
        commands += 1;
    }
    if let Some(schema) = schema.filter(|_| !first) {
        put_command(out, Command::InitDb, schema);
        commands += 1;
    }
    commands
}

/// The difference as text in front of a statement in one command, and the number of its statements;
/// each is answered by OK or ERR, and behind an ERR nothing runs. `None` where the schema's name
/// would have to be written otherwise than it is.
pub fn restore_as_text(
    (from, to): (&Session, &Session),
    insert_id: Option<u64>,
    on: On,
) -> Option<(Vec<u8>, usize)> {
    if to.is_foreign(from) || to.has_odd_schema_charset() {
        return None;
    }
    let mut text = set_of((from, to), insert_id, on);
    let mut statements = 0;
    if !text.is_empty() {
        text.push(b';');
        statements += 1;
    }
    if let Some(schema) = from.schema_to_set(to) {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-');
        if !schema.iter().all(plain) {
            return None;
        }
        text.extend_from_slice(b"USE `");
        text.extend_from_slice(schema);
        text.extend_from_slice(b"`;");
        statements += 1;
    }
    Some((text, statements))
}

/// Appends the command that allows or forbids several statements in one text. It cannot fail.
pub fn put_multi(out: &mut Vec<u8>, on: bool) {
    // MYSQL_OPTION_MULTI_STATEMENTS_ON is 0, ..._OFF is 1.
    put_command(out, Command::SetOption, &[u8::from(!on), 0]);
}

/// True if commands can bring a backend from `from` to `to`: there is none that takes a default
/// schema away.
#[must_use]
pub fn can_restore(from: &Session, to: &Session) -> bool {
    from.schema.is_none() || to.schema.is_some()
}

#[cfg(test)]
mod tests;
