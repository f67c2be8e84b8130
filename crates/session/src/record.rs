//! Values of a session as bytes: how a session goes to another process of the pool.
//!
//! A value writes itself behind what is there, and reads itself from the front of what is left.
//! Lengths stand in front of texts and lists, and nothing is reserved before its bytes are there,
//! so a record that is cut off or garbled is an error and never a wrong session. What each value
//! has stands in a file of the folder `record`, as a module of that value, which names its fields;
//! the version of all of them together is the one of the pool's records.
//!
//! Invariants: what was written is read as an equal value; what cannot be carried exactly is
//! [`RecordError::NotCarried`], never a guess.

use crate::global_defaults::GlobalDefaults;
use crate::text::Text;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use wire::packet::{Malformed, Reader, put_lenenc, put_lenenc_bytes};

/// Reason for which a record is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Content other than its place calls for.
    Malformed(Malformed),
    /// Well formed, but no value that this process can have.
    NotCarried(&'static str),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Malformed(Malformed { what, at, len }) => write!(
                f,
                "a record of {len} bytes cannot be read: expected {what} at byte {at}"
            ),
            RecordError::NotCarried(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<Malformed> for RecordError {
    fn from(malformed: Malformed) -> RecordError {
        RecordError::Malformed(malformed)
    }
}

/// Result of reading.
pub type Read<T> = Result<T, RecordError>;

/// Appends yes or no.
pub fn put_bool(out: &mut Vec<u8>, yes: bool) {
    out.push(u8::from(yes));
}

/// Yes or no.
///
/// # Errors
/// [`RecordError::Malformed`] when it is neither.
pub fn read_bool(reader: &mut Reader<'_>, what: &'static str) -> Read<bool> {
    match reader.u8(what)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.malformed(what).into()),
    }
}

/// Appends a value that may be missing.
pub fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    put_bool(out, value.is_some());
    if let Some(value) = value {
        put(out, value);
    }
}

/// A value that may be missing.
///
/// # Errors
/// As reading the value.
pub fn read_option<'a, T>(
    reader: &mut Reader<'a>,
    what: &'static str,
    read: impl FnOnce(&mut Reader<'a>) -> Read<T>,
) -> Read<Option<T>> {
    match read_bool(reader, what)? {
        true => read(reader).map(Some),
        false => Ok(None),
    }
}

/// Appends how many values follow, and each.
pub fn put_list<T>(
    out: &mut Vec<u8>,
    list: impl ExactSizeIterator<Item = T>,
    mut put: impl FnMut(&mut Vec<u8>, T),
) {
    put_lenenc(out, list.len() as u64);
    list.for_each(|value| put(out, value));
}

/// Each value of a list. One takes a byte at least, so what is left of the record bounds them.
///
/// # Errors
/// As reading each value.
pub fn read_list<'a, T>(
    reader: &mut Reader<'a>,
    what: &'static str,
    mut read: impl FnMut(&mut Reader<'a>) -> Read<T>,
) -> Read<Vec<T>> {
    let count = reader.lenenc(what)?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(read(reader)?);
    }
    Ok(list)
}

/// A text.
///
/// # Errors
/// [`RecordError::Malformed`] when it is cut off.
pub fn read_text(reader: &mut Reader<'_>, what: &'static str) -> Read<Text> {
    Ok(reader.lenenc_bytes(what)?.into())
}

/// A number that fits the type that is wanted.
///
/// # Errors
/// [`RecordError::Malformed`] when it does not.
pub fn read_number<T: TryFrom<u64>>(reader: &mut Reader<'_>, what: &'static str) -> Read<T> {
    let number = reader.lenenc(what)?;
    T::try_from(number).map_err(|_| reader.malformed(what).into())
}

/// Appends which of these a value is. One that is not among them is refused where it is read.
pub fn put_one_of<T: PartialEq>(out: &mut Vec<u8>, all: impl IntoIterator<Item = T>, value: &T) {
    let place = all.into_iter().position(|each| each == *value);
    put_lenenc(out, place.map_or(u64::MAX, |place| place as u64));
}

/// Value that the number at hand stands for, of these.
///
/// # Errors
/// [`RecordError::Malformed`] when it is none of them.
pub fn read_one_of<T>(
    reader: &mut Reader<'_>,
    all: impl IntoIterator<Item = T>,
    what: &'static str,
) -> Read<T> {
    let place = read_number(reader, what)?;
    let value = all.into_iter().nth(place);
    value.ok_or_else(|| reader.malformed(what).into())
}

