//! The settings in force, and how others come to be.
//!
//! The problem: settings are changed while clients are served, and nobody who serves may wait for
//! that, or see half of it. The mechanism: settings are one value that is never changed; another
//! takes its place ([`Current::replace`]). A group keeps the value that it has for a whole turn,
//! and looks at a number to see whether there is another.
//!
//! What can be read at start only stays as it was at start, whatever the file says now
//! ([`Settings::keep_what_is_fixed`]). A user keeps its index for ever, because clients and
//! accounts name it by that: one that is gone stays in its place and may not log in
//! ([`Origin::Removed`]), new ones come behind all others.

use super::{Origin, Settings, ShownSetting, User};
use crate::auth::secret::Secret;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Users that there may be, those included that were removed since the start.
pub(crate) const USERS_MAX: usize = 60_000;

/// The settings in force.
#[derive(Debug)]
pub(crate) struct Current {
    /// Number of times that they have been replaced.
    epoch: AtomicU64,
    settings: Mutex<Arc<Settings>>,
}

impl Current {
    pub(crate) fn new(settings: Settings) -> Current {
        Current {
            epoch: AtomicU64::new(0),
            settings: Mutex::new(Arc::new(settings)),
        }
    }

    pub(crate) fn get(&self) -> Arc<Settings> {
        let settings = self.settings.lock();
        settings.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A number that is another one when the settings have been replaced.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn replace(&self, settings: Arc<Settings>) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        self.epoch.fetch_add(1, Ordering::Release);
    }
}

/// Changes that other settings make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Settings in force from now on, each with its old value and its new one.
    pub(crate) applied: Vec<String>,
    /// Settings of the file that need an upgrade or a restart.
    pub(crate) fixed: Vec<String>,
    /// Settings that only a restart changes.
    pub(crate) kept_by_upgrades: Vec<String>,
}

/// Setting that a process takes over from the one before it, whatever its own says.
const KEPT_BY_UPGRADES: &str = "groups";

impl Changes {
    /// Shows a setting as it was: another value is not possible without a restart.
    pub(crate) fn keep(&mut self, settings: &mut Settings, old: &Settings, name: &str) {
        let front = format!("{name}: ");
        self.applied.retain(|change| !change.starts_with(&front));
        let before = old.shown.iter().find(|setting| setting.name == name);
        let mut shown = settings.shown.iter_mut();
        if let (Some(before), Some(now)) = (before, shown.find(|setting| setting.name == name)) {
            *now = before.clone();
        }
    }
}

impl Settings {
    /// Makes these, which were read just now, follow others that are in force: what is fixed keeps
    /// its value, and users keep their indices. What differs is told.
    ///
    /// # Errors
    /// A sentence, where they cannot follow.
    pub(crate) fn follow(&mut self, old: &Settings) -> Result<Changes, String> {
        let mut changes = Changes::default();
        self.keep_what_is_fixed(old);
        self.compare_passwords(old, &mut changes);
        (self.backend, self.cluster) = (old.backend.clone(), old.cluster.clone());
        self.fleet.clone_from(&old.fleet);
        let name = |of: &Settings| of.monitor.as_ref().map(|(name, _)| name.clone());
        if name(self) != name(old) {
            self.monitor = old.monitor.clone();
        }
        (self.tls, self.backend_tls) = (old.tls.clone(), old.backend_tls.clone());
        self.backend_proxy = old.backend_proxy;
        (self.console, self.http_token) = (old.console.clone(), old.http_token.clone());
        self.otel = old.otel.clone();
        self.spool_folder_given = old.spool_folder_given;
        self.follow_shown(old, &mut changes);
        self.follow_users(old, &mut changes)?;
        Ok(changes)
    }

    /// Notes passwords that differ and are read at start only: they are not shown, so that nothing
    /// else tells of them.
    fn compare_passwords(&self, old: &Settings, changes: &mut Changes) {
        let monitor = |of: &Settings| Some(of.monitor.as_ref()?.1.clone());
        let console = |of: &Settings| -> Vec<Secret> {
            let accounts = of.console.iter().flat_map(|console| &console.accounts);
            accounts.map(|account| account.password.clone()).collect()
        };
        if monitor(self) != monitor(old) {
            let change = "backend.monitor_password (another one)".to_owned();
            let name = |of: &Settings| of.monitor.as_ref().map(|(name, _)| name.clone());
            match name(self) == name(old) {
                true => changes.applied.push(change),
                false => changes.fixed.push(change),
            }
        }
        if console(self) != console(old) {
            let change = "a password of the console (another one)";
            changes.fixed.push(change.to_owned());
        }
    }

