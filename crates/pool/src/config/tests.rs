//! Tests of settings: what a file comes to, and what is wrong with it.

use super::*;
use crate::config::checks::SIGNAL_PATHS;
use crate::config::rows::{console_rows, otel_rows, server_rows, tls_rows, user_rows};
use std::os::unix::fs::PermissionsExt;
use wire::auth::Plugin;

const GOOD: &str = r#"
        listen = ["127.0.0.1:6033", "/run/onramp.sock"]
        wait_ms_max = 500
        [backend]
        address = "127.0.0.1:3306"
        [[user]]
        name = "app"
        password = "secret"
        [[user]]
        name = "hashed"
        password_hash = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
        backend_user = "app"
        backend_password = "secret"
        auth = "caching_sha2_password"
    "#;

fn check(text: &str) -> Result<Settings, String> {
    Raw::parse(text)?.check()
}

/// Every setting that names a file, with a file that does.
const FILES: &str = r#"
        listen = "127.0.0.1:6033"
        http_token_file = "DIR/token"
        [backend]
        address = "127.0.0.1:3306"
        tls = "verify_ca"
        tls_ca = "DIR/cert"
        server_public_key = "DIR/public"
        tls_cert = "DIR/cert"
        tls_key = "DIR/key"
        monitor_user = "monitor"
        monitor_password_file = "DIR/password"
        [tls]
        cert = "DIR/cert"
        key = "DIR/key"
        client_ca = "DIR/cert"
        [console]
        listen = "127.0.0.1:6032"
        admin_user = "admin"
        admin_password_file = "DIR/password"
        reader_user = "reader"
        reader_password_file = "DIR/password"
        [otel]
        endpoint = "http://127.0.0.1:4318"
        ca = "DIR/cert"
        [[user]]
        name = "app"
        password_file = "DIR/password"
        backend_password_file = "DIR/password"
    "#;

