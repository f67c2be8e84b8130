//! The watch: what no statement through the pool tells of the server, asked for by one thread on
//! one connection, beside the backends.
//!
//! The problem: global values are set, and code is defined, past the pool or inside of other code,
//! and a look at all code is too much to be taken all the time. The mechanism: once a second, and
//! at once when the trigger fires ([`WatchTrigger`]: a statement through the pool has set a global
//! value, changed accounts or defined code), one write asks for all global values
//! ([`crate::server::globals`]) and for how often the server has begun a statement
//! that defines code (`Com_create_trigger` and its like, those inside of stored code too). Where
//! these counts have changed, a look at the code follows
//! ([`crate::server::triggers_and_views`]), and another behind the next asking, since
//! a statement is counted when it begins and may take effect later.
//!
//! A look may take the server long where there are many tables. So there are at least [`PAUSE`]
//! times its own length between two that no statement through the pool asked for; and it is taken
//! on a connection and a thread that end with it, so that a changed global value is noticed at once
//! while it lasts.
//!
//! It also learns how many connections the server takes, and has the pool open no more
//! ([`Shared::fit_backends`]).
//!
//! Invariants: nothing here is on a statement's path; the first answers are there before the first
//! client; a server that cannot be asked is said to be so once, is asked again every second, and
//! what was known of it stands meanwhile; a process that takes another's place knows the server
//! before it is given a client, whose session is restored against that.

use crate::auth::host_pattern::HostRules;
use crate::auth::server_accounts::ServerAccounts;
use crate::config::Settings;
use crate::group::shared::Shared;
use crate::observe::log::{Event, note};
use crate::server::globals::find_names;
use crate::server::probe::{Connection, Fault, ProbeError, Rows, log_in_to_look};
use crate::server::triggers_and_views::look_once;
use crate::server::watched::accounts::{Facts, Question};
use crate::server::watched::privileges::{COUNTERS as ACCOUNTS, Counted, Noted};
use reactor::Time;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;
use wire::errors::lacks_privilege;

/// Between two questions, and behind one that failed.
const EVERY: Duration = Duration::from_secs(1);
/// Behind a question that nobody answered: so the server's return is noticed soon.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// Time behind which a process that takes another's place asks no more for the first answers. If
/// it hears none for longer than that one waits ([`crate::upgrade::process::STEP_MAX`]), that one
/// goes on by itself.
const FIRST_MAX: Duration = Duration::from_secs(5);
/// Between two looks that nobody asked for: so many times the length of the last.
const PAUSE: u32 = 20;

/// Statements that define code, give it to another table, or take it away.
const COUNTERS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_create_procedure',\
     'Com_create_function','Com_create_udf','Com_create_trigger','Com_create_view',\
     'Com_create_package','Com_create_package_body','Com_alter_procedure','Com_alter_function',\
     'Com_alter_table','Com_rename_table','Com_create_table','Com_drop_procedure',\
     'Com_drop_function','Com_drop_trigger','Com_drop_view','Com_drop_db','Com_drop_package',\
     'Com_drop_package_body')";

/// Questions asked at once.
struct Asked {
    /// True if the global values were told.
    told: Result<(), ProbeError>,
    /// Counters of statements about accounts.
    accounts: Result<Rows, ProbeError>,
    /// Those of code, where it is looked for.
    code: Option<Result<Rows, ProbeError>>,
}

/// State of the watch's thread.
pub(crate) struct Watcher {
    connection: Option<Connection>,
    /// The counters in front of the last look.
    counters: Option<Rows>,
    /// Those of statements about accounts.
    accounts: Counted,
    /// The server's accounts, as they were read last, and when the next of them expires.
    server_accounts: Option<(Facts, Option<u64>)>,
    /// The settings of that time, which have the limits of the accounts.
    limits: Arc<Settings>,
    /// True if they could not be read the last time.
    accounts_failed: bool,
    /// True if a look is due.
    due: bool,
    /// The look that is being taken: gives its length at its end.
    look: Option<Receiver<Result<Duration, ProbeError>>>,
    /// The last look: its end, and its length.
    looked: (Time, Duration),
    /// No look before this moment.
    look_at: Time,
    /// The server could not be asked the last time.
    is_blind: bool,
    /// Nor could its code be read.
    look_failed: bool,
}

