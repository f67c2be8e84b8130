//! Giving up privileges once everything that takes them is open.
//!
//! The problem: a port below 1024 or a key that root alone reads may need root at the start, and
//! who serves strangers should not have it. The mechanism: with `run_as_user` the process becomes
//! that user when it has its listeners, sockets, certificates and descriptor tables; the groups
//! wait for that before they take their first turn.
//!
//! Invariants: no client of the listeners is served before it has come to that; what the process
//! will need later and can no longer have is said at once ([`look_around`]); a process that is to
//! take the place of another is the user already when it asks it, since each looks at the other's.

use crate::config::Settings;
use crate::config::options::PoolArgs;
use crate::observe::log::{Event, note};
use crate::run::try_spool;
use reactor::privileges::{Account, acting, allow_dumps, become_user};

/// Becomes the user of the settings, if they name one; warns where that is root.
///
/// # Errors
/// A sentence: it may not, or something is left.
pub(crate) fn give_up(settings: &Settings, args: &PoolArgs) -> Result<(), String> {
    let own = acting();
    let Some(user) = settings.run_as_user.as_ref().map(|user| user.0) else {
        if own.user == 0 {
            note(
                Event::Warning,
                format_args!(
                    "the pool runs as root, and goes on so: set run_as_user, or start it as an \
                     account that has no other rights"
                ),
            );
        }
        return Ok(());
    };
    let account = account_of(settings, user)?;
    // As in an upgrade of a process that has become it.
    if own != account {
        become_user(account).map_err(|error| {
            format!(
                "run_as_user: cannot become user {user} of group {}: {error}",
                account.group
            )
        })?;
        keep_memory(settings)?;
        note(
            Event::Start,
            format_args!(
                "the pool is user {user} of group {} from now on",
                account.group
            ),
        );
    }
    look_around(settings, args, user)
}

/// True if the memory of the process is for nobody else to read, nor in a file.
///
/// # Errors
/// The system's, in words.
pub(crate) fn keep_memory(settings: &Settings) -> Result<(), String> {
    allow_dumps(settings.core_dumps).map_err(|error| format!("core_dumps: {error}"))
}

fn account_of(settings: &Settings, user: u32) -> Result<Account, String> {
    let group = match &settings.run_as_group {
        Some(group) => group.0,
        None => reactor::accounts::group_of_user(user).map_err(|error| {
            format!("run_as_group: expected a group, since user {user} has none: {error}")
        })?,
    };
    Ok(Account { user, group })
}

/// Looks whether the user can have what the pool needs after its start.
fn look_around(settings: &Settings, args: &PoolArgs, user: u32) -> Result<(), String> {
    if settings.spool_bytes_max > 0
        && let Err(error) = try_spool(&settings.spool_folder)
    {
        return Err(format!(
            "spool_folder: user {user} (run_as_user) can write no file in {}: {error}",
            settings.spool_folder.display()
        ));
    }
    if let Err(why) = args.clone().settings() {
        note(
            Event::Warning,
            format_args!(
                "user {user} (run_as_user) cannot read the settings again, so that a reload and \
                 an upgrade by SIGUSR2 will fail: {why}"
            ),
        );
    }
    Ok(())
}
