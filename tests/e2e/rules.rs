//! Acting: rules about digests, limits of users, and KILL of many, at the console and over HTTP.

use crate::console::{admin, rows, start};
use crate::metrics::{await_figures, place_of};
use crate::on_call::first_row;
use crate::world::*;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use wire::capabilities::MULTI_STATEMENTS;

/// Digest of a statement that the pool has run, by its text without values.
pub(crate) fn digest_of(console: &mut Client, text: &str) -> String {
    let question = format!("SELECT digest FROM statements WHERE statement = '{text}'");
    first_row(console, &question).remove(0)
}

fn fails(client: &mut Client, prepared: u32) -> Failure {
    let outcomes = client.execute(prepared, &[Some(b"1")], false).unwrap();
    outcomes.last().unwrap().failure().clone()
}

#[test]
fn a_rejected_digest_is_refused_in_every_form_and_nothing_else_is() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "rules-reject.toml", "backends_max = 4\ngroups = 2");
        fresh_schema(real, "rules");
        let account = app().schema("rules").with(MULTI_STATEMENTS);
        let (mut client, mut console) = (login(&pool.address, &account), admin(&place));
        client.must("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB");
        client.must("SELECT id FROM t WHERE id = 7");
        let prepared = client.prepare("SELECT id, ? FROM t").id;
        client.execute(prepared, &[Some(b"1")], false).unwrap();
        let both = "SELECT id FROM t WHERE id = 7; SELECT 1";
        client.must(both);
        let digest = digest_of(&mut console, "SELECT id FROM t WHERE id = ?");
        let of_prepared = digest_of(&mut console, "SELECT id, ? FROM t");
        let of_both = digest_of(&mut console, "SELECT id FROM t WHERE id = ?; SELECT ?");
        let long = "x".repeat(301);
        let refused = format!(
            "REJECT DIGEST '' => expected up to 16 hexadecimal digits
             REJECT DIGEST 'ab' FOR 0 => no digest that is known begins with
             ALLOW DIGEST '00000000000000ff' => there is no rule for digest
             REJECT DIGEST '{digest}' WITH '{long}' => at most 300 bytes, got 301
             REJECT DIGEST '{digest}' FOR 0 => 1 to 31536000 seconds, got 0
             LIMIT DIGEST '{digest}' TO 0 => expected 1 to 100000, got 0
             LIMIT DIGEST '{digest}' TO 100001 => expected 1 to 100000"
        );
        for [text, why] in table(&refused) {
            says(&console.failure(text).message, why);
        }
        client.must(HOLD);
        client.must("INSERT INTO t VALUES (7)");
        let part = &digest[..12];
        console.must(&format!("REJECT DIGEST '{part}' WITH 'ticket 7'"));
        let refused = client.failure("SELECT id FROM t WHERE id = 99");
        assert_eq!(refused.code, 9512, "{refused:?}");
        let words = format!("(REJECT DIGEST '{digest}'): ticket 7; nothing was executed");
        says(&refused.message, &words);
        // Another digest: that of the whole text, and with other words.
        client.must(both);
        assert_eq!(client.value("SELECT id FROM t WHERE id < 9"), "7");
        client.must("ROLLBACK");
        assert_eq!(client.value("SELECT COUNT(*) FROM t"), "0", "it was open");
        console.must(&format!("REJECT DIGEST '{of_prepared}'"));
        console.must(&format!("REJECT DIGEST '{of_both}'"));
        assert_eq!(fails(&mut client, prepared).code, 9512);
        let again = client.prepare("SELECT id, ? FROM t").id;
        assert_eq!(fails(&mut client, again).code, 9512);
        assert_eq!(client.failure(both).code, 9512);
        client.must("SELECT 1");
        let shown = "SELECT rule, refused, message, statement FROM rules WHERE target = ";
        let shown = rows(&mut console, &format!("{shown}'{digest}'"));
        assert_eq!(
            shown,
            [["reject", "1", "ticket 7", "SELECT id FROM t WHERE id = ?"]]
        );
        assert_eq!(rows(&mut console, "SHOW RULES").len(), 3);
        let count = "SELECT value FROM stats WHERE name = 'onramp_pool_errors_total' AND labels \
                     = 'reason=rejected-digest' AND value = 4";
        first_row(&mut console, count);
        let line = pool.wait_for("reason=rejected-digest").unwrap();
        says(&line, "event=refused client=127.0.0.1:");
        says(&line, &format!("digest={digest}"));
        console.must("RELOAD");
        assert_eq!(client.failure(both).code, 9512, "a reload keeps it");
        for digest in [&digest, &of_prepared, &of_both] {
            console.must(&format!("ALLOW DIGEST '{digest}'"));
        }
        client.must("SELECT id FROM t WHERE id = 7");
        client.must(both);
        client.execute(prepared, &[Some(b"1")], false).unwrap();
        assert!(rows(&mut console, "SHOW RULES").is_empty());
        // One that ends by itself.
        console.must(&format!("REJECT DIGEST '{digest}' FOR 1"));
        pool.wait_for("event=rule-ended").unwrap();
        client.must("SELECT id FROM t WHERE id = 7");
    }
}

