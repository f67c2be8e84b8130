//! Measures functions: their lines and their parameters.
//!
//! A function counts from the line of its `fn` to the line of its closing brace: what one has to
//! see to read it. Its docs and attributes do not count. A function inside another counts for both.
//! Declarations without a body, function types and functions whose name a macro makes are skipped.
//!
//! `self` is no parameter here. A parameter whose type is a tuple counts as many as the tuple has
//! parts, for a tuple hides parameters from a reader, not from the function.

use crate::mask::is_word;
use crate::scan::{body_brace, closing_brace, find_words, line_of};
use std::ops::Range;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// Number of lines, both ends included.
    pub(crate) lines: usize,
    /// Number of parameters.
    pub(crate) parameters: usize,
    /// True if a parameter's type is a tuple of two parts or more.
    pub(crate) packs_parameters: bool,
    /// Offsets of its parameters and its return type: from behind its name to its body.
    pub(crate) signature: Range<usize>,
    /// Offsets of its body, from brace to brace.
    pub(crate) body: Range<usize>,
}

/// An `impl` block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The type that it is for, without module and generics.
    pub(crate) of: String,
    /// The line of its `impl`, counted from 1.
    pub(crate) line: usize,
    /// Functions with a body in it; their lines and offsets are those of the file.
    pub(crate) functions: Vec<Function>,
}

/// All `impl` blocks of masked code, inherent ones and those of traits, in order.
pub(crate) fn blocks(code: &str) -> Vec<Block> {
    let blocks = find_words(code, "impl").filter_map(|at| {
        // Elsewhere it is a type, as in `which: impl Fn()`.
        let is_item =
            code[..at].trim_end().ends_with(['}', ';', ']']) || code[..at].trim().is_empty();
        let open = body_brace(code, at).filter(|_| is_item)?;
        let end = closing_brace(code, open);
        let inside = find_words(&code[..end], "fn").filter(|&at| at > open);
        Some(Block {
            of: type_of(&code[at + "impl".len()..open])?,
            line: line_of(code, at),
            functions: inside.filter_map(|at| function_at(code, at)).collect(),
        })
    });
    blocks.collect()
}

/// The type that the header of an `impl` block is for, without its module and its parameters.
fn type_of(header: &str) -> Option<String> {
    let header = header.split(" where ").next()?;
    let subject = match header.split_once(" for ") {
        Some((_, subject)) => subject,
        None => skip_generics(header),
    };
    let name = subject.trim().trim_start_matches('&').split('<').next()?;
    let name = name.trim().rsplit("::").next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// Rest of a header behind the parameters at its front, if it has any.
fn skip_generics(header: &str) -> &str {
    let mut depth = 0;
    for (at, c) in header.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 && !c.is_whitespace() {
            let skipped = if c == '>' { at + 1 } else { at };
            return &header[skipped..];
        }
    }
    header
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
    let end = closing_brace(code, open);
    let last = line_of(code, end);
    let signature = code.len() - after.len() + name.len()..open;
    let sizes = parameters(&code[signature.clone()]);
    Some(Function {
        name,
        line,
        lines: last - line + 1,
        parameters: sizes.iter().sum(),
        packs_parameters: sizes.iter().any(|&size| size > 1),
        signature,
        body: open..end,
    })
}

/// The size of each parameter of a function whose generics or parenthesis come next: the parts of
/// a tuple, 1 for any other type.
fn parameters(signature: &str) -> Vec<usize> {
    let Some(list) = parenthesis_behind_generics(signature) else {
        return Vec::new();
    };
    parts(list)
        .into_iter()
        .filter_map(|parameter| {
            let (_, kind) = split_type(parameter)?;
            let bare = kind.trim().trim_start_matches('&').trim_start();
            let bare = bare.strip_prefix("mut ").unwrap_or(bare).trim();
            let tuple = bare.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
            Some(tuple.map_or(1, |tuple| parts(tuple).len().max(1)))
        })
        .collect()
}

/// Name and type of a parameter; `None` for `self`, which has no type of its own.
fn split_type(parameter: &str) -> Option<(&str, &str)> {
    // The colon of `name: Type`, not one of `a::b` in a pattern.
    let at = parameter
        .match_indices(':')
        .map(|(at, _)| at)
        .find(|&at| !parameter[at + 1..].starts_with(':') && !parameter[..at].ends_with(':'))?;
    let (name, kind) = (parameter[..at].trim(), &parameter[at + 1..]);
    let is_self = name.split_whitespace().next_back() == Some("self");
    (!is_self).then_some((name, kind))
}

/// The inside of the first parenthesis outside of angle brackets.
fn parenthesis_behind_generics(signature: &str) -> Option<&str> {
    let mut angles = 0;
    let mut before = ' ';
    for (at, c) in signature.char_indices() {
        match c {
            '<' => angles += 1,
            '>' if before != '-' => angles -= 1,
            '(' if angles == 0 => {
                let inside = &signature[at + 1..];
                return Some(&inside[..end_of_parenthesis(inside)]);
            }
            _ => {}
        }
        before = c;
    }
    None
}

fn end_of_parenthesis(inside: &str) -> usize {
    let mut depth = 1;
    for (at, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    inside.len()
}

/// The parts of a list between its outermost commas, empty ones left out.
pub(crate) fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut before) = (0, 0, ' ');
    let mut parts = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        before = c;
    }
    parts.push(&list[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
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

    #[test]
    fn counts_parameters_and_the_parts_of_tuples() {
        let counts = |text| functions(&mask(text).code)[0].parameters;
        assert_eq!(counts("fn a() {}"), 0);
        assert_eq!(counts("fn a(&mut self) {}"), 0);
        assert_eq!(counts("fn a(mut self: Box<Self>, b: u8) {}"), 1);
        assert_eq!(counts("fn a(b: HashMap<u8, u8>, c: [u8; 2],) {}"), 2);
        assert_eq!(counts("fn a<F: Fn(u8) -> u8, G>(f: F, g: G) {}"), 2);
        assert_eq!(counts("fn a(f: impl FnOnce(u8, u8) -> u8) {}"), 1);
        assert_eq!(
            counts("fn a(&self, (b, c): (u8, &str), d: &mut (u8, (u8, u8))) {}"),
            4
        );
        assert_eq!(counts("fn a(wire::Key(b): wire::Key) {}"), 1);
    }
}
