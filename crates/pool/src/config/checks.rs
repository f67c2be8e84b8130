//! Settings that have to fit one another: what each table comes to, and what contradicts it.
//!
//! A row bounds its own value. What two settings say together is checked here, once, when
//! [`crate::config::Raw`] becomes [`Settings`]; passwords that stand in files or in the environment
//! are fetched on the way.
//!
//! Invariant: an error is one sentence that names the key, what was expected and what came, and
//! shows no password.

use crate::auth::account::Method;
use crate::auth::certificate::ClientTls;
use crate::auth::requirement::Requirement;
use crate::auth::secret::Secret;
use crate::auth::verifier::Verifier;
use crate::config::mistakes::Mistakes;
use crate::config::row::{Keys, Row, Value};
use crate::config::rows::{
    ClusterKeys, ConsoleKeys, FleetKeys, Limits, MemberKeys, OtelKeys, Require, SERVER, ServerKeys,
    ServerTlsKeys, Settings, USER_ROWS, UserAuth, UserKeys, account_source,
};
use crate::config::secret::Typed;
use crate::config::{
    AccountSource, ClusterSettings, ConsoleAccount, ConsoleSettings, DiscoverySettings, Origin,
    OtelSettings, SERVER_ACCOUNTS, ServerLimits, User,
};
use crate::scheduler::priority::ReadFrom;
use crate::server::tls::BackendTls;
use crate::server::upstream::Place;
use cluster::fleet::UNITS_MAX;
use cluster::{SERVERS_MAX, ServerSettings};
use reactor::Address;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wire::auth::native;
use wire::dsn::password;

/// Checks the user that the pool becomes.
pub(super) fn check_run_as(settings: &Settings) -> Result<(), String> {
    let user = settings.run_as_user.as_ref().map(|user| user.0);
    match (user, &settings.run_as_group) {
        (Some(0), _) => Err("run_as_user: expected another user than root".into()),
        (None, Some(_)) => Err("run_as_group: expected run_as_user with it".into()),
        _ => Ok(()),
    }
}

/// More clients than this for each backend need more of these: a group has at least one, and holds
/// at most as many clients as a table has descriptors, 20,000 on many hosts.
pub(super) const CLIENTS_PER_BACKEND: usize = 16_384;

/// The budget of prepared statements; each backend needs at least one.
pub(super) fn check_prepared_max(settings: &mut Settings, is_given: bool) -> Result<(), String> {
    let least = settings.backends_max;
    if settings.prepared_max >= least {
        return Ok(());
    }
    if is_given {
        return Err(format!(
            "prepared_max: expected at least {least}, one for each of backends_max, got {}",
            settings.prepared_max
        ));
    }
    settings.prepared_max = least;
    Ok(())
}

/// Refuses an address that is listed twice; of port 0 each is another one.
pub(super) fn check_listen(listen: &[Address]) -> Result<(), String> {
    let is_any = |at: &Address| matches!(at, Address::Tcp(at) if at.port() == 0);
    for (place, at) in listen.iter().enumerate() {
        if !is_any(at) && listen[..place].contains(at) {
            return Err(format!("listen: {at} is listed twice"));
        }
    }
    Ok(())
}

/// Refuses a `backends_min` above `backends_max`.
pub(super) fn check_backends_min(settings: &Settings, is_given: bool) -> Result<(), String> {
    let (min, max) = (settings.backends_min, settings.backends_max);
    match is_given && min > max {
        true => Err(format!(
            "backends_min: expected at most backends_max, which is {max}, got {min}"
        )),
        false => Ok(()),
    }
}

/// Users that are named for the statement log, and may be mistyped: where the server has the
/// accounts, nobody can tell before they log in.
pub(super) fn note_unknown_log_users(settings: &mut Settings, auth: AccountSource) {
    if auth == AccountSource::Server {
        return;
    }
    let is_known = |name: &String| settings.users.iter().any(|user| user.name == *name);
    let unknown = settings.statement_log_users.iter().filter(|n| !is_known(n));
    let unknown: Vec<String> = unknown.map(|name| format!("'{name}'")).collect();
    if !unknown.is_empty() {
        settings.warnings.push(format!(
            "statement_log_users: there is no [[user]] named {}",
            unknown.join(", ")
        ));
    }
}

