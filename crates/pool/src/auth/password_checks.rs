//! Password checks: the RSA decryptions of full authentications, off the groups' threads.
//!
//! The problem: in full authentication of `caching_sha2_password` the client sends its password
//! encrypted with the pool's RSA key. To decrypt it takes half a millisecond, whatever the bytes
//! are, so a few hundred clients a second that send garbage would take every group's time. The
//! mechanism: a group puts the encrypted answer in a bounded queue and goes on; a worker
//! (`password_workers.rs`) decrypts it, compares the password and sends the verdict to the group's
//! mailbox. Equal answers that wait are decrypted once.
//!
//! There are two queues: one for addresses without many failed logins
//! ([`crate::auth::auth_failures`]), and one for the others. What one login has taught of a user's
//! password is looked at before those that wait are decrypted: their quick answers may prove them.
//!
//! Invariants: a verdict names its client by its key, so a client that comes later never gets it;
//! an attempt whose client has left is dropped unchecked; what a client has sent, and what that was
//! decrypted to, is overwritten when its check has ended; the queue is bounded by [`CHECKS_MAX`],
//! [`SUSPECT_CHECKS_MAX`] and [`ATTEMPTS_PER_CHECK_MAX`].

use crate::auth::account::Account;
use crate::auth::accounts::{Learn, LoginContext, Proof, Sent};
use crate::group::tokens::ClientId;
use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use wire::auth::caching_sha2;
use wire::wiped::Wiped;

/// Checks that wait, from addresses without many failed logins: about two seconds of work.
pub(crate) const CHECKS_MAX: usize = 4096;
/// Checks that wait, from the other addresses.
pub(crate) const SUSPECT_CHECKS_MAX: usize = 256;
/// Logins that wait for the decryption of one and the same answer.
const ATTEMPTS_PER_CHECK_MAX: usize = 64;
/// Queue that a check waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckQueue {
    /// Checked as soon as a worker is free.
    Prompt,
    /// Checks of an address with many failed logins, in a tenth of a core's time.
    Suspect,
}

impl CheckQueue {
    fn max(self) -> usize {
        match self {
            CheckQueue::Prompt => CHECKS_MAX,
            CheckQueue::Suspect => SUSPECT_CHECKS_MAX,
        }
    }
}

/// Held by a login for as long as it waits for its verdict.
#[derive(Debug, Default)]
pub(crate) struct Waits(Arc<()>);

/// One login that waits for a verdict.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Its group and its key there.
    pub(crate) group: usize,
    pub(crate) client: ClientId,
    pub(crate) proof: Proof,
    waits: Weak<()>,
}

/// An encrypted answer to be decrypted, and the logins that have sent it.
#[derive(Debug)]
pub(crate) struct Check {
    answer: Arc<Wiped>,
    attempts: Vec<Attempt>,
}

/// Finding of a worker about a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Proof of the name.
    Right,
    /// No proof of the name.
    Wrong,
    /// Bytes that were not encrypted with the pool's key.
    OtherKey,
}

/// Result of a login's proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Its group, and its key there.
    pub(crate) group: usize,
    pub(crate) client: ClientId,
    pub(crate) checked: Checked,
}

/// Refusal of a check whose queue has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Number of checks that wait there.
    pub(crate) waiting: usize,
}

/// An answer, found by its bytes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ByBytes(Arc<Wiped>);

impl Borrow<[u8]> for ByBytes {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Debug, Default)]
struct Queue {
    prompt: VecDeque<Arc<Wiped>>,
    suspect: VecDeque<Arc<Wiped>>,
    attempts: HashMap<ByBytes, Vec<Attempt>>,
}

impl Queue {
    fn checks(&mut self, kind: CheckQueue) -> &mut VecDeque<Arc<Wiped>> {
        match kind {
            CheckQueue::Prompt => &mut self.prompt,
            CheckQueue::Suspect => &mut self.suspect,
        }
    }

    fn take(&mut self, kind: CheckQueue) -> Option<Check> {
        let answer = self.checks(kind).pop_front()?;
        let attempts = self.attempts.remove(&answer[..]).unwrap_or_default();
        Some(Check { answer, attempts })
    }
}

/// The queue, shared by all groups and the workers.
#[derive(Debug, Default)]
pub(crate) struct PasswordChecks {
    queue: Mutex<Queue>,
    prompt: Condvar,
    suspect: Condvar,
}

