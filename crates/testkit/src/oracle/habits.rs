//! Habits of clients, as a catalogue: one row for each habit, one text for each way to have it.
//!
//! A text is one step or several, with ` ;; ` between them; other clients' steps come in between.
//! A step is SQL, or what its tags in `<...>` say (see `draw`). `{t}` is the client's own table,
//! `{o}` some client's (to be read), `{d}` a table that it may make, `{n}` a small number, `{k}` a
//! row's number, `{w}` a word, `{l}` the name of a lock of its own, `{p}` its own procedure, `{v}`
//! its own view.
//!
//! Rules that keep two tellings comparable: rows have an order; nobody writes to another's table;
//! nothing depends on the clock, on chance, on a connection's number (but for being the client's
//! own), or on how soon the server notices that a client has gone. A story of two clients may have
//! both write to the first one's table, in an order that the text forces.

mod code;
mod holding;
mod pairs;
mod previous;
mod protocol;
mod settings;
mod work;

/// Servers that know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Both,
    MariaDb,
    MySql,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    pub name: &'static str,
    /// Weight beside the others.
    pub weight: u64,
    pub on: On,
    pub ways: &'static [&'static str],
}

pub(super) const fn habit(
    name: &'static str,
    weight: u64,
    on: On,
    ways: &'static [&'static str],
) -> Habit {
    Habit {
        name,
        weight,
        on,
        ways,
    }
}

/// Habits that are not drawn, each with the reason: what the pool is known to answer otherwise
/// (docs/pool/limits.md); `ONRAMP_ORACLE_ALL=1` draws them too.
pub(crate) const LEFT_OUT: [(&str, &str); 0] = [];

/// Plain reads, which may run in any order.
pub(crate) fn reads() -> &'static Habit {
    &work::HABITS[0]
}

/// Every row.
pub(crate) fn all() -> impl Iterator<Item = &'static Habit> {
    let parts = [
        work::HABITS,
        previous::HABITS,
        settings::HABITS,
        holding::HABITS,
        pairs::HABITS,
        protocol::HABITS,
        code::HABITS,
    ];
    parts.into_iter().flatten()
}
