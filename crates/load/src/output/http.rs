//! What the run serves over HTTP while it goes: its page, the same as JSON, and the figures for
//! Prometheus.
//!
//! A thread of its own answers one request after the other with what the main thread made last, so
//! a slow reader holds up nobody but other readers, and those for [`READER_MAX`] at most.
//!
//! Invariant: a reader's socket exists in this thread's descriptor table only. A group that begins
//! while a reader is being answered copies the main table; a copy of his socket there would keep it
//! open for as long as the group lives, and he would wait for its end all that time.

use reactor::{Time, descriptors};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a reader may take to ask; and to take the answer.
const READER_MAX: Duration = Duration::from_secs(2);
/// Bytes of a request.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// The page; it fetches `/live.json` every second, and nothing else.
const PAGE: &str = include_str!("live.html");

/// What an address serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// The figures for Prometheus, whatever is asked for.
    Metrics,
    /// The page and its JSON, and the figures at `/metrics`.
    Page,
}

/// What is handed out now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) metrics: Arc<str>,
    pub(crate) json: Arc<str>,
}

/// What is shown, and the threads that hand it out until the process ends.
#[derive(Clone, Default)]
pub(crate) struct Server {
    shown: Arc<Mutex<Shown>>,
}

impl Server {
    /// Listens at `address`, for the option that asks for it.
    ///
    /// # Errors
    /// A sentence with the option, the address and the system's reason.
    pub(crate) fn listen(&self, offer: Offer, address: &str) -> Result<(), String> {
        let (option, what, path) = match offer {
            Offer::Metrics => ("--prometheus", "figures", "metrics"),
            Offer::Page => ("--http", "the run's page", ""),
        };
        let wrong = |error| format!("{option} {address}: {error}");
        let listener = TcpListener::bind(address).map_err(wrong)?;
        let place = listener.local_addr().map_err(wrong)?;
        eprintln!("load: {what} at http://{place}/{path}");
        serve(listener, offer, self.shown.clone()).map_err(wrong)
    }

    /// What is handed out from now on.
    pub(crate) fn show(&self, shown: Shown) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }
}

/// Answers whoever comes, in a thread of its own, until the process ends.
fn serve(listener: TcpListener, offer: Offer, shown: Arc<Mutex<Shown>>) -> io::Result<()> {
    let work = move || {
        // Where this is not allowed no group has a table of its own either, and nothing is copied.
        let _ = descriptors::own_table();
        for mut reader in listener.incoming().flatten() {
            let shown = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // A reader that has gone needs no answer.
            let _ = serve_one(&mut reader, offer, &shown);
        }
    };
    let builder = thread::Builder::new().name("http".to_owned());
    builder.spawn(work).map(|_| ())
}

fn serve_one(reader: &mut TcpStream, offer: Offer, shown: &Shown) -> io::Result<()> {
    let until = Time::now() + READER_MAX;
    let (mut asked, mut piece) = (Vec::new(), [0; 1024]);
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") && asked.len() < REQUEST_BYTES_MAX {
        let left = until.since(Time::now());
        if left.is_zero() {
            return Ok(());
        }
        reader.set_read_timeout(Some(left))?;
        match reader.read(&mut piece)? {
            0 => return Ok(()),
            n => asked.extend_from_slice(&piece[..n]),
        }
    }
    reader.set_write_timeout(Some(READER_MAX))?;
    reader.write_all(answer(&asked, offer, shown).as_bytes())
}