#[test]
fn what_waits_is_refused_when_its_turn_comes() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "rules-queue.toml", "backends_max = 1\ngroups = 1");
        let (mut holder, mut waits) = (login(&pool.address, &app()), login(&pool.address, &app()));
        let mut console = admin(&place);
        waits.script("SELECT 'queued'; SELECT 'queued'");
        let digest = digest_of(&mut console, "SELECT ?");
        holder.must(HOLD);
        send(&mut waits, "SELECT 'queued'");
        first_row(
            &mut console,
            "SELECT id FROM clients WHERE state = 'waiting'",
        );
        console.must(&format!("REJECT DIGEST '{digest}'"));
        holder.must("COMMIT");
        let outcomes = waits.receive().unwrap();
        assert_eq!(outcomes[0].failure().code, 9512);
        console.must(&format!("ALLOW DIGEST '{digest}'"));
        waits.must("SELECT 'queued'");
    }
}

/// Each statement has a backend: a sleep would be pipelined behind another one.
const LIMITED: &str = "backends_max = 8\ngroups = 2\npipeline_max = 1";

#[test]
fn a_limited_digest_runs_so_often_at_once_in_all_groups() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "rules-limit.toml", LIMITED);
        let mut clients: Vec<_> = (0..4).map(|_| login(&pool.address, &app())).collect();
        let mut console = admin(&place);
        clients[0].must("SELECT SLEEP(0)");
        let id = clients[0].value("SELECT CONNECTION_ID()");
        let digest = digest_of(&mut console, "SELECT SLEEP(?)");
        console.must(&format!("LIMIT DIGEST '{digest}' TO 2"));
        let running = |n: usize| format!("SELECT refused FROM rules WHERE running = {n}");
        for client in &mut clients[..2] {
            send(client, "SELECT SLEEP(60)");
        }
        first_row(&mut console, &running(2));
        for client in &mut clients[2..] {
            let refused = client.failure("SELECT SLEEP(0)");
            assert_eq!(refused.code, 9513, "{refused:?}");
            says(&refused.message, &format!("(LIMIT DIGEST '{digest}' TO 2)"));
            client.must("SELECT 1");
        }
        assert_eq!(first_row(&mut console, &running(2)), ["2"]);
        console.must(&format!("LIMIT DIGEST '{digest}' TO 3"));
        clients[2].must("SELECT SLEEP(0)");
        console.must("KILL QUERY USER 'app'");
        for client in &mut clients[..2] {
            client.receive().unwrap();
        }
        first_row(&mut console, &running(0));
        // One whose client is closed counts no more.
        send(&mut clients[0], "SELECT SLEEP(60)");
        first_row(&mut console, &running(1));
        console.must(&format!("KILL {id}"));
        first_row(&mut console, &running(0));
        clients[1].must("SELECT SLEEP(0)");
    }
}

#[test]
fn many_are_ended_by_account_address_and_idle_transaction() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "rules-kill.toml", "backends_max = 4\ngroups = 2");
        let (mut holder, mut other) = (login(&pool.address, &app()), login(&pool.address, &app()));
        let mut console = admin(&place);
        holder.must(HOLD);
        other.must("SELECT 1");
        console.script("KILL IDLE TRANSACTIONS OLDER THAN 3600; KILL USER 'nobody'");
        console.script("KILL ADDRESS '192.0.2.0/24'; KILL QUERY USER 'app'");
        holder.must("SELECT 1");
        let wrong = console.failure("KILL ADDRESS 'here'");
        says(&wrong.message, "expected an address or a network");
        console.must("KILL IDLE TRANSACTIONS OLDER THAN 0");
        assert!(holder.query("SELECT 1").is_err());
        other.must("SELECT 1");
        for command in ["KILL USER 'app'", "KILL ADDRESS '127.0.0.0/8'"] {
            let mut client = login(&pool.address, &app());
            console.must(command);
            assert!(client.query("SELECT 1").is_err(), "{command}");
            let line = pool
                .wait_for(&format!("'admin' has said {command}"))
                .unwrap();
            says(&line, "event=console-command");
        }
        assert!(other.query("SELECT 1").is_err());
        login(&pool.address, &app()).must("SELECT 1");
        says(&pool.wait_for("event=killed").unwrap(), "account=\"app\"");
    }
}

