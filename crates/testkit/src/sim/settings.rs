//! The settings of a simulated pool, drawn from the seed, and what its server says of itself.
//!
//! Limits are drawn small and large, so that some worlds live at their bounds and some never meet
//! them. Invariant: every text that is drawn is one that the pool accepts.

use super::random::Random;
use super::tls::{CERT, KEY};
use pool::{ServerFacts, ServerTimeouts};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The longest drain: longer than the pool waits for a disk that does not answer, behind the last
/// byte that a slow reader has taken. A world has no thread that ends with its group.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(150);

/// Address of the proxy, which sends a header in front of each of its clients' bytes.
pub(super) const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254));
pub(super) const PROXY_HEADER: &[u8] = b"PROXY TCP4 192.0.2.1 192.0.2.2 4660 3306\r\n";

pub(super) fn settings_text(
    random: &mut Random,
    (groups, backends): (u64, u64),
    pipeline_max: u64,
    wait_ms: u64,
    readers_stop: bool,
) -> String {
    let oversubscribe = *random.pick(&["0", "1", "2", "3", "1000", "\"auto\""]);
    let waiting = *random.pick(&[4, 100, 100, 100]);
    let stall = *random.pick(&[2, 20, 100]);
    let write_ms = *random.pick(&[2000, 20_000]);
    let slow_percent = *random.pick(&[0, 25, 50, 100]);
    let slow_ms = *random.pick(&[2000, 20_000]);
    let spool = *random.pick(&[0u64, 65_536, 1 << 30, 1 << 30]);
    // Who stops to read keeps nobody's backend and is not closed for it, and there is room.
    let (write_ms, slow_percent, slow_ms, spool) = match readers_stop {
        true => (20_000, 0, 20_000, 1 << 30),
        false => (write_ms, slow_percent, slow_ms, spool),
    };
    let dials = random.between(1, 3);
    let prepared = backends * random.between(1, 4);
    let mode = *random.pick(&["transactions", "transactions", "statements", "none"]);
    let tickets = *random.pick(&[0, 1, 3, 1000]);
    let kickup = *random.pick(&[0, 1, 50, 1000]);
    let idle = *random.pick(&[1, 500, 60_000]);
    let reserved = random.below(3);
    let logins = *random.pick(&[20, 1000, 1_000_000]);
    // It follows another draw, so that the worlds of the seeds stay what they were.
    let memory = [1u64 << 20, 1 << 30, 1 << 30][usize::try_from(prepared % 3).unwrap_or(0)];
    let down = [50, 1000, 60_000][usize::try_from(reserved).unwrap_or(0) % 3];
    format!(
        "proxy_protocol_networks = \"{PROXY}\"\n\
         listen = [\"127.0.0.1:6033\"]\nbackends_max = {backends}\nprepared_max = {prepared}\n\
         dials_max = {dials}\n\
         groups = {groups}\noversubscribe = {oversubscribe}\nstall_ms_max = {stall}\n\
         pipeline_max = {pipeline_max}\nwaiting_max = {waiting}\nwait_ms_max = {wait_ms}\n\
         high_prio_mode = \"{mode}\"\nhigh_prio_tickets = {tickets}\n\
         prio_kickup_ms = {kickup}\nbackend_idle_ms_max = {idle}\nbackends_min = 0\n\
         slow_backends_percent_max = {slow_percent}\nslow_reader_ms_max = {slow_ms}\n\
         spool_bytes_max = {spool}\nmemory_bytes_max = {memory}\n\
         backends_reserved = {reserved}\nlogins_per_s_max = {logins}\n\
         server_down_fail_ms = {down}\n\
         dial_ms_max = 1500\nwrite_ms_max = {write_ms}\ndrain_ms_max = {}\n\
         [tls]\ncert = \"{CERT}\"\nkey = \"{KEY}\"\n\
         [backend]\naddress = \"127.0.0.1:3306\"\n\
         [[user]]\nname = \"app\"\npassword = \"secret\"\n{}",
        DRAIN_MAX.as_millis(),
        HASHED.map(hashed_user).concat()
    )
}

/// Settings in which the reads of `app` go to two servers besides the writer.
pub(super) fn with_readers(text: &str) -> String {
    let server = |number: u8| {
        format!(
            "[[server]]\nname = \"{number}\"\naddress = \"127.0.0.1:{}\"\n",
            3306 + u16::from(number)
        )
    };
    let servers = [0, 1, 2].map(server).concat();
    text.replace(
        "[backend]\naddress = \"127.0.0.1:3306\"\n",
        &format!(
            "[backend]\nmonitor_user = \"app\"\nmonitor_password = \"secret\"\n{servers}[cluster]\n"
        ),
    )
    .replace(
        "\nname = \"app\"\npassword = \"secret\"\n",
        "\nname = \"app\"\npassword = \"secret\"\nread_from = \"readers\"\n",
    )
}

/// Users whose password the pool knows by its hash only: each needs a full authentication first.
pub(super) const HASHED: [&str; 4] = ["one", "two", "three", "four"];

fn hashed_user(name: &str) -> String {
    format!(
        "[[user]]\nname = \"{name}\"\nbackend_user = \"app\"\nbackend_password = \"secret\"\n\
         auth = \"caching_sha2_password\"\n\
         password_hash = \"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\"\n"
    )
}

/// Facts of a MariaDB 10.11, as far as a pool asks.
#[must_use]
pub fn facts() -> ServerFacts {
    let texts = |texts: [&str; 4]| texts.map(|text| text.as_bytes().into());
    let latin1 = texts(["latin1", "latin1", "latin1", "latin1_swedish_ci"]);
    ServerFacts {
        conditions_max: 64,
        version: "5.5.5-10.11.14-MariaDB".into(),
        collation: 45,
        capabilities: 0,
        extended: 0,
        max_allowed_packet: 1 << 20,
        charsets: [(8, latin1)].into(),
        heeds_collations: true,
        default_charsets: texts(["utf8mb4", "utf8mb4", "utf8mb4", "utf8mb4_general_ci"]),
        refused_charsets: std::collections::HashMap::new(),
        default_results: None,
        trackers: sql::tracking::Tracked {
            variables: b"time_zone"[..].into(),
            wanted: wire::track::Wanted::from_setting("time_zone", true),
        },
        names_hosts: false,
        timeouts: ServerTimeouts::default(),
        sql_mode: String::new(),
        flavour: sql::lex::Server::MariaDb(101_114),
        reset_loses_foreign_keys: false,
    }
}