/// The whole answer to a request.
fn answer(asked: &[u8], offer: Offer, shown: &Shown) -> String {
    let line = asked.split(|&byte| byte == b'\r').next().unwrap_or(asked);
    let line = String::from_utf8_lossy(line);
    let path = line.split(' ').nth(1).unwrap_or("/");
    let path = path.split('?').next().unwrap_or(path);
    let (status, kind, body) = match (offer, path) {
        (Offer::Metrics, _) | (Offer::Page, "/metrics") => {
            ("200 OK", "text/plain; version=0.0.4", &*shown.metrics)
        }
        (Offer::Page, "/") => ("200 OK", "text/html; charset=utf-8", PAGE),
        (Offer::Page, "/live.json") => ("200 OK", "application/json", &*shown.json),
        (Offer::Page, _) => (
            "404 Not Found",
            "text/plain",
            "There are /, /live.json and /metrics here.\n",
        ),
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::SocketAddr;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn each_path_has_its_answer() {
        let shown = Shown {
            metrics: "figures\n".into(),
            json: "{}".into(),
        };
        let ask = |offer, path: &str| {
            let asked = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            answer(asked.as_bytes(), offer, &shown)
        };
        assert!(ask(Offer::Metrics, "/anything").ends_with("\r\n\r\nfigures\n"));
        assert!(ask(Offer::Page, "/metrics").ends_with("\r\n\r\nfigures\n"));
        assert!(ask(Offer::Page, "/live.json?t=1").ends_with("\r\n\r\n{}"));
        assert!(ask(Offer::Page, "/").ends_with("</html>\n"));
        let missing = ask(Offer::Page, "/nowhere");
        assert!(
            missing.starts_with("HTTP/1.1 404 Not Found\r\n"),
            "{missing}"
        );
        for asked in [&b""[..], b"\r\n\r\n", b"GET", b"\xff\xfe \xff"] {
            assert!(answer(asked, Offer::Page, &shown).starts_with("HTTP/1.1 "));
        }
    }

    /// One that asks byte by byte has no longer than one that says nothing.
    #[test]
    fn a_reader_that_is_slow_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let slow = thread::spawn(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut sent = 0;
            while stream.write_all(b"x").is_ok() && sent < REQUEST_BYTES_MAX {
                sent += 1;
                let mut answer = [0; 1];
                stream
                    .set_read_timeout(Some(Duration::from_millis(100)))
                    .unwrap();
                if matches!(stream.read(&mut answer), Ok(0)) {
                    return sent;
                }
            }
            sent
        });
        // In a descriptor table of its own: groups of other tests copy this one.
        serve(listener, Offer::Page, Arc::default()).unwrap();
        assert!(slow.join().unwrap() < REQUEST_BYTES_MAX);
    }

    /// A server of its own with this text.
    fn served(text: &str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shown = Shown {
            metrics: text.into(),
            ..Shown::default()
        };
        serve(listener, Offer::Metrics, Arc::new(Mutex::new(shown))).unwrap();
        address
    }

    #[test]
    fn whoever_asks_is_answered() {
        let opened = Server::default().listen(Offer::Metrics, "127.0.0.1:0");
        assert_eq!(opened, Ok(()));
        let mut reader = TcpStream::connect(served("a 1\n")).unwrap();
        reader
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            .unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
        assert!(
            said.contains("Content-Length: 4\r\n") && said.ends_with("\r\n\r\na 1\n"),
            "{said}"
        );
    }

    /// True when the server has accepted this connection: until then its end has no inode.
    /// (Documentation/networking/proc_net_tcp.rst of Linux: both ends are the second and third
    /// column, ports in hexadecimal, the inode the tenth.)
    fn is_accepted(reader: &TcpStream) -> bool {
        let port = |address: SocketAddr| format!(":{:04X}", address.port());
        let ours = port(reader.local_addr().unwrap());
        let theirs = port(reader.peer_addr().unwrap());
        let table = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        table.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            columns[1].ends_with(&theirs) && columns[2].ends_with(&ours) && columns[9] != "0"
        })
    }

    #[test]
    fn a_reader_hears_the_end_although_a_group_begins_while_he_is_answered() {
        let mut reader = TcpStream::connect(served("a 1\n")).unwrap();
        reader.write_all(b"GET /metrics HTTP/1.0\r\n").unwrap();
        while !is_accepted(&reader) {
            thread::yield_now();
        }
        let ((begun, begins), (end, ends)) = (sync_channel(1), sync_channel::<()>(1));
        let group = thread::spawn(move || {
            descriptors::own_table().unwrap();
            begun.send(()).unwrap();
            // Until the other end is dropped.
            ends.recv()
        });
        begins.recv().unwrap();
        let _ = reader.write_all(b"\r\n");
        // A test that does not get on for longer than a reader may take finds the connection reset,
        // which is an end as well.
        reader.set_read_timeout(Some(20 * READER_MAX)).unwrap();
        let heard = reader.read_to_end(&mut Vec::new());
        let kind = heard.map_err(|error| error.kind());
        assert_ne!(kind, Err(ErrorKind::WouldBlock), "he waits for the end");
        drop(end);
        assert!(group.join().unwrap().is_err());
    }
}