impl Watcher {
    /// Asks for the first time, before the first client; `succeeds`: in another process's place.
    ///
    /// # Errors
    /// A sentence: who may log in stands on the server, and the pool's account may not log in there
    /// or may not read it; or the clients of the other process could not be taken.
    pub(crate) fn first(shared: &Shared, succeeds: bool) -> Result<Watcher, String> {
        let mut watcher = Watcher {
            connection: None,
            counters: None,
            accounts: Counted::default(),
            server_accounts: None,
            limits: shared.settings(),
            accounts_failed: false,
            due: true,
            look: None,
            looked: (Time::now(), Duration::ZERO),
            look_at: Time(0),
            is_blind: false,
            look_failed: false,
        };
        let begun = Time::now();
        let asked = loop {
            let asked = watcher.ask(shared);
            let is_known = shared.watched.globals.version() > 0;
            let is_refused = matches!(&asked, Err(error) if error.fault == Fault::Lasting);
            let is_late = Time::now().since(begun) >= FIRST_MAX;
            if is_known || is_refused || is_late || !succeeds {
                break asked;
            }
            reactor::pause(AGAIN_AFTER);
        };
        let told = asked.and_then(|asked| {
            watcher.counters = asked.code.transpose()?;
            let _ = (watcher.accounts).note(asked.accounts?, &shared.watched.privileges);
            asked.told
        });
        let followed = match &told {
            Err(error) if watcher.connection.is_none() => Err(no_accounts(shared, error)),
            _ => watcher.follow_accounts(shared),
        };
        if shared.settings().has_server_accounts() {
            match &followed {
                Err(error)
                    if succeeds || matches!(error.fault, Fault::Lasting | Fault::Failed(_)) =>
                {
                    return Err(error.why.clone());
                }
                _ => watcher.say_accounts(&followed, "nobody else may log in until they can be"),
            }
        }
        watcher.say(&told);
        // One that has an error for an answer has told the other process nothing either.
        if let Err(error) = told
            && succeeds
            && !matches!(error.fault, Fault::Failed(_))
        {
            return Err(format!(
                "upgrade: the server has not told its global values, without which no client can \
                 be taken over: {}; the process before goes on: try again",
                error.why
            ));
        }
        if shared.watched.code_catalogue.is_on() {
            let looked = match &mut watcher.connection {
                Some(connection) => look_at_code(shared, connection),
                None => Err(ProbeError::passing("there is no connection")),
            };
            watcher.look_ended(shared, looked);
        }
        Ok(watcher)
    }

    /// Asks whenever it is time, on a thread of its own that ends with the process.
    pub(crate) fn keep_watching(mut self, shared: Arc<Shared>) {
        let trigger = shared.watched.trigger.clone();
        (shared.upstream).tell_watch(Box::new(move || trigger.fire_urgently()));
        self.open(&shared);
        let watch = move || {
            loop {
                shared.watched.trigger.wait(EVERY);
                let turned = self.turn(&shared);
                self.open(&shared);
                if let (Ok(()), Some(connection)) = (&turned, &self.connection) {
                    shared.upstream.reached(&connection.at, Time::now());
                }
                self.tell_lock_waits(&shared);
                self.doubt_accounts(&shared, &turned);
                self.say(&turned);
                match turned {
                    Ok(()) => {}
                    Err(error) if error.is_unreached() => {
                        shared.upstream.answers_nobody(false);
                        shared.watched.trigger.pause(AGAIN_AFTER);
                        shared.watched.trigger.fire();
                    }
                    Err(_) => shared.watched.trigger.pause(EVERY),
                }
            }
        };
        let thread = std::thread::Builder::new().name("watch".into());
        if let Err(error) = thread.spawn(watch) {
            note(
                Event::Failed,
                format_args!("cannot start the thread that watches the server: {error}"),
            );
        }
    }

