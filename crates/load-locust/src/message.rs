//! Messages between a Locust master and its workers: msgpack arrays of type, data, node.
//!
//! Only the types that a worker hears and says are here; how the master acts on them is Locust's
//! business.

use rmpv::Value;
use std::io;

/// Messages of a master.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Order {
    /// Accepts the worker, and says its number.
    Ack {
        index: Option<u64>,
    },
    /// Users of each class from now on.
    Spawn {
        at: f64,
        classes: Vec<(String, u32)>,
    },
    Stop,
    Quit,
    /// Order to recreate the connection.
    Reconnect,
    /// Sign of life.
    Heartbeat,
    /// Message of the locustfile's own, or for a worker of another kind.
    Other {
        kind: String,
        data: Value,
    },
}

/// Reads a message.
///
/// # Errors
/// A sentence that says what was expected.
pub(super) fn read(mut bytes: &[u8]) -> Result<Order, String> {
    let value = rmpv::decode::read_value(&mut bytes).map_err(|error| error.to_string())?;
    let parts = value.as_array().map(Vec::as_slice);
    let Some([kind, data, ..]) = parts else {
        return Err("expected an array of type, data and node from the master".to_owned());
    };
    let kind = kind.as_str().ok_or("expected a type from the master")?;
    Ok(match kind {
        "ack" => Order::Ack {
            index: field(data, "index").and_then(Value::as_u64),
        },
        "spawn" => spawn(data)?,
        "stop" => Order::Stop,
        "quit" => Order::Quit,
        "reconnect" => Order::Reconnect,
        "heartbeat" => Order::Heartbeat,
        other => Order::Other {
            kind: other.to_owned(),
            data: data.clone(),
        },
    })
}

/// A field of a map.
fn field<'a>(data: &'a Value, name: &str) -> Option<&'a Value> {
    let fields = data.as_map().into_iter().flatten();
    let mut found = fields.filter(|(key, _)| key.as_str() == Some(name));
    found.next().map(|(_, value)| value)
}

fn spawn(data: &Value) -> Result<Order, String> {
    let counts = field(data, "user_classes_count").and_then(Value::as_map);
    let counts = counts.ok_or("expected user_classes_count in the master's spawn")?;
    let classes = counts
        .iter()
        .map(|(class, count)| {
            let count = count.as_u64().and_then(|count| u32::try_from(count).ok());
            let pair = class.as_str().map(str::to_owned).zip(count);
            pair.ok_or("expected numbers of users by class in the master's spawn")
        })
        .collect::<Result<_, _>>()?;
    Ok(Order::Spawn {
        at: field(data, "timestamp")
            .and_then(Value::as_f64)
            .unwrap_or(0.0),
        classes,
    })
}

/// Writes a message of this node.
pub(super) fn write(kind: &str, data: Value, node: &str) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let message = Value::Array(vec![kind.into(), data, node.into()]);
    rmpv::encode::write_value(&mut out, &message)?;
    Ok(out)
}

/// A map with names.
pub(super) fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter();
    Value::Map(fields.map(|(name, value)| (name.into(), value)).collect())
}

/// Numbers of users by class.
pub(super) fn classes(classes: &[(String, u32)]) -> Value {
    let pairs = classes.iter();
    Value::Map(
        pairs
            .map(|(class, count)| (class.as_str().into(), (*count).into()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spawn_has_its_time_and_its_users() {
        let data = map([
            ("timestamp", 17.5.into()),
            ("user_classes_count", classes(&[("Select".to_owned(), 7)])),
            ("host", Value::Nil),
        ]);
        let bytes = write("spawn", data, "n").unwrap();
        let expected = Order::Spawn {
            at: 17.5,
            classes: vec![("Select".to_owned(), 7)],
        };
        assert_eq!(read(&bytes).unwrap(), expected);
        assert_eq!(
            read(&write("stop", Value::Nil, "n").unwrap()).unwrap(),
            Order::Stop
        );
        let other = write("custom", 5.into(), "n").unwrap();
        let expected = Order::Other {
            kind: "custom".to_owned(),
            data: 5.into(),
        };
        assert_eq!(read(&other).unwrap(), expected);
        let ack = write("ack", map([("index", 3.into())]), "n").unwrap();
        assert_eq!(read(&ack).unwrap(), Order::Ack { index: Some(3) });
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert!(read(b"\xc1").is_err());
        assert!(read(b"\x01").unwrap_err().contains("an array"));
        let bytes = write("spawn", Value::Nil, "n").unwrap();
        assert!(read(&bytes).unwrap_err().contains("user_classes_count"));
    }
}
