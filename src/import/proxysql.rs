//! Settings of ProxySQL in this pool's terms.
//!
//! The problem: who comes from ProxySQL has a file, or its output of SELECT CONFIG FILE, with a
//! hundred variables. The mechanism: tables of variables that have a counterpart here, with its
//! unit, and of those that need none; everything else is told by its name. Hostgroups that belong
//! together make a cluster of several servers; else one of the servers is chosen, and the others
//! are told.
//!
//! Invariants: nothing of the file is passed over in silence, but for values that mean "no limit";
//! a password comes out as a setting only.

use super::libconfig::{Group, Value, find};
use super::settings::{self as made, Section, Settings, with_port};

/// ProxySQL's default address for clients.
const LISTEN: &str = "0.0.0.0:6033";
/// Default port of ProxySQL's REST interface.
const REST_PORT: u64 = 6070;
/// Standard port of a server.
const PORT: u64 = 3306;

/// Fate of a variable.
enum Taken {
    /// A setting, in so many of its units; rounded up, and 0 is no limit.
    Number(Section, &'static str, u64),
    /// A setting that is true or false.
    Flag(Section, &'static str),
    /// Line that is not needed here.
    Needless,
    /// Handled elsewhere.
    Elsewhere,
}

use Section::{Backend, Top};
use Taken::{Elsewhere, Flag, Needless, Number};

/// Variables of `mysql_variables`. Milliseconds there, unless a name says otherwise.
const MYSQL: [(&str, Taken); 41] = [
    ("threads", Number(Top, "groups", 1)),
    ("max_connections", Number(Top, "clients_max", 1)),
    ("connect_timeout_server", Number(Top, "dial_ms_max", 1)),
    ("connect_timeout_client", Number(Top, "login_ms_max", 1)),
    ("default_query_timeout", Number(Top, "statement_ms_max", 1)),
    ("max_transaction_time", Number(Top, "transaction_ms_max", 1)),
    ("wait_timeout", Number(Top, "idle_s_max", 1000)),
    (
        "connection_max_age_ms",
        Number(Top, "backend_life_s_max", 1000),
    ),
    ("have_compress", Flag(Top, "compression")),
    ("long_query_time", Number(Top, "slow_statement_ms", 1)),
    ("eventslog_filename", Elsewhere),
    ("eventslog_default_log", Elsewhere),
    ("ssl_p2s_ca", Elsewhere),
    ("ssl_p2s_cert", Elsewhere),
    ("ssl_p2s_key", Elsewhere),
    ("interfaces", Elsewhere),
    ("monitor_username", Elsewhere),
    ("monitor_password", Elsewhere),
    ("have_ssl", Elsewhere),
    ("multiplexing", Elsewhere),
    ("proxy_protocol_networks", Elsewhere),
    ("auto_increment_delay_multiplex", Needless),
    ("auto_increment_delay_multiplex_timeout_ms", Needless),
    ("connection_delay_multiplex_ms", Needless),
    ("commands_stats", Needless),
    ("sessions_sort", Needless),
    ("poll_timeout", Needless),
    ("poll_timeout_on_failure", Needless),
    ("stacksize", Needless),
    ("server_version", Needless),
    ("default_schema", Needless),
    ("default_charset", Needless),
    ("default_collation_connection", Needless),
    ("max_allowed_packet", Needless),
    ("query_digests", Needless),
    ("hostgroup_manager_verbose", Needless),
    ("session_idle_ms", Needless),
    ("session_idle_show_processlist", Needless),
    ("use_tcp_keepalive", Needless),
    ("reset_connection_algorithm", Needless),
    ("init_connect", Elsewhere),
];

/// A limit of the row of `whom`; 0, and what ProxySQL does not take (it refuses the row), is none.
fn limit(
    group: &[(String, Value)],
    name: &str,
    whom: &str,
    settings: &mut Settings,
) -> Option<u64> {
    match number(group, name) {
        Ok(number) => number.filter(|number| *number > 0),
        Err(why) => {
            settings.note(format!(
                "{whom}: {why}; ProxySQL does not take that row, and here the limit is left out"
            ));
            None
        }
    }
}

/// Settings made of a file.
pub(crate) fn convert(file: &Group, hostgroup: Option<i64>) -> Result<Settings, String> {
    let mut settings = Settings::default();
    let chosen = server(file, hostgroup, &mut settings)?;
    admin(group(file, "admin_variables")?, &mut settings);
    let mysql = group(file, "mysql_variables")?;
    variables(mysql, &mut settings);
    listeners(mysql, &mut settings);
    users(file, &chosen.hostgroups, &mut settings)?;
    encryption(file, mysql, chosen.tls, &mut settings);
    if settings.has(Top, "auth") && !settings.has(Backend, "monitor_user") {
        settings.note(
            "auth = \"server\" needs backend.monitor_user and backend.monitor_password: an account \
             that may read the accounts of the server"
                .into(),
        );
    }
    others(file, &mut settings);
    Ok(settings)
}

/// A group of the file; none is an empty one.
fn group<'a>(file: &'a Group, name: &str) -> Result<&'a [(String, Value)], String> {
    match find(file, name) {
        None => Ok(&[]),
        Some(Value::Group(group)) => Ok(group),
        Some(_) => Err(format!("{name}: expected a group, {{ ... }}")),
    }
}

