//! The table of settings: every key of the file with its bounds, default, option and description.
//!
//! A new setting is a row here, and its use. The first paragraph of a row's description is shown by
//! `--help` where the row has an option, so it is plain text; everything else may be Markdown,
//! because it becomes docs/pool/settings.md.
//! `ONRAMP_WRITE=1 cargo test -p pool settings_page` rewrites that page.

use super::{
    AccountSource, ClusterSettings, ConsoleSettings, OtelSettings, ShownSetting, StoredCode, User,
};
use crate::auth::account::{CLEAR_PASSWORD, Method};
use crate::auth::certificate::{ClientCert, ClientTls, TlsMode};
use crate::auth::network::Network;
use crate::auth::secret::Secret;
use crate::cluster::word_of;
use crate::config::row::{
    Absent, DAY_MS, FromValue, Keys, Kind, MANY, Row, Value, YEAR_S, named, row_of,
};
use crate::config::row::{UpToTwo, table, take, wrong_type};
use crate::observe::audit::AuditLog;
use crate::observe::log::statement::StatementLog;
use crate::observe::log::{Level, LogFormat};
use crate::scheduler::priority::{Consistency, Mode, Priority, ReadFrom};
use crate::scheduler::running_limit::Oversubscribe;
use crate::server::proxy_protocol::ProxyProtocol;
use crate::server::tls::{BackendTls, BackendTlsKeys, BackendTlsMode};
use crate::server::upstream::Place;
use cluster::{Kind as ClusterKind, Role as ClusterRole, WriterLost};
use httpd::Names;
use reactor::{Address, accounts};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(super) const SERVER: &str = "the server's address ([backend] address = \"HOST:PORT\", or \
                      --backend \
                      'mysql://USER@HOST:PORT?password_file=FILE')";
const ADDRESSES: &str = "at least one address, such as 127.0.0.1:6033";
const DEFAULT_MODE: &str = "0777";

