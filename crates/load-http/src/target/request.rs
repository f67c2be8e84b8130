//! HTTP/1.1 requests, as far as a server that always says the same has to read them.
//!
//! A request is its head (RFC 9112: lines, then an empty one) and a body of Content-Length bytes,
//! which is passed over. What a head says is taken from it when it is whole.

/// The longest head that is taken, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Request at the front of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Less than a head.
    Partial,
    /// A head of so many bytes; so many of body follow; whether the connection ends after it.
    Whole { len: usize, body: u64, close: bool },
    /// No request that can be answered.
    Bad,
}

/// Reads the head at the front of `bytes`.
pub(super) fn read(bytes: &[u8]) -> Request {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return if bytes.len() > HEAD_BYTES_MAX {
            Request::Bad
        } else {
            Request::Partial
        };
    };
    let Ok(head) = str::from_utf8(&bytes[..end]) else {
        return Request::Bad;
    };
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let is_old = match (words.next(), words.next(), words.next(), words.next()) {
        (Some(_), Some(_), Some("HTTP/1.1"), None) => false,
        (Some(_), Some(_), Some("HTTP/1.0"), None) => true,
        _ => return Request::Bad,
    };
    let (mut body, mut close) = (0, is_old);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            return Request::Bad;
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let Ok(length) = value.parse() else {
                return Request::Bad;
            };
            body = length;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            return Request::Bad;
        } else if name.eq_ignore_ascii_case("connection") {
            let has = |word| {
                value
                    .split(',')
                    .any(|part| part.trim().eq_ignore_ascii_case(word))
            };
            close = has("close") || (is_old && !has("keep-alive"));
        }
    }
    Request::Whole {
        len: end + 4,
        body,
        close,
    }
}

/// Offset at which `part` first stands in `bytes`.
pub fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> (usize, u64, bool) {
        match read(text.as_bytes()) {
            Request::Whole { len, body, close } => (len, body, close),
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn a_head_says_how_much_follows_and_whether_it_is_the_last() {
        let plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(whole(plain), (plain.len(), 0, false));
        assert_eq!(whole(&format!("{plain}GET")), (plain.len(), 0, false));
        assert_eq!(
            whole("POST /x HTTP/1.1\r\ncontent-LENGTH:  12 \r\n\r\n").1,
            12
        );
        assert!(whole("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n").2);
        assert!(whole("GET / HTTP/1.0\r\n\r\n").2);
        assert!(!whole("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").2);
    }

    #[test]
    fn what_is_no_request_is_told_from_half_of_one() {
        assert_eq!(read(b"GET / HTTP/1.1\r\nHost:"), Request::Partial);
        assert_eq!(read(&[b'x'; HEAD_BYTES_MAX + 1]), Request::Bad);
        for bad in [
            "GET /\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nnonsense\r\n\r\n",
        ] {
            assert_eq!(read(bad.as_bytes()), Request::Bad, "{bad:?}");
        }
    }
}
