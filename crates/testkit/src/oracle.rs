//! A differential oracle: the same script told to the server itself and through the pool.
//!
//! The problem: no list of cases holds what sessions do to each other when they share backends;
//! the server itself knows what each client must be answered. The mechanism: from a seed [`draw`]
//! makes a script of several clients (states set and read, transactions, errors, prepared
//! statements, disconnects); one thread tells it twice, in one order of statements across all
//! clients, to the server (each client on a connection of its own) and through a pool with fewer
//! backends than clients; every reply is compared whole. A script whose replies differ is cut down
//! to the few steps that matter ([`shrink`]) and written as a test of `tests/e2e` ([`story`]).
//!
//! - [`script`] is a script as data, [`draw`] makes one of the catalogue in `habits`, [`claims`]
//!   keeps it from asking for more backends than there are, [`ground`] are the tables.
//! - [`tell`] says the script and writes the replies down; what is not compared stands there.
//!
//! Invariant: both tellings are the same but for the address, so a difference is the pool's, or
//! the server's own chance, which a second direct telling shows ([`Verdict::Fickle`]).

mod claims;
mod draw;
pub mod ground;
mod habits;
mod script;
mod shrink;
mod tell;

pub use claims::legal;
pub use draw::draw;
pub use script::{Act, Claim, Kill, Login, Step, story};
pub use shrink::shrink;
pub use tell::tell;

use crate::client::Client;
use reactor::Address;
use std::fmt;

/// What the habits are that no script has, each with its reason.
#[must_use]
pub fn left_out() -> &'static [(&'static str, &'static str)] {
    &habits::LEFT_OUT
}

/// A server, and a pool in front of it.
#[derive(Debug)]
pub struct Pair {
    /// The administrator's connection, directly.
    pub admin: Client,
    /// The server.
    pub direct: Address,
    /// The pool.
    pub pooled: Address,
}

/// Where two tellings part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step, as it stands in the script.
    pub step: Step,
    /// Its place.
    pub index: usize,
    /// What the server itself answered.
    pub direct: String,
    /// What came through the pool.
    pub pooled: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            step,
            index,
            direct,
            pooled,
        } = self;
        write!(
            f,
            "step {index}, client {}: {:?}\n  server itself: {direct}\n  through pool:  {pooled}",
            step.who, step.act
        )
    }
}

/// What two tellings of a script showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No client noticed the pool.
    Same,
    /// One did.
    Differs(Box<Difference>),
    /// The server itself does not answer the same twice: the script is of no use.
    Fickle(Box<Difference>),
}

impl Pair {
    /// Tells a script both ways.
    pub fn compare(&mut self, steps: &[Step]) -> Verdict {
        let direct = self.telling(false, steps);
        let pooled = self.telling(true, steps);
        let Some(difference) = first_difference(steps, &direct, &pooled) else {
            return Verdict::Same;
        };
        let again = self.telling(false, steps);
        match first_difference(steps, &direct, &again) {
            Some(fickle) => Verdict::Fickle(Box::new(fickle)),
            None => Verdict::Differs(Box::new(difference)),
        }
    }

    fn telling(&mut self, pooled: bool, steps: &[Step]) -> Vec<String> {
        let texts: Vec<_> = steps.iter().flat_map(Step::texts).collect();
        ground::reset(&mut self.admin, &texts);
        let address = if pooled { &self.pooled } else { &self.direct };
        tell(&mut self.admin, address, steps)
    }
}

fn first_difference(steps: &[Step], direct: &[String], pooled: &[String]) -> Option<Difference> {
    let index = (0..steps.len()).find(|&index| direct[index] != pooled[index])?;
    Some(Difference {
        step: steps[index].clone(),
        index,
        direct: direct[index].clone(),
        pooled: pooled[index].clone(),
    })
}
