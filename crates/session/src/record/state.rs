//! A session as bytes, for another process ([`crate::record`]).
//!
//! The global values that it began under go by their version; the reader has been sent them, and
//! what its own process begins with otherwise becomes the session's own.
//!
//! Invariant: a session that is read is equal to the one that was written, or it is not read.

use super::{Session, UserVariables};
use crate::global_defaults::{GlobalDefaults, alias_of};
use crate::meter::Meter;
use crate::record::{
    PeerDefaults, Read, put_bool, put_list, put_one_of, put_option, read_bool, read_list,
    read_one_of, read_option, read_text,
};
use crate::uncompared::{Accepted, Uncompared};
use sql::tracking::Tracked;
use std::rc::Rc;
use wire::packet::{Reader, put_lenenc, put_lenenc_bytes};
use wire::track::{Transactions, Wanted};

/// Levels of reports of transactions, by the number in a record.
const TRANSACTIONS: [Transactions; 4] = [
    Transactions::Nothing,
    Transactions::Bounds,
    Transactions::State,
    Transactions::Characteristics,
];

fn put_text(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    put_lenenc_bytes(out, text.as_ref());
}

impl Session {
    /// Appends it. The global values that it began under go by their version alone: whoever reads
    /// it has to have been sent them.
    pub fn put_record(&self, out: &mut Vec<u8>) {
        // Each field has to be named here: one that is new is not forgotten.
        let Session {
            schema,
            multi_statements,
            results_collation,
            defaults,
            variables,
            role,
            user,
            releases,
            tracked,
            accepted: _,
            lex_mode: _,
        } = self;
        put_lenenc(out, defaults.version());
        put_option(out, schema.as_ref(), put_text);
        put_bool(out, *multi_statements);
        put_option(out, results_collation.as_ref(), put_text);
        put_list(out, variables.iter(), |out, (name, value)| {
            put_text(out, name);
            put_text(out, value);
        });
        put_option(out, role.as_ref(), put_text);
        put_list(out, user.pairs().iter(), |out, (name, literal)| {
            put_text(out, name);
            put_text(out, literal);
        });
        put_bool(out, *releases);
        put_option(out, tracked.as_deref(), put_tracked);
    }

    /// Reads one, of a process that began its sessions as in `begun_there`; here they begin with
    /// `now`.
    ///
    /// # Errors
    /// [`RecordError::Malformed`]; [`RecordError::NotCarried`] where it cannot be the same here.
    pub fn read_record(
        reader: &mut Reader<'_>,
        peer_defaults: &[PeerDefaults],
        now: &GlobalDefaults,
        meter: &Meter,
    ) -> Read<Session> {
        let version = reader.lenenc("a version of global values")?;
        let schema = read_option(reader, "a schema", |r| read_text(r, "a schema"))?;
        let multi_statements = read_bool(reader, "whether several statements may stand in one")?;
        let results_collation = read_option(reader, "a collation of results", |r| {
            read_text(r, "a collation of results")
        })?;
        let variables = read_pairs(reader)?;
        let role = read_option(reader, "a role", |r| read_text(r, "a role"))?;
        let user = read_pairs(reader)?;
        let releases = read_bool(reader, "whether COMMIT ends the connection")?;
        let tracked = read_option(reader, "what is tracked", read_tracked)?;
        for (name, _) in &variables {
            if !super::is_name(name) {
                return Err(reader.malformed("the name of a system variable").into());
            }
        }
        if !variables.is_sorted_by(|one, two| one.0 < two.0) {
            return Err(reader.malformed("variables in order").into());
        }
        let there = peer_defaults
            .iter()
            .find(|there| there.version() == version);
        let there = there.ok_or_else(|| reader.malformed("global values that were sent"))?;
        let user: Vec<_> = user
            .into_iter()
            .map(|(name, literal)| (name, literal.into_vec()))
            .collect();
        let mut session = Session {
            schema,
            multi_statements,
            results_collation,
            defaults: now.clone(),
            variables,
            role,
            user: UserVariables::default().with(&user, meter),
            releases,
            tracked: tracked.map(Rc::new),
            accepted: Accepted::default(),
            lex_mode: Uncompared::default(),
        };
        let listed = |name: &[u8]| {
            let has = |name: &[u8]| session.variable(name).is_some();
            has(name) || alias_of(name).is_some_and(has)
        };
        let besides = there.besides(now, listed)?;
        for (name, value) in besides {
            session.put(&name, &value);
        }
        // COMMIT does what it did, whatever that follows from here.
        session.releases = releases;
        Ok(session)
    }
}

fn read_pairs(reader: &mut Reader<'_>) -> Read<Vec<(super::Text, super::Text)>> {
    read_list(reader, "variables", |reader| {
        Ok((
            read_text(reader, "a variable's name")?,
            read_text(reader, "a variable's value")?,
        ))
    })
}

fn put_tracked(out: &mut Vec<u8>, tracked: &Tracked) {
    let Tracked { variables, wanted } = tracked;
    let Wanted {
        variables: names,
        schema,
        state,
        transactions,
    } = wanted;
    put_text(out, variables);
    put_list(out, names.iter(), put_text);
    put_bool(out, *schema);
    put_bool(out, *state);
    put_one_of(out, TRANSACTIONS, transactions);
}

