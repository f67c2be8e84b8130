//! Doc comments of functions that do not say what the function does.
//!
//! "A client is gone." above `fn forget` tells nobody what the call does. Such a sentence opens
//! with an article or a pronoun and has a finite verb before its first comma and before any clause:
//! "The clients that are gone" has none. Neither does a function that returns nothing do what a
//! noun says: its comment opens with a verb. Functions of the program count, not those of tests,
//! whose sentences state what a test shows.

use crate::functions::functions;
use crate::scan::find_words;
use crate::source::Source;
use std::collections::BTreeMap;

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
    by_file(sources, |source| {
        let docs = docs(source);
        docs.iter().filter(|(_, doc)| states_event(doc)).count()
    })
}

/// Functions of the program that return nothing and whose doc comment opens with no verb, by file.
pub(super) fn without_verb(sources: &[Source]) -> Vec<(usize, String)> {
    by_file(sources, |source| {
        let docs = docs(source);
        let all = functions(&source.code);
        let actions = all.iter().filter(|function| {
            let signature = &source.code[function.signature.clone()];
            !signature.contains("->")
        });
        let docs = actions.filter_map(|function| docs.get(&function.line));
        docs.filter(|doc| !opens_with_verb(doc)).count()
    })
}

fn by_file(sources: &[Source], count: impl Fn(&Source) -> usize) -> Vec<(usize, String)> {
    let counts = sources.iter().map(|source| (count(source), &source.path));
    let found = counts.filter(|(count, _)| *count > 0);
    found.map(|(count, path)| (count, path.clone())).collect()
}

/// Doc comments of the functions of the program, by the line of the `fn`.
fn docs(source: &Source) -> BTreeMap<usize, String> {
    let (mut found, mut doc) = (BTreeMap::new(), String::new());
    let lines = source.comments.lines().zip(source.code.lines());
    for (number, (comment, code)) in (1..).zip(lines) {
        let code = code.trim();
        match comment.trim_start().strip_prefix("///") {
            Some(line) => doc = doc + line + " ",
            // An attribute stands between a function and its comment.
            None if code.starts_with('#') => {}
            None => {
                let doc = std::mem::take(&mut doc);
                if !doc.is_empty() && is_function(code) && !source.is_test_line(number) {
                    found.insert(number, doc);
                }
            }
        }
    }
    found
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

/// True for "Sends the reply."; also for a noun that ends like a verb.
fn opens_with_verb(doc: &str) -> bool {
    let word = doc.split_whitespace().next().unwrap_or_default();
    let word = word.trim_end_matches([',', '.', ';']);
    word.ends_with('s') && !SUBJECTS.contains(&word)
}