    /// Lets statements go to a writer that has been asked for its global values.
    fn open(&self, shared: &Shared) {
        if let Some(connection) = &self.connection {
            shared.upstream.opened(&connection.at);
        }
    }

    fn turn(&mut self, shared: &Arc<Shared>) -> Result<(), ProbeError> {
        let ended = self.look.as_ref().map(Receiver::try_recv);
        match ended {
            None | Some(Err(TryRecvError::Empty)) => {}
            Some(Ok(looked)) => self.look_ended(shared, looked),
            Some(Err(TryRecvError::Disconnected)) => {
                self.look_ended(shared, Err(ProbeError::passing("the look broke off")));
            }
        }
        let asked = self.ask(shared)?;
        let noted = (self.accounts).note(asked.accounts?, &shared.watched.privileges);
        if noted == Noted::Flushed {
            shared.logins.accounts.forget_caches();
        }
        let followed = self.follow_accounts(shared);
        self.say_accounts(
            &followed,
            "those that are known hold on, and who logs in gets new connections, which the server \
             judges",
        );
        if let Some(counters) = asked.code {
            self.look_if_due(shared, counters?);
        }
        asked.told
    }

    /// Answers whoever has asked who waits for locks.
    fn tell_lock_waits(&mut self, shared: &Shared) {
        let is_mysql = shared.server.flavour.is_mysql();
        let connection = &mut self.connection;
        (shared.watched.lock_questions).answer(is_mysql, Time::now, |question| match connection {
            Some(connection) => connection.query(question).map_err(|error| error.why),
            None => Err("the server cannot be asked".into()),
        });
    }

    /// Reads the server's accounts if they, or the settings with their limits, have changed, where
    /// they may log in.
    fn follow_accounts(&mut self, shared: &Shared) -> Result<(), ProbeError> {
        let settings = shared.settings();
        if !settings.has_server_accounts() {
            return Ok(());
        }
        let is_limited_alike = Arc::ptr_eq(&settings, &self.limits);
        let known = self.server_accounts.as_ref().filter(|_| is_limited_alike);
        let followed = match &mut self.connection {
            Some(connection) => read_accounts(shared, connection, &settings, known),
            None => Err(ProbeError::passing("there is no connection")),
        };
        if followed.is_ok() {
            self.limits = settings;
        }
        match followed {
            Ok(None) => Ok(()),
            Ok(read) => {
                self.server_accounts = read;
                Ok(())
            }
            Err(error) => Err(no_accounts(shared, &error)),
        }
    }

    /// Says that the accounts cannot be read, and what holds meanwhile, when that is new.
    fn say_accounts(&mut self, followed: &Result<(), ProbeError>, meanwhile: &str) {
        let failed_before = std::mem::replace(&mut self.accounts_failed, followed.is_err());
        if let Err(error) = followed
            && !failed_before
        {
            note(
                Event::AccountsUnread,
                format_args!("{}; {meanwhile}", error.why),
            );
        }
    }

    /// Doubts the accounts while it is not known if the server's have changed: the server has to
    /// judge those who log in from now on, and they get no backend from before.
    fn doubt_accounts(&self, shared: &Shared, asked: &Result<(), ProbeError>) {
        let may_log_in = shared.settings().has_server_accounts();
        if may_log_in && (asked.is_err() || self.accounts_failed) {
            shared.watched.privileges.count_up();
        }
    }

    /// Asks for the global values, and for the counters where code is looked for.
    fn ask(&mut self, shared: &Shared) -> Result<Asked, ProbeError> {
        let kept = self.connection.take();
        if let Some(kept) = kept.filter(|kept| shared.upstream.means(&kept.at)) {
            let at = kept.at.clone();
            match self.ask_on(kept, shared) {
                Ok(asked) => return Ok(asked),
                Err(error) if error.is_unreached() => {
                    // In front of the line of the log that says so.
                    if error.fault == Fault::Unanswered {
                        shared.upstream.answers_nobody(true);
                    }
                    shared.upstream.failed(&at, Time::now(), &error.why);
                    shared.upstream.tell_groups();
                }
                Err(_) => {}
            }
        }
        // There was none, or the server has closed it.
        let fresh = log_in_to_look(shared)?;
        // It may have been started again, and then knows no password.
        shared.logins.accounts.forget_caches();
        self.ask_on(fresh, shared)
    }