/// The account that asks for the pool itself, where it has one of its own.
pub(super) fn check_monitor(
    server: &mut ServerKeys,
    warnings: &mut Vec<String>,
) -> Result<Option<(String, Secret)>, String> {
    let typed = Typed {
        prefix: "monitor_",
        text: &mut server.monitor_password,
        file: &mut server.monitor_password_file,
        env: &mut server.monitor_password_env,
    };
    (typed.take(warnings)).map_err(|error| format!("backend.{error}"))?;
    match (server.monitor_user.take(), server.monitor_password.take()) {
        (Some(user), Some(password)) if !user.contains('\0') => Ok(Some((user, password))),
        (None, None) => Ok(None),
        _ => Err(
            "backend.monitor_user: expected it and monitor_password together, a name without a \
             NUL"
            .into(),
        ),
    }
}

/// Place of the server: that of `[backend]`, or the writer of several.
pub(super) fn check_place(address: Option<Place>, has_members: bool) -> Result<Place, String> {
    match (address, has_members) {
        (Some(address), false) => Ok(address),
        (None, true) => Ok(Place::Writer),
        (None, false) => Err(format!("backend.address: expected {SERVER}")),
        (Some(_), true) => Err(
            "backend.address: expected either this address or [[server]]; leave this line out, \
             and give its server a [[server]] too"
                .into(),
        ),
    }
}

/// The several servers, where there are any.
pub(super) fn check_cluster(
    members: &[Keys],
    keys: &Keys,
    mistakes: &mut Mistakes,
) -> Option<Option<ClusterSettings>> {
    let typed = mistakes.section(
        ClusterKeys::note_mistakes,
        ClusterKeys::from_keys,
        keys,
        None,
    )?;
    if members.is_empty() {
        if keys.at.is_some() {
            mistakes.add(keys.placed("cluster: expected [[server]] too, one for each server"));
        }
        return Some(None);
    }
    let (mut servers, mut places) = (Vec::<ServerSettings>::new(), Vec::new());
    let mut limits = Vec::new();
    for keys in members {
        let read = MemberKeys::from_keys;
        let member = mistakes.section(MemberKeys::note_mistakes, read, keys, None)?;
        let address = member.address.to_string();
        if let Some(other) =
            (servers.iter()).find(|s| s.name == member.name || s.address == address)
        {
            let why = format!(
                "name and address: expected others than those of '{}'",
                other.name
            );
            mistakes.add(keys.placed(keys.name_of(&why)));
        }
        servers.push(ServerSettings {
            name: member.name,
            address,
            role: member.role,
            weight: member.weight,
        });
        places.push(member.address);
        limits.push(ServerLimits {
            backends_max: member.backends_max,
            running_max: member.running_max,
        });
    }
    if servers.len() > SERVERS_MAX {
        mistakes.add(format!("server: expected at most {SERVERS_MAX} [[server]]"));
    }
    if typed.discover && typed.discover_networks.is_empty() {
        let why = "discover: expected discover_networks too, with the networks of the servers";
        mistakes.add(keys.placed(keys.name_of(why)));
    }
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let defaults = cluster::Settings::new(typed.kind, servers);
    Some(Some(ClusterSettings {
        decision: cluster::Settings {
            fall: typed.fall,
            fall_ms: ms(typed.fall_after),
            writer_lost: typed.writer_lost,
            lag_ms_max: ms(typed.read_lag_max),
            ask_ms: ms(typed.ask),
            ask_again_ms: ms(typed.ask).div_ceil(4),
            stale_ms: defaults.stale_ms.max(3 * ms(typed.ask)),
            ..defaults
        },
        places,
        tls: Vec::new(),
        limits,
        discovery: typed.discover.then_some(DiscoverySettings {
            networks: typed.discover_networks,
            keep: typed.discover_keep,
        }),
        answer_max: typed.answer_max,
        switch_max: typed.switch_max,
        promote_command: typed.promote_command,
        read_wait_max: typed.read_wait_max,
        read_dry_run: typed.read_dry_run,
    }))
}

