//! Choice of the catalogue's entry that fits.
//!
//! The mechanism: an entry is identified by a number, by words or by an errno, and the more exact
//! evidence wins: words that must be there (onramp's own), then number and errno together, then a
//! number, then words (the first in the line), then an errno alone, then words of a family. A
//! number that is not written is taken from the words of the error that it belongs to. A line of
//! another database has only its errno, and one of HAProxy's log only its termination state: their
//! numbers and words mean other things there.

use super::catalogue::{Entry, entries};
use super::clues::Clues;
use super::errno;
use std::cmp::Reverse;

/// An error that was recognised.
#[derive(Debug)]
pub(crate) struct Explained {
    /// Entry of the catalogue; None for an errno of which only the name is known.
    pub(crate) entry: Option<&'static Entry>,
    /// The first line that said it; empty for a bare number or name.
    pub(crate) line: String,
    /// Number of times that it came.
    pub(crate) count: u64,
    /// Clues of the (first) line.
    pub(crate) clues: Clues,
}

impl Explained {
    fn new(entry: Option<&'static Entry>, line: &str, clues: Clues) -> Explained {
        Explained {
            entry,
            line: line.to_owned(),
            count: 1,
            clues,
        }
    }

    /// More exact entries about the same number: what to ask for next.
    pub(crate) fn variants(&self) -> Vec<&'static Entry> {
        let Some(entry) = self.entry.filter(|entry| entry.errno.is_empty()) else {
            return Vec::new();
        };
        let number = self.clues.number.or(entry.number.first().copied());
        let same = |other: &&Entry| {
            other.name != entry.name && number.is_some_and(|number| other.number.contains(&number))
        };
        entries().iter().filter(same).collect()
    }
}

/// Question to the catalogue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// A number alone, from 1000 on.
    Number(u32),
    /// A number of the system.
    Errno(i32),
    /// Anything else.
    Line(String),
}

impl Query {
    /// Reads an argument. `1135`, `errno 11`, `os error 24` and `EMFILE` are short forms.
    pub(crate) fn of(text: &str) -> Query {
        let text = unquoted(text.trim());
        let bare = text.trim_matches(['(', ')', '[', ']', '#']);
        if let Ok(number) = bare.parse::<u32>() {
            return match i32::try_from(number) {
                Ok(errno) if number < 1000 => Query::Errno(errno),
                _ => Query::Number(number),
            };
        }
        if let Some(errno) = errno::number(&bare.to_uppercase()) {
            return Query::Errno(errno);
        }
        Query::Line(text.to_owned())
    }

    /// Explanations; several where a line holds several errors, none if nothing is known.
    pub(crate) fn answer(&self) -> Vec<Explained> {
        match self {
            Query::Number(number) => {
                let clues = Clues {
                    number: Some(*number),
                    ..Clues::default()
                };
                find(&clues)
                    .map(|entry| Explained::new(Some(entry), "", clues))
                    .into_iter()
                    .collect()
            }
            Query::Errno(errno) => by_errno(*errno, "").into_iter().collect(),
            Query::Line(line) => of_line(line),
        }
    }
}

/// Without quotes around the whole of it.
fn unquoted(text: &str) -> &str {
    let inside = |quote| Some(text.strip_prefix(quote)?.strip_suffix(quote)?.trim());
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

fn by_errno(errno: i32, line: &str) -> Option<Explained> {
    errno::name(errno)?;
    let clues = Clues {
        errno: Some(errno),
        errno_is_sure: true,
        ..Clues::default()
    };
    Some(Explained::new(find(&clues), line, clues))
}

/// The errors in one line: the one that fits best, and the errno in it if that is another story.
fn of_line(line: &str) -> Vec<Explained> {
    let clues = Clues::of(line);
    let found = find(&clues);
    let Some(entry) = found.filter(|entry| !entry.family) else {
        if let Some(entry) = by_word(line) {
            return vec![Explained::new(Some(entry), line, clues)];
        }
        let errno = clues.errno.filter(|_| clues.errno_is_sure);
        let named = errno.and_then(|errno| by_errno(errno, line));
        let family = found.map(|entry| Explained::new(Some(entry), line, clues));
        return named.or(family).into_iter().collect();
    };
    let errno = clues.errno.filter(|errno| !entry.covers.contains(errno));
    let more = errno.filter(|_| entry.errno.is_empty() && entry.arithmetic.is_none());
    let mut found = vec![Explained::new(Some(entry), line, clues)];
    found.extend(more.and_then(|errno| by_errno(errno, "")));
    found
}

/// The entry of the reason, or else of the event, that a line of the pool's log names; the name
/// alone will do.
fn by_word(line: &str) -> Option<&'static Entry> {
    let behind = |key: &str| {
        let (_, rest) = line.split_once(key)?;
        let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        Some(&rest[..end.unwrap_or(rest.len())])
    };
    let keys = ["reason=", "\"reason\":\"", "event=", "\"event\":\""];
    let named = keys.into_iter().filter_map(behind);
    named.chain([line.trim()]).find_map(|name| {
        let has = |entry: &&Entry| entry.word.iter().any(|word| word == name);
        entries().iter().find(has)
    })
}

