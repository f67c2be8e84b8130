//! A session as a record.
//!
//! The global values that it began under go by their version; the reader has been sent them, and
//! what its own process begins with otherwise becomes the session's own.
//!
//! Invariant: a session that is read is equal to the one that was written, or it is not read.

use super::{Here, NotCarried};
use crate::global_defaults::{GlobalDefaults, alias_of};
use crate::state::{Session, UserVariables, is_name};
use crate::text::Text;
use serde::{Deserialize, Serialize};
use sql::tracking::Tracked;
use std::rc::Rc;

/// A session of another process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Version of the global values under which it began.
    began_under: u64,
    schema: Option<Text>,
    multi_statements: bool,
    results_collation: Option<Text>,
    variables: Vec<(Text, Text)>,
    role: Option<Text>,
    user: Vec<(Text, Text)>,
    releases: bool,
    tracked: Option<Tracked>,
}

impl From<&Session> for SessionRecord {
    fn from(session: &Session) -> SessionRecord {
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
        } = session;
        let pair = |(name, literal): &(Text, Rc<[u8]>)| (name.clone(), Text::from(&**literal));
        SessionRecord {
            began_under: defaults.version(),
            schema: schema.clone(),
            multi_statements: *multi_statements,
            results_collation: results_collation.clone(),
            variables: variables.clone(),
            role: role.clone(),
            user: user.pairs().iter().map(pair).collect(),
            releases: *releases,
            tracked: tracked.as_deref().cloned(),
        }
    }
}

impl SessionRecord {
    /// The session, in this process.
    ///
    /// # Errors
    /// [`NotCarried`] where it cannot be equal here.
    pub fn into_session(self, here: Here<'_>) -> Result<Session, NotCarried> {
        if !self.variables.iter().all(|(name, _)| is_name(name)) {
            return Err(NotCarried("a session has no such system variable"));
        }
        if !self.variables.is_sorted_by(|one, two| one.0 < two.0) {
            return Err(NotCarried("a session's variables are not in order"));
        }
        let mut there = here.peer_defaults.iter();
        let there = there.find(|there| there.version() == self.began_under);
        let there = there.ok_or(NotCarried(
            "the global values that a session began under were not sent",
        ))?;
        let user = self.user.into_iter();
        let user: Vec<_> = user
            .map(|(name, literal)| (name, literal.into_vec()))
            .collect();
        // Under values that nobody knew it goes on so: those of now are not the ones.
        let unknown = GlobalDefaults::default();
        let mut session = Session::not_known(match there.version() {
            0 => &unknown,
            _ => here.defaults,
        });
        session.schema = self.schema;
        session.multi_statements = self.multi_statements;
        session.results_collation = self.results_collation;
        session.variables = self.variables;
        session.role = self.role;
        session.set_user_variables(UserVariables::default().with(&user, here.variables));
        session.tracked = self.tracked.map(Rc::new);
        let listed = |name: &[u8]| {
            let has = |name: &[u8]| session.variable(name).is_some();
            has(name) || alias_of(name).is_some_and(has)
        };
        for (name, value) in there.besides(here.defaults, listed)? {
            session.put(&name, &value);
        }
        // COMMIT does what it did, whatever that follows from here.
        session.releases = self.releases;
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Meter;
    use crate::record::PeerDefaults;
    use wire::track::{Transactions, Wanted};

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
            let transactions = [
                Transactions::Nothing,
                Transactions::Bounds,
                Transactions::State,
                Transactions::Characteristics,
            ][usize::try_from(numbers.below(4)).unwrap()];
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

    fn came(
        session: &Session,
        there: &[PeerDefaults],
        now: &GlobalDefaults,
        meter: &Meter,
    ) -> Result<Session, NotCarried> {
        SessionRecord::from(session).into_session(Here {
            peer_defaults: there,
            defaults: now,
            variables: meter,
            conditions: meter,
        })
    }

    #[test]
    fn any_session_is_read_as_it_was_written() {
        let (defaults, meter) = (defaults(), Meter::default());
        let there = [PeerDefaults::of(&defaults)];
        let mut numbers = Numbers(20_261_123);
        for _ in 0..200 {
            let session = drawn(&mut numbers, &defaults, &meter);
            assert_eq!(came(&session, &there, &defaults, &meter), Ok(session));
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
        let read = came(&session, &[PeerDefaults::of(&old)], &new, &meter).unwrap();
        assert_eq!(read.variable(b"autocommit"), Some(&b"ON"[..]));
        assert_eq!(read.value(b"sql_mode"), Some(&b"TRADITIONAL"[..]));
        let unsent = came(&session, &[], &new, &meter);
        assert!(unsent.is_err(), "which values those were was not sent");
        let unknown = GlobalDefaults::default();
        let session = drawn(&mut Numbers(7), &unknown, &meter);
        let read = came(&session, &[PeerDefaults::of(&unknown)], &new, &meter);
        assert_eq!(
            read,
            Ok(session),
            "it is not taken to have begun under the new ones"
        );
    }

    #[test]
    fn what_no_session_has_makes_none() {
        let (defaults, meter) = (defaults(), Meter::default());
        let there = [PeerDefaults::of(&defaults)];
        let (a, b, odd) = (b"a", b"b", b"a b");
        for names in [[&b[..], a], [a, a], [a, odd]] {
            let mut session = Session::not_known(&defaults);
            session.variables = names.map(|name| (name.into(), b"1"[..].into())).into();
            assert!(came(&session, &there, &defaults, &meter).is_err());
        }
    }
}