/// TLS to the server of `[backend]`, and to each of several, which is made of what stands below its
/// `[[server]]` and of the rest of `[backend]`.
pub(super) fn check_server_tls(
    backend: &Keys,
    place: &Place,
    members: &[Keys],
    cluster: Option<&mut ClusterSettings>,
    warnings: &mut Vec<String>,
    mistakes: &mut Mistakes,
) -> Option<Arc<BackendTls>> {
    let (note, read) = (ServerTlsKeys::note_mistakes, ServerTlsKeys::from_keys);
    let typed = mistakes.section(note, read, backend, None)?;
    let typed = typed.typed(&backend.prefix);
    // That of `[backend]` alone is used for servers that are found.
    let listed = (cluster.as_ref()).filter(|cluster| cluster.discovery.is_none());
    let place = listed.map_or(place, |cluster| &cluster.places[0]);
    let listed_warnings = &mut Vec::new();
    let own_warnings = match cluster {
        None => &mut *warnings,
        Some(_) => listed_warnings,
    };
    let tls = BackendTls::of(typed, place, own_warnings);
    let tls = mistakes.note(tls.map_err(|error| backend.placed(error)))?;
    let Some(cluster) = cluster else {
        return Some(tls);
    };
    for (keys, place) in members.iter().zip(&cluster.places) {
        let typed = mistakes.section(note, read, keys, Some(backend))?;
        let typed = typed.typed(&keys.prefix);
        let own = |key: &str| keys.get(key).is_some();
        let mut said = Vec::new();
        let tls = BackendTls::of(typed.without_unused(own), place, &mut said);
        said.retain(|warning| !warnings.contains(warning));
        warnings.append(&mut said);
        let tls = tls.map_err(|error| keys.placed(error));
        cluster.tls.push(mistakes.note(tls)?);
    }
    Some(tls)
}

/// Refuses reads elsewhere in a fleet: all its backends are of one server, whose locks they hold.
pub(super) fn check_reads(settings: &Settings) -> Result<(), String> {
    let is_read = |user: &User| user.limits.read_from != ReadFrom::Writer;
    match settings.fleet.is_some() && settings.users.iter().any(is_read) {
        true => {
            Err("fleet.name: expected read_from = \"writer\": pools of a fleet read there".into())
        }
        false => Ok(()),
    }
}

/// Limits that are shared have few enough units.
pub(super) fn check_units(settings: &Settings) -> Result<(), String> {
    let accounts = settings.users.iter();
    let accounts = accounts.filter_map(|user| {
        settings.account_max(&user.backend_user, |limits| limits.account_backends_max)
    });
    let largest = accounts.chain([settings.backends_max]).max();
    match largest.filter(|it| settings.fleet.is_some() && *it > UNITS_MAX) {
        Some(it) => Err(format!(
            "fleet.name: expected backends_max and account_backends_max of at most {UNITS_MAX}, \
             got {it}"
        )),
        None => Ok(()),
    }
}

/// Warns of limits of users that each pool of a fleet has by itself.
pub(super) fn note_unshared_limits(settings: &mut Settings) {
    let is_own = |User { limits: it, .. }: &User| {
        (it.clients_max
            .or(it.waiting_max)
            .or(it.account_kept_backends_max))
        .is_some()
    };
    if settings.fleet.is_some() && settings.users.iter().any(is_own) {
        settings.warnings.push(
            "fleet.name: clients_max, waiting_max and account_kept_backends_max of a user are each \
             pool's own: write what one pool of the fleet may have"
                .into(),
        );
    }
}