fn read_tracked(reader: &mut Reader<'_>) -> Read<Tracked> {
    let variables = read_text(reader, "the list of tracked variables")?;
    let names = read_list(reader, "tracked variables", |r| {
        read_text(r, "a tracked variable")
    })?;
    let schema = read_bool(reader, "whether the schema is tracked")?;
    let state = read_bool(reader, "whether changes are tracked")?;
    let transactions = read_one_of(reader, TRANSACTIONS, "what is tracked of transactions")?;
    Ok(Tracked {
        variables,
        wanted: Wanted {
            variables: names,
            schema,
            state,
            transactions,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordError;
    use crate::text::Text;

    /// Numbers from a seed.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }

        fn text(&mut self) -> Text {
            let len = self.below(300);
            let bytes = (0..len).map(|_| u8::try_from(self.below(256)).unwrap());
            bytes.collect()
        }

        fn maybe(&mut self) -> Option<Text> {
            (self.below(2) == 1).then(|| self.text())
        }
    }

    fn drawn(numbers: &mut Numbers, defaults: &GlobalDefaults, meter: &Meter) -> Session {
        let mut session = Session::not_known(defaults);
        session.schema = numbers.maybe();
        session.multi_statements = numbers.below(2) == 1;
        session.results_collation = numbers.maybe();
        session.role = numbers.maybe();
        for _ in 0..numbers.below(20) {
            let name = format!("variable_{}", numbers.below(50));
            let value = numbers.text();
            session.put(name.as_bytes(), &value);
        }
        session.releases = numbers.below(2) == 1;
        let changes: Vec<_> = (0..numbers.below(9))
            .map(|at| (Text::from(format!("u{at}").as_bytes()), b"'x'".to_vec()))
            .collect();
        session.set_user_variables(session.user_variables().with(&changes, meter));
        if numbers.below(2) == 1 {
            let transactions = TRANSACTIONS[usize::try_from(numbers.below(4)).unwrap()];
            session.tracked = Some(Rc::new(Tracked {
                variables: numbers.text(),
                wanted: Wanted {
                    variables: vec![numbers.text()],
                    schema: numbers.below(2) == 1,
                    state: numbers.below(2) == 1,
                    transactions,
                },
            }));
        }
        session
    }

    fn defaults() -> GlobalDefaults {
        let names = ["autocommit", "sql_mode"].map(|name| Text::from(name.as_bytes()));
        let values = ["ON", ""].map(|value| Some(Text::from(value.as_bytes())));
        let defaults = GlobalDefaults::named(names.into());
        defaults.with(values.into(), Text::default()).unwrap()
    }

    fn there(defaults: &GlobalDefaults) -> PeerDefaults {
        let mut out = Vec::new();
        PeerDefaults::put(&mut out, defaults);
        PeerDefaults::read(&mut Reader::new(&out)).unwrap()
    }

    #[test]
    fn any_session_is_read_as_it_was_written() {
        let (defaults, meter) = (defaults(), Meter::default());
        let there = [there(&defaults)];
        let mut numbers = Numbers(20_261_123);
        for _ in 0..200 {
            let session = drawn(&mut numbers, &defaults, &meter);
            let mut out = Vec::new();
            session.put_record(&mut out);
            let mut reader = Reader::new(&out);
            let read = Session::read_record(&mut reader, &there, &defaults, &meter);
            assert_eq!(read.as_ref(), Ok(&session));
            assert!(reader.is_empty());
            // Cut off at any place, it is refused.
            let cut = usize::try_from(numbers.below(out.len() as u64)).unwrap();
            let mut reader = Reader::new(&out[..cut]);
            let read = Session::read_record(&mut reader, &there, &defaults, &meter);
            assert!(matches!(read, Err(RecordError::Malformed(_))), "{cut}");
            // Garbled, it is no panic, and mostly refused.
            let at = usize::try_from(numbers.below(out.len() as u64)).unwrap();
            out[at] = out[at].wrapping_add(1);
            let _ = Session::read_record(&mut Reader::new(&out), &there, &defaults, &meter);
        }
    }

    #[test]
    fn a_session_keeps_the_values_that_it_began_with() {
        let meter = Meter::default();
        let old = defaults();
        let values = ["OFF", "ANSI"].map(|value| Some(Text::from(value.as_bytes())));
        let new = old.with(values.into(), Text::default()).unwrap();
        let mut session = Session::not_known(&old);
        session.put(b"sql_mode", b"TRADITIONAL");
        let mut out = Vec::new();
        session.put_record(&mut out);
        let mut reader = Reader::new(&out);
        let read = Session::read_record(&mut reader, &[there(&old)], &new, &meter).unwrap();
        assert_eq!(read.variable(b"autocommit"), Some(&b"ON"[..]));
        assert_eq!(read.value(b"sql_mode"), Some(&b"TRADITIONAL"[..]));
        let unknown = Session::read_record(&mut Reader::new(&out), &[], &new, &meter);
        assert!(unknown.is_err(), "which values those were was not sent");
    }
}
