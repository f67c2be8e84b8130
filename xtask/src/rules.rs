//! The rules that one Rust file is held to.
//!
//! Length of lines, the opening comment, words and calls that are not ours, and where `unsafe` may
//! stand. Each rule is a function of a `Source` that adds its offences; the words and calls are a
//! table, so that a new one is a line.
//!
//! Files and functions have no limit on their length: a limit on size makes no boundary, and is met
//! by cutting text. `xtask house` reports the longest.

use crate::offence::Offence;
use crate::scan::{find_words, line_of};
use crate::source::Source;

#[cfg(test)]
mod tests;

const COLUMNS_MAX: usize = 100;
const HEADER_LINES_MIN: usize = 3;
const TEST_HEADER_LINES_MIN: usize = 1;

/// The only folder where `unsafe` may stand.
const UNSAFE_FOLDER: &str = "crates/reactor/";

/// Folders in which the clock may be read and a thread may sleep, besides tests.
const CLOCK_FOLDERS: &[&str] = &[
    "crates/reactor/",
    "crates/climb/",
    "crates/load/src/report",
    "crates/testkit/",
    "xtask/",
];

/// Places that may print Debug text: checks of states, which stop tests alone, and what makes words
/// of a variant's name.
const DEBUG_PLACES: &[&str] = &[
    "crates/load/src/connection.rs",
    "crates/load/src/group/idle_check.rs",
    "crates/pool/src/backend.rs",
    "crates/pool/src/client.rs",
    "crates/pool/src/config/generated_page.rs",
    "crates/pool/src/observe/survey",
    "crates/reactor/src/records.rs",
    "crates/reactor/src/tls_errors.rs",
    "crates/testkit/",
    "xtask/",
];

#[derive(Clone, Copy)]
enum Place {
    Code,
    Comments,
}

/// A construct that is not to be written, and its replacement.
struct Ban {
    pattern: &'static str,
    place: Place,
    /// Path prefixes it does not hold for; those with an exception leave tests alone too.
    except: &'static [&'static str],
    instead: &'static str,
}

const fn ban(pattern: &'static str, place: Place, instead: &'static str) -> Ban {
    Ban {
        pattern,
        place,
        except: &[],
        instead,
    }
}

const fn clock(pattern: &'static str, instead: &'static str) -> Ban {
    Ban {
        pattern,
        place: Place::Code,
        except: CLOCK_FOLDERS,
        instead,
    }
}

const BANS: &[Ban] = &[
    ban("dbg!", Place::Code, "remove it, or count it in `measure`"),
    ban(
        "todo!",
        Place::Code,
        "write the code, or leave the branch out",
    ),
    ban(
        "unimplemented!",
        Place::Code,
        "write the code, or return an error that says so",
    ),
    ban(
        "TODO",
        Place::Comments,
        "do it now, or say what the code does not do and why",
    ),
    ban(
        "FIXME",
        Place::Comments,
        "mend it now, or say what the code does not do and why",
    ),
    ban("XXX", Place::Comments, "say what a reader must know"),
    clock(
        "Instant::now",
        "take the time as an argument; `reactor` reads it once a turn",
    ),
    clock(
        "SystemTime::now",
        "take the time as an argument; `reactor` reads it",
    ),
    clock(
        "thread::sleep",
        "set a timer in `reactor`; a sleeping group serves nobody",
    ),
];

/// Holds one file to all rules.
pub(crate) fn check(source: &Source, offences: &mut Vec<Offence>) {
    check_columns(source, offences);
    check_header(source, offences);
    check_bans(source, offences);
    check_unsafe(source, offences);
    check_debug_text(source, offences);
}

/// Finds marks of a merge that somebody has not resolved in a document; in code the compiler does.
pub(crate) fn check_document(path: &str, text: &str, offences: &mut Vec<Offence>) {
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            let what = "mark of an unresolved merge";
            offences.push(Offence::new(path, number + 1, what, "choose one side"));
        }
    }
}

