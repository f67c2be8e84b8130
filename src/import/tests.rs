//! Configurations as they are found, and what is made of them.
//!
//! Each is told whole: what the file says, the settings, and what is noted. The check of the pool
//! itself runs on all of them.

use super::*;

/// Lacks of a pool that is started with what was made, of which no file of a proxy tells.
const LACKS: [&str; 2] = ["no client can use TLS", "monitor_user"];

fn import(name: &str, text: &str, hostgroup: Option<i64>) -> Result<Made, String> {
    let id = std::process::id();
    let path = std::env::temp_dir().join(format!("onramp-import-{name}-{id}"));
    std::fs::write(&path, text).unwrap();
    let made = make(&path, hostgroup);
    std::fs::remove_file(&path).unwrap();
    if let Ok(Some(lacks)) = made.as_ref().map(|made| made.lacks.as_ref()) {
        assert!(LACKS.iter().any(|known| lacks.contains(known)), "{lacks}");
    }
    made
}

/// The settings without the comments, and the comments without their marks.
fn parts(made: &Made) -> (String, Vec<&str>) {
    let (notes, settings): (Vec<&str>, Vec<&str>) =
        made.text.lines().partition(|line| line.starts_with('#'));
    let notes = notes.iter().filter_map(|note| note.strip_prefix("# - "));
    (settings.join("\n").trim().to_owned(), notes.collect())
}

const USUAL: &str = r#"
datadir="/var/lib/proxysql"
admin_variables=
{
    admin_credentials="admin:s3cret;radmin:radmin"
    stats_credentials="stats:st4ts"
    mysql_ifaces="127.0.0.1:6032;/tmp/proxysql_admin.sock"
    restapi_enabled=true
    refresh_interval=2000
}
mysql_variables=
{
    threads=4
    max_connections=2048
    default_query_timeout="36000000"
    max_transaction_time=14400000
    wait_timeout=28800001
    connection_max_age_ms=0
    connect_timeout_server=3000
    have_compress=true
    have_ssl=true
    interfaces="0.0.0.0:6033;/tmp/proxysql.sock"
    server_version="8.0.30"
    monitor_username="monitor"
    monitor_password="m0n"
    monitor_history=60000
    proxy_protocol_networks="10.0.0.0/8, 192.168.1.5"
    multiplexing=false
    shun_on_failures=5
}
mysql_servers =
(
    { address="10.1.0.1" , port=3306 , hostgroup=1 },
    { address="10.1.0.2" , port=3307 , hostgroup=0, max_connections=200, use_ssl=1 },
    { address="10.1.0.3" , hostgroup=0, weight=1 },
    { address="10.1.0.4" , hostgroup=0, weight=9, status="OFFLINE_SOFT" },
)
mysql_users:
(
    { username="app", password="p\"w", default_hostgroup=0 , max_connections=1000, active=1 },
    { username = "tls" , password = "x" , use_ssl = 1, default_schema="shop", fast_forward = 0 },
    { username = "old" , password = "x" , active = 0 },
)
mysql_query_rules:
(
    { rule_id=1, match_pattern="^SELECT", destination_hostgroup=1, apply=1 }
)
scheduler=()
"#;

#[test]
fn a_usual_file_becomes_one_that_the_pool_takes() {
    let made = import("usual", USUAL, None).unwrap();
    let (settings, notes) = parts(&made);
    assert_eq!(
        settings,
        r#"backends_max = 200
http = "0.0.0.0:6070"
groups = 4
clients_max = 2048
statement_ms_max = 36000000
transaction_ms_max = 14400000
idle_s_max = 28801
dial_ms_max = 3000
compression = true
proxy_protocol_networks = ["10.0.0.0/8", "192.168.1.5"]
listen = ["0.0.0.0:6033", "/tmp/proxysql.sock"]

[backend]
address = "10.1.0.2:3307"
monitor_user = "monitor"
monitor_password = "m0n"
tls = "required"

[console]
admin_user = "admin"
admin_password = "s3cret"
reader_user = "stats"
reader_password = "st4ts"
listen = "127.0.0.1:6032"

[[user]]
name = "app"
password = 'p"w'
clients_max = 1000

[[user]]
name = "tls"
password = "x"
require = "ssl""#
    );
    let begins = [
        "mysql_servers: 10.1.0.4:3306 is OFFLINE_SOFT, left out",
        "mysql_servers: 10.1.0.1:3306 (hostgroup 1) has no place",
        "mysql_servers: 10.1.0.3:3306 (hostgroup 0) has no place",
        "admin_credentials: the console has one account of each kind, so not 'radmin'",
        "mysql_ifaces: the console listens at one address, not at /tmp/proxysql_admin.sock",
        "restapi_enabled: ",
        "admin_variables without a counterpart: refresh_interval",
        "default_query_timeout = 36000000: ",
        "threads = 4: ",
        "multiplexing = false: ",
        "mysql_variables without a counterpart: shun_on_failures",
        "mysql_users: default_schema of 'tls' has no counterpart",
        "mysql_users: 'old' is not active, left out",
        "use_ssl: ",
        "have_ssl: ",
        "mysql_query_rules: 1 of them, and none has a counterpart",
    ];
    assert_eq!(notes.len(), begins.len(), "{notes:#?}");
    for (note, begin) in notes.iter().zip(begins) {
        assert!(note.starts_with(begin), "{note} / {begin}");
    }
    assert_eq!(made.notes, notes.len());
    // A user who has to use TLS cannot log in before there is a certificate.
    let lacks = made.lacks.unwrap();
    assert!(lacks.contains("no client can use TLS"), "{lacks}");
    let without = USUAL.replace("use_ssl = 1", "use_ssl = 0");
    let lacks = import("usual-plain", &without, None).unwrap().lacks;
    assert_eq!(lacks, None);
}

