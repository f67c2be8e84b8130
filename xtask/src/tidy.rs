//! Reads the workspace and holds it to the rules.
//!
//! Every `.rs` file, every `Cargo.toml` and every document under the root, in the order of their
//! paths, but for folders that hold no sources of ours. All offences are collected before any is
//! printed, so that one run is enough to mend them.

use crate::edges::{self, Manifest};
use crate::house;
use crate::measures;
use crate::named_files;
use crate::offence::Offence;
use crate::ratchet;
use crate::rules;
use crate::source::Source;
use crate::titles;
use std::io;
use std::path::Path;

/// Folders that are not read, at any depth.
const SKIPPED_FOLDERS: &[&str] = &["target", "bench-results"];

/// All offences of the workspace at `root`, by path and line.
pub(crate) fn run(root: &Path) -> io::Result<Vec<Offence>> {
    let mut offences = Vec::new();
    let reasons = std::fs::read_to_string(root.join(edges::REASONS_PATH))?;

    let sources = read_sources(root)?;
    let documents = read_documents(root)?;
    let mut manifests = Vec::new();
    for path in list_files(root)? {
        if path == "Cargo.toml" || path.ends_with("/Cargo.toml") {
            manifests.push(Manifest::parse(
                &path,
                &std::fs::read_to_string(root.join(&path))?,
            ));
        }
    }

    for source in &sources {
        rules::check(source, &mut offences);
    }
    for (path, text) in &documents {
        rules::check_document(path, text, &mut offences);
    }
    house::check_cycles(&sources, &mut offences);
    ratchet::check(&measures::all(&sources, &documents), &mut offences);
    titles::check(root, &mut offences);
    named_files::check(&sources, &documents, &mut offences);
    edges::check_edges(&manifests, &mut offences);
    edges::check_reasons(&manifests, &reasons, &mut offences);
    offences.sort();
    Ok(offences)
}

/// Every Rust file of the workspace at `root`, in the order of their paths.
pub(crate) fn read_sources(root: &Path) -> io::Result<Vec<Source>> {
    let mut paths = list_files(root)?;
    paths.retain(|path| path.ends_with(".rs"));
    let read = |path: &String| {
        let text = std::fs::read_to_string(root.join(path))?;
        Ok(Source::new(path, &text))
    };
    paths.iter().map(read).collect()
}

/// Every document of the workspace at `root`, as path and text, in the order of their paths.
pub(crate) fn read_documents(root: &Path) -> io::Result<Vec<(String, String)>> {
    let mut paths = list_files(root)?;
    paths.retain(|path| path.ends_with(".md"));
    let read = |path: String| {
        let text = std::fs::read_to_string(root.join(&path))?;
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

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
