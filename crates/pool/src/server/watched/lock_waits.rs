//! Waits for locks of rows, metadata and names, as the server knows them.
//!
//! The problem: the pool sees that a statement runs for long, not that it waits for a lock, nor who
//! has it. The mechanism: whoever wants to know leaves a place for the answer and fires the
//! watch's trigger; the watch asks on its connection, behind its turn. Nobody asks: it costs
//! nothing.
//!
//! InnoDB answers from a buffer that it fills again once nobody has read it for 0.1 s (MySQL's
//! manual, "Persistence and Consistency of InnoDB Transaction and Locking Information"). Consoles
//! that ask all the time would therefore see the first answer for ever; so the server is asked
//! again once an answer is [`ANSWER_LIFE`] old, and until then that answer serves all.
//!
//! MySQL lists who waits for which metadata or name, and who has it, unless the instrument for it
//! is off. MariaDB lists who has it, with its plugin metadata_lock_info. Of those that wait both
//! tell no more than their state and their text otherwise: they are taken to wait for what the text
//! names. Who waits for the same is no holder, so that SELECTs behind an ALTER lead to whom the
//! ALTER waits for.
//!
//! Bounds: at most [`ASKED_MAX`] wait for an answer, among them those that have given up while the
//! watch stands still; the server is asked once for all of them, and lists [`WAITS_MAX`] of
//! rows and as many others.

use reactor::Time;
use session::text::Text;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Age up to which an answer serves those who ask.
const ANSWER_LIFE: Duration = Duration::from_millis(200);
/// Questions that may wait for an answer.
const ASKED_MAX: usize = 64;
/// Waits for rows that are listed, the longest first, and as many others.
const WAITS_MAX: usize = 1000;
/// Columns of a wait, of the transactions `r` that wait for `b`.
const COLUMNS: &str = "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, \
     GREATEST(0, TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW())) AS waited, 'row', '', ";
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
/// Threads `p` that wait for what `g` has been granted on MySQL.
const MYSQL_METADATA: &str = "SELECT pt.PROCESSLIST_ID, gt.PROCESSLIST_ID, \
     pt.PROCESSLIST_TIME AS waited, IF(p.OBJECT_TYPE = 'USER LEVEL LOCK', 'name', 'metadata'), \
     g.LOCK_TYPE, COALESCE(NULLIF(CONCAT_WS('.', p.OBJECT_SCHEMA, p.OBJECT_NAME), ''), \
     LOWER(p.OBJECT_TYPE)) \
     FROM performance_schema.metadata_locks p \
     JOIN performance_schema.threads pt ON pt.THREAD_ID = p.OWNER_THREAD_ID \
     LEFT JOIN (performance_schema.metadata_locks g \
     JOIN performance_schema.threads gt ON gt.THREAD_ID = g.OWNER_THREAD_ID) \
     ON g.OBJECT_TYPE = p.OBJECT_TYPE AND g.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA \
     AND g.OBJECT_NAME <=> p.OBJECT_NAME AND g.LOCK_STATUS = 'GRANTED' \
     AND g.OWNER_THREAD_ID <> p.OWNER_THREAD_ID \
     AND NOT EXISTS (SELECT 1 FROM performance_schema.metadata_locks w \
     WHERE w.OWNER_THREAD_ID = g.OWNER_THREAD_ID AND w.LOCK_STATUS = 'PENDING' \
     AND w.OBJECT_TYPE = p.OBJECT_TYPE AND w.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA \
     AND w.OBJECT_NAME <=> p.OBJECT_NAME) WHERE p.LOCK_STATUS = 'PENDING'";
/// True (1) where MySQL keeps no metadata locks.
const MYSQL_KEEPS_NONE: &str = "SELECT ENABLED = 'NO' FROM performance_schema.setup_instruments \
     WHERE NAME = 'wait/lock/metadata/sql/mdl'";
/// Says so in place of the lock.
const MYSQL_UNTOLD: &str = "'', '(mdl instrument off)'";
/// Columns of a thread `p` that waits, in front of those of the lock.
const PROCESSLIST_WAITS: &str = "SELECT p.ID, {who}, p.TIME AS waited, \
     IF(p.STATE = 'User lock', 'name', 'metadata'), {lock} FROM information_schema.PROCESSLIST p \
     {join} WHERE p.STATE IN ('User lock', 'Waiting for backup lock') \
     OR p.STATE LIKE 'Waiting for % metadata lock'";
/// Locks `g` of the plugin that such a thread waits for.
const MARIADB_LOCKS: &str = "LEFT JOIN information_schema.METADATA_LOCK_INFO g \
     ON g.THREAD_ID <> p.ID \
     AND p.STATE IN (g.LOCK_TYPE, CONCAT('Waiting for ', LOWER(g.LOCK_TYPE))) \
     AND LOCATE(COALESCE(NULLIF(g.TABLE_NAME, ''), g.TABLE_SCHEMA), p.INFO) \
     AND NOT EXISTS (SELECT 1 FROM information_schema.PROCESSLIST w WHERE w.ID = g.THREAD_ID \
     AND w.STATE = p.STATE \
     AND LOCATE(COALESCE(NULLIF(g.TABLE_NAME, ''), g.TABLE_SCHEMA), w.INFO))";
const MARIADB_LOCK: &str = "g.LOCK_MODE, COALESCE(NULLIF(CONCAT_WS('.', \
     NULLIF(g.TABLE_SCHEMA, ''), NULLIF(g.TABLE_NAME, '')), ''), LOWER(g.LOCK_TYPE))";