table! {
    /// Settings that the pool runs on.
    #[derive(Clone, Debug)]
    pub struct Settings, POOL_ROWS {
        made {
            /// The server. A name is looked up when the pool dials.
            backend: Place,
            /// The servers, where there are several.
            cluster: Option<ClusterSettings>,
            /// Name of the fleet, where several pools share the server's connections.
            fleet: Option<String>,
            /// Name and password of the account that asks for the pool itself; the first user's
            /// when not given.
            monitor: Option<(String, Secret)>,
            /// Users that may log in, at least one.
            users: Vec<User>,
            /// TLS towards clients, if there is any.
            tls: Option<Arc<ClientTls>>,
            /// Without a certificate of the settings, the pool makes one where the server has TLS.
            tls_auto: bool,
            /// TLS towards the server, if there is any.
            backend_tls: Arc<BackendTls>,
            /// Header that connections to the server begin with.
            backend_proxy: ProxyProtocol,
            /// The console, if there is one.
            console: Option<ConsoleSettings>,
            /// Token of who may give commands over HTTP; `None`: nobody may.
            http_token: Option<Secret>,
            /// Destination of metrics and spans, if any.
            otel: Option<OtelSettings>,
            /// Every setting with its value, to be shown.
            shown: Vec<ShownSetting>,
            /// `spool_folder` was given: it must be usable.
            spool_folder_given: bool,
            /// Warnings to be given once at start: settings that work and should not be so.
            warnings: Vec<String>,
        }

        section "Listening" {
            /// Listen here: HOST:PORT, or the path of a Unix socket; may be given several times.
            ///
            /// In the file a list, or one address. A path is written `/path` or `unix:path`. A name
            /// is looked up at start. An old socket file is replaced if nobody listens on it.
            listen: Vec<Address> {
                .of(Kind::List("addresses")).needed(ADDRESSES).option("ADDRESS")
                .fixed()
            }

            /// Permissions of the files of Unix sockets, whatever the umask is. A client needs
            /// write permission.
            socket_mode: FileMode {
                .of(Kind::Text("octal digits from \"0\" to \"0777\", as \"0660\""))
                .or(Absent::Text(DEFAULT_MODE))
                .fixed()
            }

            /// Owner of these files. Another one than the user who starts the
            /// pool needs root or CAP_CHOWN.
            socket_owner: Option<UserNumber> {
                .of(Kind::Text("the name or the number of a user"))
                .or_nothing("the user who starts the pool")
                .fixed()
            }

            /// Group of these files.
            socket_group: Option<GroupNumber> {
                .of(Kind::Text("the name or the number of a group"))
                .or_nothing("the group of that user")
                .fixed()
            }

            /// User that the pool becomes once it listens; it must be started as root. See
            /// [Privileges](privileges.md).
            run_as_user: Option<UserNumber> {
                .of(Kind::Text("the name or the number of a user"))
                .or_nothing("the user who starts the pool")
                .fixed()
            }

            /// Its only group then.
            run_as_group: Option<GroupNumber> {
                .of(Kind::Text("the name or the number of a group"))
                .or_nothing("that of `run_as_user`")
                .fixed()
            }

            /// Allow core files, and debuggers of the same user. They show passwords and keys: see
            /// [Passwords](passwords.md#in-memory).
            core_dumps: bool { .of(Kind::Switch).or(Absent::Switch(false)) .fixed() }

            /// Folder for `tls.pem`, [the pool's own certificate](tls.md#the-pools-own-certificate)
            /// with its key. Without a folder each start makes another certificate.
            state_folder: Option<PathBuf> {
                .of(Kind::Text("the path of a folder"))
                .or_nothing("`$STATE_DIRECTORY`, or `/var/lib/onramp` where that is there")
                .fixed()
            }

            /// Connections that may wait to be accepted, for each address and group. The kernel
            /// lowers it to `net.core.somaxconn`.
            backlog: i32 { .number("connections", 1, 1 << 30).or_number(4096) .fixed() }

            /// Addresses and networks (`10.0.0.5`, `10.0.0.0/8`, `2001:db8::/32`) of proxies that
            /// send a header of the PROXY protocol. Connections from there must begin with one;
            /// from anywhere else a header is refused. See [PROXY protocol](proxy-protocol.md).
            proxy_protocol_networks: Vec<Network> {
                .of(Kind::List("addresses and networks")).or_nothing("none")
            }

            /// Offer clients the compressed protocol: zlib (level 1), and zstd (up to level 6)
            /// where the server is MySQL 8.0.18 or later. Connections to the server stay
            /// uncompressed.
            compression: bool { .of(Kind::Switch).or(Absent::Switch(true)) .fixed() }
        }

        section "Accounts" {
            /// Accounts that may log in: `file` (the users below) or `server` (these, and the
            /// accounts of the server with their passwords there). `server` needs
            /// `backend.monitor_user`. See [Accounts](accounts.md).
            auth: AccountSource {
                .of(Kind::OneOf(&["file", "server"])).or(Absent::Text("file"))
                .fixed()
            }
        }

        section "Watching" {
            /// Serve metrics, health and a page over HTTP here: HOST:PORT.
            ///
            /// See [Metrics and health](metrics.md). Everybody who reaches the address can read.
            /// Port 0 takes a free one, which is logged.
            http: Option<HttpAddress> {
                .of(Kind::Text("HOST:PORT")).or_nothing("off").option("ADDRESS")
                .fixed()
            }

            /// Host names that HTTP requests may use, without a port, besides `localhost` and
            /// addresses; up to 64. Others are refused, against [DNS rebinding](metrics.md#access).
            http_names: Names {
                .of(Kind::List("names")).or_nothing("none")
                .fixed()
            }

            /// File with the token, of 16 bytes or more, for [commands over
            /// HTTP](console.md#commands-over-http).
            http_token_file: Option<String> {
                .of(Kind::Text("the path of a file")).or_nothing("no commands over HTTP")
                .fixed()
            }

            /// Statements counted by digest (text without values), for `SHOW STATEMENTS` and the
            /// page. Those not seen for longest are counted together. 0 counts none.
            digests_max: usize { .number("statements", 0, 100_000).or_number(1000) .fixed() }

            /// Log statements that take this long or longer, their wait for a backend included.
            ///
            /// See [Slow statements](signals-and-log.md#slow-statements).
            slow_statement: Option<Duration> {
                .key("slow_statement_ms").milliseconds(1).or_nothing("off")
                .option("MS")
            }

            /// Log slow statements with their values, up to 4 KiB.
            slow_statement_values: bool { .of(Kind::Switch).or(Absent::Switch(false)) }

            /// Log every statement when it ends: off, masked (texts without their values) or
            /// literal (with them).
            ///
            /// See [All statements](signals-and-log.md#all-statements).
            statement_log: StatementLog {
                .of(Kind::OneOf(&["off", "masked", "literal"])).or(Absent::Text("off"))
                .option("HOW")
            }

            /// Show what clients run in the console and on the page: off, masked (texts without
            /// their values) or literal (with them, up to 4 KiB).
            ///
            /// See [What runs](console.md#clients). Needs `digests_max`.
            statement_text: StatementLog {
                .of(Kind::OneOf(&["off", "masked", "literal"])).or(Absent::Text("masked"))
            }

            /// Users whose statements are logged, by login name; up to 64.
            statement_log_users: Vec<String> {
                .of(Kind::List("names of users")).or_nothing("all")
            }

            /// Statements logged a second; each group has an even share. `omitted` counts the
            /// others.
            statement_log_per_s_max: u32 {
                .number("statements a second", 1, 1_000_000).or_number(1000)
            }

            /// Write logins, failed logins, changes of user and ends of clients here: a file, or
            /// `syslog`. See [Audit trail](signals-and-log.md#audit-trail).
            audit_log: Option<AuditLog> {
                .of(Kind::Text("the path of a file, or syslog")).or_nothing("off")
            }

            /// Form of the log's lines: text or json.
            ///
            /// See [Log](signals-and-log.md#log).
            log_format: LogFormat {
                .of(Kind::OneOf(&["text", "json"])).or(Absent::Text("text")).option("FORMAT")
            }

            /// Log what is at least so important: error, warning or info.
            ///
            /// Output of SIGUSR1 and SIGQUIT is always logged.
            log_level: Level {
                .of(Kind::OneOf(&["error", "warning", "info"])).or(Absent::Text("info"))
                .option("LEVEL")
            }
        }

        section "The server" {
            /// Connections to the server, over all groups; those being opened count. Never
            /// exceeded.
            ///
            /// Each group has an even share, at least one, and may borrow what others leave idle.
            /// Lower where the server takes fewer (`max_connections`, less [those that the pool
            /// needs besides](sizing.md#connections-to-the-server) and two for administrators;
            /// event `backends-max`). An account may have
            /// [fewer](sizing.md#accounts-with-few-connections).
            backends_max: usize {
                .number("connections", 1, 100_000).or_number(64).option("N")
                .default_words("64, or one for each 16,384 of clients_max")
            }

            /// Idle connections to the server kept open for any time, over all groups.
            backends_min: usize { .number("connections", 0, 100_000).or_number(2) }

            /// Connections of each group for logins and statements of high priority only, at most
            /// an eighth of its share. Keeps the pool usable when all others wait for one lock.
            backends_reserved: usize { .number("connections", 0, 1000).or_number(1) .fixed() }

            /// Close other connections to the server after being idle for this long.
            backend_idle_max: Duration {
                .key("backend_idle_ms_max").milliseconds(1).or_number(60_000)
            }

            /// Close connections to the server at this age, once idle. Ages vary by a tenth, so
            /// that they are not replaced all at once.
            backend_life_max: Duration {
                .key("backend_life_s_max").seconds(1, YEAR_S).or_number(3600)
            }

            /// Connections to the server being opened at once, in each group.
            dials_max: usize { .number("connections", 1, 1000).or_number(4) }

            /// Time limit for opening a connection to the server, login included.
            dial_max: Duration { .key("dial_ms_max").milliseconds(1).or_number(10_000) }

            /// Time after which statements and logins are refused (error 9507) when the server
            /// cannot be reached. Set it above the time of a usual restart or failover. See [When
            /// the server cannot be reached](unreachable-server.md).
            server_down_fail: Duration {
                .key("server_down_fail_ms").milliseconds(1).or_number(5000)
            }

            /// Give up a connection when the server's *host* has sent nothing, not even an
            /// acknowledgement, for this long; its statement gets error 1158. See [Silent
            /// hosts](unreachable-server.md#silent-hosts).
            backend_silence_max: Option<Duration> {
                .key("backend_silence_s_max").seconds(3, 32_767).zero("no limit").or_number(15)
                .fixed()
            }

            /// Prepared statements on the server, never exceeded; at most three quarters of its
            /// `max_prepared_stmt_count`. Each backend has an even share, at least one, and closes
            /// the least recently used one before preparing another. Clients may prepare more:
            /// closed statements are prepared again when executed.
            prepared_max: usize {
                .number("statements", 1, 4_194_304).or_number(8192)
                .min_words("`backends_max`").default_words("8,192, or `backends_max`")
            }
        }

        section "Scheduling" {
            /// Groups: threads, each with its own clients and backends.
            ///
            /// As many as cores (of the control group's CPU quota); fewer where `backends_max` is
            /// less than 8 for each, or `pids.max` is too low; more where the descriptor limit
            /// needs it. See [Groups](sizing.md#groups-and-descriptors).
            groups: Option<usize> {
                .number("threads", 1, 4096).or_nothing("derived").option("N")
                .fixed()
            }

            /// Number of backends that run statements at once: the pool looks for the number that
            /// makes the server fastest, or so many besides one for each core.
            ///
            /// The limit is this number plus one, times the number of cores or of groups, whichever
            /// is less. Backends that run nothing do not count. See
            /// [Sizing](sizing.md#a-number-that-the-pool-finds).
            oversubscribe: Oversubscribe {
                .number("backends", 0, 1000).or_word("auto", "the pool finds the number")
                .or(Absent::Text("auto")).option("N")
            }

            /// A backend that has answered nothing for this long no longer counts as running.
            /// Another statement may start, as far as backends_max allows.
            stall_max: Duration {
                .key("stall_ms_max").milliseconds(1).or_number(100).option("MS")
            }

            /// Pipelining: plain SELECTs of several clients in flight at once on one backend; 1
            /// switches it off.
            pipeline_max: usize { .number("statements", 1, 64).or_number(8).option("N") }

            /// Answer a plain BEGIN locally and send it with the first statement of the
            /// transaction, so that a client that begins and waits holds no backend. COMMIT and
            /// ROLLBACK without a transaction, and SET of the present value, are answered locally
            /// too. See [Transactions](sessions.md#transactions) and
            /// [SET](sessions.md#set-of-the-value-that-is-there).
            defer_begin: bool { .of(Kind::Switch).or(Absent::Switch(true)) }

            /// Wait after which a statement of low priority is queued with those of high priority.
            /// See [Priority](sizing.md#priority).
            prio_kickup: Duration { .key("prio_kickup_ms").milliseconds(0).or_number(1000) }
        }

        section "Limits on clients" {
            /// Clients at once, over all groups.
            ///
            /// Each group takes somewhat more than an even share, so the sum may be exceeded a
            /// little, and one group may be full while others are not.
            clients_max: usize {
                .number("clients", 1, 10_000_000).or_number(10_000).option("N")
            }

            /// Logins admitted a second while statements wait; further connections wait in the
            /// backlog. No limit applies when no statement has waited for 20 ms.
            logins_per_s_max: u32 { .number("logins a second", 1, 1_000_000).or_number(4000) }

            /// Time limit for a client's login.
            login_max: Duration { .key("login_ms_max").milliseconds(1).or_number(30_000) }

            /// Statements and logins that may wait in each group; then error 9502.
            waiting_max: usize { .number("statements", 1, 10_000_000).or_number(10_000_000) }

            /// Longest wait of a statement for a backend. Then the client gets error 9501, and
            /// nothing has been executed.
            ///
            /// Also the time limit for commands of the pool's own around a statement, as restoring
            /// a session; then error 1158.
            wait_max: Duration {
                .key("wait_ms_max").milliseconds(1).or_number(30_000).option("MS")
            }

            /// Bytes of the commands that may wait in each group; then error 9504.
            waiting_bytes_max: usize { .number("bytes", 1 << 20, 1 << 40).or_number(256 << 20) }

            /// Close a client that has read nothing of its reply for this long, unless its session
            /// has set `net_write_timeout`, which then holds.
            write_max: Option<Duration> {
                .key("write_ms_max").milliseconds(1)
                .or_nothing("the server's `net_write_timeout`")
            }

            /// Close a client whose *host* has sent nothing, not even an acknowledgement, for this
            /// long; its transaction is rolled back. See [Silent
            /// hosts](unreachable-server.md#silent-hosts).
            client_silence_max: Option<Duration> {
                .key("client_silence_s_max").seconds(3, 32_767).zero("no limit").or_number(300)
                .fixed()
            }

            /// Behind SIGTERM, serve and accept for so long while `/readyz` fails already.
            drain_wait: Duration { .key("drain_wait_s").seconds(0, 3600).or_number(0) }

            /// Then close the clients that hold nothing one after another over so long.
            drain_spread: Duration { .key("drain_s").seconds(0, 3600).or_number(0) }

            /// Time limit of what follows, the [drain](signals-and-log.md#signals) itself.
            drain_max: Duration { .key("drain_ms_max").milliseconds(1).or_number(30_000) }
        }

        section "Limits by address" {
            /// Connections from one address at once: an IPv4 address, or a /64 of IPv6. Further
            /// ones get error 1040. See [Limits by address](logins.md#limits-by-address).
            clients_per_address_max: Option<u32> {
                .number("connections", 1, 10_000_000).or_nothing("no limit")
            }

            /// New connections a second from one address, with bursts of as many.
            logins_per_s_per_address_max: Option<u32> {
                .number("connections a second", 1, 1_000_000).or_nothing("no limit")
            }

            /// Connections from one network at once; its size is set below.
            clients_per_network_max: Option<u32> {
                .number("connections", 1, 10_000_000).or_nothing("no limit")
            }

            /// New connections a second from one network.
            logins_per_s_per_network_max: Option<u32> {
                .number("connections a second", 1, 1_000_000).or_nothing("no limit")
            }

            /// Bits of an IPv4 address that make its network.
            network_bits_ipv4: u32 { .number("bits", 1, 32).or_number(24) .fixed() }

            /// Bits of an IPv6 address that make its network.
            network_bits_ipv6: u32 { .number("bits", 1, 64).or_number(48) .fixed() }

            /// Addresses and networks without these limits, such as a load balancer without the
            /// PROXY protocol.
            unlimited_networks: Vec<Network> {
                .of(Kind::List("addresses and networks")).or_nothing("none")
            }
        }

        section "Changes of these settings" {
            /// [Reload](signals-and-log.md#reload) when the file has changed, within about two
            /// seconds.
            reload_on_change: bool { .of(Kind::Switch).or(Absent::Switch(false)) }

            /// If a reload changes settings that are read at start, [upgrade](upgrade.md) to a
            /// process that has them, as on SIGUSR2.
            upgrade_on_reload: bool { .of(Kind::Switch).or(Absent::Switch(false)) }
        }

        section "Memory and slow clients" {
            /// Resident memory of the pool above which new clients are refused (error 1041) and
            /// only the first 16 KiB of commands are read. The same holds while the machine has
            /// less than 64 MiB free, or the control group a sixteenth of its limit (at most 64
            /// MiB). Beyond it the client that holds most may be closed (event `memory-share`). See
            /// [Bounds](../bounds.md#clients-and-logins).
            memory_bytes_max: Option<usize> {
                .number("bytes", 1 << 20, MANY)
                .or_nothing("90 % of the machine, or of the smallest control group's limit")
                .fixed()
            }

            /// Bytes of commands that are incomplete or wait for a backend, after decompression,
            /// over all clients. A command of more than half of it is refused with error 1153, and
            /// its client closed. Default: an eighth of `memory_bytes_max`, at most 128 MiB or
            /// three times the server's `max_allowed_packet`, whichever is more. See [Long
            /// commands](slow-clients.md#long-commands).
            input_bytes_max: Option<usize> {
                .number("bytes", 1 << 20, MANY).or_nothing("see its description")
                .fixed()
            }

            /// Share of its backends that a group leaves to [slow
            /// readers](slow-clients.md#slow-readers) while others wait.
            slow_backends_percent_max: usize { .number("percent", 0, 100).or_number(25) }

            /// Time without reading after which a slow reader may be closed, when others wait and
            /// its reply cannot go to the spool.
            slow_reader_max: Duration {
                .key("slow_reader_ms_max").milliseconds(1).or_number(1000)
            }

            /// Bytes on disk for replies of slow readers, over all groups.
            spool_bytes_max: usize {
                .number("bytes", 0, MANY).zero("off").or_number(4 << 30) .fixed()
            }

            /// Folder of these files.
            spool_folder: PathBuf {
                .of(Kind::Text("a path")).or(Absent::Text("/var/tmp")) .fixed()
            }
        }

        section "Stored code" {
            /// Assumption about a call of a procedure, a stored function, a trigger, a view or a
            /// default whose code is not [clean](stored-code.md#clean-code):
            ///
            /// - `pin`: it may leave anything in the session; the client keeps its backend. Exact
            ///   for everybody.
            /// - `trust`: it leaves nothing.
            ///
            /// System variables and the schema follow the server's reports under both. A reported
            /// change of an unknown kind (a user variable, a PREPARE) pins, except under `trust`.
            /// Anonymous blocks (`BEGIN NOT ATOMIC`) always pin.
            stored_code: StoredCode {
                .of(Kind::OneOf(&["pin", "trust"])).or(Absent::Text("pin"))
                .fixed()
            }

            /// Interval at which the pool reads [stored code](stored-code.md) from the server.
            stored_code_refresh: Option<Duration> {
                .key("stored_code_refresh_s").seconds(1, DAY_MS / 1000).zero("never")
                .or_number(60)
            }
        }
    }
}

