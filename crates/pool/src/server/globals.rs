//! Global values: what a session's variables are before it has set any, and stay.
//!
//! The problem: a session takes the server's global values when it logs in and keeps them, whatever
//! SET GLOBAL makes of them later. A backend outlives such a change, and clients of before it share
//! backends with clients of after it. The mechanism: the pool knows the global value of every
//! variable that a session may set ([`GlobalDefaults`]), and each session, of a client as of a
//! backend, refers to those of its own beginning. Where two sessions began under different ones,
//! their difference counts like any other and is written back as values (`session/state.rs`).
//!
//! [`crate::server::watch`] asks the server once a second, and after each SET GLOBAL through
//! the pool; groups take what is new at the begin of a turn.
//!
//! A backend that was dialled between two looks of which the second found a change may have begun
//! under either values. It serves nobody once that is known.
//!
//! Invariant: two sessions with the same version of this began under the same values.

use crate::group::parts::Parts;
use crate::group::shared::Shared;
use crate::server::probe::{Connection, ProbeError};
use reactor::Net;
use session::text::Text;

/// MariaDB tells which variables a session may set.
const MARIADB_NAMES: &str = "SELECT LOWER(VARIABLE_NAME) FROM information_schema.SYSTEM_VARIABLES \
     WHERE VARIABLE_SCOPE='SESSION' AND READ_ONLY='NO'";

/// MySQL does not: each is tried.
const MYSQL_NAMES: &str = "SHOW SESSION VARIABLES";

/// Variables in one write: it and its answers, of 200 bytes each or so, fit into a socket's buffer.
const TRIED_AT_ONCE: usize = 64;

/// Variables that no session may set (errors 1621 and 1238), though MySQL shows a session's own of
/// them.
const FIXED: [&str; 5] = [
    "gtid_executed",
    "gtid_owned",
    "max_allowed_packet",
    "max_user_connections",
    "net_buffer_length",
];

/// Variables of which each of several servers has its own, which its sessions have to have, and
/// hardly an account may set.
const OF_ONE_SERVER: [&str; 4] = [
    "binlog_format",
    "gtid_domain_id",
    "server_id",
    "sql_log_bin",
];

/// Finds out which variables a session may set.
///
/// # Errors
/// [`ProbeError`], or what the server has against the question.
pub(crate) fn find_names(shared: &Shared, connection: &mut Connection) -> Result<(), ProbeError> {
    let mysql = shared.server.flavour.is_mysql();
    let asked = if mysql { MYSQL_NAMES } else { MARIADB_NAMES };
    let rows = connection.query(asked)?;
    let listed = rows.into_iter().filter_map(|row| row.into_iter().next());
    let is_of_one = |name: &Text| OF_ONE_SERVER.iter().any(|one| one.as_bytes() == &**name);
    let mut names: Vec<Text> = listed.filter(may_be_set).collect();
    if shared.cluster.is_some() {
        names.retain(|name| !is_of_one(name));
    }
    if mysql {
        names = settable(connection, &names)?;
    }
    names.sort_unstable();
    shared.watched.globals.name(names);
    Ok(())
}

fn may_be_set(name: &Text) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let fixed = FIXED.iter().any(|fixed| fixed.as_bytes() == &**name);
    !fixed && name.iter().all(plain)
}

/// Those of which the server tells a session's value and a global one.
fn settable(connection: &mut Connection, names: &[Text]) -> Result<Vec<Text>, ProbeError> {
    let mut found = Vec::new();
    for some in names.chunks(TRIED_AT_ONCE) {
        let texts = some.iter().map(|name| {
            let shown = String::from_utf8_lossy(name);
            format!("SELECT @@session.{shown},@@global.{shown}")
        });
        let texts: Vec<String> = texts.collect();
        let answers = connection.ask(&texts)?;
        let pairs = some.iter().zip(answers);
        found.extend(pairs.filter_map(|(name, answer)| answer.is_ok().then(|| name.clone())));
    }
    Ok(found)
}

/// Takes what the last look has found.
pub(crate) fn take_globals<N: Net>(parts: &mut Parts<N>) {
    let state = parts.shared.watched.globals.lock();
    let (now, before) = (state.now.clone(), state.before);
    drop(state);
    let others = now.init_connect() != parts.known.defaults.init_connect();
    parts.known.defaults = now;
    let longest = parts.settings.dial_max;
    (parts.closer()).leave_backends(|backend| others || backend.born() + longest >= before);
}
