//! The tree of small files in which the kernel shows itself, `/proc` and `/sys`.
//!
//! The root of the tree is an argument, so that tests bring their own.

use super::NO_LIMIT;
use std::path::PathBuf;

/// A tree of files as the kernel shows it.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// The kernel's own.
    #[must_use]
    pub fn of_kernel() -> Files {
        Files::below("/")
    }

    /// A tree that looks like it, below `root`.
    pub fn below(root: impl Into<PathBuf>) -> Files {
        Files { root: root.into() }
    }

    /// Path of a file of the tree.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file's text; None if it cannot be read.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<String> {
        // Names of processes need not be UTF-8.
        let bytes = std::fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The only number of a file; "max" is [`NO_LIMIT`].
    #[must_use]
    pub fn number(&self, path: &str) -> Option<u64> {
        number(self.text(path)?.trim())
    }

    /// Number of entries of a directory.
    #[must_use]
    pub fn entries(&self, path: &str) -> Option<u64> {
        Some(std::fs::read_dir(self.path(path)).ok()?.count() as u64)
    }
}

/// Path of a setting's file.
#[must_use]
pub(crate) fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// A number as the kernel writes limits.
pub(super) fn number(text: &str) -> Option<u64> {
    match text {
        "max" | "unlimited" => Some(NO_LIMIT),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers() {
        assert_eq!(number("max"), Some(NO_LIMIT));
        assert_eq!(number("65530"), Some(65_530));
        assert_eq!(number("x"), None);
        assert_eq!(sysctl_path("fs.file-max"), "/proc/sys/fs/file-max");
    }
}
