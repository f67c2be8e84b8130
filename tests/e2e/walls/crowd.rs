//! Connections that are opened one after the other until a wall is met.

use super::{Forecast, Real};
use crate::world::*;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// Time for which a greeting is waited for before somebody looks into the server's log.
const GREETING: Duration = Duration::from_secs(2);
/// Looks before the test gives up.
const LOOKS_MAX: u32 = 20;
/// The first byte of an ERR packet.
const ERR: u8 = 0xFF;

/// An open connection; dropping it closes it.
enum Open {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Greeted connections, and the words with which the next one was turned away.
pub(crate) struct Crowd {
    held: Vec<Open>,
    /// Words of what ended it.
    pub(crate) words: String,
}

impl Crowd {
    /// Number of connections that are greeted.
    pub(crate) fn count(&self) -> u64 {
        self.held.len() as u64
    }

    /// Connects until the server greets no more, a hundred beyond the forecast at most.
    /// `stuck` are words of the server's log that explain a silence.
    pub(crate) fn gather(real: &Real, forecast: &Forecast, stuck: &str) -> Crowd {
        Crowd::gather_at(&real.socket(), &|| real.log(), forecast, stuck)
    }

    /// Gathers a crowd at an address; `log` is what is said there.
    pub(crate) fn gather_at(
        address: &Address,
        log: &dyn Fn() -> String,
        forecast: &Forecast,
        stuck: &str,
    ) -> Crowd {
        let mut crowd = Crowd {
            held: Vec::new(),
            words: String::new(),
        };
        let _ = reactor::descriptors::raise_limit();
        while crowd.count() < forecast.connections * 3 / 2 + 100 {
            let opened = match address {
                Address::Unix(path) => UnixStream::connect(path).map(Open::Unix),
                Address::Tcp(place) => TcpStream::connect(place).map(Open::Tcp),
            };
            match opened
                .map_err(|error| error.to_string())
                .and_then(|open| greeted(open, log, stuck))
            {
                Ok(open) => crowd.held.push(open),
                Err(words) => {
                    crowd.words = words;
                    return crowd;
                }
            }
        }
        panic!("no wall at {} connections", crowd.count());
    }
}

/// Waits for the greeting; the server's error, or its silence, as words.
fn greeted(mut open: Open, log: &dyn Fn() -> String, stuck: &str) -> Result<Open, String> {
    let mut bytes = [0; 512];
    for _ in 0..LOOKS_MAX {
        let read = match &mut open {
            Open::Unix(stream) => {
                stream.set_read_timeout(Some(GREETING)).unwrap();
                stream.read(&mut bytes)
            }
            Open::Tcp(stream) => {
                stream.set_read_timeout(Some(GREETING)).unwrap();
                stream.read(&mut bytes)
            }
        };
        match read {
            Ok(len) if len > 4 && bytes[4] != ERR => return Ok(open),
            Ok(len) => return Err(refusal(&bytes[..len])),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if !stuck.is_empty()
                    && let Some(line) = log().lines().find(|line| line.contains(stuck))
                {
                    return Err(line.to_owned());
                }
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Err("the server is silent".to_owned())
}

/// Number and words of an ERR packet in place of a greeting.
fn refusal(bytes: &[u8]) -> String {
    match bytes {
        // The packet's length may be less than what came.
        [len, _, _, _, ERR, low, high, words @ ..] => {
            let len = usize::from(*len).saturating_sub(3).min(words.len());
            let words = String::from_utf8_lossy(&words[..len]);
            format!("ERROR {}: {words}", u16::from_le_bytes([*low, *high]))
        }
        _ => "the server closed the connection".to_owned(),
    }
}
