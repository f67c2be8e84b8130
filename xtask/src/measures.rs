//! The numbers that tell how hard the code is to change, each with the places that make it.
//!
//! Sizes and imports ([`crate::house`]) do not show a knot of calls, an object that everybody
//! reaches into, or a subject in many folders. These do. All are read from the text of the sources,
//! without types: a call counts if it is written `self.name(` or `Self::name(`, and types of one
//! crate that share a name count as one. Tests do not count unless a measure says so.
//!
//! [`crate::ratchet`] holds each number to a bound.

use crate::functions::{Block, Function, blocks, functions, parts};
use crate::mask::is_word;
use crate::modules::{module_of, tokens};
use crate::scan::{body_brace, closing_brace, find_words, line_of};
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

mod events;
#[cfg(test)]
mod tests;

/// Crates of the pool's product: what a statement runs through.
const POOL_CRATES: &[&str] = &["pool", "session", "sql"];
/// Crates that are no part of the product: their lines count as tests.
const TEST_CRATES: &[&str] = &["testkit", "xtask"];
/// A subject may stand in this many folders.
const FOLDERS_MAX: usize = 2;
/// Words of file names that name no subject.
const NO_SUBJECTS: &[&str] = &["tests", "lib", "main", "mod", "and", "of", "the"];
/// Openings of doc comments that ask instead of saying.
const QUESTIONS: &[&str] = &[
    "What", "Who", "Whose", "Whom", "Whether", "Where", "Which", "How", "Why",
];
/// Openings of doc comments that point at something that the reader has not seen.
const POINTERS: &[&str] = &["The same", "That of"];
/// Openings of doc comments that say when, where from or of what in place of what the item is.
const CIRCUMSTANCES: &[&str] = &[
    "As", "At", "Because", "For", "From", "Has", "If", "In", "It", "Of", "Since", "So", "Then",
    "There", "They", "This", "When", "With",
];
/// Methods of the tables of clients and backends that look one up.
const LOOK_UPS: &[&str] = &["get", "get_mut", "contains", "remove"];
/// The page whose rows of tables are what remains to differ from a direct connection.
const LIMITS: &str = "docs/pool/limits.md";
/// The folder of decision records, whose words do not count.
const DECISIONS: &str = "docs/decisions/";

/// One number about the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Measure {
    /// The number's name in the report and in the table of bounds.
    pub(crate) name: &'static str,
    /// The number, with what is counted as its unit.
    pub(crate) value: usize,
    /// The places that make it, each with its share, largest first.
    pub(crate) places: Vec<(usize, String)>,
}

/// All measures of the workspace: its sources, and its documents as path and text.
pub(crate) fn all(sources: &[Source], documents: &[(String, String)]) -> Vec<Measure> {
    let crates = by_crate(sources);
    let mut found = vec![
        largest("largest component of calls of a type", components(&crates)),
        largest("methods of a type", method_counts(&crates)),
        largest("open fields of a type", open_fields(&crates)),
        largest(
            "files with `impl` of a type outside of its own",
            foreign_impls(&crates),
        ),
        total("functions with tuples of parameters", packing(&crates)),
        total("subjects in more than two folders", scattered(&crates)),
        total("rooms at the top of the pool", rooms(sources)),
        total("look-ups of clients and backends", look_ups(&crates)),
        total("signatures of the pool with a bare Key", bare_keys(&crates)),
    ];
    found.extend(doc_comments(sources));
    found.push(total(
        "doc comments of functions that state an event",
        events::stated(sources),
    ));
    found.push(total(
        "doc comments of functions without a value that open with no verb",
        events::without_verb(sources),
    ));
    found.push(total("words of docs", words(documents)));
    found.push(total("rows of limits.md", limits(documents)));
    found.extend(lines(sources));
    found
}

fn largest(name: &'static str, mut places: Vec<(usize, String)>) -> Measure {
    sort(&mut places);
    let value = places.first().map_or(0, |place| place.0);
    Measure {
        name,
        value,
        places,
    }
}

fn total(name: &'static str, mut places: Vec<(usize, String)>) -> Measure {
    sort(&mut places);
    let value = places.iter().map(|place| place.0).sum();
    Measure {
        name,
        value,
        places,
    }
}

fn sort(places: &mut [(usize, String)]) {
    places.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
}