/// The entry that fits a line of a log; an errno in brackets alone is too little there.
pub(crate) fn in_log(line: &str) -> Option<Explained> {
    let clues = Clues::of(line);
    let Some(entry) = find(&clues).filter(|entry| !entry.family) else {
        // What goes well is no error.
        let is_trouble = ["level=warning", "level=error", "\"warning\"", "\"error\""]
            .iter()
            .any(|level| line.contains(level));
        let entry = by_word(line).filter(|_| is_trouble)?;
        return Some(Explained::new(Some(entry), line, clues));
    };
    let by_words = says(entry, &clues).is_some();
    let by_state = clues.termination.is_some();
    let is_sure = clues.number.is_some() || by_words || by_state || clues.errno_is_sure;
    is_sure.then(|| Explained::new(Some(entry), line, clues))
}

/// The entry that fits best.
pub(crate) fn find(clues: &Clues) -> Option<&'static Entry> {
    if let Some(state) = clues.termination {
        return entries().iter().find(|entry| is_of_state(entry, state));
    }
    let said: Vec<_> = entries()
        .iter()
        .map(|entry| (entry, says(entry, clues)))
        .collect();
    let number = clues.number.or_else(|| number_of_words(&said));
    let fits = said
        .iter()
        .filter(|(entry, _)| !(clues.is_foreign && is_of_mysql(entry)))
        .filter_map(|(entry, words)| Some((rank(entry, clues, number, *words)?, *entry)));
    fits.min_by_key(|(rank, _)| *rank).map(|(_, entry)| entry)
}

/// Offset of words in a line, then their length: the first, then the longest, is the best.
type Place = (usize, Reverse<usize>);

/// The best place of the entry's words or symbols in the line.
fn says(entry: &Entry, clues: &Clues) -> Option<Place> {
    if entry.family && !entry.anywhere && (clues.is_foreign || !clues.is_database) {
        return None;
    }
    let own = entry.patterns.iter();
    let own = own.filter_map(|words| Some((words.place(&clues.text)?, Reverse(words.len))));
    let shared = entry.shared_patterns.iter();
    let shared = shared.filter_map(|words| Some((words.place(&clues.text)?, Reverse(words.len))));
    own.chain(shared.filter(|(place, _)| clues.is_mysql || *place == 0))
        .min()
}

/// True where the entry is about MySQL's servers and clients alone.
fn is_of_mysql(entry: &Entry) -> bool {
    entry.errno.is_empty() && !entry.number.is_empty()
}

/// True if the entry is that of the termination state.
fn is_of_state(entry: &Entry, state: [char; 2]) -> bool {
    entry.termination.iter().any(|wanted| {
        let mut wanted = wanted.chars().zip(state);
        wanted.all(|(wanted, is)| wanted == '*' || wanted == is)
    })
}

/// The number of the error whose words come first in the line, if it has one.
fn number_of_words(said: &[(&Entry, Option<Place>)]) -> Option<u32> {
    let plain = said
        .iter()
        .filter(|(entry, _)| entry.errno.is_empty() && entry.only_if.is_empty() && !entry.wraps)
        .filter(|(entry, _)| !entry.family);
    let found = plain.filter_map(|(entry, words)| Some(((*words)?, entry.number.first().copied())));
    found.min_by_key(|(place, _)| *place)?.1
}

/// Rank of an entry that fits, the best first: kind of evidence, then the place of its words.
type Rank = (u8, Place);

fn rank(entry: &Entry, clues: &Clues, number: Option<u32>, words: Option<Place>) -> Option<Rank> {
    let has_number = number.is_some_and(|number| entry.number.contains(&number));
    let has_errno = clues.errno.is_some_and(|n| entry.errno.contains(&n));
    let wants_number = !entry.number.is_empty();
    let wants_errno = !entry.errno.is_empty();
    let has_only = entry
        .only_patterns
        .iter()
        .any(|words| words.place(&clues.text).is_some());
    let kind = match entry.only_if.is_empty() {
        false if has_only && (has_number || words.is_some()) => 0,
        false => return None,
        // Its words tell least where they wrap another's.
        true if entry.family => {
            words.map(|_| 7 + u8::from(entry.anywhere) + 2 * u8::from(entry.wraps))?
        }
        true if wants_number && wants_errno && has_number && has_errno => 1,
        true if !wants_errno && has_number => 2,
        true if words.is_some() && !entry.wraps => 3,
        true if wants_errno && !wants_number && has_errno => 4,
        true if wants_errno && has_errno && number.is_none() => 5,
        true if words.is_some() => 6,
        true => return None,
    };
    Some((kind, words.unwrap_or((usize::MAX, Reverse(0)))))
}