/// A thread of the server that waits for a lock of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockWait {
    /// The thread that waits, and the one that has the lock.
    pub(crate) thread: u64,
    pub(crate) blocked_by: Option<u64>,
    pub(crate) seconds: u64,
    /// One of row, metadata and name.
    pub(crate) kind: String,
    /// The table, the lock's name, or the kind of what has no name.
    pub(crate) locked: Option<String>,
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
    if is_mysql && ask("SELECT @@performance_schema")? == [["0".as_bytes().into()]] {
        return Err(
            "the server does not tell (its performance_schema is off); SHOW TRANSACTIONS has \
             those that may hold the lock, the oldest first"
                .to_owned(),
        );
    }
    let mut longest = |text: &str| ask(&format!("{text} ORDER BY waited DESC LIMIT {WAITS_MAX}"));
    let of_rows = longest(&format!(
        "{COLUMNS}{}",
        if is_mysql { MYSQL } else { MARIADB }
    ))?;
    let processes = |who, lock, join| {
        let text = (PROCESSLIST_WAITS.replace("{who}", who)).replace("{lock}", lock);
        text.replace("{join}", join)
    };
    let keeps_none = is_mysql && is_one(&ask(MYSQL_KEEPS_NONE)?);
    let mut longest = |text: &str| ask(&format!("{text} ORDER BY waited DESC LIMIT {WAITS_MAX}"));
    let others = match is_mysql {
        true if keeps_none => longest(&processes("NULL", MYSQL_UNTOLD, ""))?,
        true => longest(MYSQL_METADATA)?,
        // Without its plugin it tells no more than that somebody waits.
        false => longest(&processes("g.THREAD_ID", MARIADB_LOCK, MARIADB_LOCKS))
            .or_else(|_| longest(&processes("NULL", "'', NULL", "")))?,
    };
    let strong = others.iter().filter(|row| is_strong(row));
    let strong: Vec<_> = strong.map(|row| row.first()).collect();
    let real = |row: &&Vec<Text>| is_strong(row) || !strong.contains(&row.first());
    let mut waits: Vec<LockWait> = of_rows
        .iter()
        .chain(others.iter().filter(real))
        .filter_map(|row| read(row))
        .collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.seconds));
    Ok(waits)
}

/// True of an answer that is one row with a 1.
fn is_one(rows: &[Vec<Text>]) -> bool {
    *rows == [["1".as_bytes().into()]]
}

/// True of a metadata lock that others of its table are compatible with, but not who waits beside
/// them: he waits for this one.
fn is_strong(row: &[Text]) -> bool {
    let mode = (row.get(4)).map_or("", |mode| std::str::from_utf8(mode).unwrap_or(""));
    let ends = ["NO_WRITE", "READ_ONLY", "NO_READ_WRITE"];
    ends.iter().any(|end| mode.ends_with(end))
}

/// A wait, of a row.
fn read(row: &[Text]) -> Option<LockWait> {
    let text = |at: usize| std::str::from_utf8(row.get(at)?).ok();
    Some(LockWait {
        thread: text(0)?.parse().ok()?,
        blocked_by: text(1).and_then(|thread| thread.parse().ok()),
        seconds: text(2)?.parse().unwrap_or(0),
        kind: text(3)?.to_owned(),
        locked: text(5)
            .filter(|locked| !locked.is_empty())
            .map(str::to_owned),
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
        assert_eq!([ask(), ask()], [2, 2]);
        at.set(NOW + ANSWER_LIFE * 3 - Duration::from_nanos(1));
        assert_eq!(ask(), 2);
        at.set(NOW + ANSWER_LIFE * 3);
        assert_eq!([ask(), ask()], [4, 4]);
    }

    #[test]
    fn all_who_ask_get_one_answer() {
        let questions = LockQuestions::default();
        questions.answer(true, || NOW, |_| panic!("nobody has asked"));
        let waiting = [(); 2].map(|()| questions.ask().unwrap());
        let row = |cells: [&str; 6]| Vec::from(cells.map(|cell| Text::from(cell.as_bytes())));
        let mut asked = 0;
        questions.answer(
            false,
            || NOW,
            |_| {
                asked += 1;
                Ok(match asked {
                    1 => vec![row(["7", "8", "3", "row", "", "shop.orders"]), Vec::new()],
                    // The second transaction reads what the first one may not write meanwhile.
                    _ => vec![
                        row([
                            "9",
                            "5",
                            "4",
                            "metadata",
                            "MDL_SHARED_NO_WRITE",
                            "shop.carts",
                        ]),
                        row(["9", "6", "4", "metadata", "MDL_SHARED_READ", "shop.carts"]),
                        row(["4", "", "1", "name", "", ""]),
                    ],
                })
            },
        );
        assert_eq!(asked, 2);
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
        let wait = |thread, blocked_by, seconds, kind: &str, locked: Option<&str>| LockWait {
            thread,
            blocked_by,
            seconds,
            kind: kind.into(),
            locked: locked.map(str::to_owned),
        };
        let waits = vec![
            wait(9, Some(5), 4, "metadata", Some("shop.carts")),
            wait(7, Some(8), 3, "row", Some("shop.orders")),
            wait(4, None, 1, "name", None),
        ];
        for answer in waiting {
            assert_eq!(answer.recv().unwrap(), Ok(waits.clone()));
        }
    }
}