/// Sources of the program, by crate.
type Crates<'a> = BTreeMap<String, Vec<&'a Source>>;

fn by_crate(sources: &[Source]) -> Crates<'_> {
    let mut crates = Crates::new();
    for source in sources.iter().filter(|source| !source.is_test_file()) {
        if let Some((name, _)) = module_of(&source.path) {
            crates.entry(name).or_default().push(source);
        }
    }
    crates
}

/// `impl` blocks of the program in a source.
fn product_blocks(source: &Source) -> impl Iterator<Item = Block> + '_ {
    blocks(&source.code)
        .into_iter()
        .filter(|block| !source.is_test_line(block.line))
}

/// Functions of the program in a source.
fn product_functions(source: &Source) -> impl Iterator<Item = Function> + '_ {
    functions(&source.code)
        .into_iter()
        .filter(|function| !source.is_test_line(function.line))
}

/// Size of the largest set of methods that all reach one another by calls, by type.
fn components(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (name, sources) in crates {
        let mut of_types: BTreeMap<String, Vec<(&Source, Function)>> = BTreeMap::new();
        for source in sources {
            for block in product_blocks(source) {
                let methods = of_types.entry(block.of).or_default();
                methods.extend(block.functions.into_iter().map(|f| (*source, f)));
            }
        }
        for (of, methods) in of_types {
            let component = largest_component(&call_graph(&methods));
            if component > 1 {
                found.push((component, format!("{of} of {name}")));
            }
        }
    }
    found
}

/// Methods of its own type that each method calls.
fn call_graph<'a>(methods: &'a [(&Source, Function)]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let names: BTreeSet<&str> = methods.iter().map(|(_, f)| f.name.as_str()).collect();
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (source, method) in methods {
        let calls = graph.entry(&method.name).or_default();
        let tokens = tokens(&source.code[method.body.clone()]);
        for window in tokens.windows(4) {
            let [(_, owner), (_, dot), (_, name), (_, open)] = *window else {
                continue;
            };
            if matches!((owner, dot), ("self", ".") | ("Self", "::"))
                && matches!(open, "(" | "::")
                && let Some(name) = names.get(name)
            {
                calls.insert(*name);
            }
        }
    }
    graph
}

/// The most nodes that all reach one another.
fn largest_component(graph: &BTreeMap<&str, BTreeSet<&str>>) -> usize {
    let reach = |from: &str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for &next in graph.get(at).into_iter().flatten() {
                if reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|&n| (n, reach(n))).collect();
    let mutual = |from: &str| {
        let back = reached[from].iter().filter(|to| {
            reached
                .get(**to)
                .is_some_and(|reached| reached.contains(from))
        });
        back.count()
    };
    graph.keys().map(|name| mutual(name)).max().unwrap_or(0)
}

fn method_counts(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (name, sources) in crates {
        for block in sources.iter().flat_map(|source| product_blocks(source)) {
            *counts.entry(format!("{} of {name}", block.of)).or_default() += block.functions.len();
        }
    }
    counts.into_iter().map(|(of, count)| (count, of)).collect()
}

/// Number of fields visible outside of its module, by struct with named fields.
fn open_fields(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for source in crates.values().flatten() {
        for (name, line, inside) in structs(source) {
            let open = parts(inside)
                .into_iter()
                .filter(|field| first_word(without_attributes(field)) == "pub")
                .count();
            if open > 0 {
                found.push((open, format!("{name} {}:{line}", source.path)));
            }
        }
    }
    found
}

/// Structs of the program with named fields: name, line, text between the braces.
fn structs(source: &Source) -> impl Iterator<Item = (&str, usize, &str)> {
    let code = &source.code;
    find_words(code, "struct").filter_map(move |at| {
        let line = line_of(code, at);
        let open = body_brace(code, at).filter(|_| !source.is_test_line(line))?;
        let name = first_word(&code[at + "struct".len()..]);
        Some((name, line, &code[open + 1..closing_brace(code, open)]))
    })
}

/// The identifier at the front of code.
fn first_word(code: &str) -> &str {
    let code = code.trim_start();
    &code[..code.find(|c| !is_word(c)).unwrap_or(code.len())]
}

