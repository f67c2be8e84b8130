//! The modules of each crate, and which of them import which.
//!
//! A module is a file: `crates/pool/src/pair/next.rs` is `pair::next` of `pool`. Imports
//! are the paths that begin with `crate::`, `super::` or `self::`, in `use` items and in code;
//! tests do not count. A path means the module with the longest matching name: the rest is an item.
//!
//! Cycles are looked for among the files of a crate, and below each folder at its top among
//! siblings: the children of one module, each with everything below it. The folders at the top are
//! rooms by subject, and two subjects may need each other; two files may not. A module and its own
//! children may import one another, because together they are one job.
//! The sources are read as text: imports that a macro makes are not seen.

use crate::mask::is_word;
use crate::scan::line_of;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// One import: where it stands, and which module it means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import {
    /// The module that imports.
    pub(crate) from: Vec<String>,
    /// The module that is imported.
    pub(crate) to: Vec<String>,
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
}

/// A crate's modules and imports.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    /// Each module's path in its crate (empty for the root), with its file.
    pub(crate) files: BTreeMap<Vec<String>, String>,
    pub(crate) imports: Vec<Import>,
}

/// A set of siblings that reach one another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// All of them, in order of their names.
    pub(crate) members: Vec<String>,
    /// The arrows of a shortest way around, each with one import that makes it.
    pub(crate) way: Vec<Arrow>,
}

/// Imports of one sibling from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrow {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Number of imports that make it.
    pub(crate) imports: usize,
    /// The first of them, as `file:line`.
    pub(crate) place: String,
}

/// The crate and the module that a file is, if it is part of a crate's `src`.
pub(crate) fn module_of(path: &str) -> Option<(String, Vec<String>)> {
    let (folder, rest) = path
        .strip_prefix("src/")
        .map(|rest| ("onramp", rest))
        .or_else(|| path.split_once("/src/"))?;
    let name = folder.rsplit('/').next()?.to_owned();
    let stem = rest.strip_suffix(".rs")?;
    let mut module: Vec<String> = stem.split('/').map(str::to_owned).collect();
    if matches!(
        module.last().map(String::as_str),
        Some("lib" | "main" | "mod")
    ) {
        module.pop();
    }
    Some((name, module))
}

/// All crates of the workspace, by name. Files that are tests as a whole are left out.
pub(crate) fn crates(sources: &[Source]) -> BTreeMap<String, Modules> {
    let mut crates: BTreeMap<String, Modules> = BTreeMap::new();
    let in_crates = sources.iter().filter(|source| !source.is_test_file());
    for source in in_crates.clone() {
        if let Some((name, module)) = module_of(&source.path) {
            let files = &mut crates.entry(name).or_default().files;
            files.insert(module, source.path.clone());
        }
    }
    for source in in_crates {
        let Some((name, from)) = module_of(&source.path) else {
            continue;
        };
        let Some(modules) = crates.get_mut(&name) else {
            continue;
        };
        for (at, path) in paths(&source.code) {
            let line = line_of(&source.code, at);
            if source.is_test_line(line) {
                continue;
            }
            let Some(to) = resolve(&modules.files, &from, &path) else {
                continue;
            };
            if to != from {
                modules.imports.push(Import {
                    from: from.clone(),
                    to,
                    path: source.path.clone(),
                    line,
                });
            }
        }
    }
    crates
}

