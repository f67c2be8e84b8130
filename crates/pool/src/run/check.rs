//! `onramp pool --check`: the settings are read and judged, and nothing is served.
//!
//! No socket is opened and no file is written, unless the server is to be asked: then each account
//! logs in once. What is said goes to the standard streams and not to a log, for people and for
//! scripts that run it in front of a reload.

use crate::backend::pools::PoolKey;
use crate::config::options::{Checked, PoolArgs};
use crate::config::{Origin, Settings};
use crate::run::EXIT_USAGE;
use crate::server::probe::probe;
use crate::server::upstream::Upstream;
use std::collections::HashSet;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

/// Accounts that log in at the server at most: more say nothing new of it, and take long.
const ACCOUNTS_MAX: usize = 100;

/// Prints every mistake in the settings, or that there is none; 0, or 1 where the server cannot be
/// asked or refuses an account, or 2 where the settings cannot be used.
#[must_use]
pub fn check(args: PoolArgs, what: Checked) -> ExitCode {
    let settings = match args.check_all() {
        Ok(settings) => settings,
        Err(mistakes) => {
            for mistake in mistakes {
                complain("mistake", &mistake);
            }
            return ExitCode::from(EXIT_USAGE);
        }
    };
    for warning in &settings.warnings {
        complain("warning", warning);
    }
    if what == Checked::Server && !asks(&settings) {
        return ExitCode::FAILURE;
    }
    let _ = writeln!(std::io::stdout(), "onramp pool: the settings can be used");
    ExitCode::SUCCESS
}

fn complain(kind: &str, what: &str) {
    let _ = writeln!(std::io::stderr(), "onramp pool: {kind}: {what}");
}

/// Has each account log in at the server; true if all of them can.
fn asks(settings: &Settings) -> bool {
    let upstream = Arc::new(Upstream::new(settings.backend.clone()));
    if let Err(why) = upstream.keep_looking_up() {
        complain("mistake", &why);
        return false;
    }
    let of_settings = (settings.users.iter())
        .filter(|user| user.origin == Origin::Settings)
        .map(|user| (user.backend_user.clone(), user.backend_password.clone()));
    let accounts = settings.monitor.clone().into_iter().chain(of_settings);
    let mut names = HashSet::new();
    let (mut version, mut all) = (None, true);
    for (user, password) in accounts {
        if !names.insert(user.clone()) {
            continue;
        }
        if names.len() > ACCOUNTS_MAX {
            complain(
                "warning",
                &format!("only {ACCOUNTS_MAX} accounts were asked for"),
            );
            names.remove(&user);
            break;
        }
        let key = PoolKey::to_ask(user, password);
        match probe(&upstream, &key, settings) {
            Ok(facts) => version = Some(facts.version_shown().to_string()),
            Err(error) => {
                let (at, user) = (&settings.backend, &key.user);
                complain(
                    "mistake",
                    &format!("the server at {at}, account '{user}': {}", error.why),
                );
                all = false;
            }
        }
    }
    if let Some(version) = version.filter(|_| all) {
        let (at, number) = (&settings.backend, names.len());
        let accounts = if number == 1 { "account" } else { "accounts" };
        let _ = writeln!(
            std::io::stdout(),
            "onramp pool: server {version} at {at}; {number} {accounts} can log in"
        );
    }
    all
}