    fn ask_on(&mut self, mut connection: Connection, shared: &Shared) -> Result<Asked, ProbeError> {
        let named = match shared.watched.globals.is_named() {
            true => Ok(()),
            false => find_names(shared, &mut connection),
        };
        let mut texts = vec![shared.watched.globals.question(), ACCOUNTS.into()];
        if shared.watched.code_catalogue.is_on() {
            texts.push(COUNTERS.into());
        }
        let begun = Time::now();
        let mut answers = connection.ask(&texts)?.into_iter();
        // What the server has against a question does not harm the connection.
        self.connection = Some(connection);
        let values = answers.next().unwrap_or(Ok(Vec::new()));
        let told = named.and_then(|()| {
            let told = shared.watched.globals.answered(begun, values?);
            let unread = || ProbeError::passing("the server did not tell its global values");
            told.ok_or_else(unread)
        });
        let told = told.map(|(connections, prepared)| {
            shared.watched.set_prepared_taken(prepared);
            shared.fit_backends(connections);
        });
        Ok(Asked {
            told,
            accounts: answers.next().unwrap_or(Ok(Vec::new())),
            code: answers.next(),
        })
    }

    /// Takes a look if it is time.
    fn look_if_due(&mut self, shared: &Arc<Shared>, counters: Rows) {
        let now = Time::now();
        let news = self.counters.as_ref() != Some(&counters);
        let (end, length) = self.looked;
        let every = shared.settings().stored_code_refresh.unwrap_or(EVERY);
        self.due |= news || now.since(end) >= every;
        let rested = now.since(end) >= length * PAUSE;
        let wanted = shared.watched.code_catalogue.is_asked() || rested && self.due;
        if self.look.is_some() || !wanted || now < self.look_at {
            return;
        }
        self.counters = Some(counters);
        self.due = news;
        let (ended, look) = sync_channel(1);
        let apart = shared.clone();
        let taken = move || {
            let looked = log_in_to_look(&apart).and_then(|mut connection| {
                let length = look_at_code(&apart, &mut connection)?;
                connection.leave();
                Ok(length)
            });
            // Nobody hears it at the end of the process.
            let _ = ended.send(looked);
            apart.watched.trigger.fire();
        };
        let thread = std::thread::Builder::new().name("look".into());
        match thread.spawn(taken) {
            Ok(_) => self.look = Some(look),
            Err(error) => {
                self.look_ended(shared, Err(ProbeError::passing(error.to_string())));
            }
        }
    }

    fn look_ended(&mut self, shared: &Shared, looked: Result<Duration, ProbeError>) {
        let now = Time::now();
        self.look = None;
        match looked {
            Ok(length) => {
                self.looked = (now, length);
                self.look_failed = false;
            }
            Err(error) => {
                if !std::mem::replace(&mut self.look_failed, true) {
                    note(
                        Event::CodeUnread,
                        format_args!(
                            "the catalogue of triggers and views cannot be read, so that new \
                             ones are not known: {}; it is tried again",
                            error.why
                        ),
                    );
                }
                shared.watched.code_catalogue.ask();
                self.look_at = now + EVERY;
            }
        }
    }

    /// Says that the server cannot be asked, or can again, when that is new.
    fn say(&mut self, asked: &Result<(), ProbeError>) {
        let was_blind = std::mem::replace(&mut self.is_blind, asked.is_err());
        match asked {
            Err(error) if !was_blind => note(
                Event::WatchLost,
                format_args!(
                    "the server cannot be watched: {}; until it can, it is not noticed when its \
                     global values change, or code is defined, past the pool; it is tried again",
                    error.why
                ),
            ),
            Ok(()) if was_blind => note(
                Event::WatchBack,
                format_args!("the server is watched again"),
            ),
            _ => {}
        }
    }
}