/// The groups of a list of the file.
fn list<'a>(file: &'a Group, name: &str) -> Result<Vec<&'a Group>, String> {
    let list = match find(file, name) {
        None => return Ok(Vec::new()),
        Some(Value::List(list)) => list,
        Some(_) => return Err(format!("{name}: expected a list, ( ... )")),
    };
    list.iter()
        .map(|value| match value {
            Value::Group(group) => Ok(group),
            _ => Err(format!("{name}: expected groups, {{ ... }}")),
        })
        .collect()
}

fn text(group: &[(String, Value)], name: &str) -> Option<String> {
    find(group, name)
        .and_then(Value::scalar)
        .filter(|text| !text.is_empty())
}

fn number(group: &[(String, Value)], name: &str) -> Result<Option<u64>, String> {
    let Some(text) = text(group, name) else {
        return Ok(None);
    };
    let number = text.parse();
    number
        .map(Some)
        .map_err(|_| format!("{name}: expected a number, got '{text}'"))
}

fn is_on(text: &str) -> bool {
    matches!(text, "1") || text.eq_ignore_ascii_case("true")
}

fn variables(mysql: &[(String, Value)], settings: &mut Settings) {
    let mut unknown = Vec::new();
    for (name, value) in mysql {
        let known = MYSQL.iter().find(|(known, _)| known == name);
        let scalar = value.scalar().unwrap_or_default();
        match known.map(|(_, taken)| taken) {
            Some(Number(section, key, per)) => match scalar.parse::<u64>() {
                Ok(0) => {}
                Ok(number) => settings.put(*section, key, made::number(number.div_ceil(*per))),
                Err(_) => settings.note(format!("{name}: expected a number, got '{scalar}'")),
            },
            Some(Flag(section, key)) => settings.put(*section, key, is_on(&scalar)),
            Some(Needless | Elsewhere) => {}
            None if name.starts_with("monitor_") => {}
            None => unknown.push(name.as_str()),
        }
    }
    // One that is no number is told above, and 0 is none.
    let timeout = number(mysql, "default_query_timeout").ok().flatten();
    if let Some(timeout) = timeout.filter(|timeout| *timeout > 0) {
        settings.note(format!(
            "default_query_timeout = {timeout}: statement_ms_max closes the client and ends its \
             statement; leave it out if nobody relies on it"
        ));
    }
    if let Some(threads) = text(mysql, "threads") {
        settings.note(format!(
            "threads = {threads}: groups follow from cores and clients where `groups` is left out"
        ));
    }
    if text(mysql, "multiplexing").is_some_and(|text| !is_on(&text)) {
        settings.note("multiplexing = false: it is always on here; see docs/pool/pins.md".into());
    }
    if let Some(networks) = text(mysql, "proxy_protocol_networks") {
        match networks.as_str() {
            "*" => settings.note(
                "proxy_protocol_networks = \"*\": name the networks of the proxies here; a header \
                 from elsewhere is refused"
                    .into(),
            ),
            _ => {
                let networks = networks.split(',').map(|network| network.trim().to_owned());
                let networks: Vec<String> = networks.collect();
                settings.put(Top, "proxy_protocol_networks", networks);
            }
        }
    }
    if let Some(file) = text(mysql, "eventslog_filename").filter(|file| !file.is_empty()) {
        let logs_all = text(mysql, "eventslog_default_log").is_some_and(|text| is_on(&text));
        if logs_all {
            settings.put(Top, "statement_log", "literal".to_owned());
        }
        settings.note(match logs_all {
            true => format!(
                "eventslog_filename = \"{file}\": statements go to the pool's own log; \
                 statement_log = \"masked\" leaves their values out"
            ),
            false => format!(
                "eventslog_filename = \"{file}\": no rule picks statements here; statement_log \
                 logs all of them, or those of statement_log_users"
            ),
        });
    }
    if let Some(sql) = text(mysql, "init_connect") {
        settings.note(format!("init_connect = '{sql}': set it on the server"));
    }
    if let Some(user) = text(mysql, "monitor_username") {
        settings.put(Backend, "monitor_user", user);
        let password = text(mysql, "monitor_password").unwrap_or_default();
        settings.put(Backend, "monitor_password", password);
    }
    if !unknown.is_empty() {
        settings.note(format!(
            "mysql_variables without a counterpart: {}",
            unknown.join(", ")
        ));
    }
}

