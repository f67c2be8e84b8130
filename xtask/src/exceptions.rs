//! The exceptions granted in `xtask/tidy.txt`.
//!
//! A ratchet: it turns one way. A long function has its length written down and may only get
//! shorter; an exception that is no longer needed is itself an offence, so that the list says what
//! is, and not what was.

use crate::offence::Offence;

/// Where the exceptions stand, relative to the workspace.
pub(crate) const PATH: &str = "xtask/tidy.txt";

/// A file that may be long because it is a flat list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Catalogue {
    pub(crate) path: String,
    /// Where the exception stands.
    pub(crate) line: usize,
}

/// A function that may stay as long as it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongFunction {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) lines: usize,
    /// Where the exception stands.
    pub(crate) line: usize,
}

/// Everything that is granted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Exceptions {
    pub(crate) catalogues: Vec<Catalogue>,
    pub(crate) functions: Vec<LongFunction>,
}

impl Exceptions {
    /// Reads the list. A line that is not understood is an offence.
    pub(crate) fn parse(text: &str, offences: &mut Vec<Offence>) -> Self {
        let mut exceptions = Self::default();
        for (line, entry) in (1..).zip(text.lines()) {
            let words: Vec<&str> = entry.split_whitespace().collect();
            match words[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["catalogue", path] => {
                    exceptions.catalogues.push(Catalogue {
                        path: path.to_owned(),
                        line,
                    });
                }
                ["function", path, name, lines] if lines.parse::<usize>().is_ok() => {
                    exceptions.functions.push(LongFunction {
                        path: path.to_owned(),
                        name: name.to_owned(),
                        lines: lines.parse().unwrap_or_default(),
                        line,
                    });
                }
                _ => offences.push(Offence::new(
                    PATH,
                    line,
                    format!("`{entry}` is no exception"),
                    "write `catalogue PATH` or `function PATH NAME LINES`",
                )),
            }
        }
        exceptions
    }

    pub(crate) fn is_catalogue(&self, path: &str) -> bool {
        self.catalogues
            .iter()
            .any(|catalogue| catalogue.path == path)
    }

    pub(crate) fn function(&self, path: &str, name: &str) -> Option<&LongFunction> {
        self.functions
            .iter()
            .find(|function| function.path == path && function.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_kinds_and_skips_comments() {
        let mut offences = Vec::new();
        let text = "# why\n\ncatalogue a/b.rs\nfunction a/c.rs turn 82\n";
        let exceptions = Exceptions::parse(text, &mut offences);
        assert_eq!(offences, []);
        assert!(exceptions.is_catalogue("a/b.rs"));
        assert!(!exceptions.is_catalogue("a/c.rs"));
        let turn = exceptions
            .function("a/c.rs", "turn")
            .expect("it is granted");
        assert_eq!((turn.lines, turn.line), (82, 4));
        assert_eq!(exceptions.function("a/b.rs", "turn"), None);
    }

    #[test]
    fn refuses_what_it_does_not_understand() {
        let mut offences = Vec::new();
        Exceptions::parse("function a/c.rs turn many\nfile x\n", &mut offences);
        let lines: Vec<usize> = offences.iter().map(|offence| offence.line).collect();
        assert_eq!(lines, [1, 2]);
    }
}
