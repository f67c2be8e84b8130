//! Answers to requests of any form, and readers that are slow, silent or many.

use super::*;
use crate::connection::{Connection, Progress, answer, written};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::sync_channel;

fn site(request: &Request<'_>) -> Reply {
    match request.path {
        "/long" => Reply::ok(kind::TEXT, "x".repeat(32 << 20)),
        "/gone" => Reply::text(Status::Unavailable, "not now"),
        path => Reply::ok(kind::TEXT, format!("{path} {}", request.accept)),
    }
}

fn names() -> Names {
    Names::new(vec!["x".to_owned()], "--names").unwrap()
}

fn said(asked: &[u8]) -> Option<String> {
    let (answer, head_only) = answer(asked, &mut site, &names())?;
    let Answer::Now(reply) = answer else {
        panic!("expected an answer at once");
    };
    Some(String::from_utf8(written(&reply, head_only)).unwrap())
}

#[test]
fn a_request_is_answered_when_it_has_come_whole() {
    let asked = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\nACCEPT: text/plain\r\n\r\n";
    for end in 0..asked.len() {
        assert_eq!(said(&asked[..end]), None, "{end}");
    }
    let whole = said(asked).unwrap();
    assert!(whole.starts_with("HTTP/1.1 200 OK\r\n"), "{whole}");
    assert!(whole.contains("\r\nContent-Length: 13\r\n"), "{whole}");
    assert!(whole.ends_with("\r\n\r\n/a text/plain"), "{whole}");
    let head = said(b"HEAD /a HTTP/1.0\r\n\r\n").unwrap();
    assert!(
        head.contains("Content-Length: 3\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[test]
fn what_is_no_request_is_told_so() {
    for (asked, status) in [
        (&b"PUT / HTTP/1.1\r\n\r\n"[..], "405 Method Not Allowed"),
        (b"OPTIONS / HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"\x00\x01\x02\r\n\r\n", "400 Bad Request"),
        (b"GET / HTTP/9.9\r\n\r\n", "400 Bad Request"),
        (b"GET /gone HTTP/1.1\r\n\r\n", "503 Service Unavailable"),
    ] {
        let whole = said(asked).unwrap();
        assert!(
            whole.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{whole}"
        );
    }
    assert!(
        said(b"PUT / HTTP/1.1\r\n\r\n")
            .unwrap()
            .contains("\r\nAllow: GET, HEAD\r\n")
    );
}

/// A page of another site whose name has been made to resolve to this server, and a form there.
#[test]
fn foreign_pages_are_refused() {
    let get = |host: &str| said(format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    let answered = get("127.0.0.1:9104").unwrap();
    assert!(answered.starts_with("HTTP/1.1 200 "), "{answered}");
    let refused = get("evil.example:9104").unwrap();
    assert!(
        refused.starts_with("HTTP/1.1 403 Forbidden\r\n"),
        "{refused}"
    );
    assert!(
        refused.ends_with(
            "\r\n\r\nthe Host 'evil.example:9104' is neither an address nor a name that is \
             listed; ask by the address, or list the name in --names\n"
        ),
        "{refused}"
    );
    // Forms send POST with the content types of forms and without headers of their own.
    let post = |more: &str| said(format!("POST / HTTP/1.1\r\nHost: x\r\n{more}\r\n").as_bytes());
    let refused = post("Content-Type: text/plain\r\n").unwrap();
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    assert!(refused.ends_with("\r\n\r\na POST needs the header X-Onramp\n"));
    let known = post("x-onramp: 1\r\n").unwrap();
    assert!(known.starts_with("HTTP/1.1 405 "), "{known}");
    let foreign = said(b"POST / HTTP/1.1\r\nHost: evil.example\r\nX-Onramp: 1\r\n\r\n").unwrap();
    assert!(foreign.starts_with("HTTP/1.1 403 "), "{foreign}");
    // A preflight is allowed nothing.
    let preflight = said(b"OPTIONS / HTTP/1.1\r\nHost: x\r\nOrigin: http://evil.example\r\n\r\n");
    let preflight = preflight.unwrap();
    assert!(!preflight.contains("Access-Control"), "{preflight}");
}

#[test]
fn a_command_comes_by_post_with_its_body_whole() {
    struct Commands;
    impl Site for Commands {
        fn answer(&mut self, request: &Request<'_>) -> Answer {
            let post = request.post.map(|post| (post.token, post.body));
            Reply::ok(kind::TEXT, format!("{post:?}")).into()
        }

        fn takes_post(&self, path: &str) -> bool {
            path == "/command"
        }
    }
    let said = |asked: &str| {
        let (answer, _) = answer(asked.as_bytes(), &mut Commands, &names())?;
        let Answer::Now(reply) = answer else {
            panic!("expected an answer at once");
        };
        Some(String::from_utf8(written(&reply, false)).unwrap())
    };
    let head = "POST /command HTTP/1.1\r\nHost: x\r\nX-Onramp: 1\r\n";
    let whole = format!("{head}authorization: Bearer t\r\nContent-Length: 5\r\n\r\nPAUSE");
    for end in 0..whole.len() {
        assert_eq!(said(&whole[..end]), None, "{end}");
    }
    let expected = format!("{:?}", Some((&b"t"[..], &b"PAUSE"[..])));
    assert!(said(&whole).unwrap().ends_with(&expected));
    let (longest, longer) = (REQUEST_BYTES_MAX, REQUEST_BYTES_MAX + 1);
    for (more, status) in [
        ("\r\n".to_owned(), Some("400 ")),
        (format!("Content-Length: {longest}\r\n\r\n"), None),
        (format!("Content-Length: {longer}\r\n\r\n"), Some("431 ")),
        ("Content-Length: 0\r\n\r\n".to_owned(), Some("200 ")),
    ] {
        let said = said(&format!("{head}{more}"));
        let found = said.as_ref().map(|said| &said["HTTP/1.1 ".len()..][..4]);
        assert_eq!(found, status, "{more}");
    }
    let elsewhere = said("POST / HTTP/1.1\r\nX-Onramp: 1\r\nContent-Length: 0\r\n\r\n");
    assert!(elsewhere.unwrap().starts_with("HTTP/1.1 405 "));
}

#[test]
fn a_request_has_an_upper_bound() {
    let of = |len: usize| [b"GET / HTTP/1.1\r\nX: ", &*vec![b'x'; len]].concat();
    let front = of(0).len();
    assert_eq!(said(&of(REQUEST_BYTES_MAX - front - 1)), None);
    let whole = said(&of(REQUEST_BYTES_MAX - front)).unwrap();
    assert!(whole.starts_with("HTTP/1.1 431 "), "{whole}");
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
    assert!(said(many.as_bytes()).unwrap().starts_with("HTTP/1.1 431 "));
}

fn served() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, names(), site).unwrap();
    address
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut reader = TcpStream::connect(address).unwrap();
    let asked = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    reader.write_all(asked.as_bytes()).unwrap();
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn whoever_asks_is_answered_whatever_others_do() {
    let address = served();
    let connect = || TcpStream::connect(address).unwrap();
    // Silent ones, half a request, and one that does not take its answer: more than there may be.
    let mut others: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| connect()).collect();
    for (at, other) in others.iter_mut().enumerate() {
        match at % 16 {
            0 => other.write_all(b"GET /long HTTP/1.1\r\n\r\n"),
            1..8 => other.write_all(b"GET / HT"),
            _ => Ok(()),
        }
        .unwrap_or_default();
    }
    assert!(get(address, "/here").ends_with("\r\n\r\n/here "));
    // The oldest had to go for the others.
    let mut rest = [0; 1];
    let first = others[15].read(&mut rest);
    assert!(!matches!(first, Ok(1..)), "{first:?}");
    assert_eq!(get(address, "/long").len() & !0xfff, 32 << 20);
}

/// One that asks byte by byte has no longer than one that says nothing.
#[test]
fn a_reader_that_is_slow_is_left() {
    let mut slow = TcpStream::connect(served()).unwrap();
    let step = Duration::from_millis(100);
    slow.set_read_timeout(Some(step)).unwrap();
    let mut sent = 0;
    while slow.write_all(b"x").is_ok() && sent < REQUEST_BYTES_MAX {
        sent += 1;
        match slow.read(&mut [0; 1]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => break,
        }
    }
    assert!(sent < REQUEST_BYTES_MAX);
}

#[test]
fn an_answer_that_is_not_taken_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    reader.write_all(b"GET /long HTTP/1.1\r\n\r\n").unwrap();
    let (later, names) = (Later::start().unwrap(), names());
    let mut connection = Connection::new(listener.accept().unwrap().0, 1, Time(0)).unwrap();
    let asked = Time(1);
    while !connection.is_writing() {
        assert_eq!(
            connection.go_on((&mut site, &names), &later, asked),
            Progress::Open
        );
        thread::yield_now();
    }
    let last = Time((asked + TAKE_MAX).0 - 1);
    assert_eq!(
        connection.go_on((&mut site, &names), &later, last),
        Progress::Open
    );
    assert_eq!(connection.until(), asked + TAKE_MAX);
    assert_eq!(
        connection.go_on((&mut site, &names), &later, connection.until()),
        Progress::Closed
    );
}

/// True when the server has accepted this connection: until then its end has no inode.
/// (Documentation/networking/proc_net_tcp.rst of Linux: both ends are the second and third column,
/// ports in hexadecimal, the inode the tenth.)
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
    let mut reader = TcpStream::connect(served()).unwrap();
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
    reader.set_read_timeout(Some(20 * ASK_MAX)).unwrap();
    let heard = reader.read_to_end(&mut Vec::new());
    let kind = heard.map_err(|error| error.kind());
    assert_ne!(kind, Err(ErrorKind::WouldBlock), "he waits for the end");
    drop(end);
    assert!(group.join().unwrap().is_err());
}

#[test]
fn a_site_is_told_that_time_passes() {
    struct Clock(std::sync::mpsc::SyncSender<()>);
    impl Site for Clock {
        fn answer(&mut self, _: &Request<'_>) -> Answer {
            Reply::text(Status::NotFound, "").into()
        }
        fn every(&self) -> Option<Duration> {
            Some(Duration::from_millis(1))
        }
        fn tick(&mut self) {
            let _ = self.0.try_send(());
        }
    }
    let (sender, ticks) = sync_channel(1);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    serve(listener, names(), Clock(sender)).unwrap();
    assert_eq!(ticks.iter().take(3).count(), 3);
}

#[test]
fn an_answer_that_takes_a_while_holds_up_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (go, gate) = sync_channel::<()>(0);
    let (began, begins) = sync_channel::<()>(LATER_MAX + 2);
    let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
    let site = move |request: &Request<'_>| match request.path {
        "/now" => Answer::Now(Reply::text(Status::Ok, "at once")),
        _ => {
            let (gate, began) = (gate.clone(), began.clone());
            Answer::Later(Box::new(move || {
                began.send(()).unwrap();
                let _ = gate.lock().unwrap().recv();
                Reply::text(Status::Ok, "made")
            }))
        }
    };
    serve(listener, names(), site).unwrap();
    let ask = || {
        let mut reader = TcpStream::connect(address).unwrap();
        reader.write_all(b"GET /later HTTP/1.1\r\n\r\n").unwrap();
        reader
    };
    let mut first = ask();
    begins.recv().unwrap();
    // One is being made, so many wait, and one more is told so.
    let waiting: Vec<TcpStream> = (0..LATER_MAX).map(|_| ask()).collect();
    assert!(get(address, "/now").ends_with("at once\n"));
    let refused = get(address, "/later");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    let mut said = String::new();
    go.send(()).unwrap();
    first.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("made\n"));
    // Those that leave are nobody's business, and the next ones are served.
    drop(waiting);
    for _ in 0..LATER_MAX {
        begins.recv().unwrap();
        go.send(()).unwrap();
    }
    let mut last = ask();
    begins.recv().unwrap();
    drop(go);
    said.clear();
    last.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("made\n"), "{said}");
}

#[test]
fn a_type_with_the_quality_of_zero_is_not_accepted() {
    let accepts = |accept| {
        let request = Request {
            path: "/",
            accept,
            post: None,
        };
        request.accepts("application/openmetrics-text")
    };
    for accept in [
        "application/openmetrics-text",
        "text/plain, Application/OpenMetrics-Text;version=1.0.0;q=0.5",
        "application/openmetrics-text; q = 0.001",
        "application/openmetrics-text;q=none",
    ] {
        assert!(accepts(accept), "{accept}");
    }
    for accept in [
        "",
        "*/*",
        "text/plain",
        "application/openmetrics-text;q=0",
        "text/plain, application/openmetrics-text; version=1.0.0; Q=0.000",
        "application/openmetrics-texts",
    ] {
        assert!(!accepts(accept), "{accept}");
    }
}