fn without_attributes(field: &str) -> &str {
    let mut field = field.trim_start();
    while let Some(attribute) = field.strip_prefix("#[") {
        let end = attribute.find(']').map_or(attribute.len(), |at| at + 1);
        field = attribute[end..].trim_start();
    }
    field
}

/// Files with an `impl` of a type that are neither the one that defines it nor below that one's
/// folder, by type.
fn foreign_impls(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (name, sources) in crates {
        let mut homes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for source in sources {
            for keyword in ["struct", "enum", "union"] {
                for at in find_words(&source.code, keyword) {
                    let of = first_word(&source.code[at + keyword.len()..]);
                    homes.entry(of).or_default().push(&source.path);
                }
            }
        }
        let mut files: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for source in sources {
            for block in product_blocks(source) {
                let Some(homes) = homes.get(block.of.as_str()) else {
                    continue;
                };
                if !homes.iter().any(|home| is_within(&source.path, home)) {
                    files.entry(block.of).or_default().insert(&source.path);
                }
            }
        }
        found.extend(
            files
                .into_iter()
                .map(|(of, files)| (files.len(), format!("{of} of {name}"))),
        );
    }
    found
}

/// True for a file itself and for what is in the folder of the same name; a crate's root is all of
/// the crate.
fn is_within(path: &str, home: &str) -> bool {
    let stem = home.strip_suffix(".rs").unwrap_or(home);
    let folder = match stem.rsplit_once('/') {
        Some((folder, "lib" | "main" | "mod")) => folder,
        _ => stem,
    };
    path == home
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

fn packing(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (name, sources) in crates {
        let all = sources.iter().flat_map(|source| product_functions(source));
        let count = all.filter(|function| function.packs_parameters).count();
        if count > 0 {
            found.push((count, name.clone()));
        }
    }
    found
}

/// One place for each word of file names that stands in too many folders of a crate.
fn scattered(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (name, sources) in crates {
        let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for source in sources {
            let Some((folder, file)) = source.path.rsplit_once('/') else {
                continue;
            };
            let words = file.trim_end_matches(".rs").split('_');
            for word in words.filter(|word| !NO_SUBJECTS.contains(word)) {
                folders.entry(word).or_default().insert(folder);
            }
        }
        let many = folders.iter().filter(|(_, f)| f.len() > FOLDERS_MAX);
        found.extend(many.map(|(word, f)| (1, format!("{word} in {} of {name}", f.len()))));
    }
    found
}

/// Files and folders at the top of the pool's sources; a file and the folder of its name are one.
fn rooms(sources: &[Source]) -> Vec<(usize, String)> {
    let tops = sources.iter().filter_map(|source| {
        let rest = source.path.strip_prefix("crates/pool/src/")?;
        let top = rest.split('/').next()?.trim_end_matches(".rs");
        (!matches!(top, "lib" | "tests")).then(|| top.to_owned())
    });
    let tops: BTreeSet<String> = tops.collect();
    tops.into_iter().map(|top| (1, top)).collect()
}

fn look_ups(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for source in crates.get("pool").into_iter().flatten() {
        let tokens = tokens(&source.code);
        let count = tokens
            .windows(4)
            .filter(|window| {
                matches!(window[0].1, "clients" | "backends")
                    && window[1].1 == "."
                    && LOOK_UPS.contains(&window[2].1)
                    && window[3].1 == "("
                    && !source.is_test_line(line_of(&source.code, window[0].0))
            })
            .count();
        if count > 0 {
            found.push((count, source.path.clone()));
        }
    }
    found
}

/// Functions of the pool that take or return a key of which the compiler cannot tell what it is of.
fn bare_keys(crates: &Crates<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for source in crates.get("pool").into_iter().flatten() {
        let all = product_functions(source);
        let count = all
            .filter(|function| {
                let signature = &source.code[function.signature.clone()];
                find_words(signature, "Key").next().is_some()
            })
            .count();
        if count > 0 {
            found.push((count, source.path.clone()));
        }
    }
    found
}

/// Doc comments, tests' ones too, by how they open.
fn doc_comments(sources: &[Source]) -> [Measure; 3] {
    let (mut count, mut questions, mut pointers) = (0, Vec::new(), Vec::new());
    let mut circumstances = Vec::new();
    for source in sources {
        let openings = openings(&source.comments);
        count += openings.len();
        let opens = |with: &[&str]| {
            let begins = |text: &str, with: &str| {
                let rest = text.strip_prefix(with);
                rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
            };
            let all = openings.iter();
            all.filter(|text| with.iter().any(|with| begins(text, with)))
                .count()
        };
        let kinds = [
            (QUESTIONS, &mut questions),
            (POINTERS, &mut pointers),
            (CIRCUMSTANCES, &mut circumstances),
        ];
        for (with, found) in kinds {
            let opens = opens(with);
            if opens > 0 {
                found.push((opens, source.path.clone()));
            }
        }
    }
    let mut questions = total("doc comments that open with a question word", questions);
    let share = format!("of {count} doc comments in all");
    questions.places.insert(0, (questions.value, share));
    [
        questions,
        total(
            "doc comments that open with \"The same\" or \"That of\"",
            pointers,
        ),
        total(
            "doc comments that open with neither noun nor verb",
            circumstances,
        ),
    ]
}

/// The first line of each doc comment, without its slashes.
fn openings(comments: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut before = "";
    for line in comments.lines().map(str::trim_start) {
        let mark = ["///", "//!"].into_iter().find(|mark| {
            line.strip_prefix(mark)
                .is_some_and(|rest| !rest.starts_with('/'))
        });
        let mark = mark.unwrap_or_default();
        if !mark.is_empty() && mark != before {
            found.push(line[mark.len()..].trim_start());
        }
        before = mark;
    }
    found
}

fn words(documents: &[(String, String)]) -> Vec<(usize, String)> {
    let docs = documents
        .iter()
        .filter(|(path, _)| path.starts_with("docs/") && !path.starts_with(DECISIONS));
    docs.map(|(path, text)| (text.split_whitespace().count(), path.clone()))
        .collect()
}

/// Rows of the tables of the page of limits, by the heading that they stand under; a table's head
/// and the line below it are no rows.
fn limits(documents: &[(String, String)]) -> Vec<(usize, String)> {
    let Some((_, text)) = documents.iter().find(|(path, _)| path == LIMITS) else {
        return Vec::new();
    };
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut heading = String::new();
    let mut in_table = 0;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim().to_owned();
        }
        in_table = if line.starts_with('|') {
            in_table + 1
        } else {
            0
        };
        if in_table > 2 {
            match found.last_mut() {
                Some((rows, of)) if *of == heading => *rows += 1,
                _ => found.push((1, heading.clone())),
            }
        }
    }
    found
}