/// Imports the addresses that clients come in by.
fn listeners(mysql: &[(String, Value)], settings: &mut Settings) {
    let interfaces = text(mysql, "interfaces").unwrap_or_else(|| LISTEN.into());
    let addresses = interfaces.split(';').map(str::trim);
    let addresses = addresses.filter(|address| !address.is_empty());
    let addresses: Vec<String> = addresses.map(str::to_owned).collect();
    settings.put(Top, "listen", addresses);
}

/// Imports the console, and what is served over HTTP.
fn admin(admin: &[(String, Value)], settings: &mut Settings) {
    let mut others = Vec::new();
    for (name, value) in admin {
        let scalar = value.scalar().unwrap_or_default();
        match name.as_str() {
            "admin_credentials" => account(&scalar, (name, "admin"), settings),
            "stats_credentials" => account(&scalar, (name, "reader"), settings),
            "mysql_ifaces" => console_address(&scalar, settings),
            "restapi_enabled" if is_on(&scalar) => {
                let port = number(admin, "restapi_port").ok().flatten();
                let port = port.unwrap_or(REST_PORT);
                settings.put(Top, "http", format!("0.0.0.0:{port}"));
                settings.note(
                    "restapi_enabled: whoever reaches `http` can read there; there is no login"
                        .into(),
                );
            }
            "restapi_enabled" | "restapi_port" => {}
            _ => others.push(name.as_str()),
        }
    }
    if !others.is_empty() {
        settings.note(format!(
            "admin_variables without a counterpart: {}",
            others.join(", ")
        ));
    }
}

/// Imports the console's one address. ProxySQL lets its account `admin` in from the host itself
/// only; the console lets its administrator in from wherever it listens, so that is the loopback.
fn console_address(interfaces: &str, settings: &mut Settings) {
    let addresses = interfaces.split(';').map(str::trim);
    let mut addresses = addresses.filter(|address| !address.is_empty());
    let Some(first) = addresses.next() else {
        return;
    };
    let local = match first.rsplit_once(':') {
        Some((host, port)) if !is_local(host) => {
            settings.note(format!(
                "mysql_ifaces: the console listens on the loopback, not at {first}: whoever \
                 reaches it may log in as its administrator; open it with console.listen"
            ));
            format!("127.0.0.1:{port}")
        }
        _ => first.to_owned(),
    };
    settings.put(Section::Console, "listen", local);
    for address in addresses {
        settings.note(format!(
            "mysql_ifaces: the console listens at one address, not at {address}"
        ));
    }
}

