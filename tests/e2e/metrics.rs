//! HTTP of the pool: figures that move as the work does, health and readiness.

use crate::console::{CONSOLE, admin};
use crate::world::*;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

pub(crate) const HTTP: &str = "http = \"127.0.0.1:0\"\n";

/// Address at which a pool serves HTTP.
pub(crate) fn place_of(pool: &Pool) -> String {
    let line = pool.wait_for("figures at http://").unwrap();
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split_once('/').unwrap().0.to_owned()
}

/// The status and the body of an answer.
pub(crate) fn get(place: &str, path: &str, accept: &str) -> (u16, String) {
    get_as(place, place, path, accept)
}

/// The status and the body of an answer to a request by this name.
fn get_as(host: &str, place: &str, path: &str, accept: &str) -> (u16, String) {
    let mut reader = TcpStream::connect(place).unwrap();
    let asked = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\n\r\n");
    reader.write_all(asked.as_bytes()).unwrap();
    let mut answer = String::new();
    reader.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// The figures by name and labels.
pub(crate) fn figures(place: &str) -> BTreeMap<String, f64> {
    let (status, text) = get(place, "/metrics", "*/*");
    assert_eq!(status, 200);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs = lines.map(|line| line.rsplit_once(' ').unwrap());
    pairs
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Waits until figures have these values.
pub(crate) fn await_figures(place: &str, expected: &[(&str, f64)]) -> BTreeMap<String, f64> {
    until(|| {
        let found = figures(place);
        for (name, value) in expected {
            if found.get(*name) != Some(value) {
                let found = found.get(*name);
                return Err(format!("{name}: expected {value}, got {found:?}"));
            }
        }
        Ok(found)
    })
}

fn await_status(place: &str, path: &str, status: u16, words: &str) {
    until(|| match get(place, path, "") {
        (got, said) if got == status && said.contains(words) => Ok(()),
        other => Err(format!("expected {status} {words}, got {other:?}")),
    });
}

/// A metric that appears with its first event has no increase that could be seen.
#[test]
fn each_metric_is_there_before_anything_has_happened() {
    let (_, pool) = or_return!(shared_pool(HTTP));
    let figures = figures(&place_of(&pool));
    let page = include_str!("../../docs/pool/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("- `"));
    let names = rows.filter_map(|row| row.split('`').next());
    let names: Vec<&str> = names
        .filter(|name| name.ends_with(char::is_alphabetic))
        .collect();
    assert!(names.len() > 70, "{names:?}");
    // Without a collector nothing is sent; one server alone has no role and no reader. Each account
    // with each reason would be too many rows: `onramp_pool_errors_total` has the reasons.
    let later = "_otel_ _pool_refusals_total _server_state _server_lag_seconds _fleet_backends \
                 _pool_reads_total _pool_routes_total";
    let later = |name: &&&str| later.split(' ').any(|part| name.contains(part));
    for name in (names.iter()).filter(|name| !name.starts_with('/') && !later(name)) {
        let is_of = |series: &&String| {
            let series = series.split('{').next().unwrap();
            let ends = ["", "_count"];
            ends.iter().any(|end| series == format!("{name}{end}"))
        };
        assert!(figures.keys().any(|series| is_of(&series)), "{name}");
    }
    for zero in [
        "onramp_pool_errors_total{reason=\"queue-full\"}",
        "onramp_pool_pins_total{reason=\"user_lock\"}",
        "onramp_pool_pinned_clients{reason=\"user_lock\"}",
        "onramp_pool_server_errors_total{number=\"other\"}",
    ] {
        assert_eq!(figures.get(zero), Some(&0.0), "{zero}");
    }
}

#[test]
fn figures_move_as_the_work_does() {
    let (_, pool) = or_return!(shared_pool(&format!("{HTTP}groups = 2")));
    let place = place_of(&pool);
    let mut client = login(&pool.address, &app());
    for _ in 0..50 {
        client.must("SELECT 1");
    }
    for _ in 0..3 {
        assert_eq!(client.failure("SELECT * FROM shop.nowhere").code, 1146);
    }
    client.must("SELECT GET_LOCK('figures', 0)");
    assert!(Client::connect(&pool.address, &Account::new("app", "wrong")).is_err());
    let figures = await_figures(
        &place,
        &[
            ("onramp_pool_statements_total", 54.0),
            ("onramp_pool_server_errors_total{number=\"1146\"}", 3.0),
            ("onramp_pool_user_statement_errors_total{user=\"app\"}", 3.0),
            ("onramp_pool_pins_total{reason=\"user_lock\"}", 1.0),
            ("onramp_pool_pinned_clients{reason=\"user_lock\"}", 1.0),
            ("onramp_pool_pinned_backends", 1.0),
            ("onramp_pool_clients{state=\"holding\"}", 1.0),
            ("onramp_pool_user_clients{user=\"app\"}", 1.0),
            ("onramp_pool_logins_total", 1.0),
            ("onramp_pool_login_failures_total", 1.0),
            ("onramp_pool_connections_accepted_total", 2.0),
            ("onramp_pool_wait_seconds_count{user=\"app\"}", 54.0),
            ("onramp_pool_service_seconds_count{user=\"app\"}", 54.0),
            ("onramp_pool_service_seconds_count{user=\"other\"}", 0.0),
            ("onramp_pool_backends{state=\"checked_out\"}", 1.0),
            ("onramp_pool_server_up", 1.0),
            ("onramp_pool_ready", 1.0),
            ("onramp_pool_groups", 2.0),
        ],
    );
    let above = |name: &str, least: f64| {
        let found = figures[name];
        assert!(found > least, "{name}: {found}");
    };
    above("onramp_pool_service_seconds_sum{user=\"app\"}", 0.0);
    above("onramp_pool_turn_seconds_count", 54.0);
    above("onramp_pool_turn_seconds_sum", 0.0);
    above("onramp_pool_client_memory_bytes", 0.0);
    above("process_resident_memory_bytes", 1e6);
    let turns: f64 = ["0", "1"]
        .map(|group| figures[&format!("onramp_pool_group_turns_total{{group=\"{group}\"}}")])
        .iter()
        .sum();
    assert_eq!(turns, figures["onramp_pool_turn_seconds_count"]);
    drop(client);
    let holding = "onramp_pool_clients{state=\"holding\"}";
    let own = "onramp_pool_user_clients{user=\"app\"}";
    await_figures(&place, &[(holding, 0.0), (own, 0.0)]);
}

#[test]
fn who_waits_is_seen_while_waiting_and_measured_afterwards() {
    let Some(real) = pooled(server) else { return };
    let extra = format!("{HTTP}groups = 1\nbackends_max = 1");
    let pool = fresh_pool(real, &extra);
    let place = place_of(&pool);
    let mut holds = login(&pool.address, &app());
    let mut waits = login(&pool.address, &app());
    holds.must(HOLD);
    // The first statement has waited for a backend to be dialled.
    let low = "onramp_pool_queue_wait_seconds_count{queue=\"low\"}";
    let before = await_figures(&place, &[("onramp_pool_statements_total", 1.0)]);
    let waited = before[low];
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| waits.must("SELECT 1"));
        let waiting_clients = "onramp_pool_clients{state=\"waiting\"}";
        let one = [
            ("onramp_pool_waiting", 1.0),
            (waiting_clients, 1.0),
            (low, waited),
        ];
        await_figures(&place, &one);
        holds.must("COMMIT");
        waiting.join().unwrap();
    });
    let figures = await_figures(
        &place,
        &[
            ("onramp_pool_waiting", 0.0),
            ("onramp_pool_waited_total", waited + 1.0),
            (low, waited + 1.0),
            ("onramp_pool_wait_seconds_count{user=\"app\"}", 3.0),
        ],
    );
    let queue = figures["onramp_pool_queue_wait_seconds_sum{queue=\"low\"}"];
    let user = figures["onramp_pool_wait_seconds_sum{user=\"app\"}"];
    assert!(queue > 0.0 && user >= queue, "{queue} {user}");
}

