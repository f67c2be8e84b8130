//! One Rust file as the rules see it.
//!
//! The text is masked once here, and the lines that are tests are known here, because some rules
//! are for the program only: a test may sleep.

use crate::mask::mask;
use crate::scan::{body_brace, closing_brace, find_words, line_of};
use std::ops::RangeInclusive;

/// A Rust file, read and split.
pub(crate) struct Source {
    /// Relative to the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text without comments and literals.
    pub(crate) code: String,
    /// The text with nothing but comments.
    pub(crate) comments: String,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let masked = mask(text);
        let test_lines = test_lines(&masked.code);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: masked.code,
            comments: masked.comments,
            test_lines,
        }
    }

    /// True if the whole file is tests.
    pub(crate) fn is_test_file(&self) -> bool {
        self.is_tests_module() || self.path.split('/').any(|folder| folder == "tests")
    }

    /// True for the `tests.rs` beside the module that it tests.
    pub(crate) fn is_tests_module(&self) -> bool {
        self.path.ends_with("/tests.rs")
    }

    /// True if the line, counted from 1, is part of a test.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_test_file() || self.test_lines.iter().any(|lines| lines.contains(&line))
    }
}

/// The lines of each item under `#[cfg(test)]`.
fn test_lines(code: &str) -> Vec<RangeInclusive<usize>> {
    let attribute = "#[cfg(test)]";
    find_words(code, attribute)
        .map(|at| {
            let from = at + attribute.len();
            let end = body_brace(code, from).map_or(from, |open| closing_brace(code, open));
            line_of(code, at)..=line_of(code, end)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_test_files() {
        let is_test = |path| Source::new(path, "").is_test_file();
        assert!(is_test("tests/pool.rs"));
        assert!(is_test("crates/pool/tests/common/mod.rs"));
        assert!(is_test("crates/pool/src/lane/tests.rs"));
        assert!(!is_test("crates/pool/src/lane.rs"));
        assert!(!is_test("crates/testkit/src/lib.rs"));
    }

    #[test]
    fn knows_test_lines() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::new("src/x.rs", text);
        let tests: Vec<usize> = (1..=6).filter(|&line| source.is_test_line(line)).collect();
        assert_eq!(tests, [2, 3, 4, 5]);
    }

    #[test]
    fn a_test_module_in_its_own_file_ends_with_its_declaration() {
        let source = Source::new("src/x.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n");
        assert!(!source.is_test_line(3));
    }
}