/// That the server's accounts cannot be read.
fn no_accounts(shared: &Shared, error: &ProbeError) -> ProbeError {
    let account = shared.settings().monitor_account().0;
    let needs = Question::of(shared.server.flavour).needs;
    ProbeError {
        why: words_of_unread(&account, needs, error),
        fault: error.fault,
    }
}

/// Reason why the accounts cannot be read by this account, which needs that; what to do about it.
fn words_of_unread(account: &str, needs: &str, error: &ProbeError) -> String {
    let why = &error.why;
    let cannot =
        format!("the server's accounts cannot be read by '{account}' (backend.monitor_user)");
    match error.fault {
        Fault::Failed(code) if lacks_privilege(code) => format!(
            "auth: GRANT {needs} TO '{account}'@'...' on the server: the pool's account \
             (backend.monitor_user) cannot read the server's accounts: {why}"
        ),
        Fault::Failed(_) => format!(
            "auth: {cannot}: expected rows, but {why}; no GRANT helps: correct on the server what \
             the error names"
        ),
        Fault::Unreached
        | Fault::Unanswered
        | Fault::Passing
        | Fault::Lasting
        | Fault::Untrusted
        | Fault::TooLong => {
            format!("auth: {cannot}: {why}")
        }
    }
}

/// Looks at all code; gives how long that took.
fn look_at_code(shared: &Shared, connection: &mut Connection) -> Result<Duration, ProbeError> {
    let begun = Time::now();
    look_once(shared, connection)?;
    Ok(Time::now().since(begun))
}

/// Reads the server's accounts if they are not those of `before`; gives what they are known by now.
fn read_accounts(
    shared: &Shared,
    connection: &mut Connection,
    settings: &Settings,
    before: Option<&(Facts, Option<u64>)>,
) -> Result<Option<(Facts, Option<u64>)>, ProbeError> {
    let question = Question::of(shared.server.flavour);
    let facts = Facts::read(&connection.query(question.checksum)?)
        .ok_or_else(|| ProbeError::passing("the server did not tell a checksum of its accounts"))?;
    let is_known = before.is_some_and(|(before, expires)| {
        before.is_of_same(&facts) && expires.is_none_or(|expires| facts.now < expires)
    });
    if is_known {
        return Ok(None);
    }
    facts.check().map_err(ProbeError::passing)?;
    let rows = connection.query(question.table)?;
    let (accounts, expires) = question.read(&rows, &facts);
    let rules = match shared.server.flavour.is_mysql() {
        true => HostRules::MySql,
        false => HostRules::MariaDb,
    };
    let old = shared.logins.accounts.of_server();
    let user = |name: &str| settings.server_account(name).unwrap_or_default();
    let new = ServerAccounts::new(accounts, &old, user, rules);
    if old.len() == 0 {
        note(
            Event::Accounts,
            format_args!("{} accounts of the server may log in", new.len()),
        );
    }
    shared.logins.accounts.set_of_server(new);
    Ok(Some((facts, expires)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_named_where_a_privilege_is_missing_only() {
        let words = |fault| {
            let error = ProbeError {
                why: "'SELECT 1' failed: error".into(),
                fault,
            };
            words_of_unread("watcher", "SELECT ON t", &error)
        };
        for code in [1044, 1142, 1143, 1227] {
            let said = words(Fault::Failed(code));
            assert!(
                said.starts_with("auth: GRANT SELECT ON t TO 'watcher'@'...'"),
                "{code}: {said}"
            );
        }
        let cannot = "auth: the server's accounts cannot be read by 'watcher' \
                      (backend.monitor_user): ";
        // No such column, table or variable; waited too long for a lock; a view without its table;
        // ended by KILL.
        for code in [1054, 1146, 1193, 1205, 1356, 1317] {
            let said = words(Fault::Failed(code));
            assert_eq!(
                said,
                format!(
                    "{cannot}expected rows, but 'SELECT 1' failed: error; no GRANT helps: correct \
                     on the server what the error names"
                ),
                "{code}"
            );
        }
        assert_eq!(
            words(Fault::Lasting),
            format!("{cannot}'SELECT 1' failed: error")
        );
    }
}