impl Modules {
    /// The cycles among files, and among siblings below each folder; the largest first.
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let parents: BTreeSet<&[String]> = (self.files.keys())
            .filter_map(|module| module.split_last().map(|(_, parent)| parent))
            .filter(|parent| !parent.is_empty())
            .collect();
        let mut cycles = cycles_of(&self.arrows(among_files), &[]);
        let below = parents.into_iter().flat_map(|parent| {
            cycles_of(
                &self.arrows(|import| among_children(parent, import)),
                parent,
            )
        });
        cycles.extend(below);
        cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.members.len()));
        cycles
    }

    /// Imports between what `ends` names for each of them; `None` leaves one out.
    fn arrows(
        &self,
        ends: impl Fn(&Import) -> Option<(String, String)>,
    ) -> BTreeMap<(String, String), Arrow> {
        let mut arrows: BTreeMap<(String, String), Arrow> = BTreeMap::new();
        for import in &self.imports {
            let Some((from, to)) = ends(import).filter(|(from, to)| from != to) else {
                continue;
            };
            arrows
                .entry((from.clone(), to.clone()))
                .or_insert_with(|| Arrow {
                    from,
                    to,
                    imports: 0,
                    place: format!("{}:{}", import.path, import.line),
                })
                .imports += 1;
        }
        arrows
    }
}

/// Two files of which neither is in the other's folder.
fn among_files(import: &Import) -> Option<(String, String)> {
    let (from, to) = (&import.from, &import.to);
    let is_family = from.starts_with(to) || to.starts_with(from);
    (!is_family).then(|| (from.join("::"), to.join("::")))
}

/// Two children of `parent`, each with everything below it.
fn among_children(parent: &[String], import: &Import) -> Option<(String, String)> {
    let child = |module: &[String]| module.strip_prefix(parent)?.first().cloned();
    Some((child(&import.from)?, child(&import.to)?))
}

/// The cycles that these arrows make; members are named from the root of the crate.
fn cycles_of(arrows: &BTreeMap<(String, String), Arrow>, parent: &[String]) -> Vec<Cycle> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, _) in arrows.keys() {
        let reach = reach(arrows, from);
        reached.insert(from, reach);
    }
    let mut cycles = Vec::new();
    let mut seen = BTreeSet::new();
    for (&from, reach) in &reached {
        if !reach.contains(from) || seen.contains(from) {
            continue;
        }
        let members: Vec<&str> = reach
            .iter()
            .copied()
            .filter(|to| reached.get(to).is_some_and(|back| back.contains(from)))
            .collect();
        seen.extend(members.iter().copied());
        let way = shortest_way(arrows, &members);
        let name = |member: &&str| {
            let mut path = parent.to_vec();
            path.push((*member).to_owned());
            path.join("::")
        };
        cycles.push(Cycle {
            members: members.iter().map(name).collect(),
            way,
        });
    }
    cycles
}

/// Modules that can be reached from `from` along the arrows; `from` itself only by a way around.
fn reach<'a>(arrows: &'a BTreeMap<(String, String), Arrow>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for (start, end) in arrows.keys() {
            if start == at && reached.insert(end.as_str()) {
                open.push(end);
            }
        }
    }
    reached
}

/// The arrows of a shortest way from a member back to itself.
fn shortest_way(arrows: &BTreeMap<(String, String), Arrow>, members: &[&str]) -> Vec<Arrow> {
    let mut best: Vec<Arrow> = Vec::new();
    for &start in members {
        // Breadth first: each module is reached once, with the way that led there.
        let mut ways: Vec<Vec<&Arrow>> = vec![Vec::new()];
        let mut seen = BTreeSet::new();
        let found = loop {
            let mut next = Vec::new();
            let mut closed = None;
            for way in &ways {
                let at = way.last().map_or(start, |arrow| arrow.to.as_str());
                for arrow in arrows.values().filter(|arrow| arrow.from == at) {
                    let mut longer = way.clone();
                    longer.push(arrow);
                    if arrow.to == start {
                        closed = Some(longer);
                    } else if seen.insert(arrow.to.as_str()) {
                        next.push(longer);
                    }
                }
            }
            if closed.is_some() || next.is_empty() {
                break closed;
            }
            ways = next;
        };
        if let Some(way) = found
            && (best.is_empty() || way.len() < best.len())
        {
            best = way.into_iter().cloned().collect();
        }
    }
    best
}