#[test]
fn another_hostgroup_may_be_chosen() {
    let made = import("chosen", USUAL, Some(1)).unwrap();
    assert!(made.text.contains("address = \"10.1.0.1:3306\""));
    assert!(!made.text.contains("backends_max"));
    let why = import("none", USUAL, Some(7)).err().unwrap();
    assert!(why.contains("hostgroup 7"), "{why}");
}

/// Its data is on another server: there it would read and write what is not its own.
#[test]
fn a_user_of_another_hostgroup_is_left_out_and_told() {
    let text = r#"
mysql_servers = ({ address = "a", hostgroup = 0 }, { address = "b", hostgroup = 7 })
mysql_users = (
    { username = "app", password = "x" },
    { username = "more", password = "x", default_hostgroup = 0 },
    { username = "other", password = "x", default_hostgroup = 7 },
    { username = "ghost", password = "x", default_hostgroup = 9 }
)
"#;
    let made = import("groups", text, None).unwrap();
    let (settings, notes) = parts(&made);
    assert_eq!(settings.matches("[[user]]").count(), 2, "{settings}");
    for told in [
        "mysql_users: 'other' is of hostgroup 7, left out",
        "mysql_users: 'ghost' is of hostgroup 9, left out",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(told)), "{notes:?}");
    }
    let made = import("groups-7", text, Some(7)).unwrap();
    let (settings, _) = parts(&made);
    assert!(settings.contains("address = \"b:3306\"") && settings.contains("\"other\""));
    assert!(!settings.contains("\"app\""), "{settings}");
    let wrong = text.replace("= 9", "= \"x\"");
    let why = import("groups-wrong", &wrong, None).err().unwrap();
    assert!(why.contains("default_hostgroup: expected a number, got 'x'"));
}

#[test]
fn hostgroups_that_belong_together_make_a_cluster() {
    for (table, kind) in [
        ("mysql_replication_hostgroups", "replication"),
        ("mysql_galera_hostgroups", "galera"),
        ("mysql_group_replication_hostgroups", "group_replication"),
        ("mysql_aws_aurora_hostgroups", "aurora"),
    ] {
        let text = format!(
            "mysql_variables = {{ monitor_username = \"mon\" monitor_password = \"m\" }}\n\
             mysql_servers = ({{ address = \"a\", hostgroup = 10, max_connections = 50 }},\n\
             {{ address = \"a\", hostgroup = 20, max_connections = 40 }},\n\
             {{ address = \"b\", hostgroup = 20, max_connections = 30, use_ssl = 1 }},\n\
             {{ address = \"c\", hostgroup = 5 }})\n\
             mysql_users = ({{ username = \"app\", password = \"x\", default_hostgroup = 10 }})\n\
             {table} = ({{ writer_hostgroup = 10, reader_hostgroup = 20 }})\n"
        );
        let made = import(kind, &text, None).unwrap();
        assert_eq!(made.lacks, None);
        let (settings, notes) = parts(&made);
        let servers = format!(
            "[cluster]\nkind = \"{kind}\"\n\n[[server]]\nname = \"a:3306\"\naddress = \
             \"a:3306\"\nbackends_max = 50\ntls = \"off\"\n\n[[server]]\nname = \"b:3306\"\n\
             address = \"b:3306\"\nbackends_max = 30\n\n[[user]]"
        );
        assert!(settings.contains("backends_max = 80\n"), "{settings}");
        assert!(settings.contains("tls = \"required\""), "{settings}");
        assert!(settings.contains(&servers), "{settings}");
        let lost = |note: &&str| note.starts_with("mysql_servers: c:3306 (hostgroup 5) has no");
        assert!(notes.iter().any(lost), "{notes:?}");
    }
}

