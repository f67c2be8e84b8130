//! Files that documents and comments name: each of them is there, and has what is named in it.
//!
//! A map that names a file which has moved costs its reader more than no map. What stands in
//! backticks and ends in `.rs` is taken for a file: its path, the end of its path, or the name of
//! its crate and its path there. What stands behind it in the same backticks, as in
//! `named_files.rs: check`, is a word of that file.
//!
//! The change log tells of files as they were, and is not read.

use crate::offence::Offence;
use crate::scan::find_words;
use crate::source::Source;

/// A document that may name what is gone.
const HISTORY: &str = "CHANGELOG.md";

/// A file that is named somewhere.
struct Named<'t> {
    path: &'t str,
    /// Words that it has.
    words: Vec<&'t str>,
    /// Line that names it, counted from 1.
    line: usize,
}

/// Names in documents (path and text) and in comments that mean nothing.
pub(crate) fn check(
    sources: &[Source],
    documents: &[(String, String)],
    offences: &mut Vec<Offence>,
) {
    for (path, text) in documents.iter().filter(|(path, _)| path != HISTORY) {
        compare(path, text, sources, offences);
    }
    for source in sources {
        compare(&source.path, &source.comments, sources, offences);
    }
}

fn compare(path: &str, text: &str, sources: &[Source], offences: &mut Vec<Offence>) {
    for named in named_in(text) {
        let meant = |source: &&Source| is_named(&source.path, named.path);
        let meant: Vec<&Source> = sources.iter().filter(meant).collect();
        if meant.is_empty() {
            let what = format!("there is no file `{}`", named.path);
            offences.push(Offence::new(
                path,
                named.line,
                what,
                "name the file that is meant",
            ));
            continue;
        }
        for word in named.words {
            let has = |source: &&Source| find_words(&source.text, word).next().is_some();
            if !meant.iter().any(has) {
                let what = format!("`{}` has no `{word}`", named.path);
                offences.push(Offence::new(path, named.line, what, "name what is meant"));
            }
        }
    }
}

/// True if a file is meant by this name.
fn is_named(path: &str, name: &str) -> bool {
    let in_crate = name
        .split_once('/')
        .is_some_and(|(folder, rest)| path == format!("crates/{folder}/src/{rest}"));
    let end = path.strip_suffix(name);
    in_crate || end.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Names in backticks in a text.
fn named_in(text: &str) -> impl Iterator<Item = Named<'_>> {
    (1..).zip(text.lines()).flat_map(|(line, text)| {
        let quoted = text.split('`').skip(1).step_by(2);
        quoted.filter_map(move |quoted| {
            let (path, words) = quoted.split_once(": ").unwrap_or((quoted, ""));
            let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_-/.".contains(&byte);
            let stem = path.strip_suffix(".rs")?;
            let is_file = !stem.is_empty() && !path.contains("..") && path.bytes().all(is_path);
            let words = words.split(", ").filter(|word| !word.is_empty());
            is_file.then(|| Named {
                path,
                words: words
                    .map(|word| word.rsplit("::").next().unwrap_or(word))
                    .collect(),
                line,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offences of a document beside one file of the pool.
    fn offences(document: &str) -> Vec<String> {
        let file = "/// The lanes.\nstruct Lane;\nimpl Lane {\n    fn push(&self) {}\n}\n";
        let sources = [Source::new("crates/pool/src/queue/lane.rs", file)];
        let documents = [("docs/a.md".to_owned(), document.to_owned())];
        let mut offences = Vec::new();
        check(&sources, &documents, &mut offences);
        offences.iter().map(Offence::to_string).collect()
    }

    #[test]
    fn a_file_may_be_named_by_its_path_its_end_or_its_crate() {
        let named = "`crates/pool/src/queue/lane.rs`, `queue/lane.rs`, `lane.rs`,\n\
                     `pool/queue/lane.rs`, `lane.rs: Lane, Lane::push` and `.rs` files";
        assert_eq!(offences(named), [""; 0]);
    }

    #[test]
    fn a_file_that_is_gone_is_said_with_its_line() {
        let found = offences("`lane.rs`\n`lanes.rs` and `ane.rs` and `load/queue/lane.rs`");
        assert_eq!(found.len(), 3, "{found:?}");
        let first = "docs/a.md:2: there is no file `lanes.rs`; name the file that is meant";
        assert_eq!(found[0], first);
    }

    #[test]
    fn what_a_file_does_not_have_is_said() {
        let found = offences("`lane.rs: push, pop`");
        assert_eq!(
            found,
            ["docs/a.md:1: `lane.rs` has no `pop`; name what is meant"]
        );
    }

    #[test]
    fn comments_are_read_and_literals_are_not() {
        let file = "//! See `gone.rs`.\nconst A: &str = \"`other.rs`\";\n";
        let sources = [Source::new("crates/pool/src/a.rs", file)];
        let mut offences = Vec::new();
        check(&sources, &[], &mut offences);
        assert_eq!(offences.len(), 1, "{offences:?}");
        assert_eq!(offences[0].line, 1);
    }

    #[test]
    fn the_change_log_may_tell_of_what_was() {
        let documents = [("CHANGELOG.md".to_owned(), "`gone.rs`".to_owned())];
        let mut offences = Vec::new();
        check(&[], &documents, &mut offences);
        assert!(offences.is_empty());
    }
}
