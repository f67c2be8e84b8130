//! The form of a line, and the table of events in the documentation.
use super::*;

fn of(event: Event, facts: &Facts<'_>, text: &str) -> String {
    let line = line(event, facts, format_args!("{text}"));
    let (time, rest) = line.split_once(' ').unwrap();
    assert_eq!(time.len(), "2026-01-31T12:00:00.123Z".len(), "{time}");
    assert!(time.ends_with('Z'), "{time}");
    rest.to_owned()
}

#[test]
fn a_line_has_its_facts_by_key_and_its_message_last() {
    let facts = Facts {
        client: Some(Peer::Tcp("192.0.2.7:41710".parse().unwrap())),
        id: Some(1073741831),
        account: Some(b"app"),
        reason: Some("wrong-password"),
        digest: Some(255),
        cuts_transaction: true,
        omitted: 3,
        statement: None,
    };
    assert_eq!(
        of(Event::LoginFailed, &facts, "Access denied"),
        "onramp pool: level=warning event=login-failed client=192.0.2.7:41710 id=1073741831 \
         account=\"app\" reason=wrong-password digest=00000000000000ff \
         transaction=cut omitted=3 message=Access denied\n"
    );
    let facts = Facts {
        client: Some(Peer::Unix),
        ..Facts::default()
    };
    assert_eq!(
        of(Event::Client, &facts, "idle"),
        "onramp pool: level=info event=client client=unix message=idle\n"
    );
}

#[test]
fn what_a_peer_says_begins_no_line_and_ends_no_value() {
    let facts = Facts {
        account: Some(b"a\" level=info\n2026 \xff\x1b["),
        ..Facts::default()
    };
    let line = of(Event::LoginFailed, &facts, "for 'a\r\nb\u{85}'\t");
    assert_eq!(
        line,
        "onramp pool: level=warning event=login-failed \
         account=\"a\\\" level=info\\n2026 \u{fffd}\\u{1b}[\" \
         message=for 'a\\r\\nb\\u{85}'\\t\n"
    );
}

#[test]
fn lines_that_nobody_takes_are_bounded_and_counted() {
    let (writer, lines) = sync_channel(LINES_MAX);
    let omitted = AtomicU64::new(0);
    for number in 0..LINES_MAX + 3 {
        hand_over(&writer, Message::Line(number.to_string()), &omitted);
    }
    drop(writer);
    let kept = lines.iter().count();
    assert_eq!((kept, omitted.into_inner()), (LINES_MAX, 3));
}

#[test]
fn the_log_of_all_statements_leaves_room_for_other_lines() {
    let (writer, lines) = sync_channel(LINES_MAX);
    let (waiting, omitted) = (AtomicUsize::new(0), AtomicU64::new(0));
    let say = |number: usize| hand_statement_over(&writer, number.to_string(), &waiting, &omitted);
    (0..STATEMENT_LINES_MAX + 3).for_each(say);
    assert_eq!(omitted.load(Ordering::Relaxed), 3);
    for number in 0..LINES_MAX - STATEMENT_LINES_MAX {
        assert!(hand_over(
            &writer,
            Message::Line(number.to_string()),
            &omitted
        ));
    }
    assert_eq!(omitted.load(Ordering::Relaxed), 3);
    // What is full of other lines takes none of these, and none of them counts as waiting.
    waiting.store(0, Ordering::Relaxed);
    say(7);
    assert_eq!((omitted.into_inner(), waiting.into_inner()), (4, 0));
    drop(writer);
    assert_eq!(lines.iter().count(), LINES_MAX);
}

#[test]
fn a_message_has_an_upper_bound() {
    let facts = Facts::default();
    let max = of(Event::Census, &facts, &"e".repeat(MESSAGE_MAX));
    assert!(max.ends_with("e\n"));
    let over = of(Event::Census, &facts, &"\u{20ac}".repeat(MESSAGE_MAX));
    assert!(over.ends_with("\u{20ac} ...\n") && over.len() < max.len() + 8);
}

#[test]
fn a_line_of_json_is_one_object_with_the_same_keys() {
    let facts = Facts {
        client: Some(Peer::Unix),
        account: Some(b"a\"\n\xff"),
        reason: Some("wrong-password"),
        omitted: 3,
        statement: None,
        ..Facts::default()
    };
    let line = json_line("T", Event::LoginFailed, &facts, "for 'a\r\nb'\t\u{1b}");
    assert_eq!(
        line,
        "{\"time\":\"T\",\"level\":\"warning\",\"event\":\"login-failed\",\"client\":\"unix\",\
         \"account\":\"a\\\"\\n\u{fffd}\",\"reason\":\"wrong-password\",\"omitted\":3,\
         \"message\":\"for 'a\\r\\nb'\\t\\u001b\"}\n"
    );
    let line = json_line("T", Event::Listening, &Facts::default(), "m");
    let keys = "{\"time\":\"T\",\"level\":\"info\",\"event\":\"listening\",\"message\":\"m\"}\n";
    assert_eq!(line, keys);
}

#[test]
fn a_level_leaves_out_what_matters_less_but_not_what_is_asked_for() {
    assert!(Event::Failed.is_logged(Level::Error) && !Event::Warning.is_logged(Level::Error));
    assert!(Event::Warning.is_logged(Level::Warning) && !Event::Start.is_logged(Level::Warning));
    assert!(Event::ALL.iter().all(|event| event.is_logged(Level::Info)));
    // The end of an outage is seen where its beginning is.
    for event in [
        Event::Census,
        Event::Client,
        Event::Statement,
        Event::ServerBack,
    ] {
        assert!(event.is_logged(Level::Error));
    }
}

#[test]
fn the_documentation_lists_every_event() {
    let row = |event: &Event| {
        let (name, level) = (event.name(), event.level().name());
        format!("| `{name}` | {level} | {} |\n", event.meaning())
    };
    let table: String = Event::ALL.iter().map(row).collect();
    let page = include_str!("../../../../../docs/pool/signals-and-log.md");
    assert!(
        page.contains(&format!("|---|---|---|\n{table}\n")),
        "docs/pool/signals-and-log.md must have exactly these rows:\n{table}"
    );
}

#[test]
fn a_slow_statement_has_its_facts_by_key() {
    let address = reactor::Address::parse("127.0.0.1:3306").unwrap();
    let statement = StatementFacts {
        command: Some("query"),
        server: Some((&address, 77)),
        wait: Duration::from_micros(1500),
        service: Duration::from_secs(2),
        rows: 7,
        error: Some(1146),
        digest: Some(0xab),
        trace: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    };
    let facts = Facts {
        client: Some(Peer::Unix),
        statement: Some(statement),
        omitted: 2,
        ..Facts::default()
    };
    assert_eq!(
        of(Event::SlowStatement, &facts, "SELECT ?"),
        "onramp pool: level=warning event=slow-statement client=unix command=query \
         server=127.0.0.1:3306 thread=77 wait_ms=1.5 service_ms=2000.0 rows=7 error=1146 \
         digest=00000000000000ab \
         traceparent=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 omitted=2 \
         message=SELECT ?\n"
    );
    let json: serde_json::Value =
        serde_json::from_str(&json_line("now", Event::SlowStatement, &facts, "SELECT ?")).unwrap();
    assert_eq!((&json["wait_ms"], &json["rows"]), (&1.5.into(), &7.into()));
    assert_eq!(json["digest"], "00000000000000ab");
}
