//! `onramp pool --check`: the settings are read and judged, and nothing is served.
//!
//! No socket is opened and no file is written, unless the server is to be asked: then each account
//! logs in once. What is said goes to the standard streams and not to a log, for people and for
//! scripts that run it in front of a reload.

use crate::auth::secret::Secret;
use crate::backend::pools::PoolKey;
use crate::config::options::{Checked, PoolArgs};
use crate::config::{Origin, Settings};
use crate::run::EXIT_USAGE;
use crate::server::probe::probe;
use crate::server::upstream::{Place, Upstream};
use ::cluster::ServerId;
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

/// Accounts of the pool on the server, each once: the monitor's and those of users. One above
/// [`ACCOUNTS_MAX`] says that there are more.
fn accounts(settings: &Settings) -> Vec<(String, Secret)> {
    let of_settings = (settings.users.iter())
        .filter(|user| user.origin == Origin::Settings)
        .map(|user| (user.backend_user.clone(), user.backend_password.clone()));
    let mut names = HashSet::new();
    (settings.monitor.clone().into_iter().chain(of_settings))
        .filter(|(name, _)| names.insert(name.clone()))
        .take(ACCOUNTS_MAX + 1)
        .collect()
}

/// Logs each account in at each server; true if all of them can.
fn asks(settings: &Settings) -> bool {
    let several = settings.cluster.as_ref().map(|cluster| &cluster.places[..]);
    let places = several.unwrap_or(std::slice::from_ref(&settings.backend));
    let answers = (0..)
        .zip(places)
        .map(|(id, place)| asks_at(place, ServerId(id), settings));
    answers.fold(true, |all, one| all & one)
}

fn asks_at(at: &Place, id: ServerId, settings: &Settings) -> bool {
    let upstream = Arc::new(Upstream::of_server(at.clone(), id));
    if let Err(why) = upstream.keep_looking_up() {
        complain("mistake", &why);
        return false;
    }
    let mut accounts = accounts(settings);
    if accounts.len() > ACCOUNTS_MAX {
        accounts.truncate(ACCOUNTS_MAX);
        let asked = format!("only {ACCOUNTS_MAX} accounts were asked for");
        complain("warning", &asked);
    }
    let number = accounts.len();
    let (mut version, mut all) = (None, true);
    for (user, password) in accounts {
        let key = PoolKey::to_ask(user, password);
        match probe(&upstream, &key, settings) {
            Ok(facts) => version = Some(facts.version_shown().to_string()),
            Err(error) => {
                let user = &key.user;
                complain(
                    "mistake",
                    &format!("the server at {at}, account '{user}': {}", error.why),
                );
                all = false;
            }
        }
    }
    if let Some(version) = version.filter(|_| all) {
        let accounts = if number == 1 { "account" } else { "accounts" };
        let _ = writeln!(
            std::io::stdout(),
            "onramp pool: server {version} at {at}; {number} {accounts} can log in"
        );
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Raw;

    fn names(users: impl Iterator<Item = String>) -> Vec<String> {
        let listen = "listen = \"127.0.0.1:1\"\n[backend]\naddress = \"127.0.0.1:2\"\n\
                      monitor_user = \"m\"\nmonitor_password = \"p\"\n";
        let text = listen.to_owned() + &users.collect::<String>();
        let settings = Raw::parse(&text).and_then(Raw::check).unwrap();
        accounts(&settings).into_iter().map(|one| one.0).collect()
    }

    fn user(name: &str, on_server: &str) -> String {
        format!(
            "[[user]]\nname = \"{name}\"\npassword = \"p\"\nbackend_user = \"{on_server}\"\n\
             backend_password = \"p\"\n"
        )
    }

    #[test]
    fn each_account_is_asked_for_once_and_their_number_is_bounded() {
        let some = [
            user("a", "x"),
            user("b", "x"),
            user("c", "m"),
            user("d", "y"),
        ];
        assert_eq!(names(some.into_iter()), ["m", "x", "y"]);
        // The monitor's is one of them.
        for (users, expected) in [
            (ACCOUNTS_MAX - 1, ACCOUNTS_MAX),
            (ACCOUNTS_MAX, ACCOUNTS_MAX + 1),
            (ACCOUNTS_MAX + 7, ACCOUNTS_MAX + 1),
        ] {
            let many = (0..users).map(|n| user(&format!("u{n}"), &format!("s{n}")));
            assert_eq!(names(many).len(), expected);
        }
    }
}
