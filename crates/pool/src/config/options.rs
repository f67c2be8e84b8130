//! Options of `onramp pool`: what the command line adds to, or puts in place of, a file.
//!
//! Options override the file key by key; an account given by `--backend` replaces the user of the
//! same name. Few settings are options: those that a first run needs, and those that scripts
//! change. They are made from the rows of the table of settings that name an option; only
//! `--config` and `--backend` are declared here. Checking is left to [`crate::config`], which sees
//! one [`Raw`] whatever its source.

use crate::config::mistakes::Mistakes;
use crate::config::{At, Keys, Kind, Raw, Row, Settings, Value, top_rows};
use std::path::{Path, PathBuf};
use wire::dsn::password::{Source, seen_by_others};
use wire::dsn::{Dsn, SslMode};

const EXAMPLE: &str = "\
Example, for one account:
  onramp pool --listen 127.0.0.1:6033 \\
      --backend 'mysql://app@127.0.0.1:3306?password_file=app.password'";

/// Put a thread pool in front of a MySQL-protocol server
///
/// Clients connect to the pool as they would to the server; their statements run on a few
/// connections of the pool's own. Settings come from a file, or for a single account from options
/// alone. docs/pool/settings.md describes every setting.
///
/// SIGTERM lets running transactions finish and ends the pool, a second one ends it at once;
/// SIGUSR1 prints its counters, SIGQUIT its clients; SIGUSR2 has the program that is now in the
/// place of this one take over, without disconnecting anybody.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(args_override_self = true, verbatim_doc_comment, after_long_help = EXAMPLE)]
pub struct PoolArgs {
    /// Read settings from this file (TOML); options override what it says
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// The server and the account on it: mysql://USER@HOST[:PORT] or
    /// mysql://USER@localhost?socket=/PATH. Clients log in with the same account. Its password
    /// stands in a file (password_file=FILE behind the ?), in the environment (password_env=NAME),
    /// in the file of --config, or behind USER (:PASSWORD), where it is seen in the shell's history
    #[arg(long, value_name = "DSN")]
    pub backend: Option<String>,

    /// Take the place of the pool with this process number: its listeners and its clients, none of
    /// which notices. It ends when it has handed over the last one
    #[arg(long, value_name = "PID")]
    pub upgrade: Option<u32>,

    /// Check the settings instead of serving: print every mistake and end (exit status 0: none; 2:
    /// the settings cannot be used). Opens no socket; with =server each account logs in at the
    /// server once (1: the server cannot be asked, or refuses one)
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true,
          default_missing_value = "settings", conflicts_with = "upgrade")]
    pub check: Option<Checked>,

    #[command(flatten)]
    options: TableOptions,
}

/// Extent of `--check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Checked {
    /// The settings and the files that they name
    Settings,
    /// The server too: each account logs in once
    Server,
}

/// The options of rows of the table of settings.
#[derive(Clone, Debug, Default)]
struct TableOptions {
    keys: Keys,
}

impl clap::Args for TableOptions {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(top_rows().filter_map(argument))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        TableOptions::augment_args(command)
    }
}

impl clap::FromArgMatches for TableOptions {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<TableOptions, clap::Error> {
        let mut options = TableOptions::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        for row in top_rows().filter(|row| row.option.is_some()) {
            let name = row.option_name();
            let value = match row.kind {
                Kind::Number { .. } => matches.get_one::<Value>(&name).cloned(),
                Kind::Switch => matches.get_one::<bool>(&name).map(|on| Value::Switch(*on)),
                Kind::List(_) => (matches.get_many::<String>(&name))
                    .map(|texts| Value::List(texts.cloned().collect())),
                Kind::OneOf(_) | Kind::Text(_) => matches
                    .get_one::<String>(&name)
                    .map(|text| Value::Text(text.clone())),
                // A password does not belong into a command line.
                Kind::Password | Kind::Passwords => None,
            };
            if let Some(value) = value {
                self.keys
                    .set(row.key, value, At::Option(format!("--{name}")));
            }
        }
        Ok(())
    }
}

/// A row's option, with its bounds and default in the help.
fn argument(row: &'static Row) -> Option<clap::Arg> {
    let value_name = row.option?;
    let name = row.option_name();
    let argument = clap::Arg::new(name.clone())
        .long(name)
        .value_name(value_name);
    let argument = match row.kind {
        Kind::Number { .. } => argument.value_parser(move |text: &str| {
            let number = row.number_from(text);
            number.map_err(|_| format!("expected {}", row.expected()))
        }),
        Kind::Switch => argument.value_parser(clap::value_parser!(bool)),
        Kind::List(_) => argument.action(clap::ArgAction::Append),
        Kind::OneOf(_) | Kind::Text(_) | Kind::Password | Kind::Passwords => argument,
    };
    Some(argument.help(row.help()))
}

