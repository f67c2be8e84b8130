//! Where the settings came from: the command line and the file that it names.
//!
//! A reload reads both again. A look at the file ([`Source::has_changed`]) tells whether it is
//! another one than was read last, without reading it. Invariants: a file counts as changed when
//! two looks in a row have found it alike, so that one that is being written is not read in the
//! middle; a file that was read is not found changed again, whoever had it read, and whether or not
//! it could be used.

use crate::config::Settings;
use crate::config::options::PoolArgs;
use crate::from_files::{Stamp, stamp};

/// The command line, and its file as it was.
#[derive(Debug)]
pub(crate) struct Source {
    args: PoolArgs,
    /// The file when it was read last, and at the last look.
    read: Stamp,
    seen: Stamp,
}

impl Source {
    /// Of settings that were read just now.
    pub(crate) fn new(args: PoolArgs) -> Source {
        let read = args.config.as_deref().and_then(stamp);
        Source {
            args,
            read,
            seen: read,
        }
    }

    /// Reads the settings again.
    ///
    /// # Errors
    /// One sentence about what cannot be used.
    pub(crate) fn read(&mut self) -> Result<Settings, String> {
        // In front of reading it: a change meanwhile is found by a later look.
        self.look();
        self.read = self.seen;
        self.args.clone().settings()
    }

    /// Whether the file is another one than was read last.
    pub(crate) fn has_changed(&mut self) -> bool {
        let before = self.seen;
        self.look();
        self.seen == before && self.seen != self.read
    }

    fn look(&mut self) {
        self.seen = self.args.config.as_deref().and_then(stamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: PoolArgs,
    }

    #[test]
    fn a_file_has_changed_when_two_looks_find_it_alike_and_once() {
        let folder = std::env::temp_dir().join(format!("onramp-source-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("pool.toml");
        let put = |top: &str| {
            let text = "[backend]\naddress = \"127.0.0.1:1\"\n[[user]]\nname = \"a\"\n\
                        password = \"\"\n";
            std::fs::write(&file, format!("listen = \"127.0.0.1:2\"\n{top}\n{text}")).unwrap();
        };
        put("");
        let line = ["x", "--config", file.to_str().unwrap()];
        let mut source = Source::new(Line::try_parse_from(line).unwrap().args);
        assert!(!source.has_changed());
        put("wait_ms_max = 5");
        assert!(!source.has_changed(), "it may be written just now");
        put("wait_ms_max = 55");
        assert!(!source.has_changed(), "it is");
        assert!(source.has_changed());
        assert!(source.has_changed(), "nobody has read it");
        assert_eq!(source.read().unwrap().wait_max.as_millis(), 55);
        assert!(!source.has_changed());
        put("wait_ms_max = \"many\"");
        assert!(source.read().is_err());
        assert!(!source.has_changed() && !source.has_changed());
        std::fs::remove_file(&file).unwrap();
        assert!(!source.has_changed() && source.has_changed());
        assert!(source.read().is_err());
        assert!(!source.has_changed());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
