//! The report: every client in one line, pinned or not, why, since when and by which statement.
//!
//! SIGQUIT asks for it. Each group writes its own lines and, behind them, how many of its clients
//! are pinned now, by reason, and how many backends are being made ready; the first also tells of
//! code in triggers and views
//! ([`crate::group::session_state::triggers_and_views`]). The lines are printed by a thread of
//! their own, so that a slow terminal holds up nobody's statements.

use crate::backend::{Backend, BackendState, Purpose};
use crate::client::{Client, ClientState};
use crate::config::Origin;
use crate::group::Group;
use crate::log::{Event, Facts, Peer, ReportLine, note_of};
use reactor::{Net, Time};
use session::holds::Pin;
use std::collections::BTreeMap;

fn of_group(text: String) -> ReportLine {
    ReportLine {
        event: Event::Group,
        client: None,
        account: None,
        text,
    }
}

impl<N: Net> Group<N> {
    /// Tells how many lines were left out, where no line has told it.
    pub(crate) fn log_omitted(&mut self) {
        let now = self.net.now();
        let limits = [
            (Event::LoginFailed, &mut self.lines_of_logins),
            (Event::BackendLost, &mut self.lines_of_losses),
            (Event::SlowStatement, &mut self.statement_logs.slow_lines),
            (Event::Statement, &mut self.statement_logs.lines),
        ];
        for (event, limit) in limits {
            if let Some(omitted) = limit.rest(now) {
                let facts = Facts {
                    omitted,
                    ..Facts::default()
                };
                note_of(
                    event,
                    &facts,
                    format_args!("{omitted} lines of this event were left out"),
                );
            }
        }
    }

    /// One line for each client, and the sum.
    pub(crate) fn report(&self) -> Vec<ReportLine> {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lines = Vec::with_capacity(self.clients.len() + 1);
        if self.index == 0 {
            lines = self
                .shared
                .code_catalogue
                .lines()
                .into_iter()
                .map(of_group)
                .collect();
        }
        for (_, client) in self.clients.iter() {
            lines.push(self.line_of(client));
            for pin in client.pins.list().iter() {
                *reasons.entry(pin.reason.name()).or_default() += 1;
            }
        }
        lines.push(of_group(format!(
            "group {}: {} clients, pinned now: {reasons:?}, backends being made ready: {}",
            self.index,
            self.clients.len(),
            self.made_ready()
        )));
        lines
    }

    /// Backends that log in, or answer the pool's own questions and no client's statement.
    fn made_ready(&self) -> usize {
        let at_work = |backend: &Backend<N::Sock>| match backend.state() {
            BackendState::Dialling | BackendState::Preparing => true,
            _ => {
                let mut flight = backend.flight().iter();
                !backend.flight().is_empty()
                    && flight.all(|command| command.purpose != Purpose::Statement)
            }
        };
        let backends = self.backends.iter();
        backends.filter(|(_, backend)| at_work(backend)).count()
    }

    /// The name of a client's user. Accounts of the server are one user of the settings, and are
    /// called as they are there.
    pub(crate) fn user_name(&self, client: &Client<N::Sock>) -> Option<&str> {
        let user = self.settings.users.get(client.user as usize)?;
        let account = self.backend_pools.pools.get(client.pool as usize);
        Some(match (user.origin, account) {
            (Origin::Server, Some(account)) => &account.key.user,
            _ => &user.name,
        })
    }

    fn line_of(&self, client: &Client<N::Sock>) -> ReportLine {
        let account = self.backend_pools.pools.get(client.pool as usize);
        let account = account.map_or("", |pool| pool.key.user.as_str());
        let backend = client.lease().and_then(|lease| self.backends.get(lease));
        let asked = backend.is_some_and(|backend| !backend.flight().is_empty());
        let state = match client.state() {
            ClientState::Accepted
            | ClientState::Greeted
            | ClientState::Proving
            | ClientState::Verifying
            | ClientState::Opening => "logging in",
            // Its statement is answered, and what that left is being read back.
            ClientState::Idle if asked => "finishing",
            ClientState::Idle => "idle",
            ClientState::Waiting => "waiting",
            ClientState::Restoring | ClientState::Running | ClientState::Feeding => "running",
            ClientState::Asking => "killing",
            ClientState::Delayed => "held back after a failed login",
            ClientState::Moving => "moving",
            ClientState::Leaving => "leaving",
        };
        let lease = match backend {
            Some(backend) if backend.in_transaction() => {
                format!("in a transaction on thread {}", backend.thread)
            }
            Some(backend) => format!("on thread {}", backend.thread),
            None => "on no thread".to_string(),
        };
        let pins = client.pins.list().iter();
        let pins: Vec<String> = pins.map(|pin| self.words_of(pin)).collect();
        let pin = match pins.is_empty() {
            false => format!("pinned {}", pins.join(" and ")),
            true if client.is_held() => "held by a cursor".to_string(),
            true => "not pinned".to_string(),
        };
        let text = format!(
            "client {} account '{account}' {state} {lease}, {pin}{}",
            client.id,
            self.reading_of(client)
        );
        // It has an account from its first login on.
        let user = self.user_name(client).filter(|_| client.is_known());
        ReportLine {
            event: Event::Client,
            client: Some(Peer::from(client.transport.peer(&self.net))),
            account: user.map(|user| user.as_bytes().to_vec()),
            text,
        }
    }

    fn words_of(&self, pin: &Pin) -> String {
        let seconds = self.net.now().since(Time(pin.since)).as_secs();
        let text = String::from_utf8_lossy(&pin.text);
        let by = if text.is_empty() {
            "what it left"
        } else {
            &*text
        };
        format!("({}) for {seconds} s by: {by:?}", pin.reason.name())
    }
}