#[test]
fn a_pool_is_ready_while_it_takes_clients_and_its_server_answers() {
    let mut real = or_return!(pooled(own_server));
    let extra = format!("{HTTP}{CONSOLE}");
    let file = config_file(&real, "ready.toml", &config(&real.address(), &extra));
    let arguments = ["--config", file.to_str().unwrap()];
    real.stop();
    let pool = Pool::start_waiting(binary(), &arguments, "waiting for the server").unwrap();
    let place = place_of(&pool);
    await_status(&place, "/readyz", 503, "starting");
    await_status(&place, "/healthz", 200, "ok");
    real.restart().unwrap();
    pool.wait_for("listening on").unwrap();
    await_status(&place, "/readyz", 200, "ok");
    let mut console = admin(&console_of(&pool));
    console.must("PAUSE");
    await_status(&place, "/readyz", 200, "ok, but paused");
    let page = get(&place, "/", "*/*").1;
    says(&page, "p.unready || p.paused ? \"bad\"");
    console.must("RESUME");
    let mut client = login(&pool.address, &app());
    client.must("SELECT 1");
    // The server that was not there at start counts too.
    let outages = figures(&place)["onramp_pool_server_outages_total"];
    real.stop();
    // Its backend is lost, and none can be dialled: that is an error in any case.
    let _ = client.query("SELECT 1");
    await_status(&place, "/readyz", 503, "the server cannot be reached");
    await_status(&place, "/healthz", 200, "ok");
    let away = [("onramp_pool_server_up", 0.0), ("onramp_pool_ready", 0.0)];
    await_figures(&place, &away);
    real.restart().unwrap();
    await_status(&place, "/readyz", 200, "ok");
    let counted = [("onramp_pool_server_outages_total", outages + 1.0)];
    await_figures(&place, &counted);
    let mut client = login(&pool.address, &app());
    client.must(HOLD);
    pool.terminate();
    await_status(&place, "/readyz", 503, "draining");
    client.must("COMMIT");
    assert!(pool.wait().0.success());
}