fn check_columns(source: &Source, offences: &mut Vec<Offence>) {
    for (line, text) in (1..).zip(source.text.lines()) {
        let columns = text.chars().count();
        if columns > COLUMNS_MAX {
            let what = format!("{columns} columns, {COLUMNS_MAX} allowed");
            offences.push(Offence::new(&source.path, line, what, "break the line"));
        }
    }
}

fn check_header(source: &Source, offences: &mut Vec<Offence>) {
    let min = if source.is_test_file() {
        TEST_HEADER_LINES_MIN
    } else {
        HEADER_LINES_MIN
    };
    let lines = source
        .text
        .lines()
        .take_while(|line| line.starts_with("//!"))
        .count();
    if lines < min {
        let what = format!("{lines} lines of `//!` open the file, at least {min} wanted");
        let remedy = "say what problem it solves, how, and what it leaves to others";
        offences.push(Offence::new(&source.path, 1, what, remedy));
    }
}

fn check_bans(source: &Source, offences: &mut Vec<Offence>) {
    for ban in BANS {
        if ban
            .except
            .iter()
            .any(|folder| source.path.starts_with(folder))
        {
            continue;
        }
        let text = match ban.place {
            Place::Code => &source.code,
            Place::Comments => &source.comments,
        };
        for at in find_words(text, ban.pattern) {
            let line = line_of(text, at);
            if ban.except.is_empty() || !source.is_test_line(line) {
                let what = format!("`{}` is not used here", ban.pattern);
                offences.push(Offence::new(&source.path, line, what, ban.instead));
            }
        }
    }
}

/// Finds Debug text in what people read: `{:?}` of a product's format string.
fn check_debug_text(source: &Source, offences: &mut Vec<Offence>) {
    let is_product = source.path.split('/').any(|folder| folder == "src");
    let may = |place: &&str| source.path.starts_with(*place);
    if !is_product || DEBUG_PLACES.iter().any(may) {
        return;
    }
    let lines = source.text.lines().zip(source.comments.lines());
    for (line, (text, comments)) in (1..).zip(lines) {
        if text.contains(":?}") && !comments.contains(":?}") && !source.is_test_line(line) {
            let what = "Debug text in a message";
            let remedy = "print its Display, or a name for people";
            offences.push(Offence::new(&source.path, line, what, remedy));
        }
    }
}

fn check_unsafe(source: &Source, offences: &mut Vec<Offence>) {
    let is_reactor = source.path.starts_with(UNSAFE_FOLDER);
    for at in find_words(&source.code, "unsafe") {
        let line = line_of(&source.code, at);
        if !is_reactor {
            let remedy = "use what `reactor` offers, or add a safe function there";
            offences.push(Offence::new(
                &source.path,
                line,
                "`unsafe` outside `reactor`",
                remedy,
            ));
        } else if !is_justified(source, line) {
            let what = "`unsafe` without a reason";
            let remedy = "write `// SAFETY:` above it: what must hold, and why it does";
            offences.push(Offence::new(&source.path, line, what, remedy));
        }
    }
}

/// True if the statement with `unsafe` on `line` has its reason on that line or in the comment
/// right above it. Attributes may stand between, and the statement may have begun on an earlier
/// line. The docs of an unsafe item say what the caller owes under `# Safety`.
fn is_justified(source: &Source, line: usize) -> bool {
    let code: Vec<&str> = source.code.lines().collect();
    let comments: Vec<&str> = source.comments.lines().collect();
    let says_why =
        |index: usize| comments[index].contains("SAFETY:") || comments[index].contains("# Safety");
    let is_comment =
        |index: usize| code[index].trim().is_empty() && !comments[index].trim().is_empty();

    let mut index = line - 1;
    if says_why(index) {
        return true;
    }
    while index > 0 && !is_comment(index - 1) {
        index -= 1;
        let above = code[index].trim();
        if above.is_empty() || ends_statement(above) {
            return false;
        }
    }
    (0..index)
        .rev()
        .take_while(|&index| is_comment(index))
        .any(says_why)
}

/// True if what follows this line of code is a statement or item of its own.
fn ends_statement(code: &str) -> bool {
    code.ends_with([';', '{', '}', ','])
}