    /// Shows what is in force, and notes what differs.
    fn follow_shown(&mut self, old: &Settings, changes: &mut Changes) {
        for setting in self.shown.iter_mut().filter(|setting| !setting.of_user) {
            let same = |before: &&ShownSetting| before.name == setting.name;
            let Some(before) = old.shown.iter().find(same) else {
                continue;
            };
            let (name, from, to) = (&setting.name, &before.value, &setting.value);
            if from == to {
                continue;
            }
            let change = format!("{name}: {from} -> {to}");
            match setting.is_fixed {
                true => {
                    match setting.name == KEPT_BY_UPGRADES {
                        true => changes.kept_by_upgrades.push(change),
                        false => changes.fixed.push(change),
                    }
                    *setting = before.clone();
                }
                false => changes.applied.push(change),
            }
        }
    }

    fn follow_users(&mut self, old: &Settings, changes: &mut Changes) -> Result<(), String> {
        let is_server = |user: &User| user.origin == Origin::Server;
        let key = |user: &User| (user.name.clone(), is_server(user));
        let mut new: Vec<Option<User>> = self.users.drain(..).map(Some).collect();
        let places: HashMap<(String, bool), usize> = (new.iter().flatten().map(key))
            .enumerate()
            .map(|(at, key)| (key, at))
            .collect();
        for before in &old.users {
            // One that was removed may have stood for an account of the server.
            let again = (before.name.clone(), before.origin == Origin::Removed);
            let place = places.get(&key(before)).or_else(|| places.get(&again));
            let same = place.and_then(|at| new[*at].take());
            let user = match same {
                Some(mut user) => {
                    user.usage = before.usage.clone();
                    if before.origin == Origin::Removed {
                        (changes.applied).push(format!("user '{}' (again)", user.name));
                    } else if !user.is_as(before) {
                        (changes.applied).push(format!("user '{}' (changed)", user.name));
                    }
                    user
                }
                None => {
                    if before.origin != Origin::Removed {
                        (changes.applied).push(format!("user '{}' (removed)", before.name));
                    }
                    User {
                        origin: Origin::Removed,
                        ..before.clone()
                    }
                }
            };
            self.users.push(user);
        }
        for user in new.into_iter().flatten() {
            changes.applied.push(format!("user '{}' (new)", user.name));
            self.users.push(user);
        }
        if self.users.len() > USERS_MAX {
            return Err(format!(
                "user: with those that were removed since the pool began there would be {} users, \
                 and {USERS_MAX} are possible; restart the pool",
                self.users.len()
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Raw;

    fn settings(top: &str, users: &[(&str, &str)]) -> Settings {
        raw(top, users).check().unwrap()
    }

    fn raw(top: &str, users: &[(&str, &str)]) -> Raw {
        let users: String = (users.iter())
            .map(|(name, rest)| format!("[[user]]\nname = \"{name}\"\n{rest}\n"))
            .collect();
        let text = format!(
            "{top}\nlisten = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n{users}"
        );
        Raw::parse(&text).unwrap()
    }

    const A: (&str, &str) = ("a", "password = \"1\"");
    const B: (&str, &str) = ("b", "password = \"2\"");

    fn names(settings: &Settings) -> Vec<(&str, bool)> {
        let users = settings.users.iter();
        users
            .map(|user| (&*user.name, user.origin == Origin::Removed))
            .collect()
    }

    #[test]
    fn what_is_fixed_keeps_its_value() {
        let old = settings("groups = 2\nwait_ms_max = 5", &[A]);
        let mut new = settings("groups = 3\nwait_ms_max = 6\npipeline_max = 1", &[A]);
        new.backend = crate::server::upstream::Place::parse("127.0.0.1:9").unwrap();
        let changes = new.follow(&old).unwrap();
        assert_eq!(
            (new.groups, new.wait_max.as_millis(), new.pipeline_max),
            (Some(2), 6, 1)
        );
        assert_eq!(new.backend.to_string(), "127.0.0.1:2");
        let applied = ["pipeline_max: 8 -> 1", "wait_ms_max: 5 -> 6"];
        assert_eq!(changes.applied, applied);
        assert_eq!(changes.kept_by_upgrades, ["groups: 2 -> 3"]);
        let shown = |name| new.shown.iter().find(|setting| setting.name == name);
        assert_eq!(shown("groups").unwrap().value, "2");
        assert_eq!(shown("wait_ms_max").unwrap().value, "6");
    }

    #[test]
    fn a_password_that_needs_a_restart_is_told_of_without_being_shown() {
        let with = |monitor: &str, console: &str| {
            let text = format!(
                "listen = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n\
                 monitor_user = \"m\"\nmonitor_password = \"{monitor}\"\n[console]\n\
                 listen = \"127.0.0.1:3\"\nadmin_user = \"a\"\nadmin_password = \"{console}\"\n\
                 [[user]]\nname = \"a\"\npassword = \"1\"\n"
            );
            Raw::parse(&text).unwrap().check().unwrap()
        };
        let old = with("one", "two");
        assert_eq!(with("one", "two").follow(&old).unwrap(), Changes::default());
        let mut new = with("three", "four");
        let changes = new.follow(&old).unwrap();
        assert_eq!(changes.fixed, ["a password of the console (another one)"]);
        assert_eq!(changes.applied, ["backend.monitor_password (another one)"]);
        assert_eq!(new.monitor.unwrap().1, "three");
    }

    #[test]
    fn users_keep_their_places_and_what_they_use() {
        let old = settings("", &[A, B]);
        old.users[1].usage.clients.store(7, Ordering::Relaxed);
        let mut new = settings("", &[("c", "password = \"3\""), B]);
        let changes = new.follow(&old).unwrap();
        assert_eq!(names(&new), [("a", true), ("b", false), ("c", false)]);
        assert_eq!(new.users[1].usage.clients.load(Ordering::Relaxed), 7);
        assert_eq!(changes.applied, ["user 'a' (removed)", "user 'c' (new)"]);
        // Gone once, it is not told again; and it may come back.
        let mut third = settings("", &[("b", "password = \"other\""), A]);
        let changes = third.follow(&new).unwrap();
        assert_eq!(names(&third), [("a", false), ("b", false), ("c", true)]);
        let told = [
            "user 'a' (again)",
            "user 'b' (changed)",
            "user 'c' (removed)",
        ];
        assert_eq!(changes.applied, told);
        let mut fourth = settings("", &[("b", "password = \"other\""), A]);
        assert_eq!(fourth.follow(&third).unwrap(), Changes::default());
        assert_eq!(crate::config::accounts_of(&fourth.users).len(), 2);
    }

    #[test]
    fn one_of_the_server_has_its_place_again() {
        let of = |user: &str| {
            let text = format!(
                "listen = [\"127.0.0.1:1\"]\nauth = \"server\"\n[backend]\n\
                 address = \"127.0.0.1:2\"\nmonitor_user = \"m\"\nmonitor_password = \"1\"\n\
                 {user}"
            );
            Raw::parse(&text).unwrap().check().unwrap()
        };
        let limited = "[[user]]\nname = \"r\"\nauth = \"server\"\nclients_max = 1\n";
        let with = of(limited);
        let mut without = of("");
        without.follow(&with).unwrap();
        let mut again = of(limited);
        again.follow(&without).unwrap();
        assert_eq!(again.users.len(), with.users.len());
    }

    #[test]
    fn what_the_console_sets_holds_until_the_next_reload() {
        let read = || settings("statement_log_users = [\"a\"]", &[A]);
        let mut raw = raw("statement_log_users = [\"a\"]", &[A]);
        for (name, value) in [
            ("statement_log", "literal"),
            ("statement_log_users", " a, b,"),
            ("statement_log_per_s_max", "7"),
        ] {
            raw.change(name, Some(value)).unwrap();
        }
        let now = raw.check().unwrap();
        assert!(now.logs_statements());
        assert_eq!(now.statement_log_users, ["a", "b"]);
        assert_eq!(now.statement_log_per_s_max, 7);
        let mut again = read();
        let changes = again.follow(&now).unwrap();
        let told = [
            "statement_log: literal -> off",
            "statement_log_users: a, b -> a",
            "statement_log_per_s_max: 7 -> 1000",
        ];
        assert_eq!(changes.applied, told);
    }

    #[test]
    fn users_whose_statements_are_logged_have_a_bound() {
        let list = |count: usize| vec!["\"a\""; count].join(", ");
        let read = |count| {
            let text = format!(
                "listen = [\"127.0.0.1:1\"]\nstatement_log_users = [{}]\n[backend]\n\
                 address = \"127.0.0.1:2\"\n[[user]]\nname = \"a\"\npassword = \"1\"\n",
                list(count)
            );
            Raw::parse(&text).unwrap().check().err()
        };
        assert_eq!(read(64), None);
        let why = read(65).unwrap();
        assert!(why.contains("at most 64 names, got 65"), "{why}");
    }

    #[test]
    fn what_a_user_may_use_is_a_change_of_it() {
        for rest in [
            "password = \"1\"\nclients_max = 3",
            "password = \"1\"\nbackend_user = \"x\"",
            "password = \"1\"\nauth = \"mysql_native_password\"",
            "password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"\n\
             backend_password = \"1\"",
        ] {
            let mut new = settings("", &[("a", rest)]);
            let changes = new.follow(&settings("", &[A])).unwrap();
            assert_eq!(changes.applied, ["user 'a' (changed)"], "{rest}");
        }
    }

    #[test]
    fn there_is_a_bound_of_users_that_have_been() {
        let mut old = settings("", &[A]);
        old.users = vec![old.users[0].clone(); USERS_MAX];
        for (at, user) in old.users.iter_mut().enumerate() {
            user.name = format!("u{at}");
        }
        let why = settings("", &[A]).follow(&old).unwrap_err();
        assert!(why.contains("restart the pool"), "{why}");
        assert!(USERS_MAX < usize::from(u16::MAX));
    }
}