#[test]
fn no_setting_has_a_pipe_waited_for() {
    let folder = std::env::temp_dir().join(format!("onramp-pipes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [
        ("cert", include_str!("../../../testkit/tls/cert.pem")),
        ("key", include_str!("../../../testkit/tls/key.pem")),
        ("password", "secret"),
        ("token", "0123456789abcdef"),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let pair = wire::auth::caching_sha2::KeyPair::generate().unwrap();
    std::fs::write(folder.join("public"), pair.public_pem()).unwrap();
    let pipe = folder.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let text = FILES.replace("DIR", folder.to_str().unwrap());
    check(&text).unwrap();
    let rows = (top_rows().chain(server_rows()).chain(tls_rows()))
        .chain(console_rows())
        .chain(otel_rows())
        .chain(user_rows());
    let is_file = |row: &&row::Row| {
        matches!(row.kind, row::Kind::Text(what) | row::Kind::List(what) if what.contains("path"))
            && !row.key.ends_with("_folder")
            // It is written, and opened so that nobody waits.
            && row.key != "audit_log"
    };
    let mut count = 0;
    for row in rows.filter(is_file) {
        let line = text.lines().find(|line| {
            let key = line.trim_start().strip_prefix(row.key);
            key.is_some_and(|rest| rest.starts_with(" ="))
        });
        let line = line.unwrap_or_else(|| panic!("FILES has no {}", row.key));
        let other = format!("{} = \"{}\"", row.key, pipe.display());
        let error = check(&text.replace(line, &other)).unwrap_err();
        assert!(error.contains(row.key), "{}: {error}", row.key);
        let words = "pipe: expected a regular file";
        assert!(error.contains(words), "{}: {error}", row.key);
        count += 1;
    }
    assert_eq!(count, text.matches(folder.to_str().unwrap()).count());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_good_file_is_checked_and_completed() {
    let settings = check(GOOD).unwrap();
    assert_eq!(settings.listen.len(), 2);
    assert_eq!(settings.wait_max, Duration::from_millis(500));
    assert_eq!(settings.clients_max, 10_000);
    let access = settings.socket_access();
    assert_eq!(
        (access.mode, access.owner, access.group),
        (0o777, None, None)
    );
    let narrow = "socket_mode = \"0660\"\nsocket_owner = \"root\"\nsocket_group = \"7\"";
    let access = check(&GOOD.replace("wait_ms_max = 500", narrow))
        .unwrap()
        .socket_access();
    assert_eq!(
        (access.mode, access.owner, access.group),
        (0o660, Some(0), Some(7))
    );
    assert_eq!(settings.users[1].backend_user, "app");
    let seconds = |s| Some(Duration::from_secs(s));
    assert_eq!(settings.backend_silence_max, seconds(15));
    assert_eq!(settings.client_silence_max, seconds(300));
    assert_eq!(
        settings.users[1].method,
        Some(Method::Plugin(Plugin::CachingSha2))
    );
}

#[test]
fn passwords_may_stand_in_files_and_in_the_environment() {
    let folder = std::env::temp_dir().join(format!("onramp-passwords-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("password");
    std::fs::write(&file, "from a file\n").unwrap();
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o600);
    let elsewhere = |keys: &str| {
        let text = GOOD.replacen("password = \"secret\"", keys, 1);
        check(&text.replace("FILE", file.to_str().unwrap()))
    };
    let settings = elsewhere("password_file = \"FILE\"").unwrap();
    assert_eq!(settings.users[0].backend_password, "from a file");
    assert_eq!(settings.warnings, [""; 0]);
    mode(0o644);
    let settings = elsewhere("password_file = \"FILE\"").unwrap();
    assert!(settings.warnings[0].contains("mode 0644"), "{settings:?}");
    let path = std::env::var("PATH").unwrap();
    let settings = elsewhere("password_env = \"PATH\"").unwrap();
    assert_eq!(settings.users[0].backend_password, path.as_str());
    let settings = elsewhere(
        "password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"\n\
             backend_password_file = \"FILE\"",
    );
    assert_eq!(settings.unwrap().users[0].backend_password, "from a file");
    let monitor = "monitor_user = \"m\"\nmonitor_password_env = \"PATH\"\n[[user]]\nname = \"app\"";
    let text = GOOD.replacen("[[user]]\n        name = \"app\"", monitor, 1);
    let (user, password) = check(&text).unwrap().monitor.unwrap();
    assert_eq!((user.as_str(), &*password), ("m", path.as_str()));
    for (keys, expected) in [
        (
            "password_env = \"ONRAMP_NOT_THERE\"",
            "user 'app': password_env ONRAMP_NOT_THERE",
        ),
        (
            "password_file = \"/nowhere/p\"",
            "user 'app': password_file /nowhere/p: No such file",
        ),
        (
            "password = \"x\"\npassword_env = \"PATH\"",
            "expected one of password, password_file",
        ),
        (
            "password_env = \"PATH\"\npassword_file = \"FILE\"",
            "expected one of password",
        ),
        (
            "password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"\n\
                 password_env = \"PATH\"",
            "expected either a password",
        ),
    ] {
        let error = elsewhere(keys).unwrap_err();
        assert!(error.contains(expected), "{keys}: {error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn neither_settings_nor_mistakes_show_a_password() {
    let shown = format!("{:?} {:?}", Raw::parse(GOOD).unwrap(), check(GOOD).unwrap());
    assert!(!shown.contains("secret"), "{shown}");
    for line in [
        "password = secret",
        "password = 'secret",
        "password = \"\"\"secret",
        "password = [\"secret\"]",
        "password = \"secret\" x",
        "password = \"secret\"\n        password = \"secret\"",
        "backend_password = { secret = 1 }",
    ] {
        let error = check(&GOOD.replacen("password = \"secret\"", line, 1)).unwrap_err();
        assert!(!error.contains("secret"), "{line}: {error}");
    }
    let number = check(&GOOD.replacen("\"secret\"", "4711", 1)).unwrap_err();
    assert!(
        number.starts_with("line 8, column 20: user 'app': password: expected a text"),
        "{number}"
    );
    assert!(Raw::parse(GOOD).unwrap().holds_secrets());
    let without = "[[user]]\nname = \"a\"\npassword = \"\"\n\
                       [[user]]\npassword_file = \"f\"\nname = \"b\"";
    assert!(!Raw::parse(without).unwrap().holds_secrets());
}

#[test]
fn two_passwords_are_as_many_as_a_user_has() {
    let of = |keys: &str| {
        let text = format!(
            "listen = \"127.0.0.1:1\"\n[backend]\naddress = \"127.0.0.1:2\"\n[[user]]\n\
             name = \"a\"\n{keys}"
        );
        check(&text).map(|mut settings| settings.users.remove(0))
    };
    let (one, other) = (
        "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19",
        "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7",
    );
    let hashes = format!("password_hash = [\"{one}\", \"{other}\"]\nbackend_password = \"x\"");
    for (keys, backend) in [("password = [\"x\", \"y\"]", "x"), (&*hashes, "x")] {
        let user = of(keys).unwrap();
        assert!(user.second.is_some(), "{keys}");
        assert_eq!(user.backend_password, backend);
    }
    assert!(of("password = \"x\"").unwrap().second.is_none());
    for keys in [
        "password = [\"x\"]",
        "password = [\"x\", \"y\", \"z\"]",
        "password = [\"x\", \"x\"]",
        "password = [\"x\", \"\"]",
        "password = [\"x\", 1]",
        "password = [\"x\", \"y\"]\npassword_env = \"PATH\"",
        "password_env = [\"PATH\", \"PATH\", \"PATH\"]",
    ] {
        let why = of(keys).unwrap_err();
        assert!(
            why.contains("password") && why.contains("expected"),
            "{keys}: {why}"
        );
    }
    let mixed = of("password = \"x\"\npassword_env = [\"PATH\", \"HOME\"]").unwrap_err();
    assert!(mixed.contains("expected one of"), "{mixed}");
}

#[test]
fn each_mistake_is_one_sentence_that_names_the_key() {
    let cases = [
        (
            "clients_maximum = 5",
            "line 3, column 9: unknown setting 'clients_maximum'; is clients_max meant? \
                 docs/pool/settings.md describes every setting",
        ),
        (
            "max_clients = 5",
            "unknown setting 'max_clients'; is clients_max meant?",
        ),
        (
            "frobnicate = 5",
            "unknown setting 'frobnicate'; docs/pool/settings.md describes",
        ),
        (
            "password = 5",
            "'password' is no setting here; it stands below [[user]]",
        ),
        (
            "clients_max = \"many\"",
            "line 3, column 23: clients_max: expected a number from 1 to 10000000, got the \
                 text \"many\"",
        ),
        ("clients_max = -5", "got -5"),
        ("clients_max = 5.5", "got 5.5"),
        (
            "compression = \"on\"",
            "compression: expected true or false, got the text \"on\"",
        ),
        (
            "stored_code = \"believe\"",
            "line 3, column 23: stored_code: expected pin or trust, got 'believe'",
        ),
        (
            "stored_code_refresh_s = 86401",
            "stored_code_refresh_s: expected a number from 1 to 86400, got 86401 (0: never)",
        ),
        ("prepared_max = 63", "prepared_max: expected at least 64"),
        (
            "idle_s_max = 0",
            "line 3, column 22: idle_s_max: expected a number from 1",
        ),
        (
            "wait_ms_max = 0",
            "line 3, column 23: wait_ms_max: expected a number from 1 to 86400000, got 0",
        ),
        (
            "client_silence_s_max = 2",
            "client_silence_s_max: expected a number from 3 to 32767, got 2 (0: no limit)",
        ),
        ("listen = []", "duplicate key"),
        ("socket_mode = \"0778\"", "socket_mode: expected octal"),
        ("socket_mode = \"1777\"", "got '1777'"),
        ("socket_mode = \"+77\"", "got '+77'"),
        (
            "socket_owner = \"no one\"",
            "number of a user, got 'no one'",
        ),
        (
            "socket_group = \"no one\"",
            "number of a group, got 'no one'",
        ),
    ];
    for (line, expected) in cases {
        let text = GOOD.replace("wait_ms_max = 500", line);
        let error = check(&text).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let without = |part: &str, other: &str| check(&GOOD.replace(part, other)).unwrap_err();
    assert!(without("password = \"secret\"\n        [[", "[[").contains("expected either"));
    assert!(without("*2470", "*XX70").contains("40 hexadecimal digits"));
    assert!(without("backend_password = \"secret\"", "").contains("backend_password"));
    assert!(without("caching_sha2_password", "sha256").contains("expected mysql_native"));
    assert!(without("name = \"hashed\"", "name = \"app\"").contains("twice"));
    assert!(without("127.0.0.1:3306", "127.0.0.1:6033").contains("its own server"));
    assert!(without("127.0.0.1:3306", "nowhere").contains("expected HOST:PORT"));
    let in_user = |line: &str| without("name = \"app\"", &format!("name = \"app\"\n{line}"));
    let error = in_user("clients_max = 0");
    assert!(
        error.contains("line 8, column 15: user 'app': clients_max: expected a number from 1 to"),
        "{error}"
    );
    let error = in_user("wait_ms_max = 5");
    assert!(
        error.contains("it stands above the first line in brackets"),
        "{error}"
    );
    assert!(in_user("prority = \"low\"").contains("is priority meant?"));
    assert!(in_user("priority = \"last\"").contains("expected high, low or auto, got 'last'"));
    assert!(without("name = \"app\"", "").contains("user: name: expected name = "));
    assert!(
        check("")
            .unwrap_err()
            .contains("backend.address: expected the server's address")
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let error = |line: &str| check(&GOOD.replace("wait_ms_max = 500", line)).unwrap_err();
    assert_eq!(
        error("backends_max = 4\nbackends_min = 5"),
        "line 4, column 16: backends_min: expected at most backends_max, which is 4, got 5"
    );
    let few = GOOD.replace("wait_ms_max = 500", "backends_max = 1");
    assert!(
        check(&few).is_ok(),
        "the default of backends_min is no mistake"
    );
    let listening = |addresses: &str| {
        Raw::parse(&format!(
            "listen = [{addresses}]\n[backend]\naddress = \"127.0.0.1:2\"\n[[user]]\n\
                 name = \"a\"\npassword = \"1\"\n"
        ))
        .unwrap()
        .check()
        .err()
    };
    let twice = |address: &str| format!("\"{address}\", \"/a\", \"{address}\"");
    let said = listening(&twice("127.0.0.1:6033")).unwrap();
    assert_eq!(
        said,
        "line 1, column 10: listen: 127.0.0.1:6033 is listed twice"
    );
    assert!(
        listening(&twice("/b"))
            .unwrap()
            .contains("/b is listed twice")
    );
    assert_eq!(listening(&twice("127.0.0.1:0")), None);
    let console = |reader: &str| {
        let text = format!(
            "{GOOD}\n[console]\nlisten = \"127.0.0.1:3\"\nadmin_user = \"a\"\n\
                 admin_password = \"1\"\nreader_user = \"{reader}\"\nreader_password = \"2\"\n"
        );
        check(&text).err()
    };
    assert_eq!(console("b"), None);
    let said = console("a").unwrap();
    assert!(said.contains("another name than in admin_user"), "{said}");
}

#[test]
fn the_collectors_address_is_without_what_the_pool_adds() {
    let check = |endpoint: &str| check(&format!("{GOOD}\n[otel]\nendpoint = \"{endpoint}\"\n"));
    let settings = check("http://127.0.0.1:4318/otlp/").unwrap();
    assert_eq!(
        settings.otel.unwrap().endpoint,
        "http://127.0.0.1:4318/otlp"
    );
    for path in SIGNAL_PATHS {
        for end in ["", "/"] {
            let said = check(&format!("http://127.0.0.1:4318{path}{end}")).unwrap_err();
            assert!(said.contains("write \"http://127.0.0.1:4318\""), "{said}");
        }
    }
}

#[test]
fn names_for_http_are_names_of_hosts() {
    let check = |names: &str| {
        let line = format!("http_names = [{names}]");
        check(&GOOD.replace("wait_ms_max = 500", &line)).err()
    };
    assert_eq!(check("\"pool.internal\", \"pool\""), None);
    let said = check("\"pool.internal:9104\"").unwrap();
    assert!(
        said.contains(
            "http_names: expected names of hosts without a port, such as pool.internal, got"
        ),
        "{said}"
    );
}

#[test]
fn users_of_the_statement_log_that_there_are_not_are_told() {
    let warnings = |names: &str| {
        let line = format!("statement_log_users = [{names}]");
        check(&GOOD.replace("wait_ms_max = 500", &line))
            .unwrap()
            .warnings
    };
    assert_eq!(warnings("\"app\", \"hashed\""), [""; 0]);
    assert_eq!(
        warnings("\"app\", \"ap\", \"x\""),
        ["statement_log_users: there is no [[user]] named 'ap', 'x'"]
    );
}

#[test]
fn a_key_with_two_meanings_is_refused_with_both() {
    // Below the last [[user]], as who adds a line to the end of the file writes it.
    let error = check(&format!("{GOOD}\nbackends_max = 8\n")).unwrap_err();
    for words in [
        "line 16, column 1: user 'hashed': backends_max: ",
        "the pool's connections to the server: move it there",
        "is called slow_backends_max: if that is meant, write it",
    ] {
        assert!(error.contains(words), "{error}");
    }
    let line = "name = \"app\"\nslow_backends_max = 3";
    let settings = check(&GOOD.replace("name = \"app\"", line)).unwrap();
    assert_eq!(settings.users[0].limits.slow_backends_max, Some(3));
    assert_eq!(settings.users[1].limits.slow_backends_max, None);
}

#[test]
fn a_mistake_has_its_place_whatever_finds_it() {
    const HASH: &str = "password_hash = \"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19\"";
    const SECRET: &str = "password = \"secret\"";
    // A part of the good file, what stands in its place, and the place of the mistake in that.
    for (part, other, place) in [
        (SECRET, "", "line 6, column 9: user 'app': expected either"),
        (
            SECRET,
            "password_file = \"/nowhere/p\"",
            "line 8, column 25: user 'app': password_file",
        ),
        (
            SECRET,
            "password_env = \"NOT_THERE\"",
            "line 8, column 24: user 'app': password_env",
        ),
        (
            SECRET,
            "password_hash = \"*12\"",
            "line 8, column 25: user 'app': password_hash",
        ),
        (
            SECRET,
            "password = \"x\"\npassword_env = \"PATH\"",
            "line 8, column 20: user 'app': password: expected one of",
        ),
        (
            HASH,
            "password_hash = \"*2\"",
            "line 11, column 25: user 'hashed': password_hash",
        ),
        (
            "backend_password = \"secret\"",
            "",
            "line 11, column 25: user 'hashed': password_hash: expected backend_password beside",
        ),
        (
            "caching_sha2_password",
            "mysql_clear_password",
            "line 14, column 16: user 'hashed': auth",
        ),
        (
            "name = \"hashed\"",
            "name = \"app\"",
            "line 10, column 16: user 'app': name: it is",
        ),
        (
            "name = \"app\"",
            "name = \"a\\u0000\"",
            "line 7, column 16: user 'a\\0': name",
        ),
        (
            SECRET,
            "password = \"\"\nrequire = \"ssl\"",
            "line 9, column 11: user 'app': require: no client can use TLS",
        ),
        (
            "127.0.0.1:3306",
            "127.0.0.1:6033",
            "line 5, column 19: backend.address",
        ),
        (
            "[[user]]\n        name = \"app\"",
            "monitor_user = \"m\"\n[[user]]\nname = \"app\"",
            "line 6, column 24: backend.monitor_user",
        ),
        (
            "wait_ms_max = 500",
            "prepared_max = 63",
            "line 3, column 24: prepared_max",
        ),
        (
            "wait_ms_max = 500",
            "backends_max = 1\nbackends_min = 2",
            "line 4, column 16: backends_min",
        ),
        (
            "wait_ms_max = 500",
            "auth = \"server\"",
            "line 3, column 16: auth: \"server\" expects",
        ),
        (
            "wait_ms_max = 500",
            "run_as_group = \"0\"",
            "line 3, column 24: run_as_group",
        ),
        (
            "/run/onramp.sock",
            "127.0.0.1:6033",
            "line 2, column 18: listen: 127.0.0.1:6033",
        ),
        (
            "[backend]",
            "[tls]\nkey = \"k\"\n[backend]",
            "line 4, column 10: tls.cert: expected",
        ),
        (
            "[backend]",
            "[tls]\ncert = \"/nowhere/c\"\nkey = \"k\"\n[backend]",
            "line 5, column 8: tls.cert",
        ),
        (
            "[backend]",
            "[console]\nlisten = \"/c\"\n[backend]",
            "line 5, column 10: console.listen",
        ),
        (
            "[backend]",
            "[otel]\nendpoint = \"ftp://h\"\n[backend]",
            "line 5, column 12: otel.endpoint",
        ),
    ] {
        let text = GOOD.replacen(part, other, 1);
        assert!(text != GOOD, "{part}");
        let error = check(&text).unwrap_err();
        assert!(error.starts_with(place), "{other}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn what_a_user_does_not_set_is_as_for_all() {
    let text = GOOD.replace(
        "wait_ms_max = 500",
        "idle_s_max = 7\nclients_max = 100\nhigh_prio_tickets = 3",
    );
    let text = text.replace("name = \"app\"", "name = \"app\"\nidle_s_max = 9");
    let settings = check(&text).unwrap();
    let limits: Vec<&Limits> = settings.users.iter().map(|user| &user.limits).collect();
    let idle: Vec<_> = limits
        .iter()
        .map(|l| l.idle_max.map(|t| t.as_secs()))
        .collect();
    assert_eq!(idle, [Some(9), Some(7)]);
    assert_eq!(
        (limits[0].high_prio_tickets, limits[1].high_prio_tickets),
        (3, 3)
    );
    assert_eq!(
        limits[1].clients_max, None,
        "that of all clients is no limit of each user's"
    );
    assert_eq!(settings.clients_max, 100);
}

#[test]
fn limits_of_the_servers_accounts_go_by_the_name_that_says_most() {
    let like =
        |name: &str, rest: &str| format!("[[user]]\nname = '{name}'\nauth = \"server\"\n{rest}\n");
    let monitor = "[backend]\nmonitor_user = \"m\"\nmonitor_password = \"m\"";
    let users = like("%", "account_backends_max = 1")
        + &like("app\\_%", "account_backends_max = 2\nidle_s_max = 3")
        + &like("app%", "account_backends_max = 4");
    let good = format!("{}\n{users}", GOOD.replacen("[backend]", monitor, 1));
    let text = format!("auth = \"server\"\naccount_backends_max = 9\n{good}");
    let settings = check(&text).unwrap();
    let max = |account: &str| settings.account_max(account, |limits| limits.account_backends_max);
    assert_eq!(max("app_1"), Some(2));
    assert_eq!(max("app1"), Some(4));
    assert_eq!(max("App_1"), Some(1), "names are as they are written");
    assert_eq!(max("app"), Some(9), "a user of the settings");
    let place = settings.server_account("app_x").unwrap();
    let limits = &settings.users[place].limits;
    assert_eq!(limits.idle_max, Some(Duration::from_secs(3)));
    let all = check(&text.replace(&users, "")).unwrap();
    let max = all.account_max("app_1", |limits| limits.account_backends_max);
    assert_eq!(max, Some(9));
    let why = check(&good).unwrap_err();
    assert!(why.contains("above the first line in brackets"), "{why}");
    let why = check(&format!("{text}{}", like("b", "password = \"x\""))).unwrap_err();
    assert!(why.contains("name and limits alone"), "{why}");
}

#[test]
fn one_address_may_stand_for_a_list_and_zero_for_no_limit() {
    let text = GOOD.replace(
        "[\"127.0.0.1:6033\", \"/run/onramp.sock\"]",
        "\"127.0.0.1:6033\"",
    );
    assert_eq!(check(&text).unwrap().listen.len(), 1);
    let error = check(&text.replace("\"127.0.0.1:6033\"", "6033")).unwrap_err();
    let expected = "listen: expected addresses in quotes, as [\"...\", \"...\"], got 6033";
    assert!(error.contains(expected), "{error}");
    let zero = "client_silence_s_max = 0\nstored_code_refresh_s = 0\nspool_bytes_max = 0";
    let settings = check(&GOOD.replace("wait_ms_max = 500", zero)).unwrap();
    assert_eq!(settings.client_silence_max, None);
    assert_eq!(settings.stored_code_refresh, None);
    assert_eq!(settings.spool_bytes_max, 0);
}

#[test]
fn the_password_itself_needs_tls() {
    let of = |require: &str| {
        let text = format!(
            "listen = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n[[user]]\n\
                 name = \"app\"\npassword = \"x\"\nauth = \"mysql_clear_password\"\n{require}"
        );
        let checked = Raw::parse(&text).and_then(Raw::check);
        checked.unwrap_err().to_string()
    };
    for require in ["", "require = \"none\"\n"] {
        let said = of(require);
        assert!(
            said.contains("user 'app': auth: expected require = \"ssl\""),
            "{said}"
        );
    }
    let said = of("require = \"ssl\"\n");
    assert!(said.contains("no client can use TLS"), "{said}");
}

#[test]
fn several_servers_stand_in_place_of_one_address() {
    let server = |name: &str, address: &str, more: &str| {
        format!("[[server]]\nname = \"{name}\"\naddress = \"{address}\"\n{more}\n")
    };
    let pool = |backend: &str, servers: &str| {
        let user = "[[user]]\nname = \"a\"\npassword = \"b\"\n";
        check(&format!(
            "listen = [\"127.0.0.1:1\"]\n{backend}\n{servers}\n{user}"
        ))
    };
    let two = server("one", "127.0.0.1:2", "") + &server("two", "db:3", "role = \"reader\"");
    let settings = pool("", &two).unwrap();
    assert_eq!(settings.backend, Place::Writer);
    assert_eq!(
        settings.server_down_fail, settings.wait_max,
        "a failover is waited for"
    );
    let cluster = settings.cluster.unwrap();
    assert_eq!(cluster.decision.servers[1].role, ::cluster::Role::Reader);
    assert_eq!(cluster.decision.servers[1].address, "db:3");
    let shown = |name: &str| settings.shown.iter().any(|setting| setting.name == name);
    assert!(shown("cluster.kind") && shown("server 'two': role"));
    for (backend, servers, expected) in [
        (
            "[backend]\naddress = \"db:1\"",
            &*two,
            "expected either this address or [[server]]",
        ),
        (
            "[backend]\naddress = \"db:1\"\n[cluster]\nfall = 2",
            "",
            "cluster: expected [[server]] too",
        ),
        ("", &server("one", "h:1", "weigth = 0"), "is weight meant?"),
        (
            "",
            &server("one", "h:1", "backends_max = 0"),
            "server 'one': backends_max: expected a number from 1 to 100000",
        ),
        (
            "[cluster]\ndiscover = true",
            &two,
            "cluster.discover: expected discover_networks too",
        ),
        (
            "",
            &server("one", "h:1", "role = \"x\""),
            "server 'one': role: expected auto, writer,",
        ),
        (
            "",
            &(two.clone() + &server("two", "h:1", "")),
            "expected others than those of 'two'",
        ),
        ("", &server("one", "127.0.0.1:1", ""), "is also in listen"),
        (
            "server = 7\n[backend]\naddress = \"db:1\"",
            "",
            "expected [[server]], one for each",
        ),
    ] {
        let error = pool(backend, servers).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let many = |count| (0..count).map(|n| server(&format!("s{n}"), &format!("h{n}:1"), ""));
    assert!(pool("", &many(::cluster::SERVERS_MAX).collect::<String>()).is_ok());
    let error = pool("", &many(::cluster::SERVERS_MAX + 1).collect::<String>()).unwrap_err();
    assert!(error.contains("at most 64 [[server]]"), "{error}");
}

#[test]
fn a_fleet_has_a_plain_name_and_few_enough_units() {
    let settings = |top: &str, name: &str| {
        let text = format!(
            "{top}\nlisten = [\"127.0.0.1:1\"]\n[backend]\naddress = \"127.0.0.1:2\"\n\
             [fleet]\nname = \"{name}\"\n[[user]]\nname = \"a\"\npassword = \"b\"\n"
        );
        Raw::parse(&text).and_then(Raw::check)
    };
    let good = settings("backends_max = 4096", &"n".repeat(20)).unwrap();
    assert_eq!(good.fleet, Some("n".repeat(20)));
    for name in ["", "Shop", "a'b", &"n".repeat(21)] {
        let why = settings("", name).unwrap_err();
        assert!(why.contains("name: expected 1 to 20"), "{why}");
    }
    let why = settings("backends_max = 4097", "shop").unwrap_err();
    assert!(why.contains("at most 4096, got 4097"), "{why}");
    let why = settings("read_from = \"comments\"", "shop").unwrap_err();
    assert!(why.contains("expected read_from = \"writer\""), "{why}");
    let warned = |top: &str| settings(top, "shop").unwrap().warnings.join("\n");
    let own = "are each pool's own: write what one pool of the fleet may have";
    assert!(warned("account_kept_backends_max = 7").contains(own));
    assert!(!warned("account_backends_max = 7").contains(own));
}
