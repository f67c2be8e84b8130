//! The order of the pool's folders: a folder imports only folders above it in the list of
//! ARCHITECTURE.md.
//!
//! That there are no import cycles means that there is such an order; this holds the list to it, so
//! that whoever reads it from the top finds nothing used that was not shown before. Modules that
//! are files of the crate's root are not folders, and may stand anywhere in the list.

use crate::modules::{self, Import, Modules};
use crate::offence::Offence;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// The document with the list.
pub(crate) const LIST_PATH: &str = "ARCHITECTURE.md";
/// The crate whose folders are ordered.
const CRATE: &str = "pool";

/// Imports that run down the list, and folders that it leaves out.
pub(crate) fn check(sources: &[Source], document: &str, offences: &mut Vec<Offence>) {
    if let Some(modules) = modules::crates(sources).get(CRATE) {
        compare(modules, &listed(document, CRATE), offences);
    }
}

/// The folders of a crate in the order of the first row of each.
fn listed(document: &str, name: &str) -> Vec<String> {
    let heading = format!("**`crates/{name}`**");
    let lines = document
        .lines()
        .skip_while(|line| !line.starts_with(&heading));
    let rows = lines.skip(1).take_while(|line| !line.starts_with("**`"));
    let mut folders: Vec<String> = Vec::new();
    for row in rows.filter(|row| row.starts_with("| `")) {
        let paths = row.split('|').nth(1).unwrap_or_default();
        for path in paths.split('`').skip(1).step_by(2) {
            if let Some((folder, _)) = path.split_once('/')
                && !folders.iter().any(|known| known == folder)
            {
                folders.push(folder.to_owned());
            }
        }
    }
    folders
}

fn compare(modules: &Modules, listed: &[String], offences: &mut Vec<Offence>) {
    let folders: BTreeSet<&String> = (modules.files.keys())
        .filter(|module| module.len() > 1)
        .map(|module| &module[0])
        .collect();
    let place: BTreeMap<&String, usize> = listed.iter().zip(0..).collect();
    for folder in &folders {
        if !place.contains_key(folder) {
            let what = format!("the folder `{folder}` of `{CRATE}` is not in the code map");
            let remedy = "add a row for it, below the folders that it imports".to_owned();
            offences.push(Offence::new(LIST_PATH, 1, what, remedy));
        }
    }
    let down = |import: &&Import| {
        let (Some(from), Some(to)) = (import.from.first(), import.to.first()) else {
            return false;
        };
        match (place.get(from), place.get(to)) {
            (Some(from), Some(to)) => from < to && folders.len() > 1,
            _ => false,
        }
    };
    for import in modules.imports.iter().filter(down) {
        let what = format!(
            "`{}` imports `{}`, which stands below it in the code map",
            import.from[0], import.to[0]
        );
        let remedy = format!("turn the import round, or move the rows in {LIST_PATH}");
        offences.push(Offence::new(&import.path, import.line, what, remedy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
**`crates/wire`**: x

| file | is |
| `other/a.rs` | - |

**`crates/pool`**: the pool.

| file | is |
|---|---|
| `low/a.rs`, `b.rs` | one |
| `file.rs` | a file |
| `mid/deep/c.rs` | two |
| `high/d.rs` | three |

**`crates/load`**: y

| `late/e.rs` | - |
";

    fn offences(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        let mut offences = Vec::new();
        check(&sources, DOCUMENT, &mut offences);
        offences.iter().map(Offence::to_string).collect()
    }

    #[test]
    fn reads_the_folders_of_one_crate_in_their_order() {
        assert_eq!(listed(DOCUMENT, "pool"), ["low", "mid", "high"]);
        assert_eq!(listed(DOCUMENT, "absent"), [""; 0]);
    }

    #[test]
    fn an_import_runs_up_the_list() {
        let up = ("crates/pool/src/high/d.rs", "use crate::low::a::X;\n");
        let low = ("crates/pool/src/low/a.rs", "pub(crate) struct X;\n");
        assert_eq!(offences(&[up, low]), [""; 0]);
        let down = ("crates/pool/src/low/a.rs", "use crate::high::d::Y;\n");
        let folder = ("crates/pool/src/high.rs", "mod d;\n");
        let module = ("crates/pool/src/high/d.rs", "struct Y;\n");
        let found = offences(&[folder, module, down]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`low` imports `high`"), "{found:?}");
    }

    #[test]
    fn a_folder_that_is_left_out_is_named() {
        let found = offences(&[("crates/pool/src/new/f.rs", "struct Z;\n")]);
        assert!(found[0].contains("the folder `new`"), "{found:?}");
    }
}
