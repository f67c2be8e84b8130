//! Doc comments of functions that state an event in place of what the function does.
//!
//! "A client is gone." above `fn forget` tells nobody what the call does. Such a sentence opens
//! with an article or a pronoun and has a finite verb before its first comma and before any clause:
//! "The clients that are gone" has none. Functions of the program count, not those of tests, whose
//! sentences state what a test shows.

use crate::scan::find_words;
use crate::source::Source;

/// Openings of sentences whose subject comes first.
const SUBJECTS: &[&str] = &[
    "A", "An", "The", "Its", "It", "This", "These", "They", "Nothing", "Nobody", "No", "One",
    "Some", "Another", "All", "Both", "Each", "Every",
];
/// Verbs that are no nouns, so that they make a sentence.
const VERBS: &[&str] = &[
    "is", "are", "was", "were", "has", "have", "had", "may", "must", "can", "cannot", "could",
    "would", "will", "does", "goes", "comes", "begins", "becomes", "keeps", "gives", "gets",
    "lets", "knows",
];
/// Words behind which a clause has verbs of its own.
const CLAUSES: &[&str] = &[
    "that", "which", "who", "whom", "whose", "where", "when", "while", "if", "because", "as",
    "than", "what", "how", "whether", "until", "unless", "for", "to",
];
/// Words that may stand in front of a function's `fn`.
const QUALIFIERS: &[&str] = &["pub", "const", "unsafe", "async"];

/// Functions of the program whose doc comment states an event, by file.
pub(super) fn stated(sources: &[Source]) -> Vec<(usize, String)> {
    let counts = sources.iter().map(|source| (count(source), &source.path));
    let found = counts.filter(|(count, _)| *count > 0);
    found.map(|(count, path)| (count, path.clone())).collect()
}

fn count(source: &Source) -> usize {
    let (mut count, mut doc) = (0, String::new());
    let lines = source.comments.lines().zip(source.code.lines());
    for (number, (comment, code)) in lines.enumerate() {
        let code = code.trim();
        match comment.trim_start().strip_prefix("///") {
            Some(line) => doc = doc + line + " ",
            // An attribute stands between a function and its comment.
            None if code.starts_with('#') => {}
            None => {
                let is_test = source.is_test_line(number + 1);
                count += usize::from(!is_test && is_function(code) && states_event(&doc));
                doc.clear();
            }
        }
    }
    count
}

fn is_function(code: &str) -> bool {
    find_words(code, "fn").next().is_some_and(|at| {
        let mut before = code[..at].split(|c: char| !c.is_alphanumeric());
        before.all(|word| {
            let is_place = matches!(word, "" | "crate" | "super" | "in");
            is_place || QUALIFIERS.contains(&word)
        })
    })
}

fn states_event(doc: &str) -> bool {
    let sentence = doc.split(['.', ',', ':', ';']).next().unwrap_or_default();
    let mut words = sentence.split_whitespace();
    let opens = words.next().is_some_and(|word| SUBJECTS.contains(&word));
    let mut main = words.take_while(|word| !CLAUSES.contains(word));
    opens && main.any(|word| VERBS.contains(&word))
}