/// The module that a path in `from` means: the longest name that is a module, or the crate's root.
/// `None` for a path that leaves the crate at its top.
fn resolve(
    files: &BTreeMap<Vec<String>, String>,
    from: &[String],
    path: &[String],
) -> Option<Vec<String>> {
    let mut at: Vec<String> = match path.first()?.as_str() {
        "crate" => Vec::new(),
        _ => from.to_vec(),
    };
    for segment in path {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => {
                at.pop()?;
            }
            name => {
                at.push(name.to_owned());
                if !files.contains_key(&at) {
                    at.pop();
                    break;
                }
            }
        }
    }
    Some(at)
}

/// All paths of masked code that begin in the crate, trees of `use` items written out, each with
/// the offset at which it begins.
fn paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let begins = matches!(tokens[at].1, "crate" | "super" | "self")
            && tokens.get(at + 1).is_some_and(|next| next.1 == "::")
            && (at == 0 || tokens[at - 1].1 != "::");
        if begins {
            let mut branches = Vec::new();
            let end = tree(&tokens, at, &mut Vec::new(), &mut branches);
            let offset = tokens[at].0;
            found.extend(branches.into_iter().map(|path| (offset, path)));
            at = end.max(at + 1);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one path, or tree of paths, from token `at` on; returns where it ends.
fn tree(
    tokens: &[(usize, &str)],
    mut at: usize,
    prefix: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) -> usize {
    let depth = prefix.len();
    loop {
        match tokens.get(at).map(|token| token.1) {
            Some("{") => {
                at += 1;
                while let Some((_, token)) = tokens.get(at) {
                    match *token {
                        "}" => {
                            at += 1;
                            break;
                        }
                        "," => at += 1,
                        _ => {
                            let end = tree(tokens, at, prefix, found);
                            // What is no path is skipped, so that this always ends.
                            at = end.max(at + 1);
                        }
                    }
                }
                break;
            }
            Some(word) if word.starts_with(is_word) => {
                prefix.push(word.to_owned());
                at += 1;
                if tokens.get(at).is_some_and(|token| token.1 == "::") {
                    at += 1;
                    continue;
                }
                if tokens.get(at).is_some_and(|token| token.1 == "as") {
                    at += 2;
                }
                found.push(prefix.clone());
                break;
            }
            Some("*") => {
                at += 1;
                found.push(prefix.clone());
                break;
            }
            // `::<` of a generic call: the path so far is what is imported.
            _ => {
                found.push(prefix.clone());
                break;
            }
        }
    }
    prefix.truncate(depth);
    at
}

/// Words, `::` and single characters, with their offsets; blanks are left out.
pub(crate) fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push((code.len() - rest.len(), &rest[..len]));
        }
        rest = &rest[len..];
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Modules {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source::new(&format!("crates/a/src/{name}"), text))
            .collect();
        crates(&sources).remove("a").expect("there is one crate")
    }

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let modules = crate_of(files);
        let arrow = |import: &Import| {
            format!(
                "{}->{}:{}",
                import.from.join("::"),
                import.to.join("::"),
                import.line
            )
        };
        modules.imports.iter().map(arrow).collect()
    }

    #[test]
    fn names_a_module_by_its_file() {
        let of = |path| module_of(path).map(|(name, module)| (name, module.join("::")));
        assert_eq!(
            of("crates/pool/src/lib.rs"),
            Some(("pool".into(), String::new()))
        );
        assert_eq!(
            of("crates/pool/src/prepared/sent.rs"),
            Some(("pool".into(), "prepared::sent".into()))
        );
        assert_eq!(of("src/main.rs"), Some(("onramp".into(), String::new())));
        assert_eq!(of("crates/a/src/b/mod.rs"), Some(("a".into(), "b".into())));
        assert_eq!(of("tests/e2e/main.rs"), None);
    }

    #[test]
    fn reads_trees_of_imports_and_paths_in_code() {
        let found = arrows(&[
            ("lib.rs", "mod b; mod c; mod d;\n"),
            (
                "b.rs",
                "use crate::{c::{self, X}, d::*};\n\nfn f() { crate::d::g::<u8>() }\n",
            ),
            ("c.rs", "pub(crate) use super::d::Y as Z;\n"),
            ("d.rs", "use std::io;\nuse crate::root_item;\n"),
        ]);
        assert_eq!(
            found,
            ["b->c:1", "b->c:1", "b->d:1", "b->d:3", "c->d:1", "d->:2"]
        );
    }

    #[test]
    fn leaves_tests_and_strings_out() {
        let found = arrows(&[
            (
                "b.rs",
                "fn f() { \"crate::c::X\" } // crate::c\n#[cfg(test)]\nmod t { use crate::c; }\n",
            ),
            ("c.rs", ""),
            ("c/tests.rs", "use crate::b::X;\n"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn finds_a_cycle_and_the_way_around_it() {
        let cycles = crate_of(&[
            ("b.rs", "use crate::c::X;\n"),
            ("c.rs", "use crate::d::X;\nuse crate::e::X;\n"),
            ("d.rs", "use crate::b::X;\n"),
            ("e.rs", ""),
        ])
        .cycles();
        assert_eq!(cycles.len(), 1);
        assert_eq!(cycles[0].members, ["b", "c", "d"]);
        let way: Vec<String> = cycles[0]
            .way
            .iter()
            .map(|arrow| format!("{}->{} {}", arrow.from, arrow.to, arrow.place))
            .collect();
        assert_eq!(
            way,
            [
                "b->c crates/a/src/b.rs:1",
                "c->d crates/a/src/c.rs:1",
                "d->b crates/a/src/d.rs:1"
            ]
        );
    }

    #[test]
    fn finds_cycles_of_files_and_of_siblings_below_a_folder() {
        let rooms = [
            ("b/x.rs", "use crate::c::y::Y;\n"),
            ("b.rs", ""),
            ("c.rs", ""),
            ("c/y.rs", ""),
            ("c/z.rs", "use crate::b::B;\n"),
        ];
        assert_eq!(
            crate_of(&rooms).cycles(),
            [],
            "two rooms may need each other"
        );
        let files = crate_of(&[
            ("b.rs", ""),
            ("c.rs", ""),
            ("b/x.rs", "use crate::c::y::Y;\n"),
            ("c/y.rs", "use crate::b::x::X;\n"),
        ]);
        assert_eq!(files.cycles()[0].members, ["b::x", "c::y"]);
        let inner = crate_of(&[
            ("b.rs", ""),
            ("b/x.rs", ""),
            ("b/x/p.rs", "use crate::b::y::Y;\n"),
            ("b/y.rs", "use crate::b::x::X;\n"),
        ]);
        assert_eq!(inner.cycles()[0].members, ["b::x", "b::y"]);
    }

    #[test]
    fn lets_a_module_and_its_children_import_one_another() {
        let family = crate_of(&[
            ("b.rs", "use crate::b::x::X;\n"),
            ("b/x.rs", "use super::B;\n"),
        ]);
        assert_eq!(family.cycles(), []);
        assert_eq!(family.imports.len(), 2);
    }

    #[test]
    fn two_cycles_are_two() {
        let cycles = crate_of(&[
            ("b.rs", "use crate::c::X;\n"),
            ("c.rs", "use crate::b::X;\nuse crate::d::X;\n"),
            ("d.rs", "use crate::e::X;\n"),
            ("e.rs", "use crate::f::X;\n"),
            ("f.rs", "use crate::d::X;\n"),
        ])
        .cycles();
        let members: Vec<String> = cycles.iter().map(|c| c.members.join(" ")).collect();
        assert_eq!(members, ["d e f", "b c"]);
    }

    #[test]
    fn ends_on_any_text() {
        for text in [
            "use crate::{",
            "crate::",
            "use crate::{;}",
            "super::super::super::x",
            "use crate::{=b}",
        ] {
            let _ = arrows(&[("b.rs", text)]);
        }
    }
}
