//! The report: every client in one line, pinned or not, why, since when and by which statement.
//!
//! SIGQUIT asks for it. Each group writes its own lines and, behind them, how many of its clients
//! are pinned now, by reason, and how many backends are being made ready; the first also tells of
//! code in triggers and views
//! ([`crate::server::watched::code_catalogue`]). The lines are printed by a thread of
//! their own, so that a slow terminal holds up nobody's statements.

use crate::backend::{Backend, BackendState, InFlight, Purpose};
use crate::client::ClientState;
use crate::observe::figures::counts::ByReason;
use crate::observe::log::{Event, Peer, ReportLine};
use crate::observe::survey::Survey;
use crate::pair::view::ClientView;
use reactor::{Net, Time};
use session::pins::Pin;
use std::net::SocketAddr;

fn of_group(text: String) -> ReportLine {
    ReportLine {
        event: Event::Group,
        client: None,
        account: None,
        text,
    }
}

impl<S> Backend<S> {
    /// True if it logs in, or answers the pool's own questions and no client's statement.
    fn is_made_ready(&self) -> bool {
        let own = |command: &InFlight| command.purpose != Purpose::Statement;
        match self.state() {
            BackendState::Dialling | BackendState::Preparing => true,
            _ => !self.flight.is_empty() && self.flight.iter().all(own),
        }
    }
}

impl<S> ClientView<'_, S> {
    /// Its line in the report; `account` is that of its pool.
    pub(crate) fn report_line(
        &self,
        account: &str,
        user: Option<&str>,
        peer: Option<SocketAddr>,
        now: Time,
    ) -> ReportLine {
        let (client, backend) = (self.client, self.backend);
        let asked = backend.is_some_and(|backend| !backend.flight.is_empty());
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
        let thread = match backend {
            Some(backend) if backend.session.in_transaction() => {
                format!("in a transaction on thread {}", backend.thread)
            }
            Some(backend) => format!("on thread {}", backend.thread),
            None => "on no thread".to_string(),
        };
        let pins = client.session.pins.list().iter();
        let pins: Vec<String> = pins.map(|pin| words_of(pin, now)).collect();
        let pin = match pins.is_empty() {
            false => format!("pinned {}", pins.join(" and ")),
            true if client.session.is_held() => "held by a cursor".to_string(),
            true => "not pinned".to_string(),
        };
        let text = format!(
            "client {} account '{account}' {state} {thread}, {pin}{}",
            client.identity.id(),
            client.reading(now)
        );
        // It has an account from its first login on.
        let user = user.filter(|_| client.identity.is_known());
        ReportLine {
            event: Event::Client,
            client: Some(Peer::from(peer)),
            account: user.map(|user| user.as_bytes().to_vec()),
            text,
        }
    }
}

/// A pin: why, for how long, and what has taken it.
fn words_of(pin: &Pin, now: Time) -> String {
    let seconds = now.since(Time(pin.since)).as_secs();
    let text = String::from_utf8_lossy(&pin.text);
    let by = if text.is_empty() {
        "what it left"
    } else {
        &*text
    };
    format!("({}) for {seconds} s by: '{by}'", pin.reason.name())
}

impl<N: Net> Survey<'_, N> {
    /// One line for each client, and the sum.
    pub(crate) fn report(&self) -> Vec<ReportLine> {
        let mut reasons = ByReason::default();
        let mut lines = Vec::with_capacity(self.clients.len() + 1);
        if self.index == 0 {
            lines = self
                .shared
                .watched
                .code_catalogue
                .lines()
                .into_iter()
                .map(of_group)
                .collect();
        }
        for (key, client) in self.clients.iter() {
            let pool = self.pools.pools.get(client.pool as usize);
            let account = pool.map_or("", |pool| pool.key.user.as_str());
            let user = client.user_name(self.settings, self.pools);
            let peer = client.transport.peer(self.net);
            let now = self.net.now();
            let view = self.client_view(key);
            lines.extend(view.map(|view| view.report_line(account, user, peer, now)));
            for pin in client.session.pins.list().iter() {
                *reasons.entry(pin.reason.name()).or_default() += 1;
            }
        }
        lines.push(of_group(format!(
            "group {}: {} clients, pinned now: {reasons}, backends being made ready: {}",
            self.index,
            self.clients.len(),
            (self.backends.iter().filter(|(_, b)| b.is_made_ready())).count()
        )));
        lines
    }
}
