//! The threads that check passwords (`password_checks.rs`).
//!
//! Answers from addresses without many failed logins are checked promptly, by one thread for two
//! cores. Those from other addresses are checked by one thread that rests for nine times as long as
//! it has worked, so that all of them together take a tenth of a core. A priority below all others
//! would not do instead: a thread that the kernel stops while it holds the lock of the queue or of
//! a mailbox stops a group with it.

use crate::auth::account::Account;
use crate::auth::password_checks::{CheckQueue, Verdict};
use crate::group::shared::{Order, Shared};
use crate::server::probe::log_in_as;
use reactor::{Sender, Time};
use std::sync::Arc;
use wire::auth::caching_sha2;

/// Rest of a worker after a suspect check, in multiples of the time that it took.
const REST: u32 = 9;
/// Threads for prompt checks: one for two cores, within these bounds.
const WORKERS_MAX: usize = 4;

impl Shared {
    /// Password checks that wait for a worker.
    #[must_use]
    pub fn password_checks_waiting(&self) -> usize {
        self.jobs.checks.waiting()
    }

    /// Runs one waiting password check on this thread, as a simulation's worker. Returns the
    /// verdicts with the numbers of their groups.
    #[must_use]
    pub fn check_one_password(&self) -> Vec<(usize, Order)> {
        let check = self.jobs.checks.next(CheckQueue::Prompt);
        let check = check.or_else(|| self.jobs.checks.next(CheckQueue::Suspect));
        let verdicts = check.map_or_else(Vec::new, |check| {
            check.run(&self.logins.context(), &mut |_, _| ())
        });
        verdicts.into_iter().map(message).collect()
    }
}

/// Starts the workers' threads. They end with the process.
///
/// # Errors
/// A sentence when a thread cannot be started.
pub(crate) fn start_workers(
    shared: &Arc<Shared>,
    groups: &Arc<[Sender<Order>]>,
) -> Result<(), String> {
    let prompt = (shared.cores() / 2).clamp(1, WORKERS_MAX);
    let kinds = std::iter::repeat_n(CheckQueue::Prompt, prompt).chain([CheckQueue::Suspect]);
    for (index, kind) in kinds.enumerate() {
        let (shared, groups) = (shared.clone(), groups.clone());
        std::thread::Builder::new()
            .name(format!("password-{index}"))
            .spawn(move || work(&shared, kind, &groups))
            .map_err(|error| format!("cannot start a thread for password checks: {error}"))?;
    }
    Ok(())
}

fn work(shared: &Shared, kind: CheckQueue, groups: &[Sender<Order>]) {
    loop {
        let check = shared.jobs.checks.wait(kind);
        let began = Time::now();
        let mut learn = |account: &Account, password: &[u8]| learn(shared, account, password);
        let verdicts = check.run(&shared.logins.context(), &mut learn);
        for (group, verdict) in verdicts.into_iter().map(message) {
            groups[group].send(verdict);
        }
        if kind == CheckQueue::Suspect {
            reactor::pause(Time::now().since(began) * REST);
        }
    }
}

/// Keeps what the right password of an account of the server teaches. The server has to have seen
/// the password too, or it would ask the account's backends for it: so one login is made with it
/// first, under TLS or encrypted with the server's key. Where that fails, backends say why.
fn learn(shared: &Shared, account: &Account, password: &[u8]) {
    let cached = caching_sha2::cached(password);
    let known = account.learnt.sha2();
    if known.is_some_and(|known| known.cached == cached && known.once.is_some()) {
        return;
    }
    if let Ok(text) = std::str::from_utf8(password)
        && let Ok(connection) = log_in_as(shared, account.name.clone(), text.into())
    {
        connection.leave();
    }
    account.learnt.learn(password, true);
}

/// A message to the group of a verdict's client.
fn message(verdict: Verdict) -> (usize, Order) {
    let order = Order::PasswordChecked(verdict.client, verdict.checked);
    (verdict.group, order)
}