/// ProxySQL's library checks the chain where it is given an authority, and no names.
#[test]
fn tls_to_a_server_is_as_strict_as_it_was_and_is_taken() {
    let id = std::process::id();
    let file = std::env::temp_dir().join(format!("onramp-import-tls-{id}.pem"));
    std::fs::write(&file, crate::tls::own().unwrap()).unwrap();
    let pem = file.display();
    let with_ca = format!("ssl_p2s_ca = \"{pem}\"");
    let own = format!("ssl_p2s_cert = \"{pem}\" ssl_p2s_key = \"{pem}\"");
    let expected_ca = format!("tls = \"verify_ca\"\ntls_ca = \"{pem}\"");
    let expected_own = format!("tls_cert = \"{pem}\"\ntls_key = \"{pem}\"");
    for (variables, uses, expected) in [
        (String::new(), 1, vec!["tls = \"required\""]),
        (with_ca.clone(), 1, vec![&expected_ca]),
        (
            format!("{with_ca} {own}"),
            1,
            vec![&expected_ca, &expected_own],
        ),
        (own.clone(), 1, vec!["tls = \"required\"", &expected_own]),
        (format!("{with_ca} {own}"), 0, vec![]),
    ] {
        let text = format!(
            "mysql_variables = {{ {variables} }}\nmysql_servers = ({{ address = \"10.1.0.1\", \
             use_ssl = {uses} }})\nmysql_users = ({{ username = \"app\", password = \"p\" }})"
        );
        let made = import("tls", &text, None).unwrap();
        assert_eq!(made.lacks, None, "{variables}");
        let (settings, _) = parts(&made);
        let keys = settings.lines().filter(|line| line.starts_with("tls"));
        assert_eq!(keys.collect::<Vec<_>>().join("\n"), expected.join("\n"));
    }
    std::fs::remove_file(&file).unwrap();
}

/// ProxySQL's `admin` comes from the host itself only.
#[test]
fn the_console_is_not_opened_to_the_network() {
    for (interfaces, listen, told) in [
        ("0.0.0.0:6032", "127.0.0.1:6032", true),
        ("[::]:7000", "127.0.0.1:7000", true),
        ("db.example.com:6032", "127.0.0.1:6032", true),
        ("127.0.0.2:6032", "127.0.0.2:6032", false),
        ("[::1]:6032", "[::1]:6032", false),
        ("/tmp/admin.sock", "/tmp/admin.sock", false),
    ] {
        let text = format!(
            "admin_variables = {{ admin_credentials = \"admin:admin\" \
             mysql_ifaces = \"{interfaces}\" }} mysql_servers = ({{ address = \"a\" }})"
        );
        let made = import("console", &text, None).unwrap();
        let (settings, notes) = parts(&made);
        assert!(
            settings.contains(&format!("listen = \"{listen}\"")),
            "{settings}"
        );
        let said =
            |note: &&str| note.starts_with("mysql_ifaces: the console listens on the loopback");
        assert_eq!(notes.iter().any(said), told, "{interfaces}: {notes:?}");
    }
}

