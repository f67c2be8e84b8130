//! Waits for row locks, as the server knows them.
//!
//! The problem: the pool sees that a statement runs for long, not that it waits for a row, nor who
//! has locked it. The mechanism: whoever wants to know leaves a place for the answer and fires the
//! watch's trigger; the watch asks on its connection, behind its turn. Nobody asks: it costs
//! nothing.
//!
//! Bounds: at most [`ASKED_MAX`] wait for an answer, among them those that have given up while the
//! watch stands still; the server is asked once for all of them, and lists [`WAITS_MAX`].

use session::text::Text;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// Questions that may wait for an answer.
const ASKED_MAX: usize = 64;
/// Waits that are listed, the longest first.
const WAITS_MAX: usize = 1000;
/// Columns of a wait, of the transactions `r` that wait for `b`.
const COLUMNS: &str = "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, \
     GREATEST(0, TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW())) AS waited, ";
const MYSQL: &str = "CONCAT(l.object_schema, '.', l.object_name) \
     FROM performance_schema.data_lock_waits w \
     JOIN performance_schema.data_locks l ON l.engine_lock_id = w.requesting_engine_lock_id \
     JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_engine_transaction_id \
     JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_engine_transaction_id";
const MARIADB: &str = "REPLACE(l.lock_table, '`', '') \
     FROM information_schema.innodb_lock_waits w \
     JOIN information_schema.innodb_locks l ON l.lock_id = w.requested_lock_id \
     JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id \
     JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id";

/// A thread of the server that waits for a row lock of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockWait {
    /// The thread that waits, and the one that has the lock.
    pub(crate) thread: u64,
    pub(crate) blocked_by: u64,
    pub(crate) seconds: u64,
    pub(crate) table: String,
}

/// Answer of the server, or the reason that there is none.
pub(crate) type LockWaits = Result<Vec<LockWait>, String>;

/// Places for answers, one for each console that asks.
#[derive(Debug, Default)]
pub(crate) struct LockQuestions(Mutex<Vec<SyncSender<LockWaits>>>);

impl LockQuestions {
    /// Leaves a place for an answer, which comes once the watch has been woken; `None` where too
    /// many questions wait already.
    pub(crate) fn ask(&self) -> Option<Receiver<LockWaits>> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, receiver) = sync_channel(1);
        (asked.len() < ASKED_MAX).then(|| asked.push(sender))?;
        Some(receiver)
    }

    /// Answers all who have asked, by what the server says to this text.
    pub(crate) fn answer(
        &self,
        is_mysql: bool,
        mut ask: impl FnMut(&str) -> Result<Vec<Vec<Text>>, String>,
    ) {
        let asked = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if asked.is_empty() {
            return;
        }
        let from = if is_mysql { MYSQL } else { MARIADB };
        let is_told = match is_mysql {
            true => {
                ask("SELECT @@performance_schema").map(|rows| rows != [["0".as_bytes().into()]])
            }
            false => Ok(true),
        };
        let rows = is_told.and_then(|is_told| match is_told {
            true => ask(&format!(
                "{COLUMNS}{from} ORDER BY waited DESC LIMIT {WAITS_MAX}"
            )),
            false => Err(
                "the server does not tell (its performance_schema is off); SHOW \
                          TRANSACTIONS has those that may hold the row, the oldest first"
                    .to_owned(),
            ),
        });
        let waits: LockWaits = rows.map(|rows| rows.iter().filter_map(|row| read(row)).collect());
        for sender in asked {
            // Who has stopped waiting has no use for it.
            let _ = sender.try_send(waits.clone());
        }
    }
}

/// A wait, of a row.
fn read(row: &[Text]) -> Option<LockWait> {
    let text = |at: usize| std::str::from_utf8(row.get(at)?).ok();
    Some(LockWait {
        thread: text(0)?.parse().ok()?,
        blocked_by: text(1)?.parse().ok()?,
        seconds: text(2)?.parse().unwrap_or(0),
        table: text(3)?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_wait_up_to_a_bound() {
        let questions = LockQuestions::default();
        for _ in 0..ASKED_MAX {
            drop(questions.ask().unwrap());
        }
        assert!(questions.ask().is_none());
        questions.answer(false, |_| Err("gone".into()));
        assert!(questions.ask().is_some());
    }

    #[test]
    fn all_who_ask_get_one_answer() {
        let questions = LockQuestions::default();
        questions.answer(true, |_| panic!("nobody has asked"));
        let waiting = [(); 2].map(|()| questions.ask().unwrap());
        let row = ["7", "8", "3", "shop.orders"].map(|text| text.as_bytes().into());
        let mut asked = 0;
        questions.answer(false, |_| {
            asked += 1;
            Ok(vec![row.clone().into(), Vec::new()])
        });
        assert_eq!(asked, 1);
        let mute = questions.ask().unwrap();
        questions.answer(true, |_| Ok(vec![vec![b"0"[..].into()]]));
        assert!(
            mute.recv()
                .unwrap()
                .unwrap_err()
                .contains("performance_schema")
        );
        let wait = LockWait {
            thread: 7,
            blocked_by: 8,
            seconds: 3,
            table: "shop.orders".into(),
        };
        for answer in waiting {
            assert_eq!(answer.recv().unwrap(), Ok(vec![wait.clone()]));
        }
    }
}
