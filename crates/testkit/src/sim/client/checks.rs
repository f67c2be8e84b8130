//! Checks of a result by its client.
//!
//! The server's memory of executions says where the statement ran, the belief what its rows must
//! say, and at the end the log what was kept and what was not.

use super::{Asked, SimClient};
use crate::reply::Rows;
use crate::sim::fake_mysql::Db;
use crate::sim::script::Kind;

impl SimClient {
    /// Checks that a statement ran once, and where the rest of its transaction ran.
    pub(super) fn check_execution(&mut self, db: &Db, asked: &Asked) {
        let Some(execution) = db.executed.get(&asked.tag) else {
            return self.wrong(&format!("{asked:?} was answered and never executed"));
        };
        if let Some(begin) = self.belief.transaction {
            let Some(first) = db.executed.get(&begin) else {
                // It began without a tag, and this is the first statement in it.
                if execution.transaction.is_none() {
                    self.wrong::<()>(&format!("{asked:?} ran outside of its transaction"));
                }
                self.belief.transaction = Some(asked.tag);
                return;
            };
            let same = first.seat == execution.seat && first.transaction == execution.transaction;
            if !same && asked.kind != Kind::Begin {
                self.wrong::<()>(&format!(
                    "{asked:?} ran at {execution:?}, BEGIN at {first:?}"
                ));
            }
        } else if execution.transaction.is_some() && asked.kind != Kind::Begin {
            self.wrong::<()>(&format!("{asked:?} ran in a transaction: {execution:?}"));
        }
    }

    pub(super) fn check_rows(&self, asked: &Asked, rows: &Rows) {
        let text = |value: &Option<Vec<u8>>| {
            let bytes = value.as_ref()?;
            Some(self.belief.heard(&String::from_utf8_lossy(bytes)))
        };
        let last = rows.rows.last().cloned().unwrap_or_default();
        let last: Vec<Option<String>> = last.iter().map(text).collect();
        let belief = &self.belief;
        let words = Some(belief.words(&asked.kind));
        let expected = match belief.ran(&asked.kind) {
            Kind::ShowWarnings => match belief.warned {
                Some(tag) => {
                    let about = Some(format!("about {tag}"));
                    vec![Some("Warning".into()), Some("1".into()), about]
                }
                None => Vec::new(),
            },
            Kind::LastInsertId => vec![Some(belief.insert_id.to_string()), words],
            Kind::ReadUser(name) => {
                vec![belief.user[name].map(|value| value.to_string()), words]
            }
            _ => vec![Some(asked.tag.to_string()), words],
        };
        let unsure = asked.kind == Kind::ShowWarnings && belief.unsure;
        if last != expected && !unsure {
            self.wrong::<()>(&format!("{asked:?} got {last:?}, expected {expected:?}"));
        }
    }

    /// Checks that the log agrees with what the client was told.
    pub(crate) fn check_log(&self, db: &Db) {
        for tag in &self.not_executed {
            assert!(
                !db.executed.contains_key(tag),
                "statement {tag} was executed, and its client told that it was not"
            );
        }
        for (tags, times) in [(&self.kept, 1), (&self.dropped, 0)] {
            for tag in tags {
                let found = db.log.get(tag).copied().unwrap_or_default();
                assert!(found == times, "row {tag} is {found} times in the log");
            }
        }
    }
}