table! {
    /// TLS of clients, as typed.
    #[derive(Debug)]
    pub(crate) struct TlsKeys, TLS_ROWS {
        section "TLS" {
            /// TLS for clients: `off`, `optional`, `required` (else error 3159; Unix sockets are
            /// exempt), or `auto`: `optional` where `cert` is set or the server offers TLS, with [a
            /// certificate of the pool's own](tls.md#the-pools-own-certificate) if need be. `tls =
            /// "off"` at the top of the file is the same.
            mode: Option<TlsMode> {
                .of(Kind::OneOf(&["auto", "off", "optional", "required"]))
                .or_nothing("`auto`")
                .fixed()
            }

            /// Certificate of the pool, followed by those of its issuers.
            cert: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .fixed()
            }

            /// Its private key, not encrypted.
            key: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .fixed()
            }

            /// Authorities that sign clients' certificates. Clients may then show one, and
            /// `require` of a user may demand it.
            client_ca: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none: none is asked for")
                .fixed()
            }

            /// Demand a certificate of every client under TLS. `required` needs `mode =
            /// "required"`.
            client_cert: Option<ClientCert> {
                .of(Kind::OneOf(&["optional", "required"])).or_nothing("`optional`")
                .fixed()
            }
        }
    }
}

table! {
    /// The console as typed.
    #[derive(Debug)]
    pub(crate) struct ConsoleKeys, CONSOLE_ROWS {
        section "Watching" {
            /// Serve the [console](console.md) here: HOST:PORT, or the path of a Unix socket.
            listen: Option<Address> {
                .of(Kind::Text("an address")).or_nothing("off")
                .fixed()
            }

            /// Account that may give commands.
            admin_user: Option<String> {
                .of(Kind::Text("a name")).or_nothing("none: nobody may give commands")
                .fixed()
            }

            /// Its [password](passwords.md).
            admin_password: Option<Secret> {
                .of(Kind::Password).or_nothing("needed with `admin_user`")
                .fixed()
            }

            /// Instead of it: the file that holds it. See [Passwords](passwords.md).
            admin_password_file: Option<String> {
                .of(Kind::Text("a path")).or_nothing("") .fixed()
            }

            /// Instead of it: the variable of the environment that holds it.
            admin_password_env: Option<String> { .of(Kind::Text("a name")).or_nothing("") .fixed() }

            /// Account that may only read; another name than `admin_user`.
            reader_user: Option<String> {
                .of(Kind::Text("a name")).or_nothing("none")
                .fixed()
            }

            /// Its password.
            reader_password: Option<Secret> {
                .of(Kind::Password).or_nothing("needed with `reader_user`")
                .fixed()
            }

            /// Instead of it: the file that holds it.
            reader_password_file: Option<String> {
                .of(Kind::Text("a path")).or_nothing("") .fixed()
            }

            /// Instead of it: the variable of the environment that holds it.
            reader_password_env: Option<String> {
                .of(Kind::Text("a name")).or_nothing("") .fixed()
            }
        }
    }
}

