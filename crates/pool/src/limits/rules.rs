//! Rules of an administrator: digests whose statements are rejected, or run a few at a time.
//!
//! The problem: one bad statement, sent by a thousand clients, takes the server with it, and has to
//! be stopped before the application is mended. The mechanism: a set of rules is a value that is
//! never changed; another takes its place ([`Rules`]), and a group has that from its next turn on.
//! A statement is looked at when its command comes and again when its turn comes, in front of
//! anything that it does; without rules that costs a look at a number.
//!
//! A statement beyond a limit is refused and does not wait: its queue is that of its account's
//! backends, in which everybody behind it would wait as well.
//!
//! Invariants: at most [`RULES_MAX`] digests have a rule, one each; what was counted for a limit is
//! given back when the client is between statements, or gone ([`Slot`]).

use crate::errors::reasons::Refusal;
use reactor::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Digests that may have a rule.
pub(crate) const RULES_MAX: usize = 100;
/// Bytes of a message: an error has room for 512 in all.
pub(crate) const MESSAGE_MAX: usize = 300;
/// Statements at once that a limit may allow, as many as there may be backends.
pub(crate) const AT_ONCE_MAX: usize = 100_000;
/// Seconds that a rule may be given: a year.
pub(crate) const SECONDS_MAX: u64 = 365 * 24 * 3600;

/// Effect of a rule on statements of its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Effect {
    /// None runs; their clients hear this.
    Reject(String),
    /// Most that run or wait at once, over all groups.
    Limit(usize),
}

/// Use of a rule, in all groups.
#[derive(Debug, Default)]
struct Usage {
    /// Statements that run or wait.
    running: AtomicUsize,
    refused: AtomicU64,
}

/// Rule for one digest.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) effect: Effect,
    /// End of the rule.
    pub(crate) until: Time,
    usage: Arc<Usage>,
}

impl Rule {
    fn new(effect: Effect, until: Time) -> Rule {
        Rule {
            effect,
            until,
            usage: Arc::default(),
        }
    }

    /// Statements that are counted for it now, and those that it has refused.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let usage = &self.usage;
        (usage.running.load(Relaxed), usage.refused.load(Relaxed))
    }
}

/// Place of a statement among those that a limit allows; ends with the value.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Usage>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, AcqRel);
    }
}

/// Rules by digest.
pub(crate) type RuleSet = BTreeMap<u64, Rule>;

/// Decides about a statement of this digest. `Some`: it is counted for its limit.
///
/// # Errors
/// A rule is against it.
pub(crate) fn admit(rules: &RuleSet, digest: u64, now: Time) -> Result<Option<Slot>, Refusal> {
    let Some(rule) = rules.get(&digest).filter(|rule| now < rule.until) else {
        return Ok(None);
    };
    let usage = &rule.usage;
    let refusal = match &rule.effect {
        Effect::Reject(message) => Refusal::RejectedDigest {
            digest,
            message: message.clone(),
        },
        Effect::Limit(max) => {
            let one_more = |running| (running < *max).then_some(running + 1);
            let taken = usage.running.fetch_update(AcqRel, Acquire, one_more);
            if taken.is_ok() {
                return Ok(Some(Slot(usage.clone())));
            }
            Refusal::DigestLimit { digest, max: *max }
        }
    };
    usage.refused.fetch_add(1, Relaxed);
    Err(refusal)
}

/// The rules in force.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    set: Mutex<Arc<RuleSet>>,
    /// Number of times that they have been replaced.
    version: AtomicU64,
}

/// Rules that a group has taken, and which those are.
#[derive(Debug, Default)]
pub(crate) struct RulesTaken {
    rules: Arc<RuleSet>,
    version: u64,
}

impl RulesTaken {
    /// Takes the rules in force, if they are others by now.
    pub(crate) fn renew(&mut self, from: &Rules) {
        let version = from.version();
        if version != self.version {
            (self.rules, self.version) = (from.get(), version);
        }
    }
}

impl std::ops::Deref for RulesTaken {
    type Target = RuleSet;

    fn deref(&self) -> &RuleSet {
        &self.rules
    }
}

impl Rules {
    /// A number that is another one when the rules are others.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    pub(crate) fn get(&self) -> Arc<RuleSet> {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        set.clone()
    }

    fn change<T>(&self, change: impl FnOnce(&mut RuleSet) -> T) -> T {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = RuleSet::clone(&set);
        let done = change(&mut next);
        *set = Arc::new(next);
        self.version.fetch_add(1, Release);
        done
    }

    /// Sets the rule of a digest, in place of one that it has. What runs is still counted.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub(crate) fn set(&self, digest: u64, effect: Effect, until: Time) -> Result<(), String> {
        self.change(|set| {
            if set.len() >= RULES_MAX && !set.contains_key(&digest) {
                return Err(format!(
                    "{RULES_MAX} digests have rules already (SHOW RULES), which is the most; take \
                     one back: ALLOW DIGEST '...'"
                ));
            }
            let rule = (set.entry(digest)).or_insert_with(|| Rule::new(effect.clone(), until));
            (rule.effect, rule.until) = (effect, until);
            Ok(())
        })
    }

    /// Takes the rule of a digest back; `false` where it has none.
    pub(crate) fn allow(&self, digest: u64) -> bool {
        self.change(|set| set.remove(&digest).is_some())
    }

    /// Drops rules whose time is over; their digests.
    pub(crate) fn expire(&self, now: Time) -> Vec<u64> {
        let set = self.get();
        let over = set.iter().filter(|(_, rule)| now >= rule.until);
        let over: Vec<u64> = over.map(|(digest, _)| *digest).collect();
        if !over.is_empty() {
            self.change(|set| set.retain(|_, rule| now < rule.until));
        }
        over
    }

    /// Takes the place of those that there are: rules of the process before. What runs is still
    /// counted.
    pub(crate) fn take_over(&self, mut set: RuleSet) {
        self.change(|own| {
            for (digest, rule) in &mut set {
                if let Some(same) = own.get(digest) {
                    rule.usage = same.usage.clone();
                }
            }
            *own = set;
        });
    }
}