/// True if only this host reaches an address; a socket's path is one.
fn is_local(host: &str) -> bool {
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost"
        || host.starts_with('/')
        || ip.is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Makes the first of `name:password;...`, the value of `variable`, an account of the console.
fn account(credentials: &str, (variable, role): (&str, &str), settings: &mut Settings) {
    let mut accounts = credentials.split(';').map(str::trim);
    let Some((user, password)) = accounts.next().and_then(|first| first.split_once(':')) else {
        return;
    };
    settings.put(Section::Console, &format!("{role}_user"), user);
    let key = format!("{role}_password");
    settings.put(Section::Console, &key, password);
    for other in accounts {
        let user = other.split_once(':').map_or(other, |(user, _)| user);
        settings.note(format!(
            "{variable}: the console has one account of each kind, so not '{user}'"
        ));
    }
}

/// A server of the file.
struct Server {
    address: String,
    hostgroup: i64,
    weight: u64,
    backends_max: Option<u64>,
    tls: bool,
}

/// Hostgroups that the pool's servers are of, and whether TLS is used to them.
struct Chosen {
    hostgroups: Vec<i64>,
    tls: bool,
}

/// Tables of hostgroups that belong together, and the kind of cluster that each is.
const CLUSTERS: [(&str, &str); 4] = [
    ("mysql_replication_hostgroups", "replication"),
    ("mysql_galera_hostgroups", "galera"),
    ("mysql_group_replication_hostgroups", "group_replication"),
    ("mysql_aws_aurora_hostgroups", "aurora"),
];
/// Columns of these tables with a hostgroup whose servers serve; the first is the writers'.
const HOSTGROUPS: [&str; 3] = [
    "writer_hostgroup",
    "backup_writer_hostgroup",
    "reader_hostgroup",
];

/// The kind and the hostgroups of the cluster that a hostgroup is of.
fn cluster(file: &Group, of: i64) -> Result<Option<(&'static str, Vec<i64>)>, String> {
    for (table, kind) in CLUSTERS {
        for row in list(file, table)? {
            let own = |name: &&str| text(row, name)?.parse().ok();
            let all: Vec<i64> = HOSTGROUPS.iter().filter_map(own).collect();
            if all.contains(&of) {
                return Ok(Some((kind, all)));
            }
        }
    }
    Ok(None)
}

/// Takes all servers of a cluster; true if TLS is used to one of them.
fn several(
    servers: &mut Vec<Server>,
    hostgroups: &[i64],
    kind: &str,
    settings: &mut Settings,
) -> bool {
    settings.put(Section::Cluster, "kind", kind);
    let mut all: Vec<Server> = Vec::new();
    for server in servers.extract_if(.., |server| hostgroups.contains(&server.hostgroup)) {
        match all.iter_mut().find(|it| it.address == server.address) {
            Some(it) => {
                it.tls |= server.tls;
                it.backends_max = it.backends_max.max(server.backends_max);
            }
            None => all.push(server),
        }
    }
    let tls = all.iter().any(|server| server.tls);
    let sum = all.iter().map(|server| server.backends_max);
    if let Some(sum) = sum
        .reduce(|sum, max| Some(sum?.saturating_add(max?)))
        .flatten()
    {
        settings.put(Top, "backends_max", made::number(sum));
    }
    for server in all {
        settings.begin_server();
        settings.put(Section::Server, "name", server.address.clone());
        settings.put(Section::Server, "address", server.address);
        if let Some(max) = server.backends_max {
            settings.put(Section::Server, "backends_max", made::number(max));
        }
        if tls && !server.tls {
            settings.put(Section::Server, "tls", "off");
        }
    }
    if kind == "replication" {
        settings.note(
            "cluster.writer_lost: ProxySQL takes a server that was promoted at once, as \
             \"replace\" does here; the default waits for the lost one, or for FENCED"
                .into(),
        );
    }
    tls
}

/// Chooses the server.
fn server(file: &Group, wished: Option<i64>, settings: &mut Settings) -> Result<Chosen, String> {
    let mut servers = Vec::new();
    for group in list(file, "mysql_servers")? {
        let host = text(group, "address").or_else(|| text(group, "hostname"));
        let host = host.ok_or("mysql_servers: a server has no address")?;
        let of_host = |why: String| format!("mysql_servers: {host}: {why}");
        let port = number(group, "port").map_err(of_host)?;
        let weight = number(group, "weight").map_err(of_host)?.unwrap_or(1);
        let hostgroup = hostgroup(group).map_err(of_host)?;
        let address = match port.unwrap_or(PORT) {
            0 => host.clone(),
            port => with_port(&host, port),
        };
        let status = text(group, "status").unwrap_or_else(|| "ONLINE".into());
        if !status.eq_ignore_ascii_case("ONLINE") {
            settings.note(format!("mysql_servers: {address} is {status}, left out"));
            continue;
        }
        let whom = format!("mysql_servers: {address}");
        servers.push(Server {
            backends_max: limit(group, "max_connections", &whom, settings),
            address,
            hostgroup,
            weight,
            tls: text(group, "use_ssl").is_some_and(|text| is_on(&text)),
        });
    }
    let chosen = wished.map_or_else(|| most_used(file, &servers), Ok)?;
    // The first of the greatest weight.
    let best = (servers.iter().enumerate())
        .filter(|(_, server)| server.hostgroup == chosen)
        .max_by_key(|(at, server)| (server.weight, std::cmp::Reverse(*at)));
    let Some((at, _)) = best else {
        return Err(format!(
            "mysql_servers: expected a server in hostgroup {chosen} that is ONLINE, got none; \
             choose another one with --hostgroup"
        ));
    };
    let cluster = cluster(file, chosen)?;
    let (hostgroups, tls) = match cluster {
        Some((kind, hostgroups)) => {
            let tls = several(&mut servers, &hostgroups, kind, settings);
            (hostgroups, tls)
        }
        None => {
            let server = servers.swap_remove(at);
            if let Some(max) = server.backends_max {
                settings.put(Top, "backends_max", made::number(max));
            }
            settings.put(Backend, "address", server.address);
            (vec![chosen], server.tls)
        }
    };
    for other in servers {
        settings.note(format!(
            "mysql_servers: {} (hostgroup {}) has no place: one pool has one server or cluster",
            other.address, other.hostgroup
        ));
    }
    Ok(Chosen { hostgroups, tls })
}

fn hostgroup(group: &Group) -> Result<i64, String> {
    let text = text(group, "hostgroup").or_else(|| text(group, "hostgroup_id"));
    let text = text.unwrap_or_else(|| "0".into());
    let number = text.parse();
    number.map_err(|_| format!("hostgroup: expected a number, got '{text}'"))
}

/// The hostgroup of most users, or of the first server.
fn most_used(file: &Group, servers: &[Server]) -> Result<i64, String> {
    let mut counts: Vec<(i64, usize)> = Vec::new();
    for user in list(file, "mysql_users")? {
        let number = default_hostgroup(user)?;
        match counts.iter_mut().find(|(other, _)| *other == number) {
            Some((_, count)) => *count += 1,
            None => counts.push((number, 1)),
        }
    }
    let has_server = |number: i64| servers.iter().any(|server| server.hostgroup == number);
    counts.retain(|(number, _)| has_server(*number));
    let most = counts.iter().rev().max_by_key(|(_, count)| *count);
    let most = most.map(|(number, _)| *number);
    most.or_else(|| servers.first().map(|server| server.hostgroup))
        .ok_or_else(|| {
            "mysql_servers: expected a server, got none. ProxySQL keeps its settings in a \
             database; write them into a file with SELECT CONFIG INTO OUTFILE '/path' on its \
             admin interface"
                .into()
        })
}

fn default_hostgroup(user: &Group) -> Result<i64, String> {
    let number = text(user, "default_hostgroup").unwrap_or_else(|| "0".into());
    number.parse().map_err(|_| {
        let name = text(user, "username").unwrap_or_default();
        format!("mysql_users: '{name}': default_hostgroup: expected a number, got '{number}'")
    })
}

/// The users whose data is on the servers of the `chosen` hostgroups.
fn users(file: &Group, chosen: &[i64], settings: &mut Settings) -> Result<(), String> {
    let mut hashed = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    let all = list(file, "mysql_users")?;
    for user in all.iter().copied() {
        let name = text(user, "username").ok_or("mysql_users: a user has no username")?;
        let is = |key: &str| text(user, key).is_none_or(|text| is_on(&text));
        if !is("active") {
            settings.note(format!("mysql_users: '{name}' is not active, left out"));
            continue;
        }
        let hostgroup = default_hostgroup(user)?;
        if !chosen.contains(&hostgroup) {
            settings.note(format!(
                "mysql_users: '{name}' is of hostgroup {hostgroup}, left out: its server is \
                 another one; --hostgroup {hostgroup} makes a configuration for that"
            ));
            continue;
        }
        if !is("frontend") || taken.contains(&name) {
            continue;
        }
        // As its runtime has them: a row for clients, and one for the server.
        let is_same = |other: &Group| {
            let same = |key| text(other, key) == text(user, key);
            let of_server = text(other, "backend").is_none_or(|text| is_on(&text));
            of_server && same("username") && same("password")
        };
        if !is("backend") && !all.iter().any(|other| is_same(other)) {
            settings.note(format!(
                "mysql_users: '{name}' has another row for the server, or none: write backend_user \
                 and backend_password into its [[user]]"
            ));
        }
        taken.push(name.clone());
        let password = text(user, "password").unwrap_or_default();
        if is_hash(&password) {
            hashed.push(name);
            continue;
        }
        settings.begin_user();
        settings.put(Section::User, "name", name.clone());
        settings.put(Section::User, "password", password);
        let whom = format!("mysql_users: '{name}'");
        if let Some(max) = limit(user, "max_connections", &whom, settings) {
            settings.put(Section::User, "clients_max", made::number(max));
        }
        if text(user, "use_ssl").is_some_and(|text| is_on(&text)) {
            settings.put(Section::User, "require", "ssl");
        }
        let without = ["default_schema", "attributes"];
        for key in without.into_iter().filter(|key| text(user, key).is_some()) {
            settings.note(format!("mysql_users: {key} of '{name}' has no counterpart"));
        }
        for key in ["schema_locked", "fast_forward"] {
            if text(user, key).is_some_and(|text| is_on(&text)) {
                settings.note(format!("mysql_users: {key} of '{name}' has no counterpart"));
            }
        }
    }
    if !hashed.is_empty() || taken.is_empty() {
        settings.put(Top, "auth", "server");
        settings.note(match hashed.is_empty() {
            true => "mysql_users: none; the accounts of the server log in".into(),
            false => format!(
                "mysql_users: of {} only a hash is known, so that they log in with their accounts \
                 of the server",
                hashed.join(", ")
            ),
        });
    }
    Ok(())
}

/// True if a password is a hash: of mysql_native_password, or of caching_sha2_password.
fn is_hash(password: &str) -> bool {
    let hex = password.strip_prefix('*');
    hex.is_some_and(|hex| hex.len() == 40 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || password.starts_with("$A$0")
}

fn encryption(file: &Group, mysql: &[(String, Value)], to_server: bool, settings: &mut Settings) {
    if to_server {
        let ca = text(mysql, "ssl_p2s_ca");
        let (mode, proves) = match ca {
            Some(_) => ("verify_ca", "only have a certificate of that authority"),
            None => ("required", "not prove who it is"),
        };
        settings.put(Backend, "tls", mode);
        if let Some(ca) = ca {
            settings.put(Backend, "tls_ca", ca);
        }
        settings.note(format!(
            "use_ssl: as in ProxySQL the server has to {proves}; backend.tls = \
             \"verify_identity\" asks for its name too"
        ));
        if let (Some(cert), Some(key)) = (text(mysql, "ssl_p2s_cert"), text(mysql, "ssl_p2s_key")) {
            settings.put(Backend, "tls_cert", cert);
            settings.put(Backend, "tls_key", key);
        }
    }
    if text(mysql, "have_ssl").is_some_and(|text| is_on(&text)) {
        let folder = text(file, "datadir").unwrap_or_else(|| "/var/lib/proxysql".into());
        settings.note(format!(
            "have_ssl: give clients the certificate that they know with tls.cert = \
             \"{folder}/proxysql-cert.pem\" and tls.key = \"{folder}/proxysql-key.pem\""
        ));
    }
}

/// Notes the other parts of the file.
fn others(file: &Group, settings: &mut Settings) {
    const LOOKED_AT: [&str; 6] = [
        "admin_variables",
        "mysql_variables",
        "mysql_servers",
        "mysql_users",
        "datadir",
        "errorlog",
    ];
    for (name, value) in file {
        match value {
            _ if LOOKED_AT.contains(&name.as_str()) => {}
            _ if CLUSTERS.iter().any(|(table, _)| table == name) => {}
            Value::List(list) if list.is_empty() => {}
            Value::Group(group) if group.is_empty() => {}
            Value::List(list) => settings.note(format!(
                "{name}: {} of them, and none has a counterpart",
                list.len()
            )),
            _ => settings.note(format!("{name} has no counterpart")),
        }
    }
}
