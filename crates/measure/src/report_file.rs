//! Files that results are written to when a run is over.
//!
//! The problem: minutes of work must not end at a folder that is not there. So a file is looked at
//! before the run begins.

use std::path::Path;

/// True if a file may be written there, as far as that can be told without it.
///
/// # Errors
/// A sentence with the file.
pub fn check_writable(file: &Path) -> Result<(), String> {
    let folder = match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let shown = file.display();
    if !folder.is_dir() {
        return Err(format!(
            "cannot write {shown}: there is no directory {}",
            folder.display()
        ));
    }
    if file.is_dir() {
        return Err(format!("cannot write {shown}: it is a directory"));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_a_folder_and_may_not_be_one() {
        assert_eq!(check_writable(Path::new("result.json")), Ok(()));
        assert_eq!(check_writable(Path::new("/dev/null")), Ok(()));
        let missing = check_writable(Path::new("/nowhere/at/all.json")).unwrap_err();
        assert!(missing.ends_with("no directory /nowhere/at"), "{missing}");
        let folder = check_writable(Path::new("/dev")).unwrap_err();
        assert!(folder.contains("it is a directory"), "{folder}");
    }
}
