//! Files that settings and options name, read whole.
//!
//! The problem: such a name may lead to anything. To open a pipe waits for somebody who writes into
//! it, and a device may have no end; but a pool that reads its files again has clients and signals
//! that do not wait. The mechanism: a file is opened without waiting, what has been opened is asked
//! whether it is a regular file, and that is read up to a bound which the caller names.
//!
//! Invariants: no more than the bound and one byte is read; no error shows what was read.

use rustix::fs::OFlags;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Reason for a file that was not read.
#[derive(Debug)]
pub enum Unread {
    /// The system's reason.
    System(io::Error),
    /// A pipe, a device, a socket or a folder.
    NotRegular,
    /// File of more bytes than this.
    TooLong(u64),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::System(error) => error.fmt(f),
            Unread::NotRegular => {
                f.write_str("expected a regular file, which can be read again; it is none")
            }
            Unread::TooLong(bytes_max) => {
                write!(f, "expected at most {bytes_max} bytes; it has more")
            }
        }
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        Unread::System(error)
    }
}

/// Content of a regular file.
///
/// # Errors
/// It cannot be read, is none, or has more bytes than `bytes_max`.
pub fn bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    let file = bounded(regular(path)?, bytes_max).read_to_end(&mut bytes)?;
    within(file, bytes_max).map(|()| bytes)
}

/// The text of a regular file.
///
/// # Errors
/// As [`bytes`], and where it is not UTF-8.
pub fn text(path: &Path, bytes_max: u64) -> Result<String, Unread> {
    whole_text(regular(path)?, bytes_max)
}

/// Reads the text of whatever it is, be it a pipe: it is waited for.
///
/// # Errors
/// As [`text`].
pub fn text_once(path: &Path, bytes_max: u64) -> Result<String, Unread> {
    whole_text(File::open(path)?, bytes_max)
}

fn regular(path: &Path) -> Result<File, Unread> {
    let unwaited = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(unwaited)
        .open(path);
    let file = match file {
        // A socket.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Err(Unread::NotRegular);
        }
        opened => opened?,
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Unread::NotRegular),
    }
}

fn whole_text(file: File, bytes_max: u64) -> Result<String, Unread> {
    let mut text = String::new();
    let read = bounded(file, bytes_max).read_to_string(&mut text)?;
    within(read, bytes_max).map(|()| text)
}

fn bounded(file: File, bytes_max: u64) -> io::Take<File> {
    file.take(bytes_max.saturating_add(1))
}

fn within(read: usize, bytes_max: u64) -> Result<(), Unread> {
    match read as u64 > bytes_max {
        true => Err(Unread::TooLong(bytes_max)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    const BYTES_MAX: u64 = 8;

    /// A folder of the test's own.
    fn folder(name: &str) -> PathBuf {
        let name = format!("onramp-whole-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    #[test]
    fn a_regular_file_is_read_up_to_its_bound() {
        let folder = folder("regular");
        let file = folder.join("file");
        let put = |bytes: &[u8]| std::fs::write(&file, bytes).unwrap();
        put(b"");
        assert_eq!(bytes(&file, BYTES_MAX).unwrap(), b"");
        put(b"12345678");
        assert_eq!(bytes(&file, BYTES_MAX).unwrap(), b"12345678");
        assert_eq!(text(&file, BYTES_MAX).unwrap(), "12345678");
        assert_eq!(text_once(&file, BYTES_MAX).unwrap(), "12345678");
        let link = folder.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(text(&link, BYTES_MAX).unwrap(), "12345678");
        put(b"123456789");
        for refused in [
            bytes(&file, BYTES_MAX).map(drop),
            text(&file, BYTES_MAX).map(drop),
            text_once(&file, BYTES_MAX).map(drop),
        ] {
            let why = refused.unwrap_err().to_string();
            assert_eq!(why, "expected at most 8 bytes; it has more");
        }
        put(b"\xff");
        assert_eq!(bytes(&file, BYTES_MAX).unwrap(), b"\xff");
        assert!(matches!(text(&file, BYTES_MAX), Err(Unread::System(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn nothing_else_is_waited_for() {
        let folder = folder("else");
        let (fifo, socket) = (folder.join("fifo"), folder.join("socket"));
        pipe(&fifo);
        let link = folder.join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        let _listener = UnixListener::bind(&socket).unwrap();
        let (zero, null) = (Path::new("/dev/zero"), Path::new("/dev/null"));
        for path in [&fifo, &link, &socket, &folder, zero, null] {
            for refused in [
                bytes(path, BYTES_MAX).map(drop),
                text(path, BYTES_MAX).map(drop),
            ] {
                let shown = path.display();
                assert!(matches!(refused, Err(Unread::NotRegular)), "{shown}");
            }
        }
        let missing = folder.join("missing");
        assert!(matches!(bytes(&missing, BYTES_MAX), Err(Unread::System(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_pipe_may_be_read_once() {
        let folder = folder("once");
        let fifo = folder.join("fifo");
        pipe(&fifo);
        let path = fifo.clone();
        let writer = std::thread::spawn(move || std::fs::write(path, "1234"));
        assert_eq!(text_once(&fifo, BYTES_MAX).unwrap(), "1234");
        writer.join().unwrap().unwrap();
        assert!(matches!(
            text_once(Path::new("/dev/zero"), BYTES_MAX),
            Err(Unread::TooLong(BYTES_MAX))
        ));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
