//! The catalogue of errors, as data.
//!
//! The problem: a hundred errors, each with its words, cause, commands and remedy, must be easy to
//! read, to check and to add to. The mechanism: TOML files beside this one, compiled into the
//! binary and read once, at the first question. What an entry may say is the struct [`Entry`];
//! unknown keys are errors.
//!
//! Invariants, held by tests: names are unique; an entry can be found by its own number, errno and
//! words; each has a cause, and a remedy.

use super::arithmetic::Arithmetic;
use super::live::Live;
use serde::Deserialize;
use std::sync::LazyLock;

const FILES: &[&str] = &[
    include_str!("catalogue/server.toml"),
    include_str!("catalogue/login.toml"),
    include_str!("catalogue/client.toml"),
    include_str!("catalogue/log.toml"),
    include_str!("catalogue/errno.toml"),
    include_str!("catalogue/kernel.toml"),
    include_str!("catalogue/tools.toml"),
    include_str!("catalogue/onramp.toml"),
    include_str!("catalogue/words.toml"),
    include_str!("catalogue/families.toml"),
];

/// One error, or several that have one cause.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its name; stays the same between versions.
    pub(crate) name: String,
    /// Meaning in one sentence.
    pub(crate) title: String,
    /// Numbers of MySQL's servers and clients, from 1000 on.
    #[serde(default)]
    pub(crate) number: Vec<u32>,
    /// Numbers of the system. With `number`, both must stand in the line.
    #[serde(default)]
    pub(crate) errno: Vec<i32>,
    /// Numbers of the system that its cause deals with, so that they need no word of their own.
    #[serde(default)]
    pub(crate) covers: Vec<i32>,
    /// Names of the numbers in the servers' manuals.
    #[serde(default)]
    pub(crate) symbol: Vec<String>,
    /// Words that identify it; `*` stands for anything between two parts.
    #[serde(default)]
    pub(crate) says: Vec<String>,
    /// Words that other programs write too: they count where the line is of MySQL's world, or
    /// begins with them, as when somebody types only them.
    #[serde(default)]
    pub(crate) says_also: Vec<String>,
    /// Names that the pool writes behind `event=` and `reason=`, and counts refusals by: they count
    /// where nothing else in the line is known.
    #[serde(default)]
    pub(crate) word: Vec<String>,
    /// Termination states of HAProxy, two characters each; `*` stands for any.
    #[serde(default)]
    pub(crate) termination: Vec<String>,
    /// Words of which one must stand in the line, whatever else does; without `says` they identify
    /// it.
    #[serde(default)]
    pub(crate) only_if: Vec<String>,
    /// True for words around the line of another error, which counts first.
    #[serde(default)]
    pub(crate) wraps: bool,
    /// True for words that tell a kind of trouble: they count where nothing else in the line is
    /// known, and the line is about databases; never in a log.
    #[serde(default)]
    pub(crate) family: bool,
    /// True for a family of lines that any program's may be of.
    #[serde(default)]
    pub(crate) anywhere: bool,
    /// `says` and `symbol` in lower case, cut at `*`.
    #[serde(skip)]
    pub(crate) patterns: Vec<Pattern>,
    /// `says_also` in the same form.
    #[serde(skip)]
    pub(crate) shared_patterns: Vec<Pattern>,
    /// `only_if` in the same form.
    #[serde(skip)]
    pub(crate) only_patterns: Vec<Pattern>,
    /// End at which something is to be done.
    pub(crate) fault: String,
    /// True for the echo of another error, which is shown last in a log.
    #[serde(default)]
    pub(crate) symptom: bool,
    /// Explanation of the cause.
    pub(crate) cause: String,
    /// Arithmetic on the numbers of the line.
    pub(crate) arithmetic: Option<Arithmetic>,
    /// Commands that show it.
    pub(crate) verify: Vec<Look>,
    /// Remedies, the quickest first; text behind three blanks and a # or -- is a remark.
    pub(crate) remedy: Vec<String>,
}

/// One command that shows the cause, and what it would say here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Look {
    /// A command of the shell.
    pub(crate) run: Option<String>,
    /// A statement for the server.
    pub(crate) sql: Option<String>,
    /// Fact that it shows.
    pub(crate) live: Option<Live>,
    /// Advice how to read it, or where to run it.
    pub(crate) means: Option<String>,
}

/// Words to be found in a line that is in lower case.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// Parts that must come one after the other.
    parts: Vec<String>,
    /// Bytes of all parts: a longer pattern says more.
    pub(crate) len: usize,
}

impl Pattern {
    fn of(words: &str) -> Pattern {
        let parts = words.to_lowercase().split('*').map(str::to_owned).collect();
        Pattern {
            parts,
            len: words.len(),
        }
    }

    /// Offset in `text`; None if it is not there.
    pub(crate) fn place(&self, text: &str) -> Option<usize> {
        let (first, rest) = self.parts.split_first()?;
        let start = text.find(first.as_str())?;
        let mut from = start + first.len();
        for part in rest {
            from += text[from..].find(part.as_str())? + part.len();
        }
        Some(start)
    }
}

#[derive(Deserialize)]
struct File {
    entry: Vec<Entry>,
}

/// All entries, in the order of the files.
pub(crate) fn entries() -> &'static [Entry] {
    static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let mut entries = Vec::new();
        for text in FILES {
            let file: File = toml::from_str(text).expect("the tests read the catalogue");
            entries.extend(file.entry);
        }
        for entry in &mut entries {
            let says = Some(&entry.says).filter(|says| !says.is_empty());
            let words = says.unwrap_or(&entry.only_if).iter().chain(&entry.symbol);
            entry.patterns = words.map(|words| Pattern::of(words)).collect();
            entry.shared_patterns = entry
                .says_also
                .iter()
                .map(|words| Pattern::of(words))
                .collect();
            entry.only_patterns = entry
                .only_if
                .iter()
                .map(|words| Pattern::of(words))
                .collect();
        }
        entries
    });
    &ENTRIES
}
