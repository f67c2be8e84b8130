//! One object for equal sessions.
//!
//! The problem: thousands of clients of one application stand in the same session state, and
//! whether two do is asked for each statement. The mechanism: equal sessions are one object, so the
//! answer is a comparison of pointers. Invariant: two objects that are not the same are not equal.

use super::Session;
use std::collections::HashSet;
use std::rc::Rc;

/// One object for equal sessions.
#[derive(Debug, Default)]
pub struct Interner {
    pub(super) sessions: HashSet<Rc<Session>>,
    sweep_at: usize,
    /// Bytes of all of them.
    bytes: usize,
}

impl Interner {
    /// The shared object that equals `session`.
    pub fn intern(&mut self, session: Session) -> Rc<Session> {
        if let Some(found) = self.sessions.get(&session) {
            return found.clone();
        }
        if self.sessions.len() >= self.sweep_at {
            self.sweep();
        }
        let shared = Rc::new(session);
        self.bytes += shared.bytes();
        self.sessions.insert(shared.clone());
        shared
    }

    /// Forgets sessions that nobody stands in.
    pub fn sweep(&mut self) {
        self.sessions
            .retain(|session| Rc::strong_count(session) > 1);
        self.sweep_at = (2 * self.sessions.len()).max(64);
        self.bytes = self.sessions.iter().map(|session| session.bytes()).sum();
    }

    /// Bytes of all sessions, those that nobody stands in any more included; user variables are
    /// not.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Session with or without the permission of several statements in one text.
    pub fn with_multi(&mut self, session: &Rc<Session>, multi: bool) -> Rc<Session> {
        if session.multi_statements == multi {
            return session.clone();
        }
        let mut changed = (**session).clone();
        changed.multi_statements = multi;
        self.intern(changed)
    }
}