/// Load balancers hear of a drain before clients do.
#[test]
fn a_drain_accepts_while_it_waits_and_then_lets_clients_go_in_turns() {
    let Some(real) = pooled(server) else { return };
    real.create_user("app", "app");
    let stages = format!("{HTTP}drain_wait_s = 12\ndrain_s = 1\ngroups = 2");
    let pool = fresh_pool(real, &stages);
    let place = place_of(&pool);
    let mut idle: Vec<_> = (0..8).map(|_| login(&pool.address, &app())).collect();
    let mut holder = login(&pool.address, &app());
    holder.must(HOLD);
    pool.terminate();
    await_status(&place, "/readyz", 503, "draining");
    idle.push(login(&pool.address, &app()));
    for client in &mut idle {
        client.must("SELECT 1");
    }
    for mut client in idle {
        assert!(
            client.wait().is_err(),
            "a client that holds nothing goes on"
        );
    }
    let refused = Client::open(&pool.address, &app());
    assert!(refused.is_err(), "nobody is taken any more");
    holder.must("COMMIT");
    assert!(pool.wait().0.success());
}

#[test]
fn each_format_is_what_its_reader_expects() {
    let (_, pool) = or_return!(shared_pool(&format!("{HTTP}groups = 2")));
    let place = place_of(&pool);
    let mut client = login(&pool.address, &app());
    client.must("SELECT 1");
    await_figures(&place, &[("onramp_pool_statements_total", 1.0)]);
    let (_, text) = get(&place, "/metrics", "text/plain");
    assert!(text.contains("# TYPE onramp_pool_statements_total counter\n"));
    let wants = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
    let (_, open) = get(&place, "/metrics", wants);
    assert!(open.contains("# TYPE onramp_pool_statements counter\n"));
    assert!(open.contains("\nonramp_pool_statements_total 1\n") && open.ends_with("\n# EOF\n"));
    let (_, json) = get(&place, "/stats.json", "");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let statements = &json["onramp_pool_statements_total"]["values"][0]["value"];
    assert_eq!(statements.as_f64(), Some(1.0));
    assert_eq!(get(&place, "/nowhere", "").0, 404);
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    promtool.stdout(Stdio::piped()).stderr(Stdio::piped());
    match promtool.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip("promtool is not installed");
        }
        started => {
            let mut promtool = started.unwrap();
            let mut stdin = promtool.stdin.take().unwrap();
            stdin.write_all(text.as_bytes()).unwrap();
            drop(stdin);
            let ran = promtool.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
            assert!(ran.status.success() && said.is_empty(), "{said}");
        }
    }
}

