//! Properties of a session that were read back: what each answer makes of client and backend.
//!
//! Which properties there are, and how they are asked, stands in [`session::read_back`]; when they
//! are asked, in [`crate::pair::next`].
//!
//! Invariant: what was told is true of both, or the client keeps its backend for it.

use crate::errors::reasons::PinReason;
use crate::pair::{Broken, Pair};
use session::read_back::{Answer, Properties, has_values, take};
use session::state::CLOCK;
use session::user_variables::collation_of;
use sql::classify::PinCauses;

impl Pair<'_> {
    /// Takes the server's answer for these properties of the session.
    pub(crate) fn note_answer(&mut self, asked: Properties, answer: &Answer) -> Result<(), Broken> {
        if asked.intersects(Properties::HOLDINGS) {
            self.note_acquired(answer);
        }
        if asked.intersects(Properties::FOUND_ROWS) {
            self.note_found_rows(answer);
        }
        if asked.intersects(Properties::INSERT_ID) {
            self.note_insert_id(answer)?;
        }
        if asked.intersects(Properties::COLLATION) {
            self.note_collation(answer);
        }
        if asked.intersects(Properties::CLOCK) {
            self.note_clock(answer.text(Properties::CLOCK));
        }
        if asked.intersects(Properties::USER_VARIABLES) {
            self.note_variables(answer)?;
        }
        if has_values(asked) {
            self.note_values(asked, answer);
        }
        let pending = &mut self.client.last.pending;
        pending.changed = pending.changed.without(asked);
        Ok(())
    }

    /// Takes the values of the session that were read back.
    fn note_values(&mut self, asked: Properties, answer: &Answer) {
        let server = self.context.server.flavour;
        let mut causes = PinCauses::NONE;
        self.change_both(|session| causes = take(asked, session, answer, server));
        for cause in causes.iter() {
            self.pin(PinReason::Text(cause));
        }
        self.backend.note_role(self.reuse);
    }

    /// Ends the pins of acquired resources that the server says are gone.
    fn note_acquired(&mut self, answer: &Answer) {
        if self.flight.is_empty() {
            let told = answer.of(Properties::HOLDINGS);
            let row: Vec<_> = (told.map(|(_, value)| value.map_or(&b""[..], |v| v))).collect();
            self.client.pins.end_as_reported(&row);
        } else {
            // A statement went out behind the question, and may have taken a lock again.
            self.client.pins.ask_again();
        }
    }

    fn note_insert_id(&mut self, answer: &Answer) -> Result<(), Broken> {
        let id = answer
            .number(Properties::INSERT_ID)
            .ok_or("the server gave a LAST_INSERT_ID() that is no number")?;
        self.client.last.insert_id = id;
        self.backend.note_insert_id(id);
        Ok(())
    }

    /// Takes the collation, which differs from what was reported where a text has set it unseen;
    /// and that of results.
    fn note_collation(&mut self, answer: &Answer) {
        if (self.client.pins).is_pinned_for(PinReason::WideCharset) {
            return;
        }
        let Some((column, Some(collation))) = answer.of(Properties::COLLATION).next() else {
            return;
        };
        let described_before = self.client.state.results_collation.clone();
        let server = self.context.server;
        self.change_both(|session| {
            session.put(b"collation_connection", collation);
            session.results_collation = server.results_in(collation_of(column, session));
        });
        // Conditions of an earlier statement were shown in the collation of before.
        let anew = self.client.state.results_collation != described_before;
        if anew && self.client.last.kept().is_some() && self.client.last.conditions == 0 {
            self.client.last.lose_conditions();
        }
    }

    /// Takes the clock read from a client's session.
    fn note_clock(&mut self, now: &[u8]) {
        let Some(modified) = &mut self.client.modified else {
            return;
        };
        modified.awaited = modified.awaited.saturating_sub(1);
        let seconds = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
        let before = self.client.state.variable(CLOCK).and_then(seconds);
        let stands = before.is_some() && before == seconds(now);
        modified.clock = if stands { 0 } else { modified.clock - 1 };
        if !stands {
            let again = modified.clock > 0;
            self.change_both(|session| {
                session.unset(CLOCK);
                if again {
                    session.put(CLOCK, now);
                }
            });
        }
    }
}
