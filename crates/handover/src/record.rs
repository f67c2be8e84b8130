//! Values as bytes, and bytes as values.
//!
//! The problem: many kinds of values go to another process, and each field of each must arrive. The
//! mechanism: a value says by serde of which fields it consists, and postcard gives these a form;
//! [`Record`] reads no less and no more than one value.

use serde::{Serialize, de::DeserializeOwned};
use std::fmt;

/// Error of writing or reading a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Value without a form as bytes.
    Unwritten(postcard::Error),
    /// Bytes that are no such value.
    Malformed {
        /// Length of the record, in bytes.
        len: usize,
        /// The first fault in it; `None`: there are bytes behind its end.
        fault: Option<postcard::Error>,
    },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Unwritten(fault) => write!(f, "a record cannot be written: {fault}"),
            RecordError::Malformed { len, fault } => {
                write!(f, "a record of {len} bytes cannot be read: ")?;
                match fault {
                    Some(fault) => write!(f, "{fault}"),
                    None => f.write_str("it goes on behind its end"),
                }
            }
        }
    }
}

impl std::error::Error for RecordError {}

/// A value that goes to another process as bytes (in postcard's format), by its fields in order.
///
/// The fields of all records together have one version, [`crate::VERSION`].
pub trait Record {
    /// The value as bytes.
    ///
    /// # Errors
    /// [`RecordError::Unwritten`]; values of the standard types and of derived ones have none.
    fn to_bytes(&self) -> Result<Vec<u8>, RecordError>
    where
        Self: Serialize,
    {
        postcard::to_allocvec(self).map_err(RecordError::Unwritten)
    }

    /// The value that all of these bytes make.
    ///
    /// # Errors
    /// [`RecordError::Malformed`].
    fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError>
    where
        Self: DeserializeOwned,
    {
        let malformed = |fault| RecordError::Malformed {
            len: bytes.len(),
            fault,
        };
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            Ok(_) => Err(malformed(None)),
            Err(fault) => Err(malformed(Some(fault))),
        }
    }
}

impl<T> Record for T {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::time::Duration;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Plain,
        Named(Option<Box<[u8]>>),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Value {
        number: u64,
        kinds: Vec<Kind>,
        age: Duration,
    }

    fn value() -> Value {
        Value {
            number: u64::MAX,
            kinds: vec![
                Kind::Plain,
                Kind::Named(Some(b"ab"[..].into())),
                Kind::Named(None),
            ],
            age: Duration::from_nanos(3),
        }
    }

    #[test]
    fn a_value_is_read_as_it_was_written_and_never_in_part() {
        let mut bytes = value().to_bytes().unwrap();
        assert_eq!(Value::from_bytes(&bytes), Ok(value()));
        for len in 0..bytes.len() {
            assert!(Value::from_bytes(&bytes[..len]).is_err(), "{len}");
        }
        for at in 0..bytes.len() {
            for change in [1, 0x7f, 0xff] {
                let mut garbled = bytes.clone();
                garbled[at] = garbled[at].wrapping_add(change);
                let _ = Value::from_bytes(&garbled);
            }
        }
        bytes.push(0);
        let error = Value::from_bytes(&bytes).unwrap_err().to_string();
        assert!(
            error.contains(&format!("of {} bytes", bytes.len())),
            "{error}"
        );
    }

    #[test]
    fn a_length_that_is_not_there_reserves_nothing() {
        let mut bytes = vec![0xff; 9];
        bytes.extend([1, 7]);
        assert!(Vec::<u64>::from_bytes(&bytes).is_err());
        assert!(Box::<[u8]>::from_bytes(&bytes).is_err());
        assert!(String::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_number_that_its_place_does_not_hold_is_an_error() {
        let bytes = 0x1_0000_u64.to_bytes().unwrap();
        assert!(u16::from_bytes(&bytes).is_err());
        assert!(bool::from_bytes(&[2]).is_err());
        assert!(Kind::from_bytes(&[2]).is_err());
    }
}
