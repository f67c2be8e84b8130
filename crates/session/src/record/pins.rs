//! Pins as bytes, for another process of the pool: they go with the backend that they are for.
//!
//! A plan belongs to a command, and no client goes while one is under way. Invariant: a reason that
//! is not known makes no client.

use super::{Pin, PinList, PinReason, Pins};
use crate::record::{
    Read, put_age, put_bool, put_list, put_one_of, put_option, read_age, read_bool, read_list,
    read_one_of, read_option, read_text,
};
use sql::classify::PinCause;
use std::time::Duration;
use wire::packet::{Reader, put_lenenc_bytes};

/// Reasons that no text of the client's gives, by their number behind those that one does.
const OTHERS: [PinReason; 4] = [
    PinReason::UnexplainedChange,
    PinReason::TriggersAndViews,
    PinReason::PreparedSchema,
    PinReason::WideCharset,
];

fn all_reasons() -> impl Iterator<Item = PinReason> {
    let texts = PinCause::ALL.into_iter().map(PinReason::Text);
    texts.chain(OTHERS)
}

/// The moment so long before this one; the first of all where there is none.
fn ago(now: u64, age: Duration) -> u64 {
    now.saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX))
}

impl Pins {
    /// Appends them; nothing is planned.
    pub fn put_record(&self, out: &mut Vec<u8>, now: u64) {
        put_option(out, self.0.as_deref(), |out, pins| pins.put(out, now));
    }

    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read_record(reader: &mut Reader<'_>, now: u64) -> Read<Pins> {
        let pins = read_option(reader, "pins", |reader| PinList::read(reader, now))?;
        Ok(Pins(pins.map(Box::new)))
    }
}

impl PinList {
    fn put(&self, out: &mut Vec<u8>, now: u64) {
        // Each field has to be named here: one that is new is not forgotten.
        let PinList {
            list,
            coming: _,
            running: _,
            asks,
            slot: _,
        } = self;
        put_list(out, list.iter(), |out, pin| {
            let Pin {
                reason,
                since,
                text,
                names,
            } = pin;
            put_one_of(out, all_reasons(), reason);
            put_age(out, Duration::from_nanos(now.saturating_sub(*since)));
            put_lenenc_bytes(out, text);
            put_option(out, names.as_ref(), |out, names| {
                put_list(out, names.iter(), |out, name| put_lenenc_bytes(out, name));
            });
        });
        put_bool(out, *asks);
    }

    fn read(reader: &mut Reader<'_>, now: u64) -> Read<PinList> {
        let list = read_list(reader, "pins", |reader| {
            Ok(Pin {
                reason: read_one_of(reader, all_reasons(), "a reason")?,
                since: ago(now, read_age(reader, "the age of a pin")?),
                text: read_text(reader, "a statement")?,
                names: read_option(reader, "names", |reader| {
                    read_list(reader, "names", |reader| {
                        Ok(reader.lenenc_bytes("a name")?.into())
                    })
                })?,
            })
        })?;
        Ok(PinList {
            list,
            asks: read_bool(reader, "whether it is asked what is held")?,
            ..PinList::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply_summary::ReplySummary;

    fn held() -> Pins {
        let mut pins = Pins::default();
        let lock = Some(b"l".to_vec().into());
        pins.add(PinReason::Text(PinCause::UserLock), lock, 5);
        pins.add(PinReason::WideCharset, None, 9);
        let plan = pins.plan(b"CREATE TEMPORARY TABLE t (x INT)");
        let table = b"d\0t".to_vec().into();
        plan.acquired.taken.push((PinCause::TemporaryTable, table));
        pins.sent(15);
        pins.answered(&ReplySummary::default());
        pins.ask_again();
        pins
    }

    #[test]
    fn holds_are_read_as_they_were_written() {
        let mut out = Vec::new();
        held().put_record(&mut out, 20);
        let mut reader = Reader::new(&out);
        let read = Pins::read_record(&mut reader, 1020).unwrap();
        assert!(reader.is_empty() && read.asks());
        let reasons: Vec<PinReason> = read.list().iter().map(|pin| pin.reason).collect();
        let (lock, table) = (PinCause::UserLock, PinCause::TemporaryTable);
        let expected = [
            PinReason::Text(lock),
            PinReason::WideCharset,
            PinReason::Text(table),
        ];
        assert_eq!(reasons, expected);
        assert_eq!((read.list()[0].since, read.list()[2].since), (1005, 1015));
        assert_eq!(*read.list()[2].text, *b"CREATE TEMPORARY TABLE t (x INT)");
        assert!(read.has(lock, b"l") && read.has(table, b"d\0t"));
        assert!(read.list()[1].names.is_none());
        assert!(!read.is_under_way());
        for len in 0..out.len() {
            let cut = Pins::read_record(&mut Reader::new(&out[..len]), 20);
            assert!(cut.is_err(), "{len}");
        }
    }

    #[test]
    fn a_client_without_any_is_one_byte() {
        let mut out = Vec::new();
        Pins::default().put_record(&mut out, 7);
        assert_eq!(out, [0]);
        assert!(
            Pins::read_record(&mut Reader::new(&out), 7)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_reason_that_nobody_knows_makes_no_client() {
        let mut out = Vec::new();
        held().put_record(&mut out, 20);
        // Yes, three of them, and the number of the first.
        let known = u8::try_from(PinCause::ALL.len() + OTHERS.len()).unwrap();
        for number in [known, 250] {
            out[2] = number;
            assert!(Pins::read_record(&mut Reader::new(&out), 20).is_err());
        }
        out[2] = known - 1;
        assert!(Pins::read_record(&mut Reader::new(&out), 20).is_ok());
    }

    #[test]
    fn an_age_from_before_the_clock_began_is_its_beginning() {
        let mut out = Vec::new();
        held().put_record(&mut out, 20);
        let read = Pins::read_record(&mut Reader::new(&out), 3).unwrap();
        assert_eq!(read.list()[0].since, 0);
    }

    #[test]
    fn each_reason_has_a_number_of_its_own() {
        for reason in all_reasons() {
            let mut out = Vec::new();
            put_one_of(&mut out, all_reasons(), &reason);
            let read = read_one_of(&mut Reader::new(&out), all_reasons(), "a reason");
            assert_eq!(read.unwrap(), reason);
        }
    }
}
