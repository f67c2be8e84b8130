//! Looks for words and braces in masked code.
//!
//! Positions are byte offsets, because the code is cut by them. All that is looked for is ASCII,
//! so a position found is always between two characters.

use crate::mask::is_word;

/// The offsets at which `pattern` stands alone: `now` is found in `a.now()`, not in `known`.
pub(crate) fn find_words<'a>(code: &'a str, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(pattern)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let joins_before =
                code[..at].chars().next_back().is_some_and(is_word) && pattern.starts_with(is_word);
            let joins_after =
                code[at + pattern.len()..].starts_with(is_word) && pattern.ends_with(is_word);
            !joins_before && !joins_after
        })
}

/// The offset of the brace that closes the one at `open`; the end of the text if none does.
pub(crate) fn closing_brace(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The offset of the `{` that opens the body of the item at `from`, if the item has a body: a
/// declaration ends with `;` first. Brackets are skipped, for `[u8; 4]` ends nothing.
pub(crate) fn body_brace(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The line that `at` is on, counted from 1.
pub(crate) fn line_of(code: &str, at: usize) -> usize {
    code.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_words_that_stand_alone() {
        let found = |code, pattern| find_words(code, pattern).collect::<Vec<_>>();
        assert_eq!(found("unsafe { } unsafe_code; not_unsafe", "unsafe"), [0]);
        assert_eq!(found("std::time::Instant::now()", "Instant::now"), [11]);
        assert_eq!(
            found("MyInstant::now() Instant::nowish()", "Instant::now"),
            []
        );
        assert_eq!(found("dbg!(x) my_dbg!(x)", "dbg!"), [0]);
    }

    #[test]
    fn matches_braces() {
        assert_eq!(closing_brace("a { b { } c } d", 2), 12);
        assert_eq!(closing_brace("{ {", 0), 3);
    }

    #[test]
    fn finds_bodies_and_declarations() {
        assert_eq!(body_brace("fn f(a: [u8; 2]) -> [u8; 2] { }", 0), Some(28));
        assert_eq!(body_brace("fn f(a: [u8; 2]); fn g() {}", 0), None);
    }

    #[test]
    fn counts_lines_from_one() {
        assert_eq!(line_of("a\nb\nc", 0), 1);
        assert_eq!(line_of("a\nb\nc", 4), 3);
    }
}
