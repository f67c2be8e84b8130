//! The scratch directory: everything that a climb puts on the disk except its two results.
//!
//! It is made with a name of its own under `/tmp` (or where the user says), readable by nobody
//! else, and removed when its guard is dropped: at the end, after an error, a panic or Ctrl-C.
//! The guard must outlive the server whose data is in it. With `--keep-scratch` it stays, and the
//! climb says where it is.

use std::fs::{self, DirBuilder};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// `sun_path` of a Unix socket's address, without its zero byte.
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Room for the name of the longest socket in it.
const SOCKET_NAME: &str = "server.sock";

/// A directory that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    /// Makes one under `parent`, or under the system's directory for temporary files.
    pub(crate) fn make(parent: Option<&Path>, keep: bool) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let parent = std::path::absolute(&parent).unwrap_or(parent);
        let name = format!("onramp-climb-{}-{}", std::process::id(), random_hex(4)?);
        let path = parent.join(name);
        let longest = path.join(SOCKET_NAME);
        anyhow::ensure!(
            longest.as_os_str().len() <= SOCKET_PATH_BYTES_MAX,
            "{} is too long for the path of a Unix socket ({SOCKET_PATH_BYTES_MAX} bytes at \
             most): name a shorter directory with --scratch-dir",
            longest.display()
        );
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| {
                format!(
                    "cannot make the scratch directory {}: see --scratch-dir",
                    path.display()
                )
            })?;
        Ok(Self { path, keep })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET_NAME)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let shown = self.path.display();
        let text = if self.keep {
            format!("climb: the scratch directory stays, as asked: {shown}\n")
        } else if let Err(error) = fs::remove_dir_all(&self.path) {
            format!("climb: cannot remove the scratch directory {shown}: {error}\n")
        } else {
            return;
        };
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Random bytes from the kernel, at most 32, as hexadecimal digits.
pub(crate) fn random_hex(bytes: usize) -> Result<String> {
    let mut buffer = [0_u8; 32];
    let bytes = &mut buffer[..bytes.min(32)];
    rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())
        .context("the kernel gives no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_scratch_is_gone_with_what_is_in_it() {
        let scratch = Scratch::make(None, false).unwrap();
        let path = scratch.path().to_path_buf();
        fs::create_dir(path.join("data")).unwrap();
        fs::write(path.join("data/x"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn a_long_path_is_refused_before_a_server_meets_it() {
        let parent = PathBuf::from("/tmp").join("x".repeat(100));
        let error = Scratch::make(Some(&parent), false).unwrap_err().to_string();
        assert!(error.contains("--scratch-dir"), "{error}");
    }
}
