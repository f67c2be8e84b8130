//! Pins as bytes, for another process of the pool: they go with the backend that they are for.
//!
//! A plan belongs to a command, and no client goes while one is under way. Invariant: a reason that
//! is not known makes no client.

use super::{Pin, Pins};
use crate::errors::reasons::PinReason;
use reactor::Time;
use session::record::{
    Read, put_age, put_bool, put_list, put_one_of, put_option, read_age, read_bool, read_list,
    read_one_of, read_option, read_text,
};
use sql::classify::PinCause;
use wire::packet::{Reader, put_lenenc_bytes};

/// Reasons that no text of the client's gives, by their number behind those that one does.
const OTHERS: [PinReason; 5] = [
    PinReason::UnexplainedChange,
    PinReason::FailedCode,
    PinReason::TriggersAndViews,
    PinReason::PreparedSchema,
    PinReason::WideCharset,
];

fn all_reasons() -> impl Iterator<Item = PinReason> {
    let texts = PinCause::ALL.into_iter().map(PinReason::Text);
    texts.chain(OTHERS)
}

impl Pins {
    /// Appends them; nothing is planned.
    pub(crate) fn put_record(&self, out: &mut Vec<u8>, now: Time) {
        // Each field has to be named here: one that is new is not forgotten.
        let Pins {
            list,
            coming: _,
            running: _,
            asks,
        } = self;
        put_list(out, list.iter(), |out, pin| {
            let Pin {
                reason,
                since,
                text,
                names,
            } = pin;
            put_one_of(out, all_reasons(), reason);
            put_age(out, now.since(*since));
            put_lenenc_bytes(out, text);
            put_option(out, names.as_ref(), |out, names| {
                put_list(out, names.iter(), |out, name| put_lenenc_bytes(out, name));
            });
        });
        put_bool(out, *asks);
    }

    /// Reads them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn read_record(reader: &mut Reader<'_>, now: Time) -> Read<Pins> {
        let list = read_list(reader, "pins", |reader| {
            Ok(Pin {
                reason: read_one_of(reader, all_reasons(), "a reason")?,
                since: now.ago(read_age(reader, "the age of a pin")?),
                text: read_text(reader, "a statement")?,
                names: read_option(reader, "names", |reader| {
                    read_list(reader, "names", |reader| {
                        Ok(reader.lenenc_bytes("a name")?.into())
                    })
                })?,
            })
        })?;
        Ok(Pins {
            list,
            asks: read_bool(reader, "whether it is asked what is held")?,
            ..Pins::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_read_as_they_were_written() {
        let mut pins = Pins::default();
        let lock = PinReason::Text(PinCause::UserLock);
        pins.add(
            lock,
            Some(b"l".to_vec().into()),
            &b"SELECT GET_LOCK(...".to_vec().into(),
            Time(5),
        );
        pins.add(PinReason::WideCharset, None, &b"".to_vec().into(), Time(9));
        pins.asks = true;
        let mut out = Vec::new();
        pins.put_record(&mut out, Time(20));
        let mut reader = Reader::new(&out);
        let read = Pins::read_record(&mut reader, Time(1020)).unwrap();
        assert!(reader.is_empty() && read.asks);
        let reasons: Vec<PinReason> = read.list.iter().map(|pin| pin.reason).collect();
        assert_eq!(reasons, [lock, PinReason::WideCharset]);
        assert_eq!(read.list[0].since, Time(1005));
        assert_eq!(*read.list[0].text, *b"SELECT GET_LOCK(...");
        assert_eq!(read.names(PinCause::UserLock).unwrap().len(), 1);
        assert!(read.list[1].names.is_none());
        for len in 0..out.len() {
            let cut = Pins::read_record(&mut Reader::new(&out[..len]), Time(20));
            assert!(cut.is_err(), "{len}");
        }
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
