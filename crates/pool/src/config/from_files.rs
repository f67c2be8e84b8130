//! Things made of files, made again when the files change.
//!
//! The problem: certificates are renewed every few weeks, by programs that know nothing of the
//! pool, and a restart would end every connection. The mechanism: [`FromFiles`] keeps what was made
//! last, and a stamp of each file as it was in front of that; somebody who may wait asks it to look
//! again ([`FromFiles::renew`]).
//!
//! Invariants: what cannot be used changes nothing; who has got the thing keeps it; the lock is
//! held to copy a pointer, never while files are read.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Stamp that tells one state of a file from another, without reading it.
pub(crate) type Stamp = Option<(u64, u64, u64, (i64, i64), (i64, i64))>;

/// Something made of files.
pub(crate) struct FromFiles<T> {
    files: Vec<PathBuf>,
    make: Box<dyn Fn() -> Result<T, String> + Send + Sync>,
    made: Mutex<Arc<T>>,
    /// The files in front of the last attempt.
    stamps: Mutex<Vec<Stamp>>,
}

impl<T> fmt::Debug for FromFiles<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.files).finish()
    }
}

/// Result of a look at the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// Nothing new since the last look.
    Unchanged,
    /// Certificate that was made again.
    Renewed,
    /// Failure to make it of the files as they are; what was made before goes on.
    Kept(String),
}

impl<T> FromFiles<T> {
    /// Makes it for the first time.
    ///
    /// # Errors
    /// What `make` says.
    pub(crate) fn new(
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<FromFiles<T>, String> {
        let stamps = stamps(&files);
        let made = Arc::new(make()?);
        Ok(FromFiles {
            files,
            make: Box::new(make),
            made: Mutex::new(made),
            stamps: Mutex::new(stamps),
        })
    }

    /// The value made last.
    pub(crate) fn get(&self) -> Arc<T> {
        (self.made.lock().unwrap_or_else(PoisonError::into_inner)).clone()
    }

    /// Makes it again if a file has changed since the last attempt, or if it is `demanded`.
    pub(crate) fn renew(&self, demanded: bool) -> Renewal {
        let mut last = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        // In front of reading them: a change meanwhile is found by the next look.
        let now = stamps(&self.files);
        let is_changed = *last != now;
        if !demanded && !is_changed {
            return Renewal::Unchanged;
        }
        *last = now;
        match (self.make)() {
            Ok(made) => {
                *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
                match is_changed {
                    true => Renewal::Renewed,
                    false => Renewal::Unchanged,
                }
            }
            Err(why) => Renewal::Kept(why),
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    files.iter().map(|file| stamp(file)).collect()
}

/// Stamp of a file; `None` where there is none.
pub(crate) fn stamp(file: &Path) -> Stamp {
    let found = std::fs::metadata(file).ok()?;
    let changed = (found.ctime(), found.ctime_nsec());
    let modified = (found.mtime(), found.mtime_nsec());
    Some((found.dev(), found.ino(), found.len(), modified, changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_again_when_a_file_changes_and_kept_when_it_cannot_be() {
        let folder = std::env::temp_dir().join(format!("onramp-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("number");
        let put = |text: &str| {
            let new = folder.join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(&new, &file).unwrap();
        };
        put("1");
        let path = file.clone();
        let make = move || {
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            text.parse::<u32>().map_err(|_| format!("'{text}'"))
        };
        let number = FromFiles::new(vec![file.clone()], make).unwrap();
        assert_eq!(*number.get(), 1);
        assert_eq!(number.renew(false), Renewal::Unchanged);
        assert_eq!(
            number.renew(true),
            Renewal::Unchanged,
            "the file has not changed"
        );
        let held = number.get();
        put("22");
        assert_eq!(number.renew(false), Renewal::Renewed);
        assert_eq!((*held, *number.get()), (1, 22));
        put("x");
        assert_eq!(number.renew(false), Renewal::Kept("'x'".into()));
        // Said once.
        assert_eq!(number.renew(false), Renewal::Unchanged);
        std::fs::remove_file(&file).unwrap();
        assert!(matches!(number.renew(false), Renewal::Kept(_)));
        assert_eq!(*number.get(), 22);
        put("3");
        assert_eq!(number.renew(false), Renewal::Renewed);
        assert_eq!(*number.get(), 3);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