/// Lines of the program and of tests, by crate; those of the pool's crates by folder as well.
fn lines(sources: &[Source]) -> [Measure; 4] {
    let (mut product, mut tests) = (BTreeMap::new(), BTreeMap::new());
    let mut by_job = BTreeMap::new();
    let mut end_to_end = BTreeMap::new();
    for source in sources {
        let path = &source.path;
        let name = match module_of(path) {
            Some((name, _)) if !source.is_test_file() => name,
            _ => path.split('/').take(2).collect::<Vec<_>>().join("/"),
        };
        let all = source.text.lines().count();
        let is_test = |line: &usize| source.is_test_line(*line);
        let of_program = match TEST_CRATES.contains(&name.as_str()) {
            true => 0,
            false => (1..=all).filter(|line| !is_test(line)).count(),
        };
        *product.entry(name.clone()).or_default() += of_program;
        *tests.entry(name.clone()).or_default() += all - of_program;
        if POOL_CRATES.contains(&name.as_str()) {
            let folder = path.split_once("/src/").map_or("", |split| split.1);
            let folder = folder.split('/').next().unwrap_or_default();
            let job = format!("{name}/{}", folder.trim_end_matches(".rs"));
            *by_job.entry(job).or_default() += of_program;
        }
        if path.starts_with("tests/e2e") {
            *end_to_end.entry(path.clone()).or_default() += all;
        }
    }
    let measure = |name, counts: BTreeMap<String, usize>| {
        let places = counts.into_iter().filter(|(_, count)| *count > 0);
        total(name, places.map(|(of, count)| (count, of)).collect())
    };
    [
        measure("product lines", product),
        measure("product lines of pool, session and sql", by_job),
        measure("test lines", tests),
        measure("lines of end-to-end tests", end_to_end),
    ]
}