table! {
    /// The export to OpenTelemetry as typed.
    #[derive(Debug)]
    pub(crate) struct OtelKeys, OTEL_ROWS {
        section "Watching" {
            /// Send metrics, and spans of logged statements, to this
            /// [OpenTelemetry](opentelemetry.md) collector, with a path if its receiver has one.
            endpoint: Option<String> {
                .of(Kind::Text("http://HOST:PORT or https://HOST:PORT")).or_nothing("off")
                .fixed()
            }

            /// Interval at which metrics are sent.
            interval: Duration { .key("interval_s").seconds(1, 3600).or_number(60) .fixed() }

            /// Send the lines of the log too; they are still written to standard error.
            logs: bool { .of(Kind::Switch).or(Absent::Switch(false)) .fixed() }

            /// Resource attribute `service.name`.
            service_name: String { .of(Kind::Text("a name")).or(Absent::Text("onramp")) .fixed() }

            /// Resource attribute `service.instance.id`.
            service_instance_id: Option<String> {
                .of(Kind::Text("a name")).or_nothing("a random UUID for each process")
                .fixed()
            }

            /// Trusted authorities for `https`.
            ca: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("those of the system")
                .fixed()
            }
        }
    }
}

table! {
    /// The server as typed.
    #[derive(Debug)]
    pub(crate) struct ServerKeys, SERVER_ROWS {
        section "The server" {
            /// Address of the server, in the form of `listen`; a name is [looked up
            /// again](unreachable-server.md#the-servers-name). The option takes a DSN with the
            /// account: `mysql://USER@HOST[:PORT]`, or with `?socket=/PATH`, and the
            /// [password](passwords.md). Write `:@/?%&` in a part as `%XX`, and quote the DSN in a
            /// shell.
            address: Option<Place> {
                .of(Kind::Text("an address")).or_nothing("required, unless there are `[[server]]`")
                .fixed()
            }

            /// Send clients' addresses to the server in a header of the PROXY protocol, version 1
            /// or 2. Clients of different addresses then share no backend. See [To the
            /// server](proxy-protocol.md#to-the-server).
            proxy_protocol: ProxyProtocol {
                .of(Kind::OneOf(&["off", "v1", "v2"])).or(Absent::Text("off"))
                .fixed()
            }
        }
        section "Stored code" {
            /// Account that watches the server and reads stored code.
            monitor_user: Option<String> {
                .of(Kind::Text("an account")).or_nothing("the first user's")
                .fixed()
            }

            /// Its [password](passwords.md).
            monitor_password: Option<Secret> {
                .of(Kind::Password).or_nothing("the first user's")
            }

            /// Instead of it: the file that holds it. See [Passwords](passwords.md).
            monitor_password_file: Option<String> {
                .of(Kind::Text("a path")).or_nothing("")
            }

            /// Instead of it: the variable of the environment that holds it.
            monitor_password_env: Option<String> {
                .of(Kind::Text("a name")).or_nothing("")
            }
        }
    }
}

