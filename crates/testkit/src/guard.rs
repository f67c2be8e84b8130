//! Ends processes and removes folders when the tests are over, however they end.
//!
//! The problem: what a test starts must not outlive it, but statics are never dropped, and a test
//! process may be killed. The mechanism: a shell that waits for the end of a pipe, whose other end
//! only the test process has; then it kills the last process that it was told of and removes the
//! folder. It ignores the terminal's signals, which reach the whole foreground group.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = r#"
trap '' INT TERM HUP
while read -r line; do pid=$line; done
if [ "${pid:-0}" -gt 0 ]; then kill -9 "$pid" 2>/dev/null; fi
if [ -n "$1" ]; then rm -rf -- "$1"; fi
"#;

/// Watches over one process at a time and a folder.
#[derive(Debug)]
pub struct Guard(Child);

impl Guard {
    /// A guard of `folder`, if given, and of no process yet.
    ///
    /// # Panics
    /// When there is no shell.
    #[must_use]
    pub fn new(folder: Option<&Path>) -> Guard {
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "guard"]);
        shell.arg(folder.unwrap_or(Path::new("")));
        let child = shell.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Guard(child.expect("sh starts"))
    }

    /// Sets the process to be killed from now on; 0 for none.
    pub fn watch(&mut self, pid: u32) {
        let pipe = self
            .0
            .stdin
            .as_mut()
            .expect("the pipe is there until the drop");
        writeln!(pipe, "{pid}").expect("the guard reads");
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Waiting makes sure that the folder is gone when the owner is.
        let _ = self.0.wait();
    }
}