impl PoolArgs {
    /// Settings that the pool runs on. Reads files: call it once.
    ///
    /// # Errors
    /// One sentence about what cannot be used.
    pub fn settings(self) -> Result<Settings, String> {
        self.raw().and_then(Raw::check)
    }

    /// The settings, or every mistake in them, a sentence each. Reads files: call it once.
    ///
    /// # Errors
    /// The mistakes.
    pub(crate) fn check_all(self) -> Result<Settings, Vec<String>> {
        let mut mistakes = Mistakes::default();
        let raw = self.read_by(Raw::read, &mut mistakes);
        let settings = raw.and_then(|raw| raw.check_all(&mut mistakes));
        match (mistakes.lines(), settings) {
            (lines, Some(settings)) if lines.is_empty() => Ok(settings),
            (lines, _) => Err(lines),
        }
    }

    /// The settings as typed: the file, with the options over it.
    ///
    /// # Errors
    /// One sentence about the file or the option that cannot be used.
    pub fn raw(self) -> Result<Raw, String> {
        let mut mistakes = Mistakes::default();
        let raw = self.read_by(Raw::read, &mut mistakes);
        mistakes.result(raw)
    }

    /// Reads the settings again while the pool serves.
    ///
    /// # Errors
    /// As [`PoolArgs::raw`].
    pub(crate) fn raw_again(self) -> Result<Raw, String> {
        let mut mistakes = Mistakes::default();
        let raw = self.read_by(Raw::read_again, &mut mistakes);
        mistakes.result(raw)
    }

    fn read_by(
        self,
        read: fn(&Path, &mut Mistakes) -> Option<Raw>,
        mistakes: &mut Mistakes,
    ) -> Option<Raw> {
        let mut raw = match &self.config {
            None => Raw::default(),
            Some(path) => {
                let mut raw = read(path, mistakes)?;
                if raw.holds_secrets() {
                    raw.warnings.extend(seen_by_others(path, "passwords"));
                }
                raw
            }
        };
        raw.top.override_with(self.options.keys);
        if let Some(text) = &self.backend {
            let dsn = Dsn::read(text).map_err(|error| format!("--backend: {error}"));
            let dsn = mistakes.note(dsn)?;
            mistakes.note(take_dsn(&mut raw, dsn))?;
        }
        Some(raw)
    }
}