table! {
    /// Settings of TLS to a server as typed: below its `[[server]]`, or else below `[backend]`.
    #[derive(Debug)]
    pub(crate) struct ServerTlsKeys, SERVER_TLS_ROWS {
        section "The server" {
            /// TLS to the server, as MySQL's `--ssl-mode`. Only `verify_ca` and `verify_identity`
            /// protect from a middleman. See [TLS to the server](tls.md#tls-to-the-server). This
            /// and the next six may stand below a `[[server]]` too, for that server.
            tls: Option<BackendTlsMode> {
                .of(Kind::OneOf(&["off", "preferred", "required", "verify_ca", "verify_identity"]))
                .or_nothing("`preferred`; `off` over a Unix socket and a loopback address")
                .for_all("The server").fixed()
            }

            /// Trusted authorities.
            tls_ca: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file"))
                .or_nothing("none; `verify_ca` and `verify_identity` need it")
                .for_all("The server").fixed()
            }

            /// Certificate of the pool for accounts that need one (`REQUIRE X509`).
            tls_cert: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .for_all("The server").fixed()
            }

            /// Its private key, not encrypted.
            tls_key: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .for_all("The server").fixed()
            }

            /// Host name or IP address that the server's certificate must be valid for.
            tls_name: Option<String> {
                .of(Kind::Text("a host's name or an IP address"))
                .or_nothing("the host in `address`")
                .for_all("The server").fixed()
            }

            /// Public RSA key of the server, which encrypts passwords for `caching_sha2_password`
            /// without TLS: MySQL's `public_key.pem`.
            server_public_key: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .for_all("The server").fixed()
            }

            /// Use the RSA key that the server sends, unchecked; a middleman could read passwords.
            /// Always done over a loopback address.
            get_server_public_key: bool {
                .of(Kind::Switch).or(Absent::Switch(false)) .for_all("The server").fixed()
            }
        }
    }
}

