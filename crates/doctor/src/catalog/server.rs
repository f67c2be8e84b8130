//! The server's own limits: connections, statements, and who may have how many.
//!
//! On the way through onramp the server sees the backends only, so there a limit is enough or not
//! whatever the number of clients.

use crate::facts::{Facts, Link, NO_LIMIT, Server};
use crate::finding::{Amount, Demand, Finding, Severity, Status};
use crate::need::{SERVER_CONNECTIONS_MAX, SYSBENCH_STATEMENTS};
use crate::number::{round_up, thousands};
use crate::question::{PerWay, Question, Way};
use crate::setting::Setting;

/// True if the server was asked, and what it would not tell.
pub(super) fn server(facts: &Facts, question: &Question) -> Option<Finding> {
    let unknown = Amount::Unknown;
    let Some(server) = &facts.server else {
        let asked = !facts.missing.is_empty();
        let status = if asked { Status::Fail } else { Status::Skipped };
        let why = if asked {
            facts.missing.join("; ")
        } else {
            "max_connections, max_prepared_stmt_count, back_log and the rest are not known, and \
             not in the numbers above: name the server with --target"
                .to_owned()
        };
        let remedy = if why.contains("error 3159") {
            "?ssl-mode=REQUIRED in --target"
        } else if why.contains("error 1045") {
            // MariaDB says so where the account or the server asks for TLS, too.
            "see what account and password --target names, from where that may log in, and whether \
             it needs TLS (?ssl-mode=REQUIRED)"
        } else {
            "see that it runs, and what --target says"
        };
        let finding = Finding::observed("server", status, unknown.clone(), unknown);
        return Some(finding.why(why).remedy(remedy));
    };
    let status = if facts.missing.is_empty() {
        Status::Ok
    } else {
        Status::Warn
    };
    let role = if server.is_local {
        "on this host"
    } else {
        "on another host"
    };
    let mut why = format!(
        "asked at {}, {role}, for {}",
        server.place,
        question.role.words()
    );
    if !facts.missing.is_empty() {
        why = facts.missing.join("; ");
    }
    let version = Amount::Words(server.version.clone());
    Some(
        Finding::observed("server", status, version, unknown)
            .why(why)
            .remedy("grant what is missing, or ask with an account that has it"),
    )
}

/// A server on another host that has not proven who it is.
pub(super) fn server_identity(facts: &Facts, _question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref().filter(|server| !server.is_local)?;
    let (status, have) = match server.link? {
        Link::Clear => (Status::Warn, "no TLS"),
        Link::Unchecked => (Status::Warn, "TLS, not checked"),
        Link::Checked => (Status::Ok, "TLS, checked"),
    };
    let [have, need] = [have, "TLS, checked"].map(|words| Amount::Words(words.into()));
    let finding = Finding::observed("server_identity", status, have, need);
    Some(
        finding
            .why(
                "whoever answers at the server's address is taken for it, and gets statements and \
                 what proves passwords; without TLS everybody in between reads them, too. It is so \
                 for a pool with the same settings",
            )
            .remedy(
                "?ssl-mode=VERIFY_IDENTITY in --target, with --ca; for the pool backend.tls = \
                 \"verify_identity\" and backend.tls_ca",
            ),
    )
}

/// One for each connection; through onramp one for each backend.
fn connections(base: u64, question: &Question) -> PerWay<Option<Demand>> {
    [
        Some(Demand::new(base, 1)),
        Some(Demand::new(base, 1)),
        Some(Demand::new(base + question.backends, 0)),
    ]
}

/// Connections of others: all that stand but the doctor's own.
fn connected(server: &Server) -> u64 {
    server
        .counted("Threads_connected")
        .unwrap_or(1)
        .saturating_sub(1)
}

pub(super) fn max_connections(facts: &Facts, question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let have = server.number("max_connections");
    let demands = connections(connected(server), question);
    let finding = Finding::of(question, "max_connections", Severity::Wall, have, demands);
    let value = round_up(finding.needed()).max(have.unwrap_or_default());
    let finding = finding.why(format!(
        "{} stand now, {} at most since its start. Past it error 1040 (Too many connections); only \
         an administrator gets one more. Servers let it be {} at most; through onramp, {} do",
        thousands(connected(server)),
        thousands(server.counted("Max_used_connections").unwrap_or_default()),
        thousands(SERVER_CONNECTIONS_MAX),
        thousands(question.backends)
    ));
    if finding.needed() > SERVER_CONNECTIONS_MAX {
        return Some(finding.remedy(format!(
            "no setting reaches this: {} is the most; go through onramp",
            thousands(SERVER_CONNECTIONS_MAX)
        )));
    }
    let value = value.min(SERVER_CONNECTIONS_MAX).to_string();
    Some(finding.settings(vec![Setting::Global("max_connections", value)]))
}

/// Connections of one account that the pool cannot do without: one for statements, and one that
/// watches the server, if that is not another account's.
const SHARED_MIN: u64 = 2;