/// Name of the fleet, if there is one.
pub(super) fn check_fleet(keys: &Keys, mistakes: &mut Mistakes) -> Option<Option<String>> {
    let read = FleetKeys::from_keys;
    let typed = mistakes.section(FleetKeys::note_mistakes, read, keys, None)?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    if let Some(name) = &typed.name
        && !((1..=20).contains(&name.len()) && name.chars().all(is_plain))
    {
        let why = "name: expected 1 to 20 of a-z, 0-9, _ and -";
        mistakes.add(keys.placed(keys.name_of(why)));
    }
    Some(typed.name)
}

/// Least bytes of the token for commands over HTTP.
const TOKEN_MIN: usize = 16;

/// The token for commands over HTTP, where a file is given for it.
pub(super) fn check_http_token(
    top: &Keys,
    warnings: &mut Vec<String>,
) -> Result<Option<Secret>, String> {
    let Some(Value::Text(path)) = top.get("http_token_file") else {
        return Ok(None);
    };
    let wrong = |why: String| {
        let why = why.trim_start_matches("password_file ");
        top.placed(format!("http_token_file: {why}"))
    };
    let token: Secret = password::of_file(path).map_err(wrong)?.into();
    warnings.extend(password::seen_by_others(Path::new(path), "a token"));
    match token.len() {
        TOKEN_MIN.. => Ok(Some(token)),
        len => Err(wrong(format!(
            "expected at least {TOKEN_MIN} bytes, got {len}"
        ))),
    }
}

/// The console, where an address is given for it.
pub(super) fn check_console(
    mut typed: ConsoleKeys,
    warnings: &mut Vec<String>,
) -> Result<Option<ConsoleSettings>, String> {
    let admin = Typed {
        prefix: "admin_",
        text: &mut typed.admin_password,
        file: &mut typed.admin_password_file,
        env: &mut typed.admin_password_env,
    };
    let wrong = |error| format!("console.{error}");
    admin.take(warnings).map_err(wrong)?;
    let reader = Typed {
        prefix: "reader_",
        text: &mut typed.reader_password,
        file: &mut typed.reader_password_file,
        env: &mut typed.reader_password_env,
    };
    reader.take(warnings).map_err(wrong)?;
    let mut accounts = Vec::new();
    for (kind, name, password, is_admin) in [
        ("admin", typed.admin_user, typed.admin_password, true),
        ("reader", typed.reader_user, typed.reader_password, false),
    ] {
        match (name, password) {
            (None, None) => {}
            (Some(name), Some(password)) if !password.is_empty() => accounts.push(ConsoleAccount {
                name,
                password,
                is_admin,
            }),
            _ => {
                return Err(format!(
                    "console.{kind}_user: expected it and {kind}_password together, and a \
                     password that is not empty"
                ));
            }
        }
    }
    if let [admin, reader] = &accounts[..]
        && admin.name == reader.name
    {
        return Err(format!(
            "console.reader_user: expected another name than in admin_user, got '{}' in both",
            reader.name
        ));
    }
    match (typed.listen, accounts.is_empty()) {
        (None, true) => Ok(None),
        (Some(listen), false) => Ok(Some(ConsoleSettings { listen, accounts })),
        (None, false) => Err("console.listen: expected the address of the console".into()),
        (Some(_), true) => Err(
            "console.listen: expected admin_user or reader_user beside it: nobody could log in"
                .into(),
        ),
    }
}

/// Path that the pool adds to the collector's address, for each signal.
pub(super) const SIGNAL_PATHS: [&str; 3] = ["/v1/metrics", "/v1/traces", "/v1/logs"];

