//! Options of `onramp pool`: what the command line adds to, or puts in place of, a file.
//!
//! Options override the file key by key; an account given by `--backend` replaces the user of the
//! same name. Few settings are options: those that a first run needs, and those that scripts
//! change; docs/pool/settings.md has them all. Checking is left to [`crate::config`], which sees
//! one [`Raw`] whatever its source.

use crate::config::{Raw, RawUser, Settings};
use std::path::PathBuf;
use wire::dsn::Dsn;
use wire::dsn::password::{Source, seen_by_others};

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
/// SIGUSR1 prints its counters.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(args_override_self = true, verbatim_doc_comment, after_long_help = EXAMPLE)]
pub struct PoolArgs {
    /// Read settings from this file (TOML); options override what it says
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Listen here: HOST:PORT, or the path of a Unix socket; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,

    /// The server and the account on it: mysql://USER@HOST[:PORT] or
    /// mysql://USER@localhost?socket=/PATH. Clients log in with the same account. Its password
    /// stands in a file (password_file=FILE behind the ?), in the environment (password_env=NAME),
    /// in the file of --config, or behind USER (:PASSWORD), where it is seen in the shell's history
    #[arg(long, value_name = "DSN")]
    pub backend: Option<String>,

    /// Clients at once, over all groups, 1 to 10,000,000 [default: 10000]
    #[arg(long, value_name = "N")]
    pub clients_max: Option<u64>,

    /// Connections to the server, over all groups, never exceeded, 1 to 100,000, at least one for
    /// each group [default: 64]
    #[arg(long, value_name = "N")]
    pub backends_max: Option<u64>,

    /// Backends of a group that run statements at once, besides one, 0 to 1000; more groups than
    /// cores share what the cores' groups would run [default: 3]
    #[arg(long, value_name = "N")]
    pub oversubscribe: Option<u64>,

    /// Plain SELECTs of several clients in flight at once on one backend, 1 to 64; 1 is off
    /// [default: 8]
    #[arg(long, value_name = "N")]
    pub ride_max: Option<u64>,

    /// Longest wait of a statement for a backend, in milliseconds, 1 to 86,400,000
    /// [default: 30000]
    #[arg(long, value_name = "MS")]
    pub wait_ms_max: Option<u64>,

    /// A backend that has answered nothing for so long lets others start, in milliseconds, 1 to
    /// 86,400,000 [default: 100]
    #[arg(long, value_name = "MS")]
    pub stall_ms_max: Option<u64>,

    /// Statements with high priority by themselves: transactions, statements or none
    /// [default: transactions]
    #[arg(long, value_name = "MODE")]
    pub high_prio_mode: Option<String>,

    /// Groups (threads), 1 to 4096 [default: one a core, fewer where there are less than 8 backends
    /// for each, more where the descriptor limit asks for it]
    #[arg(long, value_name = "N")]
    pub groups: Option<u64>,
}

impl PoolArgs {
    /// What the pool runs on. Reads files: call it once.
    ///
    /// # Errors
    /// One sentence about what cannot be used.
    pub fn settings(self) -> Result<Settings, String> {
        self.raw().and_then(Raw::check)
    }

    /// The settings as typed: the file, with the options over it.
    ///
    /// # Errors
    /// One sentence about the file or the option that cannot be used.
    pub fn raw(self) -> Result<Raw, String> {
        let mut raw = match &self.config {
            None => Raw::default(),
            Some(path) => {
                let name = path.display();
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("--config {name}: {error}"))?;
                let mut raw = Raw::parse(&text).map_err(|error| format!("{name}: {error}"))?;
                if raw.holds_secrets() {
                    raw.warnings.extend(seen_by_others(path, "passwords"));
                }
                raw
            }
        };
        if !self.listen.is_empty() {
            raw.listen = self.listen;
        }
        if let Some(text) = &self.backend {
            let dsn = Dsn::read(text).map_err(|error| format!("--backend: {error}"))?;
            take_dsn(&mut raw, dsn)?;
        }
        raw.clients_max = self.clients_max.or(raw.clients_max);
        raw.backends_max = self.backends_max.or(raw.backends_max);
        raw.oversubscribe = self.oversubscribe.or(raw.oversubscribe);
        raw.stall_ms_max = self.stall_ms_max.or(raw.stall_ms_max);
        raw.high_prio_mode = self.high_prio_mode.or(raw.high_prio_mode);
        raw.ride_max = self.ride_max.or(raw.ride_max);
        raw.wait_ms_max = self.wait_ms_max.or(raw.wait_ms_max);
        raw.groups = self.groups.or(raw.groups);
        Ok(raw)
    }
}

fn take_dsn(raw: &mut Raw, dsn: Dsn) -> Result<(), String> {
    let address = dsn.place();
    if !dsn.schema.is_empty() {
        return Err("--backend: expected no schema: every client names its own".to_string());
    }
    let backend = raw.backend.get_or_insert_default();
    backend.address = address;
    raw.warnings.extend(dsn.warning());
    // Without a password it means the file's account.
    let is_known = raw.users.iter().any(|user| user.name == dsn.user);
    if dsn.password_source == Source::Nowhere && is_known {
        return Ok(());
    }
    raw.users.retain(|user| user.name != dsn.user);
    raw.users.push(RawUser {
        name: dsn.user,
        password: Some(dsn.password.into()),
        ..RawUser::default()
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn args(backend: &str) -> PoolArgs {
        PoolArgs {
            listen: vec!["127.0.0.1:6033".into()],
            backend: Some(backend.into()),
            ..PoolArgs::default()
        }
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
        let settings = with(text, 0o640, "mysql://app:own@127.0.0.1:3306");
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
        assert!(error.contains("expected no schema"), "{error}");
        let missing = PoolArgs {
            config: Some("/nowhere.toml".into()),
            ..PoolArgs::default()
        };
        assert!(
            missing
                .raw()
                .unwrap_err()
                .starts_with("--config /nowhere.toml: No such file")
        );
    }
}
