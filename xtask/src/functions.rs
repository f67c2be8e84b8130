//! Measures functions.
//!
//! A function counts from the line of its `fn` to the line of its closing brace: what one has to
//! see to read it. Its docs and attributes do not count. A function inside another counts for both.
//! Declarations without a body, function types and functions whose name a macro makes are skipped.

use crate::mask::is_word;
use crate::scan::{body_brace, closing_brace, find_words, line_of};

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// How many lines it takes, both ends included.
    pub(crate) lines: usize,
}

/// All functions of masked code, in order.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    find_words(code, "fn")
        .filter_map(|at| function_at(code, at))
        .collect()
}

fn function_at(code: &str, at: usize) -> Option<Function> {
    let after = code[at + "fn".len()..].trim_start();
    let name: String = after
        .chars()
        .take_while(|&c| is_word(c) || c == '#')
        .collect();
    if name.is_empty() {
        return None;
    }
    let open = body_brace(code, at)?;
    let line = line_of(code, at);
    let last = line_of(code, closing_brace(code, open));
    Some(Function {
        name,
        line,
        lines: last - line + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::mask;

    fn measured(text: &str) -> Vec<(String, usize, usize)> {
        let found = functions(&mask(text).code);
        found
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect()
    }

    #[test]
    fn measures_from_fn_to_the_closing_brace() {
        let text = "/// Docs.\n#[inline]\nfn a(\n    x: u8,\n) {\n    b();\n}\n\nfn b() {}\n";
        assert_eq!(measured(text), [("a".into(), 3, 5), ("b".into(), 9, 1)]);
    }

    #[test]
    fn is_not_misled_by_literals_and_comments() {
        let text = "fn a() {\n    f(\"}\", '}'); // }\n    /* } fn x() {} */\n}\nfn b() {\n}\n";
        assert_eq!(measured(text), [("a".into(), 1, 4), ("b".into(), 5, 2)]);
    }

    #[test]
    fn skips_what_has_no_body_or_no_name() {
        let text = "trait T { fn a(&self) -> [u8; 2]; }\ntype F = fn(u8) -> u8;\n";
        assert_eq!(measured(text), []);
    }

    #[test]
    fn counts_inner_functions_for_both() {
        let text = "fn a() {\n    fn b() {\n    }\n}\n";
        assert_eq!(measured(text), [("a".into(), 1, 4), ("b".into(), 2, 2)]);
    }
}
