//! Sources of the settings: the command line and the file that it names.
//!
//! A reload reads both again. A look at the file ([`Source::has_changed`]) tells whether it is
//! another one than was read last, without reading it. What is in force is kept as it was written
//! ([`Source::with`]): a setting that the console changes is checked together with the others, and
//! what has been written into the file meanwhile stays out.
//!
//! Invariants: a file counts as changed when two looks in a row have found it alike, so that one
//! that is being written is not read in the middle; a file that was read is not found changed
//! again, whoever had it read, and whether or not it could be used.

use crate::config::from_files::{Stamp, stamp};
use crate::config::options::PoolArgs;
use crate::config::{Raw, Settings, UserLimit};

/// Limits of users that may be changed past the file.
pub(crate) const LIMITS_MAX: usize = 100;

/// The command line, and its file as it was.
#[derive(Debug)]
pub struct Source {
    args: PoolArgs,
    /// The settings in force, as written.
    raw: Raw,
    /// Limits of users that hold over reloads.
    limits: Vec<UserLimit>,
    /// The file when it was read last, and at the last look.
    read: Stamp,
    seen: Stamp,
}

impl Source {
    /// Reads the settings for the first time. The file may be a pipe: it is read once.
    ///
    /// # Errors
    /// One sentence about what cannot be used.
    pub(crate) fn first(args: PoolArgs) -> Result<(Source, Settings), String> {
        // In front of reading it: a change meanwhile is found by a later look.
        let read = args.config.as_deref().and_then(stamp);
        let (raw, settings) = checked(args.clone().raw()?)?;
        let source = Source {
            args,
            raw,
            limits: Vec::new(),
            read,
            seen: read,
        };
        Ok((source, settings))
    }

    /// The command line.
    pub(crate) fn args(&self) -> &PoolArgs {
        &self.args
    }

    /// Reads the settings again: as written, and checked.
    ///
    /// # Errors
    /// One sentence about what cannot be used.
    pub(crate) fn read(&mut self) -> Result<(Raw, Settings), String> {
        // In front of reading it: a change meanwhile is found by a later look.
        self.look();
        self.read = self.seen;
        let mut raw = self.args.clone().raw_again()?;
        // Of a user that is there no more.
        self.limits.retain(|limit| raw.change_limit(limit).is_ok());
        checked(raw)
    }

    /// The settings in force with another limit of a user, and all such limits with that.
    ///
    /// # Errors
    /// One sentence about what cannot be used.
    pub(crate) fn with_limit(
        &self,
        limit: UserLimit,
    ) -> Result<(Raw, Settings, Vec<UserLimit>), String> {
        let mut raw = self.raw.clone();
        raw.change_limit(&limit)?;
        let user = limit.user.clone();
        let mut limits = self.limits.clone();
        limits.retain(|other| (&other.user, &other.name) != (&limit.user, &limit.name));
        if limit.value.is_some() {
            limits.push(limit);
        }
        if limits.len() > LIMITS_MAX {
            return Err(format!(
                "{LIMITS_MAX} limits of users are changed already (SHOW RULES), which is the most"
            ));
        }
        let (raw, settings) = checked(raw)?;
        if !raw.holds_for(&user, &settings) {
            return Err(format!(
                "a pattern of the file fits '{user}' as well: change its limit there"
            ));
        }
        Ok((raw, settings, limits))
    }

    /// Limits of users that hold over reloads.
    pub(crate) fn limits(&self) -> &[UserLimit] {
        &self.limits
    }

    /// Stores the limits of users that are in force.
    pub(crate) fn keep_limits(&mut self, limits: Vec<UserLimit>) {
        self.limits = limits;
    }

    /// The settings in force with another value of one of them; none is what was read of it.
    ///
    /// # Errors
    /// One sentence about what cannot be used.
    pub(crate) fn with(&self, name: &str, value: Option<&str>) -> Result<(Raw, Settings), String> {
        let mut raw = self.raw.clone();
        raw.change(name, value)?;
        checked(raw)
    }

    /// Stores the raw settings that are in force.
    pub(crate) fn has_put_in_force(&mut self, raw: Raw) {
        self.raw = raw;
    }

    /// True if the file is another one than was read last.
    pub(crate) fn has_changed(&mut self) -> bool {
        let before = self.seen;
        self.look();
        self.seen == before && self.seen != self.read
    }

    fn look(&mut self) {
        self.seen = self.args.config.as_deref().and_then(stamp);
    }
}