/// The export to OpenTelemetry, where an address is given for it.
pub(super) fn check_otel(typed: OtelKeys) -> Result<Option<OtelSettings>, String> {
    let Some(endpoint) = typed.endpoint else {
        return Ok(None);
    };
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| endpoint.strip_prefix(scheme));
    // Errors, and SHOW CONFIG, show the address: it may hold no password.
    let is_plain = |rest: &str| {
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || "@?#\"".contains(c);
        !rest.trim_matches('/').is_empty() && !rest.contains(is_bad)
    };
    if !rest.is_some_and(is_plain) {
        return Err(
            "otel.endpoint: expected http://HOST:PORT or https://HOST:PORT, without a user, a \
             password or parameters"
                .into(),
        );
    }
    let endpoint = endpoint.trim_end_matches('/').to_owned();
    for path in SIGNAL_PATHS {
        if let Some(before) = endpoint.strip_suffix(path) {
            return Err(format!(
                "otel.endpoint: expected no {path} at its end, because the pool adds that: write \
                 \"{before}\""
            ));
        }
    }
    let authorities = match &typed.ca {
        Some(path) => Some(reactor::tls_files::certificates("otel.ca", path)?),
        None => None,
    };
    Ok(Some(OtelSettings {
        endpoint,
        interval: typed.interval,
        has_logs: typed.logs,
        service_name: typed.service_name,
        service_instance_id: typed.service_instance_id,
        authorities,
    }))
}

/// True if what users require can be had.
pub(super) fn check_requirements(
    keys: &[Keys],
    users: &[User],
    tls: Option<&ClientTls>,
) -> Result<(), String> {
    for (keys, user) in keys.iter().zip(users) {
        let require = &user.require;
        let wrong = |why: &str| Err(keys.placed(keys.name_of(why)));
        if require.tls && tls.is_none() {
            return wrong("require: no client can use TLS; expected [tls] with cert and key");
        }
        if require.certificate && !tls.is_some_and(|tls| tls.checks_clients) {
            return wrong(
                "require: no client's certificate can be checked; expected tls.client_ca, the \
                 file with the authorities that sign them",
            );
        }
    }
    Ok(())
}

/// Proof that a user's clients have to give besides the password.
fn requirement(user: &mut UserKeys) -> Requirement {
    let (subject, issuer) = (user.require_subject.take(), user.require_issuer.take());
    let certificate = user.require == Require::X509 || subject.is_some() || issuer.is_some();
    Requirement {
        tls: certificate || user.require == Require::Ssl,
        certificate,
        cipher: false,
        subject,
        issuer,
    }
}

/// Fetches the passwords that stand elsewhere: those of the clients, of which there are at most
/// two, and that of the server, which stays among the keys.
fn fetch_passwords(user: &mut UserKeys, warnings: &mut Vec<String>) -> Result<Vec<Secret>, String> {
    let texts = std::mem::take(&mut user.password.0).into_iter().map(Some);
    let files = std::mem::take(&mut user.password_file.0)
        .into_iter()
        .map(Some);
    let names = std::mem::take(&mut user.password_env.0)
        .into_iter()
        .map(Some);
    let (mut texts, mut files, mut names) = (texts, files, names);
    let mut passwords = Vec::new();
    loop {
        let mut text = texts.next().flatten();
        let own = Typed {
            prefix: "",
            text: &mut text,
            file: &mut files.next().flatten(),
            env: &mut names.next().flatten(),
        };
        own.take(warnings)?;
        match text {
            Some(password) => passwords.push(password),
            None => break,
        }
    }
    if let [one, other] = &passwords[..]
        && (one.is_empty() || other.is_empty() || one == other)
    {
        return Err(
            "password: expected two different passwords, neither of them empty (one alone is no \
             list)"
                .into(),
        );
    }
    let backend = Typed {
        prefix: "backend_",
        text: &mut user.backend_password,
        file: &mut user.backend_password_file,
        env: &mut user.backend_password_env,
    };
    backend.take(warnings)?;
    Ok(passwords)
}

/// Entry that stands for the server's accounts without one of their own: the limits that all of
/// them have.
pub(super) fn server_accounts(top: &Keys) -> Result<User, String> {
    let limits = Limits::from_keys(&Keys::default(), Some(top))?;
    Ok(accounts_like(SERVER_ACCOUNTS.into(), limits))
}