fn take_dsn(raw: &mut Raw, dsn: Dsn) -> Result<(), String> {
    let address = dsn.place();
    if !dsn.schema.is_empty() {
        return Err(format!(
            "--backend: expected no schema, got '/{}': leave it out; every client names its own",
            dsn.schema.escape_debug()
        ));
    }
    let at = || At::Option("--backend".into());
    if let Some(mode) = dsn.ssl_mode.filter(|mode| *mode != SslMode::Disabled) {
        return Err(format!(
            "--backend: expected no ssl-mode={}: TLS to the server is set in a file (--config), by \
             tls below [backend]; see docs/pool/tls.md",
            mode.name()
        ));
    }
    raw.server.set("address", Value::Text(address), at());
    raw.warnings.extend(dsn.warning());
    // Without a password it means the file's account.
    let is_of =
        |keys: &Keys| matches!(keys.get("name"), Some(Value::Text(name)) if *name == dsn.user);
    if dsn.password_source == Source::Nowhere && raw.users.iter().any(is_of) {
        return Ok(());
    }
    raw.users.retain(|keys| !is_of(keys));
    let mut user = Keys::of(&format!("user '{}': ", dsn.user.escape_debug()));
    user.set("name", Value::Text(dsn.user), at());
    user.set("password", Value::Secret(dsn.password.into()), at());
    raw.users.push(user);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        pool: PoolArgs,
    }

    fn line(words: &[&str]) -> Result<PoolArgs, clap::Error> {
        use clap::Parser as _;
        let words = std::iter::once("pool").chain(words.iter().copied());
        Line::try_parse_from(words).map(|line| line.pool)
    }

    fn args(backend: &str) -> PoolArgs {
        line(&["--listen", "127.0.0.1:6033", "--backend", backend]).unwrap()
    }

    #[test]
    fn options_alone_make_a_pool_for_one_account() {
        let raw = args("mysql://app:p%40ss@127.0.0.1:3306").raw().unwrap();
        let settings = raw.check().unwrap();
        assert_eq!(settings.backend.to_string(), "127.0.0.1:3306");
        assert_eq!(settings.users[0].backend_password, "p@ss");
        let raw = args("mysql://app:x@localhost?socket=/run/m.sock")
            .raw()
            .unwrap();
        assert_eq!(raw.check().unwrap().backend.to_string(), "/run/m.sock");
    }

    #[test]
    fn a_password_need_not_stand_in_the_command_line() {
        let path = std::env::var("PATH").unwrap();
        let raw = args("mysql://app@127.0.0.1:3306?password_env=PATH")
            .raw()
            .unwrap();
        assert_eq!(
            raw.check().unwrap().users[0].backend_password,
            path.as_str()
        );
        let bare = args("mysql://app@127.0.0.1:3306").raw().unwrap();
        assert_eq!(bare.check().unwrap().users[0].backend_password, "");

        let folder = std::env::temp_dir().join(format!("onramp-options-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("pool.toml");
        let with = |text: &str, mode, backend: &str| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            let args = PoolArgs {
                config: Some(file.clone()),
                ..args(backend)
            };
            args.raw().unwrap().check().unwrap()
        };
        let text = "[[user]]\nname = \"app\"\npassword = \"the file's\"\nclients_max = 7\n";
        // A DSN without a password means the account of the file; one with its own replaces it.
        let settings = with(text, 0o600, "mysql://app@127.0.0.1:3306");
        assert_eq!(settings.users[0].backend_password, "the file's");
        assert_eq!(settings.users[0].limits.clients_max, Some(7));
        assert_eq!(settings.warnings, [""; 0]);
        let settings = with(text, 0o604, "mysql://app:own@127.0.0.1:3306");
        assert_eq!(settings.users[0].backend_password, "own");
        assert!(
            settings.warnings[0].contains("pool.toml has passwords"),
            "{settings:?}"
        );
        let settings = with("clients_max = 5\n", 0o644, "mysql://app@127.0.0.1:3306");
        assert_eq!(
            settings.warnings, [""; 0],
            "a file without passwords may be read"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_mistake_names_its_option() {
        assert!(
            args("postgres://x")
                .raw()
                .unwrap_err()
                .starts_with("--backend: ")
        );
        let error = args("mysql://a:b@h:1/shop").raw().unwrap_err();
        assert!(error.contains("expected no schema, got '/shop'"), "{error}");
        let error = args("mysql://a:b@h:1?ssl-mode=required").raw().unwrap_err();
        assert!(error.contains("tls below [backend]"), "{error}");
        let missing = line(&["--config", "/nowhere.toml"]).unwrap();
        assert!(
            missing
                .raw()
                .unwrap_err()
                .starts_with("--config /nowhere.toml: No such file")
        );
    }
    #[test]
    fn a_row_with_an_option_is_one_of_the_command_line() {
        let base = [
            "--listen",
            "127.0.0.1:1",
            "--listen",
            "/run/a",
            "--backend",
            "mysql://a@h",
        ];
        let with = |more: &[&str]| line(&[&base[..], more].concat())?.settings().map_err(error);
        fn error(why: String) -> clap::Error {
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, why)
        }
        let settings = with(&[
            "--clients-max",
            "7",
            "--clients-max=9",
            "--stall-ms-max",
            "5",
        ]);
        let settings = settings.unwrap();
        assert_eq!(settings.listen.len(), 2);
        assert_eq!(settings.clients_max, 9, "the last one counts");
        assert_eq!(settings.stall_max, std::time::Duration::from_millis(5));
        for (words, expected) in [
            (
                ["--clients-max", "0"],
                "--clients-max: expected a number from 1 to 10000000, got 0",
            ),
            (
                ["--clients-max", "many"],
                "'many' for '--clients-max <N>': expected a number from 1 to 10000000",
            ),
            (
                ["--high-prio-mode", "all"],
                "--high-prio-mode: expected transactions, statements or none, got 'all'",
            ),
            (
                ["--listen", "nowhere"],
                "--listen: 'nowhere': expected HOST:PORT",
            ),
        ] {
            let error = with(&words).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_help_of_an_option_says_its_bounds_and_default() {
        use clap::CommandFactory as _;
        let help = Line::command().term_width(0).render_long_help().to_string();
        for expected in [
            "--clients-max <N>\n          Clients at once, over all groups [1 to 10,000,000 \
             clients; default: 10,000]",
            "--high-prio-mode <MODE>\n          Statements with high priority by themselves: \
             transactions, statements or none [default: transactions]",
            "--listen <ADDRESS>",
        ] {
            assert!(help.contains(expected), "{help}");
        }
        assert!(!help.contains('`'), "{help}");
    }
}