fn checked(raw: Raw) -> Result<(Raw, Settings), String> {
    let settings = raw.clone().check()?;
    Ok((raw, settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FILE_BYTES_MAX;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: PoolArgs,
    }

    /// Writes a file of settings that the pool takes, with `top` among them.
    fn put_settings(file: &std::path::Path, top: &str) {
        let text = "[backend]\naddress = \"127.0.0.1:1\"\n[[user]]\nname = \"a\"\n\
                    password = \"\"\n";
        std::fs::write(file, format!("listen = \"127.0.0.1:2\"\n{top}\n{text}")).unwrap();
    }

    fn first(file: &std::path::Path) -> Source {
        let line = ["x", "--config", file.to_str().unwrap()];
        let args = Line::try_parse_from(line).unwrap().args;
        Source::first(args).unwrap().0
    }

    #[test]
    fn one_value_is_changed_and_edits_of_the_file_stay_out() {
        let folder = std::env::temp_dir().join(format!("onramp-set-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("pool.toml");
        let put = |top: &str| put_settings(&file, top);
        put("backends_max = 7");
        let mut source = first(&file);
        put("backends_max = 8\nstall_ms_max = 77");
        assert_eq!(source.with("backends_max", None).unwrap().1.backends_max, 7);
        let (raw, settings) = source.with("statement_log_users", Some("b, c")).unwrap();
        assert_eq!(settings.backends_max, 7);
        assert_eq!(settings.statement_log_users, ["b", "c"]);
        source.has_put_in_force(raw);
        let (_, settings) = source.with("reload_on_change", Some("on")).unwrap();
        assert!(settings.reload_on_change);
        assert_eq!(settings.statement_log_users, ["b", "c"]);
        for (name, value, why) in [
            ("backends_max", "many", "expected a number from 1 to"),
            (
                "backends_max",
                "-1",
                "SET backends_max: expected a number from 1 to 100000, got '-1'",
            ),
            (
                "backends_max",
                "0",
                "SET backends_max: expected a number from 1 to",
            ),
            (
                "idle_s_max",
                "0",
                "SET idle_s_max: expected a number from 1 to",
            ),
            (
                "statement_log",
                "loud",
                "expected off, masked or literal, got 'loud'",
            ),
            ("reload_on_change", "maybe", "expected true or false"),
            ("groups", "3", "read at start only"),
            ("backend.address", "x", "read at start only"),
            ("nothing", "1", "in the file of the settings only"),
        ] {
            let said = source.with(name, Some(value)).unwrap_err();
            assert!(said.contains(why), "{name} {value}: {said}");
        }
        assert_eq!(source.read().unwrap().1.backends_max, 8);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_was_set_is_taken_back_by_default_and_by_the_words_of_the_default() {
        let folder = std::env::temp_dir().join(format!("onramp-back-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("pool.toml");
        put_settings(&file, "statement_ms_max = 7000");
        let mut source = first(&file);
        // Of two settings, one in the file and one not: how often each is set, and what is said.
        for (name, value, shown) in [
            ("statement_ms_max", Some("8"), "8"),
            ("statement_ms_max", Some("9"), "9"),
            ("statement_ms_max", None, "7000"),
            ("statement_ms_max", None, "7000"),
            ("statement_ms_max", Some("no limit"), "no limit"),
            ("statement_ms_max", None, "7000"),
            ("idle_s_max", Some("5"), "5"),
            ("idle_s_max", Some("No Limit"), "no limit"),
            ("idle_s_max", Some("5"), "5"),
            ("idle_s_max", None, "no limit"),
        ] {
            let (raw, settings) = source.with(name, value).unwrap();
            source.has_put_in_force(raw);
            let mut all = settings.shown.iter();
            let found = all.find(|setting| setting.name == name).unwrap();
            assert_eq!(found.value, shown, "{name} {value:?}");
        }
        // Every setting takes DEFAULT, and the words that are shown of it.
        for setting in &source.with("idle_s_max", None).unwrap().1.shown {
            let (name, default) = (&setting.name, &setting.default);
            if setting.is_fixed || setting.of_user || name.contains('.') || default.is_empty() {
                continue;
            }
            for value in [None, Some(&**default)] {
                assert!(source.with(name, value).is_ok(), "{name} = {value:?}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_was_read_from_a_pipe_is_changed_without_reading_it_again() {
        let folder = std::env::temp_dir().join(format!("onramp-pipe-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let pipe = folder.join("pool.toml");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let path = pipe.clone();
        let writer = std::thread::spawn(move || put_settings(&path, "backends_max = 7"));
        let source = first(&pipe);
        writer.join().unwrap();
        let (_, settings) = source.with("stall_ms_max", Some("77")).unwrap();
        assert_eq!(settings.backends_max, 7);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_regular_file_or_has_no_end_is_not_read_again() {
        let folder = std::env::temp_dir().join(format!("onramp-odd-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("pool.toml");
        put_settings(&file, "");
        let mut source = first(&file);
        let mut again_without = |why: &str| {
            let said = source.read().unwrap_err();
            assert!(said.contains("pool.toml: ") && said.contains(why), "{said}");
            std::fs::remove_file(&file).unwrap();
        };
        let long = std::fs::File::create(&file).unwrap();
        long.set_len(FILE_BYTES_MAX + 1).unwrap();
        again_without("expected at most 67108864 bytes; it has more");
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        again_without("expected a regular file");
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
        again_without("expected a regular file");
        std::fs::create_dir(&file).unwrap();
        let said = source.read().unwrap_err();
        assert!(said.contains("expected a regular file"), "{said}");
        std::fs::remove_dir(&file).unwrap();
        put_settings(&file, "backends_max = 9");
        assert_eq!(source.read().unwrap().1.backends_max, 9);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_has_changed_when_two_looks_find_it_alike_and_once() {
        let folder = std::env::temp_dir().join(format!("onramp-source-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("pool.toml");
        let put = |top: &str| put_settings(&file, top);
        put("");
        let mut source = first(&file);
        assert!(!source.has_changed());
        put("wait_ms_max = 5");
        assert!(!source.has_changed(), "it may be written just now");
        put("wait_ms_max = 55");
        assert!(!source.has_changed(), "it is");
        assert!(source.has_changed());
        assert!(source.has_changed(), "nobody has read it");
        assert_eq!(source.read().unwrap().1.wait_max.as_millis(), 55);
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