/// Entry that stands for accounts of the server: of what it has only the limits count.
fn accounts_like(name: String, limits: Limits) -> User {
    User {
        origin: Origin::Server,
        name,
        verifier: Verifier::of_nobody(),
        second: None,
        method: None,
        require: Requirement::default(),
        backend_user: String::new(),
        backend_password: Secret::default(),
        limits,
        usage: Arc::default(),
    }
}

pub(super) fn check_user(
    keys: &Keys,
    top: &Keys,
    warnings: &mut Vec<String>,
    mistakes: &mut Mistakes,
) -> Option<User> {
    let limits = mistakes.section(Limits::note_mistakes, Limits::from_keys, keys, Some(top));
    let typed = mistakes.section(UserKeys::note_mistakes, UserKeys::from_keys, keys, None);
    let (typed, limits) = (typed?, limits?);
    let user = match typed.auth {
        Some(UserAuth::Server) => checked_pattern(typed, limits, (keys, top)),
        _ => checked_user(typed, limits, warnings),
    };
    mistakes.note(user.map_err(|error| keys.placed(keys.name_of(&error))))
}

/// Entry for accounts of the server with names like this one's, which has limits and nothing else.
fn checked_pattern(
    typed: UserKeys,
    limits: Limits,
    (keys, top): (&Keys, &Keys),
) -> Result<User, String> {
    let says = |row: &Row| !["name", "auth"].contains(&row.key) && keys.get(row.key).is_some();
    if account_source(top) == Ok(AccountSource::File) {
        return Err("auth: \"server\" is expected above the first line in brackets too".into());
    }
    if USER_ROWS.iter().any(says) {
        let why = "auth: \"server\" expects name and limits alone: all else is as on the server";
        return Err(why.into());
    }
    Ok(accounts_like(typed.name, limits))
}

/// A user of these keys. Errors say what was expected, without whose it is.
fn checked_user(
    mut typed: UserKeys,
    limits: Limits,
    warnings: &mut Vec<String>,
) -> Result<User, String> {
    let name = typed.name.clone();
    let passwords = fetch_passwords(&mut typed, warnings)?;
    let hashes = typed.password_hash.0.iter().map(|hash| {
        let stored = native::stored_from_text(hash);
        stored.ok_or("password_hash: expected * and 40 hexadecimal digits")
    });
    let hashes = hashes.collect::<Result<Vec<_>, _>>()?;
    let of_text = |password: &Secret| Verifier::from_password(password.as_bytes());
    let verifiers = match (&passwords[..], &hashes[..]) {
        ([_, ..], []) => passwords.iter().map(of_text).collect(),
        ([], [_, ..]) => hashes.into_iter().map(Verifier::from_native_hash).collect(),
        _ => Vec::new(),
    };
    let mut verifiers = verifiers.into_iter();
    let (verifier, second) = match verifiers.next() {
        Some(verifier) => (verifier, verifiers.next()),
        None => {
            return Err(
                "expected either a password (password, password_file or password_env) or \
                 password_hash (an account without a password has password = \"\")"
                    .into(),
            );
        }
    };
    let require = requirement(&mut typed);
    let method = match typed.auth {
        Some(UserAuth::Method(method)) => Some(method),
        _ => None,
    };
    if method == Some(Method::ClearPassword) && !require.tls {
        return Err(
            "auth: expected require = \"ssl\" or \"x509\" beside \"mysql_clear_password\": \
             clients send the password in clear text, which only TLS hides"
                .into(),
        );
    }
    let own = passwords.into_iter().next();
    let backend_password = typed.backend_password.or(own).ok_or(
        "password_hash: expected backend_password beside it: a hash proves the client's password \
         to the pool, but the pool needs a password for the server",
    )?;
    let backend_user = typed.backend_user.unwrap_or_else(|| name.clone());
    if name.contains('\0') {
        return Err("name: expected one without a NUL".into());
    }
    if backend_user.contains('\0') {
        return Err("backend_user: expected one without a NUL".into());
    }
    Ok(User {
        origin: Origin::Settings,
        name,
        verifier,
        second,
        method,
        require,
        backend_user,
        backend_password,
        limits,
        usage: Arc::default(),
    })
}
