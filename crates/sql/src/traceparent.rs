//! The trace to which a statement belongs, as applications tell it.
//!
//! Instrumented clients put the `traceparent` of W3C's Trace Context into a comment of the text, as
//! sqlcommenter does (`/*traceparent='00-...-...-01'*/`), or into a query attribute of that name.
//! In both, the value stands a few bytes behind the name. Source: Trace Context, section 3.2.
//!
//! Invariant: at most [`LOOK_MAX`] bytes at either end of a command are looked at.

/// Bytes of a value: version, trace, parent, flags.
pub const LEN: usize = 55;
/// Bytes at the beginning and at the end of a command that are looked at: where comments and
/// attributes are.
const LOOK_MAX: usize = 4096;
const NAME: &[u8] = b"traceparent";
/// Bytes between the name and the value: `=` and a quote, or what attributes have there.
const BETWEEN_MAX: usize = 16;
/// Hexadecimal digits of each part.
const PARTS: [usize; 4] = [2, 32, 16, 2];

/// The value in a command, if there is one that is well formed.
#[must_use]
pub fn find(command: &[u8]) -> Option<&str> {
    let front = &command[..command.len().min(LOOK_MAX)];
    let back = &command[command.len().saturating_sub(LOOK_MAX)..];
    find_in(front).or_else(|| find_in(back))
}

fn find_in(bytes: &[u8]) -> Option<&str> {
    let mut names = bytes.windows(NAME.len()).enumerate();
    names
        .by_ref()
        .filter(|(_, name)| name.eq_ignore_ascii_case(NAME))
        .find_map(|(at, _)| {
            let behind = &bytes[at + NAME.len()..];
            (0..=BETWEEN_MAX).find_map(|between| value(behind.get(between..)?.get(..LEN)?))
        })
}

/// Value made of these bytes, if they are one.
fn value(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = text.split('-');
    for len in PARTS {
        let part = parts.next()?;
        if part.len() != len || !is_hex(part) {
            return None;
        }
    }
    let is_none = |part: &str| part.bytes().all(|digit| digit == b'0');
    let of_nothing = text.split('-').skip(1).take(2).any(is_none);
    (parts.next().is_none() && !of_nothing).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn comments_and_attributes_have_one() {
        let comment = format!("SELECT 1 /*action='x',traceparent='{VALUE}'*/");
        assert_eq!(find(comment.as_bytes()), Some(VALUE));
        let first = format!("/* TraceParent: {VALUE} */ SELECT 1");
        assert_eq!(find(first.as_bytes()), Some(VALUE));
        // COM_QUERY with one attribute: its type, the length of its name, the name, and, behind
        // that, the length of the value.
        let mut attribute = b"\x03\x01\x01\x00\x01\xfe\x00\x0btraceparent\x37".to_vec();
        attribute.extend_from_slice(VALUE.as_bytes());
        attribute.extend_from_slice(b"SELECT 1");
        assert_eq!(find(&attribute), Some(VALUE));
    }

    #[test]
    fn what_is_no_value_is_left_alone() {
        for text in [
            "SELECT traceparent FROM t".to_owned(),
            format!("SELECT '{VALUE}'"),
            format!("/*traceparent='{}'*/", &VALUE[..LEN - 1]),
            format!("/*traceparent='{}'*/", VALUE.to_uppercase()),
            format!(
                "/*traceparent='{}'*/",
                VALUE.replace("b7ad6b7169203331", "0000000000000000")
            ),
            format!("/*traceparent='{}'*/", VALUE.replace('-', "_")),
            format!("/*traceparent{}'{VALUE}'*/", " ".repeat(BETWEEN_MAX)),
        ] {
            assert_eq!(find(text.as_bytes()), None, "{text}");
        }
        assert_eq!(find(b""), None);
        assert_eq!(find(b"traceparent"), None);
    }

    #[test]
    fn both_ends_of_a_long_command_are_looked_at() {
        let comment = format!("/*traceparent='{VALUE}'*/");
        let long = "x".repeat(3 * LOOK_MAX);
        for text in [format!("{comment}{long}"), format!("{long}{comment}")] {
            assert_eq!(find(text.as_bytes()), Some(VALUE));
        }
        assert_eq!(find(format!("{long}{comment}{long}").as_bytes()), None);
    }
}
