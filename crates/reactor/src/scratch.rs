//! Scratch files: bytes that wait on disk, in a file without a name.
//!
//! The file is removed from its folder as soon as it is made, so that it is gone with its
//! descriptor, however the program ends. Writing goes to the kernel's page cache and seldom waits
//! for a disk; reading waits for one where the cache has let go of the bytes. The caller bounds how
//! much it does at once.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// A file without a name.
pub trait Scratch {
    /// Writes all of `bytes` at this place.
    ///
    /// # Errors
    /// The system's, as when the disk is full; some of the bytes may have been written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Fills `bytes` from this place.
    ///
    /// # Errors
    /// The system's.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;

    /// Gives back the disk space behind `len`.
    ///
    /// # Errors
    /// The system's.
    fn set_len(&self, len: u64) -> io::Result<()>;
}

impl Scratch for File {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.read_exact_at(bytes, at)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        File::set_len(self, len)
    }
}

/// Makes a scratch file in this folder, which nobody else can open.
///
/// # Errors
/// The system's, as when the folder is not there or cannot be written to.
pub fn open(folder: &Path) -> io::Result<File> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".onramp-spool-{}-{number}", std::process::id());
    let path = folder.join(name);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Opens a file to write at its end, and makes it where it is not there. A pipe is not waited for.
///
/// # Errors
/// The system's.
pub fn open_at_end(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    (options
        .append(true)
        .create(true)
        .mode(0o640)
        .custom_flags(flags))
    .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_file_has_no_name_and_keeps_its_bytes() {
        let folder = std::env::temp_dir().join(format!("scratch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = open(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        Scratch::write_at(&file, b"behind", 100).unwrap();
        let mut bytes = [0; 6];
        Scratch::read_at(&file, &mut bytes, 100).unwrap();
        assert_eq!(&bytes, b"behind");
        Scratch::set_len(&file, 0).unwrap();
        assert!(Scratch::read_at(&file, &mut bytes, 100).is_err());
        std::fs::remove_dir(&folder).unwrap();
        assert!(open(&folder).is_err());
    }
}