pub(super) fn max_user_connections(facts: &Facts, question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let have = server
        .number("max_user_connections")
        .map(|most| match most {
            0 => NO_LIMIT,
            most => most,
        });
    let [direct, server_pool, _] = connections(0, question);
    let demands = [direct, server_pool, Some(Demand::new(SHARED_MIN, 0))];
    let mut finding = Finding::of(
        question,
        "max_user_connections",
        Severity::Wall,
        have,
        demands,
    );
    let shared = have.filter(|have| *have < question.backends);
    if shared.is_some() && finding.status == Status::Ok {
        finding.status = Status::Warn;
    }
    let shared = shared.map_or(String::new(), |have| {
        format!(
            ". Through onramp all clients share them: at most {have} statements run at once, the \
             others wait; one connection less where backend.monitor_user is this account, so give \
             that another one"
        )
    });
    Some(
        finding
            .why(format!(
                "connections that this account may have, by the server's variable or its own \
                 limit. Past it error 1203 or 1226{shared}"
            ))
            .settings(vec![Setting::Global("max_user_connections", "0".into())])
            .remedy(
                "SET GLOBAL max_user_connections = 0; ALTER USER ... WITH MAX_USER_CONNECTIONS 0",
            ),
    )
}

pub(super) fn prepared_statements(facts: &Facts, question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let have = server.number("max_prepared_stmt_count");
    let now = server.counted("Prepared_stmt_count").unwrap_or_default();
    let said = question.statements;
    let each = said.unwrap_or(SYSBENCH_STATEMENTS);
    let demands = [
        Some(Demand::new(now, each)),
        Some(Demand::new(now, each)),
        Some(Demand::new(now + each * question.backends, 0)),
    ];
    // Whoever did not say that statements are prepared is not refused for it.
    let severity = if said.is_some() {
        Severity::Wall
    } else {
        Severity::Strain
    };
    let finding = Finding::of(question, "max_prepared_stmt_count", severity, have, demands);
    let value = round_up(finding.needed()).max(have.unwrap_or_default());
    let whose = match said {
        Some(_) => format!("{each} a connection, as you say"),
        None => format!(
            "sysbench's oltp_read_write on ten tables has {each} (9 x 10 + 1); say yours with \
             --statements-per-connection"
        ),
    };
    let room = have.map_or(0, |have| Demand::new(now, each).holds(have));
    let is_beyond = finding.needed() > STATEMENTS_MAX;
    let finding = finding
        .why(format!(
            "statements that are prepared at once, of all connections; {whose}: enough for {} \
                 connections. Past it error 1461, and the log says \"Got an error reading \
                 communication packets\" of the client that gave up",
            thousands(room)
        ))
        .settings(vec![Setting::Global(
            "max_prepared_stmt_count",
            value.min(STATEMENTS_MAX).to_string(),
        )]);
    Some(if is_beyond {
        let most = thousands(STATEMENTS_MAX);
        finding.remedy(format!(
            "the most that every server takes is {most}; let clients prepare less, send statements \
             as text (sysbench --db-ps-mode=disable), or go through onramp"
        ))
    } else {
        finding
    })
}

/// The largest max_prepared_stmt_count of MariaDB and older MySQL; newer ones take four times it.
const STATEMENTS_MAX: u64 = 1_048_576;

pub(super) fn thread_handling(facts: &Facts, question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let handling = server.text("thread_handling");
    let has_pool = handling == "pool-of-threads" || handling == "loaded-dynamically";
    let crowd = question.wanted() > 1_000 && question.ways != [Way::Onramp];
    let status = if has_pool || !crowd {
        Status::Ok
    } else {
        Status::Warn
    };
    let numbers = [
        "thread_pool_size",
        "thread_pool_max_threads",
        "thread_pool_oversubscribe",
    ];
    let pool: Vec<String> = numbers
        .iter()
        .filter_map(|name| Some(format!("{name} {}", server.variables.get(*name)?)))
        .collect();
    let why = match (has_pool, pool.is_empty()) {
        (true, _) => format!(
            "the server runs statements in its own pool: {}",
            pool.join(", ")
        ),
        (false, false) => format!(
            "each connection has a thread, and thousands that all want to run contend; the numbers \
             for the server's pool are what it would hold with it on ({})",
            pool.join(", ")
        ),
        (false, true) => "each connection has a thread, and thousands that all want to run \
             contend; this server has no pool of its own loaded, so its numbers are only what one \
             would hold"
            .to_owned(),
    };
    let need = if crowd { "a pool" } else { "any" };
    let finding = Finding::observed(
        "thread_handling",
        status,
        Amount::Words(handling.to_owned()),
        Amount::Words(need.into()),
    );
    let finding = finding.why(why);
    Some(if server.is_mariadb() {
        finding
            .settings(vec![Setting::File(
                "thread_handling",
                "pool-of-threads".into(),
            )])
            .remedy("go through onramp, or thread_handling = pool-of-threads in my.cnf and restart")
    } else {
        finding
            .remedy("go through onramp, or load the server's pool: plugin-load-add=thread_pool.so")
    })
}

/// Tables that are open at once: one for each connection that executes.
pub(super) fn table_open_cache(facts: &Facts, question: &Question) -> Option<Finding> {
    let server = facts.server.as_ref()?;
    let have = server.number("table_open_cache");
    let finding = Finding::of(
        question,
        "table_open_cache",
        Severity::Strain,
        have,
        connections(0, question),
    );
    let value = round_up(finding.needed()).max(have.unwrap_or_default());
    Some(
        finding
            .why(
                "every statement that runs has an instance of each of its tables; where all \
                 connections' statements are in the server at once it opens and closes tables all \
                 the time past this (status Opened_tables grows)",
            )
            .settings(vec![Setting::Global("table_open_cache", value.to_string())]),
    )
}
