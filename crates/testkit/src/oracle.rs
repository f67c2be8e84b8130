//! A differential oracle: the same script told to the server itself and through the pool.
//!
//! The problem: no list of cases holds what sessions do to each other when they share backends;
//! the server itself knows what each client must be answered. The mechanism: from a seed [`draw`]
//! makes a script of several clients (states set and read, transactions, errors, prepared
//! statements, disconnects); one thread tells it twice, in one order of statements across all
//! clients, to the server (each client on a connection of its own) and through a pool with fewer
//! backends than clients; every reply is compared whole. A script whose replies differ is cut down
//! to the few steps that matter ([`shrink`]) and written as one of `tests/stories` ([`story`]).
//!
//! - [`script`] is a script as data, [`draw`] makes one of the catalogue in `habits`, [`claims`]
//!   keeps it from asking for more backends than there are, [`ground`] are the tables.
//! - [`tell`] says the script and writes the replies down; what is not compared stands there.
//!
//! The pool may refuse a question about the statement before (error 1235) where the server answers
//! it, or refuses it for another reason. Such a refusal is counted, and the server is told the
//! script again with the same error in that place: what the client is answered from there on must
//! be the same.
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

pub use claims::{Backends, legal};
pub use draw::draw;
pub use script::{Act, Claim, Kill, Login, Step, story};
pub use shrink::shrink;
pub use tell::{Reply, Teller, tell};

use crate::client::Client;
use crate::onramp::Pool;
use crate::talk::Account;
use claims::UNSET;
use reactor::Address;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Habits that no script has, each with its reason.
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
    /// The pool, of one group.
    pub pool: Pool,
    /// Number of backends that it may have.
    pub backends: usize,
}

/// First difference of two tellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step, as it stands in the script.
    pub step: Step,
    /// Its place.
    pub index: usize,
    /// Answer of the server itself.
    pub direct: String,
    /// Answer through the pool.
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

/// Verdict on two tellings of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No client noticed the pool, but for these statements, which it refused.
    Same {
        /// Each as [`leading_words`] shows it, with the statement of its client before it.
        refused: Vec<String>,
    },
    /// One did.
    Differs(Box<Difference>),
    /// The server itself does not answer the same twice: the script is of no use.
    Fickle(Box<Difference>),
    /// The server keeps a transaction that nobody can end: nothing more can be told to it.
    Stuck(String),
}

impl Pair {
    /// Tells a script both ways.
    pub fn compare(&mut self, steps: &[Step]) -> Verdict {
        self.verdict(steps).unwrap_or_else(Verdict::Stuck)
    }

    fn verdict(&mut self, steps: &[Step]) -> Result<Verdict, String> {
        let mut direct = self.telling(false, steps)?;
        let pooled = self.telling(true, steps)?;
        let mut told = steps.to_vec();
        let mut refused = Vec::new();
        for index in 0..steps.len() {
            if tell::is_refused(&pooled[index]) && !tell::is_refused(&direct[index]) {
                refused.push(refused_form(steps, index));
                told[index].act = match told[index].act.clone() {
                    Act::Blocked(_, steps) => Act::Blocked(tell::REFUSES.into(), steps),
                    _ => Act::Sql(tell::REFUSES.into()),
                };
            }
        }
        if !refused.is_empty() {
            direct = self.telling(false, &told)?;
        }
        let Some(difference) = first_difference(steps, &direct, &pooled) else {
            return Ok(Verdict::Same { refused });
        };
        let again = self.telling(false, &told)?;
        Ok(match first_difference(steps, &direct, &again) {
            Some(fickle) => Verdict::Fickle(Box::new(fickle)),
            None => Verdict::Differs(Box::new(difference)),
        })
    }

    fn telling(&mut self, pooled: bool, steps: &[Step]) -> Result<Vec<String>, String> {
        let texts: Vec<_> = steps.iter().flat_map(Step::texts).collect();
        ground::reset(&mut self.admin, &texts)?;
        let (address, pool) = match pooled {
            true => (&self.pool.address, Some(&self.pool)),
            false => (&self.direct, None),
        };
        if pooled {
            self.set_on_all_backends(&unset_names(&texts));
        }
        Ok(tell(&mut self.admin, address, pool, steps))
    }

    /// Lets each backend have had these user variables of other clients. What a seed finds depends
    /// on no script before it, then.
    fn set_on_all_backends(&self, names: &BTreeSet<String>) {
        if names.is_empty() {
            return;
        }
        let connect = |_| Client::connect(&self.pool.address, &Account::new("app", "app"));
        let clients: Result<Vec<Client>, _> = (0..self.backends).map(connect).collect();
        let mut clients = clients.unwrap_or_else(|why| panic!("{why}"));
        let set: Vec<String> = names.iter().map(|name| format!("{name} = 'x'")).collect();
        let set = format!("SET {}", set.join(", "));
        // Each keeps one as long as its transaction is open.
        for sql in ["BEGIN", "SELECT 1", &set, "COMMIT"] {
            for client in &mut clients {
                client.must(sql);
            }
        }
    }
}

/// The user variables in some texts that are not to be there before their clients have set them.
fn unset_names(texts: &[Cow<'_, str>]) -> BTreeSet<String> {
    let end = |rest: &str| {
        let other = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
        rest.find(other).unwrap_or(rest.len())
    };
    let parts = texts.iter().flat_map(|text| text.split(UNSET).skip(1));
    parts
        .map(|rest| format!("{UNSET}{}", &rest[..end(rest)]))
        .collect()
}

/// A refused question, and what it was about: its client's step before.
fn refused_form(steps: &[Step], index: usize) -> String {
    let who = steps[index].who;
    let before = (0..index).rev().find(|&before| steps[before].who == who);
    let before = before.map(|before| match text_of(steps, before) {
        text if text.is_empty() => format!("{:?}", steps[before].act),
        text => text,
    });
    let behind = before.map_or("a login".into(), |text| leading_words(&text));
    format!("{} behind {behind}", leading_words(&text_of(steps, index)))
}

/// The text that a step runs; an execution runs that of its statement.
fn text_of(steps: &[Step], index: usize) -> String {
    let step = &steps[index];
    let (Act::Execute(slot, ..) | Act::Again(slot, _) | Act::Bulk(slot, _)) = &step.act else {
        return step.texts().join("; ");
    };
    let before = steps[..index].iter().rev();
    let mut prepared = before.filter(|other| other.who == step.who);
    let text = prepared.find_map(|other| match &other.act {
        Act::Prepare(other, sql) if other == slot => Some(sql),
        _ => None,
    });
    format!("execute: {}", text.map_or("", |sql| sql))
}

/// Leading words of a text, by which statements of one form are counted together: two words of each
/// of its statements, without numbers and what is in quotes.
#[must_use]
pub fn leading_words(sql: &str) -> String {
    let words = |statement: &str| {
        let words = statement.split_whitespace().take(2);
        words.collect::<Vec<_>>().join(" ")
    };
    let plain: String = sql.chars().filter(|c| !c.is_ascii_digit()).collect();
    let statements = plain.split(';').map(words);
    statements.collect::<Vec<_>>().join("; ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unset_variables_are_found_in_texts() {
        let texts = [
            "SELECT @unset_b, IFNULL(@unset_b, 1.5)",
            "SET @a = 1, @unset_c:=2",
            "SELECT @unset",
        ];
        let names = unset_names(&texts.map(Cow::Borrowed));
        assert_eq!(
            names.iter().collect::<Vec<_>>(),
            ["@unset", "@unset_b", "@unset_c"]
        );
        assert!(unset_names(&[]).is_empty());
    }
}
