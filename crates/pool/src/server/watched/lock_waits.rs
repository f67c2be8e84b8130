//! Waits for row locks, as the server knows them.
//!
//! The problem: the pool sees that a statement runs for long, not that it waits for a row, nor who
//! has locked it. The mechanism: whoever wants to know leaves a place for the answer and fires the
//! watch's trigger; the watch asks on its connection, behind its turn. Nobody asks: it costs
//! nothing.
//!
//! InnoDB answers from a buffer that it fills again once nobody has read it for 0.1 s (MySQL's
//! manual, "Persistence and Consistency of InnoDB Transaction and Locking Information"). Consoles
//! that ask all the time would therefore see the first answer for ever; so the server is asked
//! again once an answer is [`ANSWER_LIFE`] old, and until then that answer serves all.
//!
//! Bounds: at most [`ASKED_MAX`] wait for an answer, among them those that have given up while the
//! watch stands still; the server is asked once for all of them, and lists [`WAITS_MAX`].

use reactor::Time;
use session::text::Text;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Age up to which an answer serves those who ask.
const ANSWER_LIFE: Duration = Duration::from_millis(200);
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
pub(crate) struct LockQuestions {
    asked: Mutex<Vec<SyncSender<LockWaits>>>,
    /// The last answer, and when it came.
    last: Mutex<Option<(Time, LockWaits)>>,
}

impl LockQuestions {
    /// Leaves a place for an answer, which comes once the watch has been woken; `None` where too
    /// many questions wait already.
    pub(crate) fn ask(&self) -> Option<Receiver<LockWaits>> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (sender, receiver) = sync_channel(1);
        (asked.len() < ASKED_MAX).then(|| asked.push(sender))?;
        Some(receiver)
    }

    /// Answers all who have asked, by the last answer or by what the server says to this text.
    pub(crate) fn answer(
        &self,
        is_mysql: bool,
        clock: impl Fn() -> Time,
        ask: impl FnMut(&str) -> Result<Vec<Vec<Text>>, String>,
    ) {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        if asked.is_empty() {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock();
        let (_, waits) = match last.take() {
            Some((at, waits)) if now.since(at) < ANSWER_LIFE => last.insert((at, waits)),
            _ => {
                let waits = lock_waits(is_mysql, ask);
                last.insert((clock(), waits))
            }
        };
        for sender in asked {
            // Who has stopped waiting has no use for it.
            let _ = sender.try_send(waits.clone());
        }
    }
}

/// Asks the server for waits.
fn lock_waits(
    is_mysql: bool,
    mut ask: impl FnMut(&str) -> Result<Vec<Vec<Text>>, String>,
) -> LockWaits {
    let from = if is_mysql { MYSQL } else { MARIADB };
    let is_told = match is_mysql {
        true => ask("SELECT @@performance_schema").map(|rows| rows != [["0".as_bytes().into()]]),
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
    rows.map(|rows| rows.iter().filter_map(|row| read(row)).collect())
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
    use std::cell::Cell;

    const NOW: Time = Time(1_000_000_000);

    #[test]
    fn questions_wait_up_to_a_bound() {
        let questions = LockQuestions::default();
        for _ in 0..ASKED_MAX {
            drop(questions.ask().unwrap());
        }
        assert!(questions.ask().is_none());
        questions.answer(false, || NOW, |_| Err("gone".into()));
        assert!(questions.ask().is_some());
    }

    #[test]
    fn the_server_is_asked_again_once_an_answer_is_old() {
        let questions = LockQuestions::default();
        // The server takes as long itself: an answer's age counts from when it came.
        let at = Cell::new(NOW);
        let asked = Cell::new(0);
        let ask = || {
            let waiting = questions.ask().unwrap();
            let server = |_: &str| {
                at.set(at.get() + ANSWER_LIFE);
                asked.set(asked.get() + 1);
                Ok(Vec::new())
            };
            questions.answer(false, || at.get(), server);
            assert_eq!(waiting.recv().unwrap(), Ok(Vec::new()));
            asked.get()
        };
        assert_eq!([ask(), ask()], [1, 1]);
        at.set(NOW + ANSWER_LIFE * 2 - Duration::from_nanos(1));
        assert_eq!(ask(), 1);
        at.set(NOW + ANSWER_LIFE * 2);
        assert_eq!([ask(), ask()], [2, 2]);
    }

    #[test]
    fn all_who_ask_get_one_answer() {
        let questions = LockQuestions::default();
        questions.answer(true, || NOW, |_| panic!("nobody has asked"));
        let waiting = [(); 2].map(|()| questions.ask().unwrap());
        let row = ["7", "8", "3", "shop.orders"].map(|text| text.as_bytes().into());
        let mut asked = 0;
        questions.answer(
            false,
            || NOW,
            |_| {
                asked += 1;
                Ok(vec![row.clone().into(), Vec::new()])
            },
        );
        assert_eq!(asked, 1);
        let mute = questions.ask().unwrap();
        questions.answer(
            true,
            || NOW + ANSWER_LIFE,
            |_| Ok(vec![vec![b"0"[..].into()]]),
        );
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