table! {
    /// A user as typed, without its [`Limits`].
    #[derive(Debug)]
    pub(crate) struct UserKeys, USER_ROWS {
        section "Users" {
            /// login name of the clients
            name: String { .of(Kind::Text("a name")).needed("name = \"...\"") }

            /// in clear text, `""` for none; [in a file or the environment](passwords.md); or two
            /// during a [rotation](passwords.md#rotation): both open the pool, the first one the
            /// server
            password: UpToTwo<Secret> {
                .of(Kind::Passwords).or_nothing("needed, or `password_hash`")
            }

            /// [the file](passwords.md) that holds it, or a list of two
            password_file: UpToTwo<String> {
                .of(Kind::List("a path, or a list of two")).or_nothing("")
            }

            /// [the variable of the environment](passwords.md) that holds it, or a list of two
            password_env: UpToTwo<String> {
                .of(Kind::List("a name, or a list of two")).or_nothing("")
            }

            /// `*` and 40 hexadecimal digits, as in `mysql.user`, or a list of two
            password_hash: UpToTwo<String> {
                .of(Kind::List("* and 40 hexadecimal digits, or a list of two")).or_nothing("")
            }

            /// plugin that clients must use: `mysql_native_password`, `caching_sha2_password`, or
            /// `mysql_clear_password` ([clear text](logins.md#cleartext-passwords); needs `require
            /// = "ssl"`); or `server`: [limits of the server's
            /// accounts](accounts.md#limits-of-accounts) with names like `name`
            auth: Option<UserAuth> {
                .of(Kind::OneOf(&[
                    "mysql_native_password", "caching_sha2_password", CLEAR_PASSWORD,
                    "server",
                ]))
                .or_nothing("either")
            }

            /// proof as with `REQUIRE` of an account: `none`, `ssl` or `x509`; else error 1045. See
            /// [TLS](tls.md#accounts-that-require-it)
            require: Require {
                .of(Kind::OneOf(&["none", "ssl", "x509"])).or(Absent::Text("none"))
            }

            /// subject of the clients' certificate (`/C=SE/CN=app`)
            require_subject: Option<String> {
                .of(Kind::Text("a name on one line")).or_nothing("any")
            }

            /// issuer of the clients' certificate
            require_issuer: Option<String> {
                .of(Kind::Text("a name on one line")).or_nothing("any")
            }

            /// account on the server
            backend_user: Option<String> { .of(Kind::Text("an account")).or_nothing("`name`") }

            /// its password; needed with `password_hash`
            backend_password: Option<Secret> { .of(Kind::Password).or_nothing("`password`") }

            /// the file that holds it
            backend_password_file: Option<String> { .of(Kind::Text("a path")).or_nothing("") }

            /// the variable of the environment that holds it
            backend_password_env: Option<String> { .of(Kind::Text("a name")).or_nothing("") }
        }
    }
}