impl PasswordChecks {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an answer in its queue. What is returned must be kept for as long as the verdict is
    /// wanted.
    pub(crate) fn submit(
        &self,
        kind: CheckQueue,
        answer: &[u8],
        (group, client): (usize, ClientId),
        proof: Proof,
    ) -> Result<Waits, Full> {
        let waits = Waits::default();
        let attempt = Attempt {
            group,
            client,
            proof,
            waits: Arc::downgrade(&waits.0),
        };
        let mut queue = self.queue();
        if let Some(attempts) = queue.attempts.get_mut(answer) {
            if attempts.len() >= ATTEMPTS_PER_CHECK_MAX {
                let waiting = attempts.len();
                return Err(Full { waiting });
            }
            attempts.push(attempt);
            return Ok(waits);
        }
        let waiting = queue.checks(kind).len();
        if waiting >= kind.max() {
            return Err(Full { waiting });
        }
        let answer = Arc::new(Wiped::from(answer));
        queue.checks(kind).push_back(answer.clone());
        queue.attempts.insert(ByBytes(answer), vec![attempt]);
        match kind {
            CheckQueue::Prompt => self.prompt.notify_one(),
            CheckQueue::Suspect => self.suspect.notify_one(),
        }
        Ok(waits)
    }

    /// Checks that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue().attempts.len()
    }

    /// The next check of a queue, if there is one.
    pub(crate) fn next(&self, kind: CheckQueue) -> Option<Check> {
        self.queue().take(kind)
    }

    /// The next check of a queue, waited for.
    pub(crate) fn wait(&self, kind: CheckQueue) -> Check {
        let added = match kind {
            CheckQueue::Prompt => &self.prompt,
            CheckQueue::Suspect => &self.suspect,
        };
        let mut queue = self.queue();
        loop {
            if let Some(check) = queue.take(kind) {
                return check;
            }
            queue = added.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Results of the passwords in one answer: a hash that takes milliseconds is made once.
#[derive(Default)]
struct Judged(Vec<(Arc<Account>, Wiped, bool)>);

impl Judged {
    /// True if a password proves what this login has to prove.
    fn judge(&mut self, proof: &Proof, password: &[u8], learn: Learn<'_>) -> bool {
        proof.identity.like.passwords().any(|account| {
            let fits = self.fits(account, password);
            let identity = &proof.identity;
            identity.accepts(account, (password, fits), &mut *learn)
        })
    }

    fn fits(&mut self, account: &Arc<Account>, password: &[u8]) -> bool {
        let same = |(other, sent, _): &&(Arc<Account>, Wiped, bool)| {
            Arc::ptr_eq(other, account) && sent[..] == *password
        };
        if let Some((_, _, fits)) = self.0.iter().find(same) {
            return *fits;
        }
        let fits = account.verifier.is_password(password);
        self.0.push((account.clone(), password.into(), fits));
        fits
    }
}

impl Check {
    /// Decrypts the answer, and judges it for each login that still waits.
    pub(crate) fn run(self, login_context: &LoginContext<'_>, learn: Learn<'_>) -> Vec<Verdict> {
        let waits = |attempt: &Attempt| attempt.waits.strong_count() > 0;
        let keys = login_context.keys;
        let mut decrypted = None;
        let mut judged = Judged::default();
        let mut verdicts = Vec::new();
        for attempt in self.attempts.into_iter().filter(waits) {
            let proof = &attempt.proof;
            let in_clear = match (proof.sent, self.answer.split_last()) {
                (Sent::PerhapsClear, Some((0, password))) => Some(password),
                _ => None,
            };
            let mut right = proof.is_proven_quickly()
                || in_clear.is_some_and(|password| judged.judge(proof, password, learn));
            let mut other_key = false;
            // One encrypted answer in 256 ends like a password in clear.
            if !right && (in_clear.is_none() || keys.may_decrypt(&self.answer)) {
                let plain = decrypted.get_or_insert_with(|| keys.decrypt(&self.answer));
                other_key = plain.is_none();
                let plain = plain.as_deref().unwrap_or_default();
                // What is no password is compared as one, so that it takes the same steps.
                let password = caching_sha2::unmask(plain, &proof.nonce);
                let is_one = password.is_some();
                let password = password.unwrap_or_default();
                right = judged.judge(proof, &password, learn) && is_one;
            }
            verdicts.push(Verdict {
                group: attempt.group,
                client: attempt.client,
                checked: match (right, other_key) {
                    (true, _) => Checked::Right,
                    (false, true) => Checked::OtherKey,
                    (false, false) => Checked::Wrong,
                },
            });
        }
        verdicts
    }
}

#[cfg(test)]
mod tests;