#[test]
fn a_limit_of_a_user_holds_over_a_reload_until_it_is_taken_back() {
    for real in pooled_servers() {
        let (pool, place) = start(real, "rules-user.toml", "groups = 2");
        let mut console = admin(&place);
        for [text, why] in table(
            "SET USER 'nobody' LIMIT clients_max = 1 => no [[user]] named 'nobody'
             SET USER 'app' LIMIT password = 'x' => expected one of clients_max,
             SET USER 'app' LIMIT clients_max = 0 => clients_max
             SET USER 'app' LIMIT clients_max = many => expected a number from 1",
        ) {
            says(&console.failure(text).message, why);
        }
        let _first = login(&pool.address, &app());
        console.must("SET USER 'app' LIMIT clients_max = 1");
        let refused = || Client::connect(&pool.address, &app()).err().unwrap();
        says(&refused().to_string(), "clients_max of this user is 1");
        console.must("RELOAD");
        says(&refused().to_string(), "clients_max of this user is 1");
        let shown = rows(&mut console, "SELECT rule, target, value FROM rules");
        assert_eq!(shown, [["user", "app", "clients_max = 1"]]);
        console.must("SET USER 'app' LIMIT clients_max = DEFAULT");
        login(&pool.address, &app()).must("SELECT 1");
        assert!(rows(&mut console, "SHOW RULES").is_empty());
    }
}

/// The status and the body of the answer to a command over HTTP.
pub(crate) fn post(place: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(place).unwrap();
    let len = body.len();
    let asked = format!(
        "POST /command HTTP/1.1\r\nHost: {place}\r\n{headers}Content-Length: {len}\r\n\r\n{body}"
    );
    stream.write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[test]
fn commands_come_over_http_with_the_token_and_the_header_alone() {
    for real in pooled_servers() {
        let token = real.folder().join("http.token");
        std::fs::write(&token, "0123456789abcdef\n").unwrap();
        let token = format!("http_token_file = \"{}\"", token.display());
        let extra = format!("http = \"127.0.0.1:0\"\n{token}");
        let (pool, console) = start(real, "rules-http.toml", &extra);
        let place = place_of(&pool);
        let mut console = admin(&console);
        let mut client = login(&pool.address, &app());
        client.must("SELECT 'x'");
        let digest = digest_of(&mut console, "SELECT ?");
        let reject = format!("REJECT DIGEST '{digest}' FOR 600");
        let header = "X-Onramp: 1\r\n";
        let bearer = "Authorization: Bearer 0123456789abcdef\r\n";
        let wrong = "Authorization: Bearer 0123456789abcdeg\r\n";
        for (headers, status) in [
            (bearer.to_owned(), 403),
            (header.to_owned(), 401),
            (format!("{header}{wrong}"), 401),
            (format!("{header}Host: evil.example\r\n{bearer}"), 403),
        ] {
            let (got, body) = post(&place, &headers, &reject);
            assert_eq!(got, status, "{headers}: {body}");
        }
        client.must("SELECT 'x'");
        let headers = format!("{header}{bearer}");
        let (status, said) = post(&place, &headers, &reject);
        assert_eq!(status, 200, "{said}");
        let words = format!("statements of digest {digest} get error 9512");
        says(&said, &words);
        assert_eq!(client.failure("SELECT 'x'").code, 9512);
        let said = pool.wait_for("'http' has said REJECT DIGEST").unwrap();
        says(&said, "event=console-command");
        let refused = [
            ("SHOW RULES", "expected a command"),
            ("KILL 77", "Unknown thread"),
        ];
        for (text, why) in refused {
            let (status, said) = post(&place, &headers, text);
            assert_eq!(status, 400, "{said}");
            says(&said, why);
        }
        let limit = format!("LIMIT DIGEST '{digest}' TO 1");
        for text in [
            &*limit,
            "SET USER 'app' LIMIT waiting_max = 9",
            "KILL ADDRESS '192.0.2.1'",
            "KILL IDLE TRANSACTIONS OLDER THAN 60",
        ] {
            let (status, said) = post(&place, &headers, text);
            assert_eq!(status, 200, "{text}: {said}");
        }
        // In the figures, and the console.
        await_figures(&place, &[("onramp_pool_rules", 1.0)]);
        let shown = rows(&mut console, "SELECT rule FROM rules ORDER BY 1");
        assert_eq!(shown, [["limit"], ["user"]]);
        let (status, said) = post(&place, &headers, "KILL USER 'app'");
        assert_eq!((status, said.as_str()), (200, "1 clients are closed\n"));
        wait_while(|| client.query("SELECT 1").is_ok());
    }
}