#[test]
fn users_of_whom_a_hash_is_known_log_in_as_on_the_server() {
    let text = r#"
mysql_variables = { monitor_username = "m", monitor_password = "p" }
mysql_servers = ({ address = "/run/mysqld/mysqld.sock", port = 0 })
mysql_users = (
    { username = "a", password = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19" },
    { username = "b", password = "$A$005$abcdefghijklmnopqrst0123456789" },
    { username = "c", password = "clear", backend = 0 },
    { username = "c", password = "other", frontend = 0 },
    { username = "e", password = "same", backend = 0 },
    { username = "e", password = "same", frontend = 0 },
    { username = "d", password = "" }
)
"#;
    let made = import("hashes", text, None).unwrap();
    let (settings, notes) = parts(&made);
    assert!(settings.contains("auth = \"server\""), "{settings}");
    assert!(settings.contains("address = \"/run/mysqld/mysqld.sock\""));
    assert_eq!(settings.matches("[[user]]").count(), 3, "{settings}");
    assert_eq!(
        settings
            .matches("name = \"c\"\npassword = \"clear\"")
            .count(),
        1
    );
    let told = "mysql_users: of a, b only a hash is known";
    assert!(notes.iter().any(|note| note.starts_with(told)), "{notes:?}");
    // Of two rows with one password nothing is to be said.
    let apart = |name: &str| {
        let notes = notes.iter();
        notes
            .filter(|note| note.contains(&format!("'{name}' has another row")))
            .count()
    };
    assert_eq!((apart("c"), apart("e")), (1, 0), "{notes:?}");
    assert!(!made.text.contains("2470C0C0") && !made.text.contains("$A$005"));
    assert_eq!(made.lacks, None);
}

#[test]
fn a_limit_that_is_none_is_told_once_and_left_out() {
    let text = r#"
mysql_variables = { default_query_timeout = -5 }
mysql_servers = ({ address = "10.1.0.1", max_connections = -2 })
mysql_users = ({ username = "app", password = "p", max_connections = -1 },
               { username = "two", password = "p", max_connections = 7 })
"#;
    let made = import("limits", text, None).unwrap();
    assert_eq!(made.lacks, None);
    let (settings, notes) = parts(&made);
    assert!(!settings.contains("backends_max") && !settings.contains("statement_ms_max"));
    assert_eq!(settings.matches("clients_max").count(), 1, "{settings}");
    let left_out = "ProxySQL does not take that row, and here the limit is left out";
    assert_eq!(
        notes,
        [
            format!(
                "mysql_servers: 10.1.0.1:3306: max_connections: expected a number, got '-2'; \
                 {left_out}"
            ),
            "default_query_timeout: expected a number, got '-5'".to_owned(),
            format!("mysql_users: 'app': max_connections: expected a number, got '-1'; {left_out}"),
        ]
    );
}

#[test]
fn logs_of_statements_become_those_of_the_pool() {
    let import_with = |variables: &str| {
        let text = format!(
            "mysql_variables = {{ {variables} }}\nmysql_servers = ({{ address = \"10.1.0.1\" }})\n\
             mysql_users = ({{ username = \"app\", password = \"p\" }})"
        );
        let made = import("logs", &text, None).unwrap();
        assert_eq!(made.lacks, None);
        let (settings, notes) = parts(&made);
        let notes: Vec<String> = notes.into_iter().map(str::to_owned).collect();
        (settings, notes)
    };
    let (settings, notes) = import_with("long_query_time = 1500, eventslog_filename = \"\"");
    assert!(
        settings.contains("slow_statement_ms = 1500\n"),
        "{settings}"
    );
    assert!(
        !settings.contains("statement_log") && notes.is_empty(),
        "{notes:?}"
    );
    let all = "eventslog_filename = \"queries.log\", eventslog_default_log = 1";
    let (settings, notes) = import_with(all);
    assert!(
        settings.contains("statement_log = \"literal\"\n"),
        "{settings}"
    );
    assert!(notes[0].starts_with("eventslog_filename = \"queries.log\": statements go"));
    let (settings, notes) = import_with("eventslog_filename = \"queries.log\"");
    assert!(!settings.contains("statement_log"), "{settings}");
    assert!(
        notes[0].contains("no rule picks statements here"),
        "{notes:?}"
    );
}

#[test]
fn a_file_of_another_program_gets_the_page_that_helps() {
    let told = import("foreign", "global\n    maxconn 5\nfrontend in\n", None).err();
    let told = told.unwrap_or_default();
    assert!(told.contains("this is a file of HAProxy"), "{told}");
    assert!(
        told.contains("docs/pool/migrating.md#from-haproxy"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_made_of_a_file_is_told() {
    for (text, why) in [
        ("", "SELECT CONFIG INTO OUTFILE"),
        ("mysql_servers = ()", "SELECT CONFIG INTO OUTFILE"),
        ("mysql_servers = 5", "mysql_servers: expected a list"),
        ("mysql_servers = (5)", "mysql_servers: expected groups"),
        ("mysql_servers = ({})", "a server has no address"),
        (
            "mysql_servers = ({ address = \"a\", port = \"x\" })",
            "mysql_servers: a: port: expected a number, got 'x'",
        ),
        (
            "mysql_servers = ({ address = \"a\" }) mysql_users = ({})",
            "a user has no username",
        ),
        (
            "mysql_servers = ({ address = \"a\" }) \
             mysql_users = ({ username = \"u\", default_hostgroup = \"x\" })",
            "mysql_users: 'u': default_hostgroup: expected a number, got 'x'",
        ),
        (
            "mysql_servers = ({ address = \"a\" }) mysql_variables = 5",
            "mysql_variables: expected a group",
        ),
        (
            "mysql_servers = ({",
            "expected '}' behind '{', and the file ends",
        ),
    ] {
        let told = import("wrong", text, None).err();
        assert!(
            told.as_ref().is_some_and(|told| told.contains(why)),
            "{text}: {told:?}"
        );
    }
    // Without users the server's accounts log in, which needs an account that reads them.
    let text = "mysql_servers = ({ address = \"a\" })";
    let made = import("no-users", text, None).unwrap();
    assert!(made.lacks.unwrap().contains("monitor_user"));
}

#[test]
fn a_file_is_made_for_its_owner_alone_and_none_is_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::temp_dir().join(format!("onramp-import-out-{}", std::process::id()));
    write("a = 1\n", Some(&path)).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = write("b = 1\n", Some(&path)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a = 1\n");
    std::fs::remove_file(&path).unwrap();
}