table! {
    /// Limits of a user's clients, and their priority; over all groups.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Limits, LIMIT_ROWS {
        section "Users" {
            /// clients at once; then error 1203
            clients_max: Option<usize> { .number("clients", 1, MANY).or_nothing("no limit") }

            /// statements that wait at once; then error 9503
            waiting_max: Option<usize> { .number("statements", 1, MANY).or_nothing("no limit") }

            /// bytes of commands that are incomplete or wait; beyond it error 1153, and the client
            /// is closed
            input_bytes_max: Option<usize> {
                .number("bytes", 1 << 16, MANY).or_nothing("no limit")
            }

            /// backends that [slow readers](slow-clients.md#slow-readers) may hold while others
            /// wait
            slow_backends_max: Option<usize> {
                .number("backends", 0, MANY).or_nothing("no limit")
            }

            /// Connections to the server that the pool opens for one account, in all groups
            /// together; its other clients wait. See
            /// [Accounts that keep backends](slow-clients.md#accounts-that-keep-backends).
            account_backends_max: Option<usize> {
                .number("connections", 1, MANY).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// Backends that clients of one account keep at once, in all groups together, for
            /// transactions or pins. A statement that would keep another gets error 9511.
            account_kept_backends_max: Option<usize> {
                .number("connections", 1, MANY).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// queue of its statements: `high`, `low` or `auto`. See [Priority](sizing.md#priority)
            priority: Priority {
                .of(Kind::OneOf(&["high", "low", "auto"])).or(Absent::Text("auto"))
            }

            /// Server for reads: `writer`, `readers`, or `comments`: the writer, but for
            /// statements that begin with `/* onramp_read_from=readers */`. See
            /// [Several servers](several-servers.md#reads-elsewhere).
            read_from: ReadFrom {
                .of(Kind::OneOf(&["writer", "readers", "comments"])).or(Absent::Text("writer"))
                .for_all("Several servers")
            }

            /// Writes that a read elsewhere sees for certain: those of its client (`session`), of
            /// all clients of its user (`account`), or `none`.
            read_consistency: Consistency {
                .of(Kind::OneOf(&["session", "account", "none"])).or(Absent::Text("session"))
                .for_all("Several servers")
            }

            /// Statements with high priority by themselves: transactions, statements or none.
            ///
            /// See [Priority](sizing.md#priority).
            high_prio_mode: Mode {
                .of(Kind::OneOf(&["transactions", "statements", "none"]))
                .or(Absent::Text("transactions")).option("MODE").for_all("Scheduling")
            }

            /// Times in a row that a client may use the queue of high priority before it is queued
            /// once with low priority. 0: never.
            high_prio_tickets: u32 {
                .number("times", 0, u32::MAX as u64).or_number(u32::MAX as u64)
                .for_all("Scheduling")
            }

            /// Time limit of a statement: error 3024, client and backend are closed, and the
            /// statement is killed. Looked at once a second, as the next three.
            statement_max: Option<Duration> {
                .key("statement_ms_max").milliseconds(1).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// Time limit of a transaction: error 9506, rolled back, and client and backend are
            /// closed.
            transaction_max: Option<Duration> {
                .key("transaction_ms_max").milliseconds(1).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// Time limit without input for a client that keeps a backend (transaction, pin, local
            /// file): error 9508, and it is closed.
            kept_idle_max: Option<Duration> {
                .key("kept_idle_s_max").seconds(1, YEAR_S).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// Time limit without a statement: the client is closed. Otherwise, or if shorter, the
            /// session's `wait_timeout` holds. See [Timeouts](timeouts.md).
            idle_max: Option<Duration> {
                .key("idle_s_max").seconds(1, YEAR_S).or_nothing("no limit")
                .for_all("Limits on clients")
            }
        }
    }
}

table! {
    /// One of several servers as typed.
    #[derive(Debug)]
    pub(crate) struct MemberKeys, MEMBER_ROWS {
        section "Several servers" {
            /// Name of the server in the log, the console and the figures.
            name: String { .of(Kind::Text("a name")).needed("a name") .fixed() }

            /// Its address, in the form of `backend.address`, as the other servers name it.
            address: Place { .of(Kind::Text("an address")).needed("an address") .fixed() }

            /// Use of the server: `auto` (as it says itself), `writer` (taken at start if several
            /// could be), `reader` (never the writer) or `off` (asked, not used).
            role: ClusterRole {
                .of(Kind::OneOf(&["auto", "writer", "reader", "off"])).or(Absent::Text("auto"))
                .fixed()
            }

            /// Share of the reads, beside the other servers'; 0: none.
            weight: u32 { .number("shares", 0, 1000).or_number(1) .fixed() }

            /// Connections to this server, over all groups, of those that `backends_max` allows.
            /// See [Several servers](several-servers.md#limits-of-each-server).
            backends_max: Option<usize> {
                .number("connections", 1, 100_000).or_nothing("no limit of its own") .fixed()
            }

            /// Number of its connections that run something at once, over all groups.
            running_max: Option<usize> {
                .number("connections", 1, 100_000).or_nothing("no limit of its own") .fixed()
            }
        }
    }
}

table! {
    /// Settings of several servers as a cluster, as typed.
    #[derive(Debug)]
    pub(crate) struct ClusterKeys, CLUSTER_ROWS {
        section "Several servers" {
            /// Kind of the cluster. See [Several servers](several-servers.md).
            kind: ClusterKind {
                .of(Kind::OneOf(&[
                    "replication", "galera", "group_replication", "aurora", "rds",
                ]))
                .or(Absent::Text("replication"))
                .fixed()
            }

            /// Consequence of a writer that is down and has not said that it takes no writes:
            /// `wait` (for it, or for `FENCED`) or `replace` (a promoted server takes its place
            /// once no server hears it). Only with `replication` and `rds`.
            writer_lost: WriterLost {
                .of(Kind::OneOf(&["wait", "replace"])).or(Absent::Text("wait"))
                .fixed()
            }

            /// Time between two questions to a server; a quarter of it while one fails.
            ask: Duration { .key("ask_ms").milliseconds(1).or_number(1000) .fixed() }

            /// Time limit of an answer.
            answer_max: Duration { .key("answer_ms_max").milliseconds(1).or_number(1000) .fixed() }

            /// Time limit of each step of a switchover: the end of all transactions, the new
            /// writer's catching up, the promotion.
            switch_max: Duration { .key("switch_ms_max").milliseconds(1).or_number(5000) .fixed() }

            /// Program that promotes the new writer in a switchover, in place of the pool's own
            /// statements, with its arguments; `ONRAMP_OLD` and `ONRAMP_NEW` are the addresses.
            promote_command: Vec<String> {
                .of(Kind::List("words")).or_nothing("none")
                .fixed()
            }

            /// Uses servers besides that the cluster names
            /// ([discovery](several-servers.md#discovery)).
            discover: bool { .of(Kind::Switch).or(Absent::Switch(false)) .fixed() }

            /// Networks that all addresses of such a server must be in. One of the host itself
            /// needs a network in `127.0.0.0/8` or `::1`.
            discover_networks: Vec<Network> {
                .of(Kind::List("addresses and networks")).or_nothing("none")
                .fixed()
            }

            /// Time for which such a server stays when it is named no more.
            discover_keep: Duration {
                .key("discover_keep_ms").milliseconds(0).or_number(60_000) .fixed()
            }

            /// Failures in a row after which a server is down.
            fall: u32 { .number("failures", 1, 1000).or_number(3) .fixed() }

            /// Shortest time without an answer after which a silent server is down, besides.
            fall_after: Duration { .key("fall_ms").milliseconds(1).or_number(3000) .fixed() }

            /// Greatest lag of a server that is read; it is read again from half of it on.
            read_lag_max: Duration {
                .key("read_lag_ms_max").milliseconds(0).or_number(10_000) .fixed()
            }

            /// Longest wait of a read on another server for the writes that it has to see; then the
            /// writer answers.
            read_wait_max: Duration {
                .key("read_wait_ms_max").milliseconds(1).or_number(250) .fixed()
            }

            /// Counts which statements would go to another server, and sends them to the writer.
            read_dry_run: bool { .of(Kind::Switch).or(Absent::Switch(false)) .fixed() }
        }
    }
}

table! {
    /// Settings of the fleet, as typed.
    #[derive(Debug)]
    pub(crate) struct FleetKeys, FLEET_ROWS {
        section "Several pools" {
            /// Pools of this name in front of one server share `backends_max` and
            /// `account_backends_max` ([several pools](several-pools.md)). Other limits, as
            /// `clients_max`, are each pool's.
            name: Option<String> {
                .of(Kind::Text("1 to 20 of a-z, 0-9, _ and -")).or_nothing("this pool is alone")
                .fixed()
            }
        }
    }
}

impl ServerTlsKeys {
    /// The values for TLS to a server, with the prefix of its keys in errors.
    pub(crate) fn typed(self, prefix: &str) -> BackendTlsKeys {
        BackendTlsKeys {
            prefix: prefix.into(),
            is_own: false,
            mode: self.tls,
            ca: self.tls_ca,
            cert: self.tls_cert,
            key: self.tls_key,
            name: self.tls_name,
            server_public_key: self.server_public_key,
            get_server_public_key: self.get_server_public_key,
        }
    }
}

/// The keys of the file's top level.
pub(crate) fn top_rows() -> impl Iterator<Item = &'static Row> {
    let for_all = |row: &&Row| row.for_all.is_some();
    POOL_ROWS.iter().chain(LIMIT_ROWS.iter().filter(for_all))
}

/// The keys of `[backend]`.
pub(crate) fn server_rows() -> impl Iterator<Item = &'static Row> {
    SERVER_ROWS.iter().chain(SERVER_TLS_ROWS)
}

/// The keys of `[[server]]`.
pub(crate) fn member_rows() -> impl Iterator<Item = &'static Row> {
    MEMBER_ROWS.iter().chain(SERVER_TLS_ROWS)
}

/// The keys of `[cluster]`.
pub(crate) fn cluster_rows() -> impl Iterator<Item = &'static Row> {
    CLUSTER_ROWS.iter()
}

/// The keys of `[fleet]`.
pub(crate) fn fleet_rows() -> impl Iterator<Item = &'static Row> {
    FLEET_ROWS.iter()
}

/// The keys of `[tls]`.
pub(crate) fn tls_rows() -> impl Iterator<Item = &'static Row> {
    TLS_ROWS.iter()
}

/// The keys of `[console]`.
pub(crate) fn console_rows() -> impl Iterator<Item = &'static Row> {
    CONSOLE_ROWS.iter()
}

/// The keys of `[otel]`.
pub(crate) fn otel_rows() -> impl Iterator<Item = &'static Row> {
    OTEL_ROWS.iter()
}