/// The number of values of a label.
fn values_of(figures: &BTreeMap<String, f64>, label: &str) -> usize {
    let with = format!("{label}=\"");
    let values = figures.keys().filter_map(|name| {
        let (_, rest) = name.split_once(&with)?;
        rest.split('"').next()
    });
    values.collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn no_label_has_more_values_than_its_bound() {
    let Some(real) = pooled(server) else { return };
    let users: String = (0..60)
        .map(|n| {
            format!(
                "[[user]]\nname = \"many{n}\"\npassword = \"p\"\nbackend_user = \"app\"\n\
                 backend_password = \"app\"\n"
            )
        })
        .collect();
    let at = config(&real.address(), &format!("{HTTP}groups = 1"));
    let text = format!("{at}{users}");
    let pool = pool_from(real, &text);
    let place = place_of(&pool);
    let mut last = login(&pool.address, &Account::new("many59", "p"));
    // More numbers of errors than have a place.
    for number in 20_000..20_120 {
        let raise = format!("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {number}");
        assert_eq!(last.failure(&raise).code, number);
    }
    let figures = await_figures(
        &place,
        &[
            ("onramp_pool_service_seconds_count{user=\"other_\"}", 120.0),
            ("onramp_pool_server_errors_total{number=\"other\"}", 20.0),
            ("onramp_pool_server_errors_total{number=\"20000\"}", 1.0),
        ],
    );
    // The configuration has a user who is called "other".
    assert_eq!(values_of(&figures, "user"), 51);
    assert_eq!(values_of(&figures, "number"), 101);
}

#[test]
fn a_foreign_name_is_refused_and_a_listed_one_is_not() {
    let Some(real) = pooled(server) else { return };
    let names = "http_names = [\"pool.internal\"]\n";
    let pool = fresh_pool(real, &format!("{HTTP}{names}"));
    let place = place_of(&pool);
    let (_, port) = place.rsplit_once(':').unwrap();
    for path in ["/", "/metrics", "/live.json", "/tables.json", "/healthz"] {
        let (status, why) = get_as("evil.example", &place, path, "*/*");
        let expected = "the Host 'evil.example' is neither an address nor a name that is \
                        listed; ask by the address, or list the name in http_names\n";
        assert_eq!((status, &*why), (403, expected), "{path}");
    }
    let with_port = format!("pool.internal:{port}");
    for host in [&*place, "localhost", "pool.internal", &with_port] {
        let answer = get_as(host, &place, "/healthz", "*/*");
        assert_eq!(answer, (200, "ok\n".to_owned()));
    }
}

#[test]
fn an_address_that_cannot_be_had_ends_the_pool_with_the_reason() {
    let Some(real) = pooled(server) else { return };
    let config = config_file(real, "taken.toml", &config(&real.address(), ""));
    let config = config.display();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = taken.local_addr().unwrap().to_string();
    let ran = |http: &str| {
        let listen = format!("127.0.0.1:{}", free_port());
        onramp(&format!(
            "pool --listen {listen} --config {config} --http {http}"
        ))
    };
    let ran_taken = ran(&place).ends(1);
    let expected = format!("http: cannot listen on {place}: ");
    assert!(ran_taken.stderr.contains(&expected), "{}", ran_taken.stderr);
    let wrong = ran("/a/path").ends(2);
    says(&wrong.stderr, "--http: expected HOST:PORT");
}

#[test]
fn the_page_shows_who_is_there() {
    let (_, pool) = or_return!(shared_pool(HTTP));
    let place = place_of(&pool);
    let mut client = login(&pool.address, &app());
    client.must("SELECT GET_LOCK('page', 0)");
    let _idle = login(&pool.address, &app());
    let (status, page) = get(&place, "/", "text/html");
    assert_eq!(status, 200);
    // It works offline: nothing is fetched from elsewhere.
    assert!(page.contains("live.json") && !page.contains("src=") && !page.contains("@import"));
    let json = |path: &str| -> serde_json::Value {
        serde_json::from_str(&get(&place, path, "application/json").1).unwrap()
    };
    let shown = until(|| {
        let shown = json("/live.json");
        let rows = &shown["pins"]["rows"];
        match rows[0][0] == "user_lock" && shown["sources"]["rows"][0][2] == 2 {
            true => Ok(shown),
            false => Err(shown.to_string()),
        }
    });
    assert_eq!(shown["pins"]["rows"][0][1], "SELECT GET_LOCK(...");
    assert_eq!(shown["sources"]["rows"][0][0], "app");
    // Who has a backend stands there with all that the console tells; who is idle is counted.
    let busy = &shown["tables"]["clients"];
    let [row] = &busy["rows"].as_array().unwrap()[..] else {
        panic!("{busy}")
    };
    let names = busy["names"].as_array().unwrap();
    let value = |name: &str| &row[names.iter().position(|other| other == name).unwrap()];
    assert_eq!(*value("id"), crate::audit::id(&client));
    assert_eq!(*value("pinned_by"), "SELECT GET_LOCK(...");
    assert!(value("pins").as_str().unwrap().starts_with("user_lock "));
    assert_eq!(shown["pool"]["unready"], serde_json::Value::Null);
    let statements = &shown["tables"]["statements"];
    assert_eq!(statements["rows"][0][1], "SELECT GET_LOCK(?, ...)");
    // The tables of the console, also those that the groups are asked for.
    let tables = json("/tables.json");
    let tables = tables.as_array().unwrap().iter();
    let names: Vec<&str> = tables
        .map(|table| table["name"].as_str().unwrap())
        .collect();
    for name in &names {
        let table = json(&format!("/tables/{name}.json"));
        let is_table = table["names"].is_array() && table["rows"].is_array();
        assert!(is_table, "{table}");
    }
    assert!(names.contains(&"backends"), "{names:?}");
    let clients = json("/tables/clients.json");
    assert_eq!(clients["rows"].as_array().unwrap().len(), 2);
    assert_eq!(get(&place, "/tables/x.json", "").0, 404);
    // The same in a terminal, or where there is none.
    let ran = onramp(&format!("top {place}")).ends(0);
    for part in ["ready", "SELECT GET_LOCK(?, ...)", "user_lock"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let history = json("/history.json");
    let width = history["names"].as_array().unwrap().len();
    let rows = history["rows"].as_array().unwrap();
    let are_whole = rows
        .iter()
        .all(|row| row.as_array().unwrap().len() == width);
    assert!(are_whole, "{history}");
    assert!(!rows.is_empty());
}

/// A group makes its figures known twice a second, whoever asks: if a scrape had it do anything, it
/// would turn for it.
#[test]
fn scraping_64_groups_has_none_of_them_turn() {
    const SCRAPES: u32 = 500;
    let Some(real) = pooled(server) else { return };
    let settings = format!("{HTTP}groups = 64\nbackends_max = 64\nbackends_min = 0");
    let pool = fresh_pool(real, &settings);
    let place = place_of(&pool);
    let turns = || {
        let mut figures = figures(&place);
        figures.retain(|name, _| name.starts_with("onramp_pool_group_turns_total{"));
        figures
    };
    let before = turns();
    assert_eq!(before.len(), 64);
    for _ in 0..SCRAPES {
        turns();
    }
    let after = turns();
    let more = |(group, turned): (&String, &f64)| (group.clone(), turned - before[group]);
    let mut turned: Vec<(String, f64)> = after.iter().map(more).collect();
    turned.retain(|(_, turns)| *turns >= f64::from(SCRAPES) / 2.0);
    // Something else may have had one of them turn: what, the other figures say.
    let mut all = figures(&place);
    all.retain(|_, value| *value != 0.0);
    assert_eq!(turned, [], "turns for {SCRAPES} scrapes; {all:?}");
}
