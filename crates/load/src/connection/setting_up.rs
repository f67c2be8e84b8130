//! Statements of `--init-sql`, between a connection's login and its first event.
//!
//! The problem: real clients prepare their session when they connect (`SET NAMES`, `time_zone`,
//! isolation), and a server or a pool has to be measured with that. The mechanism: one statement
//! after the other, each sent when the one before has been answered, as a driver does.
//!
//! Invariants: until the last one is answered the connection is opening, so its time is that of
//! connecting, and nothing of it is in a count or latency of statements; a session that was not set
//! up as asked runs no event.

use super::{Connection, Outcome, State, put_command};
use crate::context::Context;
use load_core::errors::Fault;
use wire::command::{Command, ReplyShape};

impl Connection {
    /// True while a statement of the workload or of `--init-sql` has no answer.
    pub(super) fn awaits_reply(&self) -> bool {
        self.is_executing() || matches!(self.state, State::SettingUp(_))
    }

    /// Sends the statement of this number; behind the last one the connection is open.
    pub(super) fn set_up(&mut self, context: &mut Context, number: u16) -> Result<(), Fault> {
        let Context { plan, out, .. } = context;
        let Some(text) = plan.init_sql.get(usize::from(number)) else {
            self.become_state(context, State::Idle);
            return Ok(());
        };
        put_command(out, Command::Query, |out| {
            out.extend_from_slice(text.as_bytes());
        });
        self.become_state(context, State::SettingUp(number));
        // The time of connecting goes on.
        self.send_command(context, ReplyShape::Results, self.sent_at)
    }

    /// Carries on after the answer to the statement of this number.
    pub(super) fn go_on_setting_up(
        &mut self,
        context: &mut Context,
        number: u16,
        outcome: Outcome,
    ) -> Result<(), Fault> {
        match outcome {
            Outcome::Succeeded(_) => self.set_up(context, number.saturating_add(1)),
            Outcome::Failed(fault) => Err(fault),
        }
    }
}