/// The keys of `[[user]]`.
pub(crate) fn user_rows() -> impl Iterator<Item = &'static Row> {
    USER_ROWS.iter().chain(LIMIT_ROWS)
}

/// The limits of a user.
pub(crate) fn limit_rows() -> impl Iterator<Item = &'static Row> {
    LIMIT_ROWS.iter()
}

impl FromValue for ProxyProtocol {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, ProxyProtocol::from_name)
    }
}

impl FromValue for ClusterKind {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, |text| match text {
            "replication" => Some(ClusterKind::Replication),
            "galera" => Some(ClusterKind::Galera),
            "group_replication" => Some(ClusterKind::GroupReplication),
            "aurora" => Some(ClusterKind::Aurora),
            "rds" => Some(ClusterKind::Rds),
            _ => None,
        })
    }
}

impl FromValue for ClusterRole {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        use ClusterRole::{Auto, Off, Reader, Writer};
        let all = [Auto, Writer, Reader, Off].into_iter();
        named(row, value, |text| {
            all.clone().find(|role| word_of(*role) == text)
        })
    }
}

impl FromValue for WriterLost {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, |text| match text {
            "wait" => Some(WriterLost::Wait),
            "replace" => Some(WriterLost::Replace),
            _ => None,
        })
    }
}

impl FromValue for BackendTlsMode {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, BackendTlsMode::from_name)
    }
}

/// Proof that a user's clients have to give, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Require {
    None,
    Ssl,
    X509,
}

impl FromValue for Require {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, |text| match text {
            "none" => Some(Require::None),
            "ssl" => Some(Require::Ssl),
            "x509" => Some(Require::X509),
            _ => None,
        })
    }
}

impl FromValue for ClientCert {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, ClientCert::from_name)
    }
}

impl FromValue for TlsMode {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, TlsMode::from_name)
    }
}

/// The permissions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(pub u32);

/// A user of this host, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserNumber(pub u32);

/// A group of users of this host, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupNumber(pub u32);

impl FromValue for FileMode {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, |text| {
            let is_octal = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
            let mode = u32::from_str_radix(text, 8).ok();
            mode.filter(|mode| is_octal && *mode <= 0o777).map(FileMode)
        })
    }
}

/// A number that this host knows by a name.
fn looked_up(
    row: &Row,
    value: &Value,
    look_up: fn(&str) -> std::io::Result<u32>,
) -> Result<u32, String> {
    let Value::Text(name) = value else {
        return wrong_type(row);
    };
    look_up(name).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("expected {}, got '{name}'", row.expected()),
        _ => format!("'{name}' cannot be looked up: {error}"),
    })
}

impl FromValue for UserNumber {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        looked_up(row, value, accounts::user_id).map(UserNumber)
    }
}

impl FromValue for GroupNumber {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        looked_up(row, value, accounts::group_id).map(GroupNumber)
    }
}

/// Address at which HTTP is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpAddress(pub SocketAddr);

impl FromValue for HttpAddress {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        let text = String::from_value(row, value)?;
        match Address::parse(&text)? {
            Address::Tcp(address) => Ok(HttpAddress(address)),
            Address::Unix(_) => Err(format!("expected {}, got '{text}'", row.expected())),
        }
    }
}

impl FromValue for StatementLog {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, StatementLog::from_name)
    }
}

impl FromValue for AuditLog {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match String::from_value(row, value)?.as_str() {
            "syslog" => Ok(AuditLog::Syslog),
            "" => wrong_type(row),
            path => Ok(AuditLog::File(path.into())),
        }
    }
}

impl FromValue for Names {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        Names::new(Vec::from_value(row, value)?, row.field)
    }

    fn nothing() -> Option<Self> {
        Names::new(Vec::new(), "http_names").ok()
    }
}

/// Names in one list.
const NAMES_MAX: usize = 64;

impl FromValue for Vec<String> {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::List(names) if names.len() > NAMES_MAX => Err(format!(
                "expected at most {NAMES_MAX} names, got {}",
                names.len()
            )),
            Value::List(names) => Ok(names.clone()),
            _ => wrong_type(row),
        }
    }

    fn nothing() -> Option<Self> {
        Some(Vec::new())
    }
}

impl Settings {
    /// True if something of statements is kept for a log.
    pub(crate) fn logs_statements(&self) -> bool {
        self.slow_statement.is_some()
            || self.statement_log != StatementLog::Off
            || self.statement_text == StatementLog::Literal
    }
}

impl FromValue for Vec<Network> {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::List(texts) => texts.iter().map(|text| Network::parse(text)).collect(),
            _ => wrong_type(row),
        }
    }

    fn nothing() -> Option<Self> {
        Some(Vec::new())
    }
}

impl FromValue for Address {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        Address::parse(&String::from_value(row, value)?)
    }
}

impl FromValue for Place {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        Place::parse(&String::from_value(row, value)?)
    }
}

/// Place of the accounts, which decides what users there have to be.
pub(crate) fn account_source(top: &Keys) -> Result<AccountSource, String> {
    take(row_of(POOL_ROWS, "auth")?, top, None)
}

impl FromValue for AccountSource {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, AccountSource::from_name)
    }
}

impl FromValue for StoredCode {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, StoredCode::from_name)
    }
}

impl FromValue for Oversubscribe {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(word) if row.is_word(word) => Ok(Oversubscribe::Auto),
            _ => usize::from_value(row, value).map(Oversubscribe::By),
        }
    }
}

impl FromValue for LogFormat {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, LogFormat::from_name)
    }
}

impl FromValue for Level {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, Level::from_name)
    }
}

impl FromValue for Mode {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, Mode::from_name)
    }
}

impl FromValue for ReadFrom {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, ReadFrom::from_name)
    }
}

impl FromValue for Consistency {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, Consistency::from_name)
    }
}

impl FromValue for Priority {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, Priority::from_name)
    }
}

/// Proof of a user's name, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserAuth {
    /// The user's password, by this method.
    Method(Method),
    /// The server's, for all of its accounts whose names are like the user's.
    Server,
}

impl FromValue for UserAuth {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, |name| match name {
            "server" => Some(UserAuth::Server),
            name => Method::from_name(name).map(UserAuth::Method),
        })
    }
}
