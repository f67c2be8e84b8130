//! A proxy that does wrong to statements: it drops, repeats, refuses, delays or remembers them.
//!
//! Each connection is relayed packet by packet, one command at a time; of the commands whose text
//! has certain words in it, over all connections, each [`EACH`]th is done wrong to. What is done to
//! a command must have a single packet as its answer, as a write has.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// One of so many commands is done wrong to.
const EACH: u32 = 20;
/// Commands of its client behind which a delayed one is sent.
const DELAY: u32 = 6;
/// OK for one changed row.
const DONE: &[u8] = &[7, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0];
/// Error 1213.
const REFUSED: &[u8] = b"\x11\0\0\x01\xff\xbd\x04#40001deadlock";

/// Wrong that is done to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Acknowledges it, and does not send it.
    Drops,
    /// Sends it twice.
    Repeats,
    /// Sends it, and tells its client that it has no effect.
    Refuses,
    /// Acknowledges it, and sends it behind later ones of its client.
    Delays,
    /// Answers it as it was answered before.
    Remembers,
    /// Sends it, and disconnects its client.
    HangsUp,
    /// Does not send it, and lets its client wait without end.
    Silences,
}

/// Starts a proxy in front of `server`; returns its port. It lives as long as the process.
///
/// # Panics
/// When there is no port.
#[must_use]
pub fn start(server: SocketAddr, wrong: Wrong, words: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::<AtomicU32>::default();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else {
                continue;
            };
            let count = count.clone();
            std::thread::spawn(move || {
                relay(
                    client,
                    server,
                    &Rule {
                        wrong,
                        words,
                        count,
                    },
                )
            });
        }
    });
    port
}

struct Rule {
    wrong: Wrong,
    words: &'static str,
    count: Arc<AtomicU32>,
}

impl Rule {
    fn meets(&self, command: &[u8]) -> bool {
        let words = self.words.as_bytes();
        let has = command.windows(words.len()).any(|part| part == words);
        // The first packet of a command has the number 0.
        has && command[3] == 0 && self.count.fetch_add(1, Ordering::Relaxed) % EACH == EACH - 1
    }
}

/// Answers to a client.
#[derive(Default)]
struct Answers {
    /// Bytes since its last command.
    bytes: Vec<u8>,
    /// Packets that it is not to see.
    dropped: u32,
}

fn relay(mut client: TcpStream, mut server: TcpStream, rule: &Rule) {
    let answers = Arc::<Mutex<Answers>>::default();
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let shared = answers.clone();
    std::thread::spawn(move || answer(from, to, &shared));
    let mut known: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let mut asked: Vec<u8> = Vec::new();
    let mut delayed: Option<(Vec<u8>, u32)> = None;
    while let Some(command) = packet(&mut client) {
        let bytes = std::mem::take(&mut answers.lock().unwrap().bytes);
        if rule.wrong == Wrong::Remembers {
            known.entry(asked).or_insert(bytes);
            asked = command.clone();
        }
        if let Some((late, left)) = delayed.take() {
            if left == 0 {
                answers.lock().unwrap().dropped += 1;
                let _ = server.write_all(&late);
            } else {
                delayed = Some((late, left - 1));
            }
        }
        let can_be = match rule.wrong {
            Wrong::Remembers => known.contains_key(&command),
            Wrong::Delays => delayed.is_none(),
            _ => true,
        };
        let own = match rule.wrong {
            _ if !can_be || !rule.meets(&command) => None,
            Wrong::Drops => Some(DONE),
            Wrong::Silences => continue,
            Wrong::Delays => {
                delayed = Some((command.clone(), DELAY));
                Some(DONE)
            }
            Wrong::Remembers => known.get(&command).map(Vec::as_slice),
            Wrong::Repeats | Wrong::Refuses => {
                answers.lock().unwrap().dropped += 1;
                let _ = server.write_all(&command);
                (rule.wrong == Wrong::Refuses).then_some(REFUSED)
            }
            Wrong::HangsUp => {
                let _ = server.write_all(&command);
                break;
            }
        };
        let passed = match own {
            Some(own) => client.write_all(own),
            None => server.write_all(&command),
        };
        if passed.is_err() {
            break;
        }
    }
    if let Some((late, _)) = delayed {
        let _ = server.write_all(&late);
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Write);
}

/// Relays what the server says.
fn answer(mut from: TcpStream, mut to: TcpStream, answers: &Mutex<Answers>) {
    while let Some(packet) = packet(&mut from) {
        let mut answers = answers.lock().unwrap();
        if answers.dropped > 0 {
            answers.dropped -= 1;
            continue;
        }
        answers.bytes.extend_from_slice(&packet);
        drop(answers);
        if to.write_all(&packet).is_err() {
            // The server still gets what it was sent.
            continue;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The next packet with its header; `None` at the end.
fn packet(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut packet = vec![0; 4];
    from.read_exact(&mut packet).ok()?;
    let len = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]) as usize;
    packet.resize(4 + len, 0);
    from.read_exact(&mut packet[4..]).ok()?;
    Some(packet)
}