/// A rule for another process: its digest, and for how long it still holds (`None`: for good).
pub(crate) type RuleRecord = (u64, Effect, Option<Duration>);

/// Rules for another process.
pub(crate) fn records(rules: &RuleSet, now: Time) -> Vec<RuleRecord> {
    let record = |(digest, rule): (&u64, &Rule)| {
        let left = (rule.until != Time::NEVER).then(|| rule.until.since(now));
        (*digest, rule.effect.clone(), left)
    };
    rules.iter().map(record).collect()
}

/// Rules of another process, as many as there may be.
pub(crate) fn of_records(records: Vec<RuleRecord>, now: Time) -> RuleSet {
    let rule = |(digest, effect, left): RuleRecord| {
        let until = left.map_or(Time::NEVER, |left| now + left);
        (digest, Rule::new(effect, until))
    };
    records.into_iter().take(RULES_MAX).map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_000_000_000);

    fn admitted(rules: &Rules, digest: u64, now: Time) -> Result<Option<Slot>, Refusal> {
        admit(&rules.get(), digest, now)
    }

    #[test]
    fn a_rejected_digest_is_refused_until_the_rule_ends() {
        let rules = Rules::default();
        assert!(matches!(admitted(&rules, 7, NOW), Ok(None)));
        let until = NOW + Duration::from_secs(1);
        rules.set(7, Effect::Reject("no".into()), until).unwrap();
        assert_eq!(rules.version(), 1);
        let refusal = admitted(&rules, 7, NOW).unwrap_err();
        assert!(refusal.to_string().contains(": no;"), "{refusal}");
        assert!(matches!(admitted(&rules, 8, NOW), Ok(None)));
        assert!(matches!(admitted(&rules, 7, until), Ok(None)));
        assert!(rules.expire(NOW).is_empty());
        assert_eq!(
            (rules.expire(until), rules.expire(until)),
            (vec![7], vec![])
        );
        assert!(rules.get().is_empty() && !rules.allow(7));
    }

    #[test]
    fn a_limit_counts_what_runs_whoever_changes_it() {
        let rules = Rules::default();
        rules.set(7, Effect::Limit(2), Time::NEVER).unwrap();
        let two: Vec<_> = (0..2).map(|_| admitted(&rules, 7, NOW).unwrap()).collect();
        assert!(admitted(&rules, 7, NOW).is_err());
        rules.set(7, Effect::Limit(3), Time::NEVER).unwrap();
        let third = admitted(&rules, 7, NOW).unwrap();
        assert!(admitted(&rules, 7, NOW).is_err());
        assert_eq!(rules.get()[&7].counts(), (3, 2));
        drop((two, third));
        assert_eq!(rules.get()[&7].counts(), (0, 2));
        assert!(rules.allow(7));
    }

    #[test]
    fn rules_have_a_bound() {
        let rules = Rules::default();
        for digest in 0..RULES_MAX as u64 {
            rules.set(digest, Effect::Limit(1), Time::NEVER).unwrap();
        }
        let digest = RULES_MAX as u64;
        let why = rules
            .set(digest, Effect::Limit(1), Time::NEVER)
            .unwrap_err();
        assert!(why.contains("100 digests have rules already"), "{why}");
        rules.set(0, Effect::Limit(2), Time::NEVER).unwrap();
        assert!(rules.allow(0));
        rules.set(digest, Effect::Limit(1), Time::NEVER).unwrap();
    }

    #[test]
    fn another_process_has_the_same_rules_for_the_rest_of_their_time() {
        let rules = Rules::default();
        let until = NOW + Duration::from_secs(9);
        rules.set(7, Effect::Reject("no".into()), until).unwrap();
        rules.set(8, Effect::Limit(3), Time::NEVER).unwrap();
        let later = Time(77);
        let other = Rules::default();
        other.take_over(of_records(records(&rules.get(), NOW), later));
        let set = other.get();
        let of = |digest| (set[&digest].effect.clone(), set[&digest].until);
        assert_eq!(
            of(7),
            (Effect::Reject("no".into()), later + Duration::from_secs(9))
        );
        assert_eq!(of(8), (Effect::Limit(3), Time::NEVER));
    }
}