/// Appends how old something is: another process has a clock of its own.
pub fn put_age(out: &mut Vec<u8>, age: Duration) {
    put_lenenc(out, u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
}

/// Age of something.
///
/// # Errors
/// [`RecordError::Malformed`] when it is cut off.
pub fn read_age(reader: &mut Reader<'_>, what: &'static str) -> Read<Duration> {
    Ok(Duration::from_nanos(reader.lenenc(what)?))
}

/// The global values that a session of another process began under.
///
/// Both processes count the changes that they have seen ([`GlobalDefaults::version`]), so the
/// number means nothing here: what counts are the values.
#[derive(Clone, Debug, Default)]
pub struct PeerDefaults {
    version: u64,
    values: Vec<(Text, Option<Text>)>,
    /// Differences from the values of this process, for the version that was asked about last: they
    /// are equal for all sessions, and mostly none.
    differing: RefCell<Option<(u64, Rc<Differing>)>>,
}

/// Differences between two sets of global values.
#[derive(Debug, Default)]
struct Differing {
    /// Variables that are not known of the other process.
    not_there: Vec<Text>,
    /// Variables with another value, and that of the other process.
    otherwise: Vec<(Text, Option<Text>)>,
}

impl PeerDefaults {
    /// Appends what a session of this process began under.
    pub fn put(out: &mut Vec<u8>, defaults: &GlobalDefaults) {
        put_lenenc(out, defaults.version());
        let known = defaults.version() > 0;
        let names = match known {
            true => defaults.names(),
            false => &[],
        };
        put_list(out, names.iter(), |out, name| {
            put_lenenc_bytes(out, name);
            put_option(out, defaults.value(name), |out, value| {
                put_lenenc_bytes(out, value);
            });
        });
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    pub fn read(reader: &mut Reader<'_>) -> Read<PeerDefaults> {
        let version = reader.lenenc("a version of global values")?;
        let values = read_list(reader, "global values", |reader| {
            let name = read_text(reader, "a variable's name")?;
            let value = read_option(reader, "a global value", |reader| {
                read_text(reader, "a global value")
            })?;
            Ok((name, value))
        })?;
        Ok(PeerDefaults {
            version,
            values,
            differing: RefCell::default(),
        })
    }

    /// Version of the values in their own process.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The variables, with their values, that a session must have as its own so that with `now` it
    /// is what it was with these. `listed` says which it has as its own anyway.
    ///
    /// # Errors
    /// [`RecordError::NotCarried`] where a value is not known, or is NULL.
    pub fn besides(
        &self,
        now: &GlobalDefaults,
        listed: impl Fn(&[u8]) -> bool,
    ) -> Read<Vec<(Text, Text)>> {
        if self.version == 0 && now.version() == 0 {
            return Ok(Vec::new());
        }
        if self.version == 0 || now.version() == 0 {
            return Err(RecordError::NotCarried(
                "the server's global values are known to one of the two processes only",
            ));
        }
        let differing = self.differing(now);
        if differing.not_there.iter().any(|name| !listed(name)) {
            return Err(RecordError::NotCarried(
                "the other process does not know all variables of a session",
            ));
        }
        let mut besides = Vec::new();
        for (name, value) in differing.otherwise.iter().filter(|(name, _)| !listed(name)) {
            match value {
                Some(value) => besides.push((name.clone(), value.clone())),
                None => {
                    return Err(RecordError::NotCarried(
                        "the session began with NULL where sessions of now do not",
                    ));
                }
            }
        }
        Ok(besides)
    }

    fn differing(&self, now: &GlobalDefaults) -> Rc<Differing> {
        let mut known = self.differing.borrow_mut();
        if let Some((version, differing)) = &*known
            && *version == now.version()
        {
            return differing.clone();
        }
        let is_there = |name: &Text| {
            let found = self.values.binary_search_by(|(other, _)| other.cmp(name));
            found.is_ok()
        };
        let all = now.names().iter();
        let not_there = all.filter(|name| !is_there(name)).cloned().collect();
        let differs = |(name, value): &&(Text, Option<Text>)| now.value(name) != value.as_deref();
        let otherwise = self.values.iter().filter(differs).cloned().collect();
        let differing = Rc::new(Differing {
            not_there,
            otherwise,
        });
        *known = Some((now.version(), differing.clone()));
        differing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        text.as_bytes().into()
    }

    fn defaults(values: &[(&str, Option<&str>)]) -> GlobalDefaults {
        let names = values.iter().map(|(name, _)| text(name)).collect();
        let values = values.iter().map(|(_, value)| value.map(text)).collect();
        GlobalDefaults::named(names)
            .with(values, Text::default())
            .unwrap()
    }

    fn sent(defaults: &GlobalDefaults) -> PeerDefaults {
        let mut out = Vec::new();
        PeerDefaults::put(&mut out, defaults);
        let mut reader = Reader::new(&out);
        let read = PeerDefaults::read(&mut reader).unwrap();
        assert!(reader.is_empty());
        for len in 0..out.len() {
            assert!(PeerDefaults::read(&mut Reader::new(&out[..len])).is_err());
        }
        read
    }

    #[test]
    fn a_value_is_told_by_its_place_and_none_but_those_there_are() {
        let mut out = Vec::new();
        put_one_of(&mut out, ["a", "b", "c"], &"c");
        assert_eq!(out, [2]);
        let read = |bytes: &[u8]| read_one_of(&mut Reader::new(bytes), ["a", "b", "c"], "a letter");
        assert_eq!(read(&[1]).unwrap(), "b");
        assert!(read(&[3]).is_err() && read(&[]).is_err());
        out.clear();
        put_one_of(&mut out, ["a", "b", "c"], &"x");
        assert!(read(&out).is_err());
    }

    #[test]
    fn what_began_otherwise_becomes_the_sessions_own() {
        let there = sent(&defaults(&[
            ("a", Some("1")),
            ("b", None),
            ("c", Some("3")),
        ]));
        let same = defaults(&[("a", Some("1")), ("b", None), ("c", Some("3"))]);
        assert_eq!(there.besides(&same, |_| false), Ok(vec![]));
        // The next one that this process has.
        let same = same.with(
            vec![Some(text("1")), None, Some(text("4"))],
            Text::default(),
        );
        let own = there.besides(&same.unwrap(), |_| false);
        assert_eq!(own, Ok(vec![(text("c"), text("3"))]));
        let other = defaults(&[("a", Some("2")), ("b", None), ("c", Some("4"))]);
        let there = sent(&defaults(&[
            ("a", Some("1")),
            ("b", None),
            ("c", Some("3")),
        ]));
        let own = there.besides(&other, |name| name == b"c");
        assert_eq!(own, Ok(vec![(text("a"), text("1"))]));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let there = sent(&defaults(&[("a", None)]));
        let otherwise = defaults(&[("a", Some("1"))]);
        assert!(there.besides(&otherwise, |_| false).is_err(), "NULL");
        let more = defaults(&[("a", None), ("b", Some("1"))]);
        assert!(there.besides(&more, |_| false).is_err(), "one more");
        assert!(
            there
                .besides(&GlobalDefaults::default(), |_| false)
                .is_err()
        );
        let unknown = sent(&GlobalDefaults::default());
        assert_eq!(
            unknown.besides(&GlobalDefaults::default(), |_| false),
            Ok(vec![])
        );
        assert!(unknown.besides(&otherwise, |_| false).is_err());
    }

    #[test]
    fn a_list_that_says_more_than_there_is_reserves_nothing() {
        let mut out = Vec::new();
        put_lenenc(&mut out, u64::MAX);
        out.push(1);
        let read = read_list(&mut Reader::new(&out), "values", |r| {
            read_bool(r, "a value")
        });
        assert!(matches!(read, Err(RecordError::Malformed(_))));
    }

    #[test]
    fn a_number_that_its_place_does_not_hold_is_an_error() {
        let mut out = Vec::new();
        put_lenenc(&mut out, 256);
        assert!(read_number::<u8>(&mut Reader::new(&out), "a number").is_err());
        assert_eq!(
            read_number::<u16>(&mut Reader::new(&out), "a number"),
            Ok(256)
        );
    }

    #[test]
    fn a_value_that_may_be_missing_is_one_byte_more() {
        let mut out = Vec::new();
        put_option(&mut out, Some(true), put_bool);
        put_option(&mut out, None, put_bool);
        assert_eq!(out, [1, 1, 0]);
        let mut reader = Reader::new(&out);
        let mut next = || read_option(&mut reader, "a value", |r| read_bool(r, "a value"));
        assert_eq!((next(), next()), (Ok(Some(true)), Ok(None)));
        let odd = read_option(&mut Reader::new(&[2, 1]), "a value", |r| {
            read_bool(r, "a value")
        });
        assert!(odd.is_err());
    }

    #[test]
    fn an_age_is_exact_to_the_nanosecond_and_never_overflows() {
        for age in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_secs(86_400 * 365),
        ] {
            let mut out = Vec::new();
            put_age(&mut out, age);
            assert_eq!(read_age(&mut Reader::new(&out), "an age"), Ok(age));
        }
        let mut out = Vec::new();
        put_age(&mut out, Duration::MAX);
        let read = read_age(&mut Reader::new(&out), "an age");
        assert_eq!(read, Ok(Duration::from_nanos(u64::MAX)));
    }

    #[test]
    fn an_error_says_what_was_expected_and_where() {
        let error = read_bool(&mut Reader::new(&[7]), "whether it is so").unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("of 1 bytes") && said.contains("whether it is so"),
            "{said}"
        );
        assert_eq!(RecordError::NotCarried("why").to_string(), "why");
    }
}
