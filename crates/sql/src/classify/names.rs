//! The names that stand before a parenthesis without being a call of a stored function.
//!
//! The problem: `f(x)` may run a stored function, which may do anything to the session, and only
//! the server knows which names are its own. The mechanism: a list of the functions and keywords
//! of MariaDB and MySQL, each with the release from which the server takes the name for its own
//! when it stands unquoted and unqualified before a parenthesis. A name that is missing, or too
//! young for the server at hand, counts as a stored function and costs a pin; a name that is
//! here by mistake would hide one.
//!
//! Many keywords are not here: MariaDB lets a stored function carry any name that its grammar does
//! not need, and does call `columns(1)` or `point(1)`. The MariaDB column of the entries up to
//! 10.11 was checked on a server that had a stored function of each name, with none to three
//! arguments, with and without a space before the parenthesis.
//!
//! One name is a component's: `mysql_query_attribute_string` is looked up among the functions that
//! a server has loaded before any stored function, and says nothing but what came with its own
//! statement. On a server without the component it is taken for a built-in all the same.
//!
//! Invariants (tested): upper case, no name twice, none longer than [`Folded`].

mod by_release;

use crate::lex::{Kind, Server, function_name};
use std::sync::LazyLock;

/// Effect of a call of a built-in name on the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Plain,
    /// Nothing, but the name is built in only when the parenthesis touches it (or under
    /// `IGNORE_SPACE`); with a space between, a stored function of that name is called.
    Tight,
    /// A constructor of geometries; without arguments MariaDB looks for a stored function.
    Geometry,
    /// A point, and only with exactly two arguments.
    Point,
    /// A table function; elsewhere than among tables MariaDB looks for a stored function.
    JsonTable,
    /// Reads the value that `LAST_INSERT_ID()` keeps, and sets it when given an argument.
    LastInsertId,
    /// Reads the count of the previous statement.
    RowCount,
    /// Reads the count of the previous query.
    FoundRows,
    /// Shows which backend runs the statement.
    ConnectionId,
    /// Reads the last transaction id of this session.
    LastGtid,
    /// Takes or gives back user-level locks, which belong to the session.
    UserLock,
    /// Makes a value of a sequence, which the session keeps as its last.
    Sequence,
    /// Changes a sequence for everybody, and nothing of the session.
    SetVal,
}

/// A word in upper case, without allocation.
pub(super) struct Folded {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Folded {
    /// `None` if the word is longer than any that is known.
    pub(super) fn new(word: &[u8]) -> Option<Self> {
        let mut bytes = [0; LONGEST];
        let target = bytes.get_mut(..word.len())?;
        target.copy_from_slice(word);
        target.make_ascii_uppercase();
        Some(Self {
            bytes,
            length: word.len(),
        })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The effect of `word(`, if the server takes it for its own.
pub(super) fn built_in(word: &[u8], server: Server) -> Option<Effect> {
    let word = Folded::new(word)?;
    let found = NAMES.binary_search_by(|name| name.0.as_bytes().cmp(word.as_bytes()));
    let &(_, mariadb, mysql, effect) = NAMES.get(found.ok()?)?;
    // A server older than those that the list describes may lack any of these names.
    let known = match server {
        Server::Unknown => mariadb == OLD && mysql == OLD,
        Server::MariaDb(version) => version >= MARIADB_OLDEST && version >= mariadb,
        Server::MySql(version) => version >= MYSQL_OLDEST && version >= mysql,
    };
    // A name that pins in any case keeps its own cause.
    let pins = matches!(effect, Effect::UserLock | Effect::Sequence);
    (known || pins).then_some(effect)
}

/// Effect of a call by this token. A quoted name calls a function of the server only where that is
/// no keyword; of those without an effect that does not matter: they count as stored functions.
pub(super) fn called(kind: Kind, text: &[u8], server: Server) -> Option<Effect> {
    let effect = built_in(function_name(kind, text)?, server)?;
    let by_name = match effect {
        Effect::LastInsertId
        | Effect::FoundRows
        | Effect::ConnectionId
        | Effect::LastGtid
        | Effect::UserLock => true,
        Effect::RowCount => !server.is_mysql(),
        _ => false,
    };
    (kind == Kind::Word || by_name).then_some(effect)
}

/// The longest word that is looked up in any table.
const LONGEST: usize = 32;

const MARIADB_OLDEST: u32 = 100_300;
const MYSQL_OLDEST: u32 = 50_700;

/// Version of names that every release has.
const OLD: u32 = 0;
/// Version of names that no release has.
const NONE: u32 = u32::MAX;

/// Name, first MariaDB release, first MySQL release, effect; sorted by name.
type Name = (&'static str, u32, u32, Effect);

static NAMES: LazyLock<Vec<Name>> = LazyLock::new(|| {
    let by_release = by_release::NAMES.iter();
    let mut names: Vec<Name> = by_release
        .flat_map(|&(mariadb, mysql, effect, names)| {
            let names = names.split_ascii_whitespace();
            names.map(move |name| (name, mariadb, mysql, effect))
        })
        .collect();
    names.sort_unstable_by_key(|name| name.0);
    names
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_once_and_fit() {
        for pair in NAMES.windows(2) {
            assert!(
                pair[0].0.as_bytes() < pair[1].0.as_bytes(),
                "{} {}",
                pair[0].0,
                pair[1].0
            );
        }
        for (name, ..) in NAMES.iter() {
            assert!(Folded::new(name.as_bytes()).is_some(), "{name}");
            assert_eq!(*name, name.to_ascii_uppercase());
        }
    }

    #[test]
    fn a_name_counts_from_the_release_that_brought_it() {
        let known = |name: &str, server| built_in(name.as_bytes(), server).is_some();
        for (name, server, expected) in [
            ("abs", Server::Unknown, true),
            ("Concat_WS", Server::Unknown, true),
            ("any_value", Server::Unknown, false),
            ("any_value", Server::MySql(80_406), true),
            ("any_value", Server::MariaDb(110_800), false),
            ("json_overlaps", Server::MariaDb(100_618), false),
            ("json_overlaps", Server::MariaDb(100_900), true),
            ("json_overlaps", Server::MySql(80_016), false),
            ("vec_distance_cosine", Server::MariaDb(110_702), true),
            ("vec_distance_cosine", Server::MySql(90_300), false),
            ("astext", Server::MariaDb(101_119), true),
            ("astext", Server::MySql(80_406), false),
            ("columns", Server::MariaDb(101_119), false),
            ("columns", Server::MySql(80_406), true),
            ("abs", Server::MariaDb(50_568), false),
            ("abs", Server::MySql(50_651), false),
            ("nextval", Server::MySql(80_406), true),
            (
                "a_name_that_is_longer_than_any_known_one",
                Server::Unknown,
                false,
            ),
            ("", Server::Unknown, false),
        ] {
            assert_eq!(known(name, server), expected, "{name} {server:?}");
        }
    }
}
