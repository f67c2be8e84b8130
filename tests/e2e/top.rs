//! `onramp top` in a terminal: its keys, its width, and the modes that it leaves behind.

use crate::world::*;
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use testkit::output::Output;
use testkit::terminal::{InTerminal, Terminal};

/// A statement of the picture that is longer than a narrow terminal is wide.
const END: &str = "the_end_of_a_long_statement";
/// Questions that wait without an answer.
const QUESTIONS_MAX: usize = 64;

/// Answers each question as a pool's page does, so many times, and then not at all.
struct Page {
    address: String,
    /// Questions that get no answer, as long as somebody wants it.
    unanswered: Receiver<TcpStream>,
}

/// Page whose first answer has no figures yet.
fn page(answers: usize) -> Page {
    page_after(1, answers)
}

/// Page whose first `without` answers have no figures yet.
fn page_after(without: usize, answers: usize) -> Page {
    let statement = format!("SELECT {}, {END}", ["a"; 40].join(", "));
    let [empty, full] = [serde_json::Value::Null, serde_json::json!([1])].map(|point| {
        let shown = serde_json::json!({
            "names": ["statements"],
            "point": point,
            "tables": {"recent_statements": {"names": ["minutes", "statement"],
                                             "rows": [[5, statement]]}},
        })
        .to_string();
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{shown}",
            shown.len()
        )
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, unanswered) = sync_channel(QUESTIONS_MAX);
    std::thread::spawn(move || {
        for (number, socket) in listener.incoming().map_while(Result::ok).enumerate() {
            let mut socket = socket;
            let mut asked = [0; 1024];
            let _ = socket.read(&mut asked);
            if number < without {
                let _ = socket.write_all(empty.as_bytes());
            } else if number - without < answers {
                let _ = socket.write_all(full.as_bytes());
            } else if sender.send(socket).is_err() {
                return;
            }
        }
    });
    Page {
        address,
        unanswered,
    }
}

/// Starts it and waits for its picture in a terminal of 200 columns, whose modes are told.
fn start(page: &Page) -> (Terminal, InTerminal, String) {
    let terminal = Terminal::new(200, 50);
    let modes = terminal.modes();
    let top = terminal.start(binary(), &["top", &page.address], true);
    terminal.output().wait_for(END, 0, LIMIT).unwrap();
    assert!(terminal.gives_keys());
    (terminal, top, modes)
}

#[test]
fn top_ends_by_its_key_and_leaves_the_terminal_as_it_was() {
    for key in ["q", "Q"] {
        let (mut terminal, top, modes) = start(&page(usize::MAX));
        // What asks a pool for something does nothing here.
        top.signal(Signal::USR1);
        top.signal(Signal::USR2);
        terminal.press("xyz");
        terminal.press(key);
        assert_eq!(top.wait().code(), Some(0), "{key}");
        assert_eq!(terminal.modes(), modes, "{key}");
    }
}

#[test]
fn top_ends_by_signals_and_leaves_the_terminal_as_it_was() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let (terminal, top, modes) = start(&page(usize::MAX));
        top.signal(signal);
        assert_eq!(top.wait().code(), Some(0), "{signal:?}");
        assert_eq!(terminal.modes(), modes, "{signal:?}");
    }
}

#[test]
fn top_ends_while_the_pool_does_not_answer() {
    let page = page(2);
    let (mut terminal, top, modes) = start(&page);
    let question = page.unanswered.recv_timeout(LIMIT).unwrap();
    terminal.press("q");
    assert_eq!(top.wait().code(), Some(0));
    assert_eq!(terminal.modes(), modes);
    drop(question);
}

#[test]
fn top_gives_the_terminal_back_while_it_is_stopped() {
    let (mut terminal, top, modes) = start(&page(2));
    top.signal(Signal::TSTP);
    top.wait_until_stopped();
    assert_eq!(terminal.modes(), modes);
    let before = terminal.output().count();
    top.signal(Signal::CONT);
    // It is drawn again, although the pool has said nothing new.
    terminal.output().wait_for(END, before, LIMIT).unwrap();
    assert!(terminal.gives_keys());
    terminal.press("q");
    assert_eq!(top.wait().code(), Some(0));
    assert_eq!(terminal.modes(), modes);
}

/// Waits for the line with the statement, without the code that ends a line.
fn line(output: &Output, from: usize) -> String {
    let line = output.wait_for("SELECT a", from, LIMIT).unwrap();
    line.trim_end_matches(['\r', '\n'])
        .trim_end_matches("\x1b[K")
        .to_owned()
}

#[test]
fn top_is_as_wide_as_its_terminal_is_now() {
    let (terminal, top, _) = start(&page(2));
    for columns in [80, 120] {
        let before = terminal.output().count();
        terminal.resize(columns, 50);
        top.signal(Signal::WINCH);
        let line = line(terminal.output(), before);
        assert_eq!(line.chars().count(), usize::from(columns), "{line}");
    }
    top.signal(Signal::TERM);
    assert_eq!(top.wait().code(), Some(0));
}

#[test]
fn top_goes_on_without_keys() {
    let page = page(usize::MAX);
    let terminal = Terminal::new(200, 50);
    let modes = terminal.modes();
    let top = terminal.start(binary(), &["top", &page.address], false);
    let first = terminal.output().wait_for(END, 0, LIMIT);
    first.unwrap();
    assert_eq!(terminal.modes(), modes);
    let before = terminal.output().count();
    terminal.output().wait_for(END, before, LIMIT).unwrap();
    top.signal(Signal::INT);
    assert_eq!(top.wait().code(), Some(0));
}

#[test]
fn top_ends_where_the_pool_has_no_figures() {
    let page = page_after(usize::MAX, 0);
    let ran = testkit::onramp::run(binary(), &["top", &page.address], LIMIT).ends(1);
    assert!(ran.stderr.contains("has no figures yet"), "{}", ran.stderr);
}
