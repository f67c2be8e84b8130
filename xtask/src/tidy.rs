//! Reads the workspace and holds it to the rules.
//!
//! Every `.rs` file and every `Cargo.toml` under the root, in the order of their paths, but for
//! folders that hold no sources of ours. All offences are collected before any is printed, so that
//! one run is enough to mend them.

use crate::edges::{self, Manifest};
use crate::exceptions::{self, Exceptions};
use crate::functions::functions;
use crate::offence::Offence;
use crate::rules;
use crate::source::Source;
use std::io;
use std::path::Path;

/// Folders that are not read, at any depth.
const SKIPPED_FOLDERS: &[&str] = &["target", "bench-results"];

/// All offences of the workspace at `root`, by path and line.
pub(crate) fn run(root: &Path) -> io::Result<Vec<Offence>> {
    let mut offences = Vec::new();
    let granted = std::fs::read_to_string(root.join(exceptions::PATH))?;
    let exceptions = Exceptions::parse(&granted, &mut offences);
    let reasons = std::fs::read_to_string(root.join(edges::REASONS_PATH))?;

    let mut sources = Vec::new();
    let mut manifests = Vec::new();
    for path in list_files(root)? {
        if path.ends_with(".rs") {
            sources.push(Source::new(
                &path,
                &std::fs::read_to_string(root.join(&path))?,
            ));
        } else if path == "Cargo.toml" || path.ends_with("/Cargo.toml") {
            manifests.push(Manifest::parse(
                &path,
                &std::fs::read_to_string(root.join(&path))?,
            ));
        }
    }

    for source in &sources {
        rules::check(source, &exceptions, &mut offences);
    }
    check_exceptions(&sources, &exceptions, &mut offences);
    edges::check_edges(&manifests, &mut offences);
    edges::check_reasons(&manifests, &reasons, &mut offences);
    offences.sort();
    Ok(offences)
}

/// The paths of all files below `root`, relative to it, with `/`.
fn list_files(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type()?.is_dir();
            if name.starts_with('.') || is_folder && SKIPPED_FOLDERS.contains(&name.as_str()) {
                continue;
            }
            let path = if folder.is_empty() {
                name
            } else {
                format!("{folder}/{name}")
            };
            if is_folder {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Exceptions that grant more than is needed.
fn check_exceptions(sources: &[Source], exceptions: &Exceptions, offences: &mut Vec<Offence>) {
    let source = |path: &str| sources.iter().find(|source| source.path == path);

    for catalogue in &exceptions.catalogues {
        let lines = source(&catalogue.path).map_or(0, |source| source.text.lines().count());
        if lines <= rules::FILE_LINES_MAX {
            let what = format!("{} is no longer too long", catalogue.path);
            offences.push(Offence::new(
                exceptions::PATH,
                catalogue.line,
                what,
                "delete the line",
            ));
        }
    }
    for granted in &exceptions.functions {
        let longest = source(&granted.path)
            .into_iter()
            .flat_map(|source| functions(&source.code))
            .filter(|function| function.name == granted.name)
            .map(|function| function.lines)
            .max()
            .unwrap_or(0);
        if longest >= granted.lines {
            continue;
        }
        let what = format!("`{}` has become shorter", granted.name);
        let remedy = if longest <= rules::FUNCTION_LINES_MAX {
            "delete the line".to_owned()
        } else {
            format!("write {longest}")
        };
        offences.push(Offence::new(exceptions::PATH, granted.line, what, remedy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedies(list: &str, text: &str) -> Vec<String> {
        let mut offences = Vec::new();
        let exceptions = Exceptions::parse(list, &mut offences);
        check_exceptions(&[Source::new("src/a.rs", text)], &exceptions, &mut offences);
        offences.into_iter().map(|offence| offence.remedy).collect()
    }

    #[test]
    fn the_ratchet_turns_one_way() {
        let long = format!("fn turn() {{\n{}}}\n", "    a();\n".repeat(80));
        assert_eq!(remedies("function src/a.rs turn 82", &long), [""; 0]);
        assert_eq!(remedies("function src/a.rs turn 90", &long), ["write 82"]);
        assert_eq!(
            remedies("function src/a.rs turn 82", "fn turn() {}\n"),
            ["delete the line"]
        );
        assert_eq!(
            remedies("function src/b.rs turn 82", &long),
            ["delete the line"]
        );
    }

    #[test]
    fn a_catalogue_must_need_its_exception() {
        assert_eq!(remedies("catalogue src/a.rs", &"\n".repeat(601)), [""; 0]);
        assert_eq!(
            remedies("catalogue src/a.rs", &"\n".repeat(600)),
            ["delete the line"]
        );
    }

    #[test]
    fn this_crate_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let offences = run(&root).expect("the workspace can be read");
        let ours: Vec<String> = offences
            .iter()
            .filter(|offence| offence.path.starts_with("xtask/"))
            .map(Offence::to_string)
            .collect();
        assert_eq!(ours, [""; 0]);
    }
}
