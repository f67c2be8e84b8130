//! Denials: a client that has not proven its name, or may not come in with it.
//!
//! It hears so when its time has come ([`crate::auth::failed_logins`]), and goes, but for a change
//! of user on MariaDB.

use crate::auth::auth_delay::After;
use crate::auth::failed_logins::{Denial, Heard, audit};
use crate::client::leaving;
use crate::group::parts::Parts;
use crate::group::tokens::ClientId;
use reactor::Net;
use sql::lex::Server;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Delay of the error for a change of user that failed.
pub(crate) const CHANGE_DELAY: Duration = Duration::from_secs(1);

/// Sends this error after its time.
pub(crate) fn hold_back<N: Net>(
    parts: &mut Parts<N>,
    key: ClientId,
    after: After,
    denial: &Denial,
) {
    if parts.failed_logins().hold_back(key, after, denial) == Heard::AtOnce {
        parts.answers().error(key, denial.error, &denial.text);
        leaving::leave(parts, key);
    }
}

/// Denies a name that was not proven, or whose schema was refused. The error comes after its delay
/// and the client is closed; after a change of user on MariaDB its next command is awaited instead.
pub(crate) fn not_let_in<N: Net>(parts: &mut Parts<N>, key: ClientId, denial: &Denial) {
    let mariadb = matches!(parts.shared.server.flavour, Server::MariaDb(_));
    let Some(client) = parts.clients.get_mut(key) else {
        return;
    };
    let why = (denial.error.code, denial.reason);
    audit(client, &parts.net, &parts.shared, why);
    let before = client.login.take().and_then(|login| login.before);
    let Some(before) = before.filter(|_| mariadb) else {
        parts.clients.note_end(key, denial.reason);
        return hold_back(parts, key, After::End, denial);
    };
    let users = &parts.settings.users;
    let uses = |user: usize| &users[user].usage.clients;
    uses(client.identity.user()).fetch_sub(1, Relaxed);
    uses(before.user).fetch_add(1, Relaxed);
    let settings = &parts.settings.users[before.user];
    client.place.give_tickets(settings.limits.high_prio_tickets);
    client.identity.fail_change_of_user(before.user);
    client.session.state = before.session;
    parts.members().put_in_pool(key, before.pool as usize);
    let denial = Denial {
        delay: CHANGE_DELAY,
        ..denial.clone()
    };
    hold_back(parts, key, After::NextCommand, &denial);
}
