//! The table of settings: every key of the file with its bounds, default, option and description.
//!
//! A new setting is a row here, and its use. The first paragraph of a row's description is shown by
//! `--help` where the row has an option, so it is plain text; everything else may be Markdown,
//! because it becomes docs/pool/settings.md.
//! `ONRAMP_WRITE=1 cargo test -p pool settings_page` rewrites that page.

use super::row::{Absent, DAY_MS, FromValue, Keys, Kind, MANY, Row, Value, YEAR_S, named, row_of};
use super::row::{UpToTwo, table, take, wrong_type};
use super::{AccountSource, ConsoleSettings, OtelSettings, ShownSetting, StoredCode, User};
use crate::auth::account::{CLEAR_PASSWORD, Method};
use crate::auth::certificate::{ClientCert, ClientTls, TlsMode};
use crate::auth::network::Network;
use crate::auth::secret::Secret;
use crate::log::statement::StatementLog;
use crate::log::{Level, LogFormat};
use crate::queue::priority::{Mode, Priority};
use crate::queue::running_limit::Oversubscribe;
use crate::server::backend_tls::{BackendTls, BackendTlsMode};
use crate::server::proxy_protocol::ProxyProtocol;
use crate::server::upstream::Place;
use httpd::Names;
use reactor::{Address, accounts};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const SERVER: &str = "the server's address ([backend] address = \"HOST:PORT\", or --backend \
                      'mysql://USER@HOST:PORT?password_file=FILE')";
const ADDRESSES: &str = "at least one address, such as 127.0.0.1:6033";
const DEFAULT_MODE: &str = "0777";

table! {
    /// What the pool runs on.
    #[derive(Clone, Debug)]
    pub struct Settings, POOL_ROWS {
        made {
            /// The server. A name is looked up when the pool dials.
            backend: Place,
            /// Name and password of the account that asks for the pool itself; the first user's
            /// when not given.
            monitor: Option<(String, Secret)>,
            /// Who may log in, at least one.
            users: Vec<User>,
            /// TLS towards clients, if there is any.
            tls: Option<Arc<ClientTls>>,
            /// Without a certificate of the settings, the pool makes one where the server has TLS.
            tls_auto: bool,
            /// TLS towards the server, if there is any.
            backend_tls: Arc<BackendTls>,
            /// What connections to the server begin with.
            backend_proxy: ProxyProtocol,
            /// The console, if there is one.
            console: Option<ConsoleSettings>,
            /// Where metrics and spans are sent, if anywhere.
            otel: Option<OtelSettings>,
            /// Every setting with its value, to be shown.
            shown: Vec<ShownSetting>,
            /// `spool_folder` was given: it must be usable.
            spool_folder_given: bool,
            /// What works and should not be so, to be said once at start.
            warnings: Vec<String>,
        }

        section "Listening" {
            /// Listen here: HOST:PORT, or the path of a Unix socket; may be given several times.
            ///
            /// In the file it is a list; one address may stand alone. The path of a socket is
            /// written `/path` or `unix:path`. A name is looked up at start. The file of a Unix
            /// socket is replaced if nobody listens on it. It is removed at the end.
            listen: Vec<Address> {
                .of(Kind::List("addresses")).needed(ADDRESSES).option("ADDRESS")
                .fixed()
            }

            /// Permissions of the files of Unix sockets. A client needs the right to write to the
            /// file. By default everybody has it, whatever the umask is, as with the servers' own
            /// sockets. Nobody can connect before the file has these permissions.
            socket_mode: FileMode {
                .of(Kind::Text("octal digits from \"0\" to \"0777\", as \"0660\""))
                .or(Absent::Text(DEFAULT_MODE))
                .fixed()
            }

            /// Who owns these files: a user's name or number. Another owner than the one who
            /// starts the pool needs root or CAP_CHOWN.
            socket_owner: Option<UserNumber> {
                .of(Kind::Text("the name or the number of a user"))
                .or_nothing("who starts the pool")
                .fixed()
            }

            /// Their group: a name or a number.
            socket_group: Option<GroupNumber> {
                .of(Kind::Text("the name or the number of a group"))
                .or_nothing("the group of who starts the pool")
                .fixed()
            }

            /// The user that the pool becomes once it listens. The pool must be started as root.
            /// Ports below 1024 and keys that only root may read are open by then. See
            /// [Privileges](privileges.md).
            run_as_user: Option<UserNumber> {
                .of(Kind::Text("the name or the number of a user"))
                .or_nothing("who starts the pool")
                .fixed()
            }

            /// Its group, the only one that the pool has from then on.
            run_as_group: Option<GroupNumber> {
                .of(Kind::Text("the name or the number of a group"))
                .or_nothing("that of `run_as_user`")
                .fixed()
            }

            /// The kernel may write the memory of the pool to a file when it ends by a fault, and
            /// other processes of its user may read it (debuggers). Passwords and keys are in it:
            /// see [Passwords](passwords.md#in-memory).
            core_dumps: bool { .of(Kind::Switch).or(Absent::Switch(false)) .fixed() }

            /// Where the pool keeps what it has made for itself: `tls.pem`, its own
            /// [certificate](tls.md#the-pools-own-certificate) with the key. Without a folder the
            /// certificate is another one at each start.
            state_folder: Option<PathBuf> {
                .of(Kind::Text("the path of a folder"))
                .or_nothing("`$STATE_DIRECTORY`, or `/var/lib/onramp` where that is there")
                .fixed()
            }

            /// Connections that may wait to be accepted, for each listener of each group. The
            /// kernel cuts it to `net.core.somaxconn`.
            backlog: i32 { .number("connections", 1, 1 << 30).or_number(4096) .fixed() }

            /// Addresses and networks (`10.0.0.5`, `10.0.0.0/8`, `2001:db8::/32`) of proxies in
            /// front that send a header of the PROXY protocol, version 1 or 2. A connection from
            /// there must begin with one, and is greeted behind it. The address in the header is
            /// the client's from there on. From anywhere else a header is refused. See [PROXY
            /// protocol](proxy-protocol.md).
            proxy_protocol_networks: Vec<Network> {
                .of(Kind::List("addresses and networks")).or_nothing("none")
            }

            /// Clients may choose the compressed protocol: zlib, and zstd where the server is MySQL
            /// 8.0.18 or later. The pool compresses and decompresses in its own threads, zlib at
            /// level 1 and zstd at the client's level, 6 at most. Connections to the server stay
            /// uncompressed.
            compression: bool { .of(Kind::Switch).or(Absent::Switch(true)) .fixed() }
        }

        section "Accounts" {
            /// Who may log in: `file` (the users of this file) or `server` (these, and the accounts
            /// of the server, with the passwords that they have there). `server` needs
            /// `backend.monitor_user`. See [Accounts](accounts.md).
            auth: AccountSource {
                .of(Kind::OneOf(&["file", "server"])).or(Absent::Text("file"))
                .fixed()
            }
        }

        section "Watching" {
            /// Serve metrics, health and a page over HTTP here: HOST:PORT.
            ///
            /// See [Metrics and health](metrics.md). Whoever reaches the address can read there and
            /// change nothing; there is no login. Port 0 takes a free one, which the log says.
            http: Option<HttpAddress> {
                .of(Kind::Text("HOST:PORT")).or_nothing("off").option("ADDRESS")
                .fixed()
            }

            /// Names under which HTTP is asked for, without a port: requests by an address or as
            /// `localhost` are always answered, those by any other name are refused, so that no
            /// page of a foreign site can have a browser read here (DNS rebinding). At most 64.
            http_names: Names {
                .of(Kind::List("names")).or_nothing("none")
                .fixed()
            }

            /// Statements that are counted one by one, over all groups, by their text without its
            /// values: `SHOW STATEMENTS` on the console, and the page. When there are more, those
            /// that have not come for longest are counted together. 0 counts none of them.
            digests_max: usize { .number("statements", 0, 100_000).or_number(1000) .fixed() }

            /// Log statements that take this long or longer, their wait for a backend included.
            ///
            /// See [Slow statements](signals-and-log.md#slow-statements).
            slow_statement: Option<Duration> {
                .key("slow_statement_ms").milliseconds(1).or_nothing("none is logged")
                .option("MS")
            }

            /// The values of slow statements are logged too: the text as it came, 4 KiB at most.
            slow_statement_values: bool { .of(Kind::Switch).or(Absent::Switch(false)) }

            /// Log every statement when it ends: off, masked (texts without their values) or
            /// literal (with them).
            ///
            /// Texts that may hold a password have no values in either. See [All
            /// statements](signals-and-log.md#all-statements). `SET` at the console changes it
            /// until the next reload.
            statement_log: StatementLog {
                .of(Kind::OneOf(&["off", "masked", "literal"])).or(Absent::Text("off"))
                .option("HOW")
            }

            /// Users whose statements are logged then, by the names that they log in with; 64 at
            /// most.
            statement_log_users: Vec<String> {
                .of(Kind::List("names of users")).or_nothing("all")
            }

            /// Statements that are logged in a second, over all groups, each of which has an even
            /// share. `omitted` counts the others.
            statement_log_per_s_max: u32 {
                .number("statements a second", 1, 1_000_000).or_number(1000)
            }

            /// How lines of the log are written: text or json.
            ///
            /// Both have the same facts under the same names. See [Log](signals-and-log.md#log).
            log_format: LogFormat {
                .of(Kind::OneOf(&["text", "json"])).or(Absent::Text("text")).option("FORMAT")
            }

            /// Log what is at least so important: error, warning or info.
            ///
            /// What SIGUSR1 and SIGQUIT ask for is logged in any case.
            log_level: Level {
                .of(Kind::OneOf(&["error", "warning", "info"])).or(Absent::Text("info"))
                .option("LEVEL")
            }
        }

        section "The server" {
            /// Connections to the server, over all groups; those being opened count. It is never
            /// exceeded.
            ///
            /// Each group has an even share, at least one, and uses what others leave idle. A
            /// backend that a group has not used for 50 ms is closed when another group needs one.
            /// A group that has more than its share gives one back as soon as a statement or
            /// transaction ends. Where the server takes fewer connections (`max_connections`), the
            /// pool opens fewer: it leaves two for itself (the watching connection, and one that
            /// reads stored code), one for each group while that carries a `KILL`, and two for
            /// administrators. It says so at start, and when the value changes, which it notices
            /// within a second. `backends_max` holds again when there is room for it. Each group
            /// keeps one. An account may have fewer: see
            /// [Sizing](sizing.md#accounts-with-few-connections).
            backends_max: usize {
                .number("connections", 1, 100_000).or_number(64).option("N")
                .default_words("64, or one for each 16,384 of clients_max")
            }

            /// Idle connections to the server that are kept however long they are idle, distributed
            /// over the groups. At most `backends_max`.
            backends_min: usize { .number("connections", 0, 100_000).or_number(2) }

            /// Connections of each group that only logins and statements of high priority may use;
            /// at most an eighth of the group's. So clients that all wait for one lock cannot shut
            /// out everybody. While [slow readers](slow-clients.md#slow-readers) hold their share,
            /// all statements but those known to be long may use them.
            backends_reserved: usize { .number("connections", 0, 1000).or_number(1) .fixed() }

            /// An idle connection to the server is closed after this time.
            backend_idle_max: Duration {
                .key("backend_idle_ms_max").milliseconds(1).or_number(60_000)
            }

            /// A connection to the server that is older is closed when it is idle next. Ages differ
            /// by up to a tenth, so that not all are replaced at once.
            backend_life_max: Duration {
                .key("backend_life_s_max").seconds(1, YEAR_S).or_number(3600)
            }

            /// Connections to the server being opened at once, in each group.
            dials_max: usize { .number("connections", 1, 1000).or_number(4) }

            /// Longest time to open a connection to the server, login included.
            dial_max: Duration { .key("dial_ms_max").milliseconds(1).or_number(10_000) }

            /// When the server cannot be reached for this long, statements and logins that wait for
            /// a backend are refused at once with error 9507. Where it has stopped without closing
            /// its connections, this holds for statements in every state, and those that were sent
            /// get error 1158. Set it above the time of a usual restart or failover. See [When the
            /// server cannot be reached](unreachable-server.md).
            server_down_fail: Duration {
                .key("server_down_fail_ms").milliseconds(1).or_number(5000)
            }

            /// A connection to the server is given up when nothing, not even an acknowledgement,
            /// has come from the server's *host* for this long. Its statement ends with error 1158.
            /// A host that answers is left alone. See [Silent
            /// hosts](unreachable-server.md#silent-hosts).
            backend_silence_max: Option<Duration> {
                .key("backend_silence_s_max").seconds(3, 32_767).zero("no limit").or_number(15)
                .fixed()
            }

            /// Prepared statements on the server (its `Prepared_stmt_count`), those of the binary
            /// protocol and those by name (`PREPARE`). It is never exceeded, whatever clients
            /// prepare. Each backend has an even share, `prepared_max / backends_max`, and closes
            /// the least recently used one before it prepares another. If three quarters of the
            /// server's `max_prepared_stmt_count` are fewer, those are shared instead. The pool
            /// looks at that value once a second. Each backend may have one. Clients may prepare
            /// more than that: what a backend has closed is prepared again for its next execution.
            prepared_max: usize {
                .number("statements", 1, 4_194_304).or_number(8192)
                .min_words("`backends_max`").default_words("8,192, or `backends_max`")
            }
        }

        section "Scheduling" {
            /// Groups (threads). By default there are as many as cores (as far as a control group's
            /// CPU quota goes), but fewer where backends_max is less than 8 for each or pids.max of
            /// a control group has no room for their threads, and more where the descriptor limit
            /// asks for it.
            ///
            /// See [Sizing](sizing.md).
            groups: Option<usize> {
                .number("threads", 1, 4096).or_nothing("derived").option("N")
                .fixed()
            }

            /// How many backends run statements at once: the pool looks for the number that makes
            /// the server fastest, or so many besides one for each core.
            ///
            /// [Sizing](sizing.md#a-number-that-the-pool-finds) says how it looks. The limit is
            /// this number plus one, times the number of cores or of groups, whichever is smaller.
            /// Groups in which statements wait share it, at least one each. Transactions and pins
            /// hold further backends beyond it.
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
            ride_max: usize { .number("statements", 1, 64).or_number(8).option("N") }

            /// Answer a plain BEGIN in the pool, and send it in front of the transaction's first
            /// statement. A client that begins a transaction and then waits holds no backend.
            /// COMMIT and ROLLBACK without a transaction are answered too, and SET of variables to
            /// the values that they have. See [Transactions](sessions.md#transactions) and
            /// [SET](sessions.md#set-of-the-value-that-is-there).
            defer_begin: bool { .of(Kind::Switch).or(Absent::Switch(true)) }

            /// A statement of the low lane that has waited for this long is in line with those of
            /// the high lane. See [Priority](sizing.md#priority).
            prio_kickup: Duration { .key("prio_kickup_ms").milliseconds(0).or_number(1000) }
        }

        section "Limits on clients" {
            /// Clients at once, over all groups.
            ///
            /// Each group takes the share that the fullest group is expected to get, and counts for
            /// itself. So the sum can be somewhat more. A group can be full while others are not,
            /// mostly over a Unix socket, whose connections are not distributed evenly.
            clients_max: usize {
                .number("clients", 1, 10_000_000).or_number(10_000).option("N")
            }

            /// Logins that are let in while statements wait for their turn, over all groups. Other
            /// connections stay in the listeners' backlogs. When no statement has waited for 20 ms,
            /// there is no limit. It protects working clients from a storm of new ones: see
            /// [Logins](../performance.md#logins).
            logins_per_s_max: u32 { .number("logins a second", 1, 1_000_000).or_number(4000) }

            /// Longest login of a client.
            login_max: Duration { .key("login_ms_max").milliseconds(1).or_number(30_000) }

            /// Statements and logins that may wait in a group. The default does not limit more than
            /// the number of clients does, because each client waits with one statement at most.
            waiting_max: usize { .number("statements", 1, 10_000_000).or_number(10_000_000) }

            /// Longest wait of a statement for a backend. Then the client gets error 9501, and
            /// nothing has been executed. It is also the longest wait for an answer to what the
            /// pool itself asks around a statement; then the client gets error 1158.
            wait_max: Duration {
                .key("wait_ms_max").milliseconds(1).or_number(30_000).option("MS")
            }

            /// Bytes of the commands that wait in a group. Then error 9504.
            waiting_bytes_max: usize { .number("bytes", 1 << 20, 1 << 40).or_number(256 << 20) }

            /// A client that takes nothing of its reply for this long is closed, unless its session
            /// has set `net_write_timeout`. Then that counts.
            write_max: Option<Duration> {
                .key("write_ms_max").milliseconds(1)
                .or_nothing("the server's `net_write_timeout`")
            }

            /// As `backend_silence_s_max`, for clients. The client's session ends, and its
            /// transaction is rolled back.
            client_silence_max: Option<Duration> {
                .key("client_silence_s_max").seconds(3, 32_767).zero("no limit").or_number(300)
                .fixed()
            }

            /// Longest drain, see [Signals](signals-and-log.md#signals).
            drain_max: Duration { .key("drain_ms_max").milliseconds(1).or_number(30_000) }
        }

        section "Limits by address" {
            /// Connections from one address at once, over all groups: from an IPv4 address, or from
            /// a /64 network of IPv6. Further ones get error 1040 in place of the greeting. See
            /// [Limits by address](logins.md#limits-by-address).
            clients_per_address_max: Option<u32> {
                .number("connections", 1, 10_000_000).or_nothing("no limit")
            }

            /// Connections from one address that may begin in a second, as many of them at once.
            logins_per_s_per_address_max: Option<u32> {
                .number("connections a second", 1, 1_000_000).or_nothing("no limit")
            }

            /// The same two limits for networks of the lengths below.
            clients_per_network_max: Option<u32> {
                .number("connections", 1, 10_000_000).or_nothing("no limit")
            }

            /// See above.
            logins_per_s_per_network_max: Option<u32> {
                .number("connections a second", 1, 1_000_000).or_nothing("no limit")
            }

            /// Bits of an IPv4 address that make its network.
            network_bits_ipv4: u32 { .number("bits", 1, 32).or_number(24) .fixed() }

            /// Bits of an IPv6 address that make its network.
            network_bits_ipv6: u32 { .number("bits", 1, 64).or_number(48) .fixed() }

            /// Addresses and networks that these limits do not hold for: a load balancer that
            /// speaks for many, and its health checks.
            unlimited_networks: Vec<Network> {
                .of(Kind::List("addresses and networks")).or_nothing("none")
            }
        }

        section "Changes of these settings" {
            /// Read the file again when it has changed, as on SIGHUP, about two seconds after it
            /// was written. See [Reload](signals-and-log.md#reload).
            reload_on_change: bool { .of(Kind::Switch).or(Absent::Switch(false)) }

            /// Where a reload finds settings that are read at start only, start a process that
            /// has them and takes the place of this one, as on SIGUSR2. See
            /// [Upgrade](upgrade.md).
            upgrade_on_reload: bool { .of(Kind::Switch).or(Absent::Switch(false)) }
        }

        section "Memory and slow clients" {
            /// While the pool's resident memory is above this, or the machine has less than 64 MiB
            /// left (a control group: a sixteenth of its limit, at most 64 MiB), no new client is
            /// let in (error 1041), and of the clients' commands no more than the first 16 KiB are
            /// read. The default is 90 % of the memory of the machine or of the smallest limit of
            /// the control groups that the process is in (cgroup v1 and v2, every level up;
            /// systemd: `MemoryMax`), whichever is less. What the pool keeps for clients (commands,
            /// replies that they have not taken, prepared statements, warnings, variables,
            /// sessions; `memory_bytes` in the census) takes at most seven eighths of it. Above
            /// that, the pool closes the client that holds most, provided that it holds more than
            /// an even share; between statements the client gets error 1153 first
            /// (`memory_closed`; event `memory-share`). Other clients are not affected.
            memory_bytes_max: Option<usize> {
                .number("bytes", 1 << 20, MANY).or_nothing("90 % of what there is")
                .fixed()
            }

            /// Bytes that all clients together may hold of commands that are incomplete or wait for
            /// a backend. Compressed ones count as far as they are decompressed. The default is an
            /// eighth of `memory_bytes_max`, but no more than 128 MiB or three times the server's
            /// `max_allowed_packet`, whichever is more. One command may be half as long. A longer
            /// one is refused with error 1153, and its client is closed. While there is no room,
            /// the rest of long commands, after their first 16 KiB, stays in the kernel. Short
            /// commands are not affected. See [Long commands](slow-clients.md#long-commands).
            input_bytes_max: Option<usize> {
                .number("bytes", 1 << 20, MANY).or_nothing("see its description")
                .fixed()
            }

            /// Of its backends, the share that a group leaves to clients that do not read their
            /// replies, while others wait, and to texts whose readers were slow. See [Slow
            /// readers](slow-clients.md#slow-readers), also for the next three.
            slow_backends_percent_max: usize { .number("percent", 0, 100).or_number(50) }

            /// A client that has taken nothing of its reply for this long may be closed when others
            /// wait and its reply cannot be taken off its backend.
            slow_reader_max: Duration {
                .key("slow_reader_ms_max").milliseconds(1).or_number(1000)
            }

            /// Bytes on disk of replies that were taken off their backends, over all groups.
            spool_bytes_max: usize {
                .number("bytes", 0, MANY).zero("off").or_number(4 << 30) .fixed()
            }

            /// The folder in which they are.
            spool_folder: PathBuf {
                .of(Kind::Text("a path")).or(Absent::Text("/var/tmp")) .fixed()
            }
        }

        section "Stored code" {
            /// What the pool assumes about a statement that calls a procedure, or a function that
            /// is not the server's own, if its code is not [known](stored-code.md#known-code):
            ///
            /// - `pin`: the code may have left anything in the session. The client keeps its
            ///   backend. This is exact for everybody.
            /// - `transaction`: the code may have left anything. The client keeps its backend to
            ///   the end of its transaction, or of the statement; then the backend is closed.
            ///   Nobody else meets what the code left. The client loses what the server does not
            ///   report (a lock, a temporary table).
            /// - `trust`: the code leaves nothing. [Triggers and
            ///   views](stored-code.md#triggers-views-and-defaults) are not looked at.
            ///
            /// What the server reports of system variables and the schema counts under all three.
            /// Where it reports a change without saying which (a user variable, a PREPARE), the
            /// client is pinned, except under `trust`. Anonymous blocks (`BEGIN NOT ATOMIC`) that
            /// are not known always pin. The setting holds for triggers, views and defaults too.
            stored_code: StoredCode {
                .of(Kind::OneOf(&["pin", "transaction", "trust"])).or(Absent::Text("pin"))
                .fixed()
            }

            /// How often the pool reads [stored code](stored-code.md) from the server.
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
            /// True if clients may use TLS: `off`, `optional` (each client decides), `required` (a
            /// login in clear gets error 3159, except over a Unix socket), or `auto`: `optional`
            /// with the certificate of `tls.cert`, or, where the server offers TLS, with [one of
            /// the pool's own](tls.md#the-pools-own-certificate). `tls = "off"` above the first
            /// line in brackets is the same. See [TLS](tls.md).
            mode: Option<TlsMode> {
                .of(Kind::OneOf(&["auto", "off", "optional", "required"]))
                .or_nothing("`auto`")
                .fixed()
            }

            /// The certificate of the pool in PEM, followed by those of its issuers, as clients
            /// need them to verify it.
            cert: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .fixed()
            }

            /// Its private key in PEM, not encrypted. A file that others than its owner can read is
            /// warned of.
            key: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .fixed()
            }

            /// The certificates of the authorities that sign clients' certificates, in PEM. With
            /// it clients may show one, and `require` of a user may ask for it. A certificate of
            /// another authority ends the handshake.
            client_ca: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none: none is asked for")
                .fixed()
            }

            /// True if every client under TLS has to show a certificate. `required` needs `mode =
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
            /// Serve the console here: HOST:PORT, or the path of a Unix socket. See
            /// [Console](console.md). Passwords cross it as proofs, everything else in clear, so
            /// the address is one that only administrators reach.
            listen: Option<Address> {
                .of(Kind::Text("an address")).or_nothing("off")
                .fixed()
            }

            /// The account that may give commands.
            admin_user: Option<String> {
                .of(Kind::Text("a name")).or_nothing("none: nobody may give commands")
                .fixed()
            }

            /// Its password.
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

            /// The account that may only read. Its name is another one than `admin_user`.
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
            /// Send metrics, and spans of statements that are logged, to the OpenTelemetry
            /// collector here: `http://HOST:PORT` or `https://HOST:PORT`, and a path if its
            /// receiver has one. `/v1/metrics`, `/v1/traces` and `/v1/logs` are added. See
            /// [OpenTelemetry](opentelemetry.md).
            endpoint: Option<String> {
                .of(Kind::Text("http://HOST:PORT or https://HOST:PORT")).or_nothing("off")
                .fixed()
            }

            /// How often metrics are sent.
            interval: Duration { .key("interval_s").seconds(1, 3600).or_number(60) .fixed() }

            /// Send the lines of the log too. They are still written to standard error.
            logs: bool { .of(Kind::Switch).or(Absent::Switch(false)) .fixed() }

            /// The resource attribute `service.name`.
            service_name: String { .of(Kind::Text("a name")).or(Absent::Text("onramp")) .fixed() }

            /// The resource attribute `service.instance.id`.
            service_instance_id: Option<String> {
                .of(Kind::Text("a name")).or_nothing("a random UUID for each process")
                .fixed()
            }

            /// The certificates of the authorities that are trusted with `https`, in PEM.
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
            /// The server, in the same form as `listen`. A name is [looked up
            /// again](unreachable-server.md#the-servers-name). The option `--backend` takes a DSN
            /// with the account: `mysql://USER@HOST[:PORT]`, or `?socket=/PATH` at its end, and the
            /// password as in [Passwords](passwords.md). A DSN names no schema, because each client
            /// names its own. Write `:@/?%&` inside a part as `%XX`. Put quotes around the DSN:
            /// shells interpret `?` and `&`.
            address: Place { .of(Kind::Text("an address")).needed(SERVER) .fixed() }

            /// TLS to the server, in the words of MySQL's `--ssl-mode`: `off`; `preferred` (where
            /// the server offers it); `required`; `verify_ca` (an authority in `tls_ca` has signed
            /// the server's certificate); `verify_identity` (and it names the server). Only the
            /// last two notice somebody who stands between. It holds for every connection that the
            /// pool opens. See [TLS to the server](tls.md#tls-to-the-server).
            tls: Option<BackendTlsMode> {
                .of(Kind::OneOf(&["off", "preferred", "required", "verify_ca", "verify_identity"]))
                .or_nothing("`preferred`; `off` over a Unix socket and a loopback address")
                .fixed()
            }

            /// The certificates of the authorities that are trusted, in PEM.
            tls_ca: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file"))
                .or_nothing("none; `verify_ca` and `verify_identity` need it")
                .fixed()
            }

            /// The certificate that the pool shows the server, in PEM, for accounts that require
            /// one (`REQUIRE X509`).
            tls_cert: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .fixed()
            }

            /// Its private key in PEM, not encrypted.
            tls_key: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .fixed()
            }

            /// The name or IP address that the server's certificate has to be valid for.
            tls_name: Option<String> {
                .of(Kind::Text("a host's name or an IP address"))
                .or_nothing("the host in `address`")
                .fixed()
            }

            /// The file with the server's public RSA key, in PEM. A server that asks for a password
            /// itself (`caching_sha2_password`) gets it encrypted by this key where the connection
            /// has no TLS. MySQL has it as `public_key.pem` in its data directory, and as the
            /// status `Caching_sha2_password_rsa_public_key`. Read at the start.
            server_public_key: Option<PathBuf> {
                .of(Kind::Text("the path of a PEM file")).or_nothing("none")
                .fixed()
            }

            /// Encrypt passwords by whatever key the server sends, without a check: whoever answers
            /// in its place reads them. Over a loopback address this is always done.
            get_server_public_key: bool { .of(Kind::Switch).or(Absent::Switch(false)) .fixed() }

            /// Tell the server clients' addresses, by a header of the PROXY protocol in front of
            /// each connection, of version 1 or 2. The server has to take it from the pool's
            /// address (`proxy_protocol_networks` of MariaDB and Percona Server). Clients of
            /// different addresses then share no backend. See
            /// [To the server](proxy-protocol.md#to-the-server).
            proxy_protocol: ProxyProtocol {
                .of(Kind::OneOf(&["off", "v1", "v2"])).or(Absent::Text("off"))
                .fixed()
            }
        }
        section "Stored code" {
            /// The account with which the pool reads stored code and watches the server.
            monitor_user: Option<String> {
                .of(Kind::Text("an account")).or_nothing("the first user's")
                .fixed()
            }

            /// Its password.
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
    /// A user as typed, without its [`Limits`].
    #[derive(Debug)]
    pub(crate) struct UserKeys, USER_ROWS {
        section "Users" {
            /// with which clients log in
            name: String { .of(Kind::Text("a name")).needed("name = \"...\"") }

            /// in clear; `""` for none. A list of two during a [rotation](passwords.md#rotation):
            /// both open the pool, and the first one the server
            password: UpToTwo<Secret> {
                .of(Kind::Passwords).or_nothing("needed, or one of the next three")
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
            /// `mysql_clear_password` (the password in clear text; needs `require = "ssl"`). See
            /// [logins](logins.md#cleartext-passwords)
            auth: Option<Method> {
                .of(Kind::OneOf(&[
                    "mysql_native_password", "caching_sha2_password", CLEAR_PASSWORD,
                ]))
                .or_nothing("either")
            }

            /// what its clients have to prove besides, as `REQUIRE` of an account: `none`, `ssl`
            /// (TLS) or `x509` (a certificate of `tls.client_ca`); else error 1045. See
            /// [TLS](tls.md#accounts-that-require-it)
            require: Require {
                .of(Kind::OneOf(&["none", "ssl", "x509"])).or(Absent::Text("none"))
            }

            /// the subject of its clients' certificate, on one line (`/C=SE/CN=app`)
            require_subject: Option<String> {
                .of(Kind::Text("a name on one line")).or_nothing("any")
            }

            /// the issuer of its clients' certificate, on one line
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
    /// What a user's clients may use, and where they stand; over all groups.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Limits, LIMIT_ROWS {
        section "Users" {
            /// clients of this user at once; then error 1203
            clients_max: Option<usize> { .number("clients", 1, MANY).or_nothing("no limit") }

            /// statements of this user that wait at once; then error 9503
            waiting_max: Option<usize> { .number("statements", 1, MANY).or_nothing("no limit") }

            /// bytes of commands of this user's clients that have not come whole or wait; a client
            /// over it gets error 1153 and is closed
            input_bytes_max: Option<usize> {
                .number("bytes", 1 << 16, MANY).or_nothing("no limit")
            }

            /// backends that [slow readers](slow-clients.md) of this user may hold while others
            /// wait
            slow_backends_max: Option<usize> {
                .number("backends", 0, MANY).or_nothing("no limit")
            }

            /// backends that its clients may use at once, for statements, transactions and pins;
            /// others wait. Each group has an even part, rounded down, at least one. See
            /// [Accounts that keep backends](slow-clients.md#accounts-that-keep-backends)
            used_backends_max: Option<usize> {
                .number("backends", 1, MANY).or_nothing("no limit")
            }

            /// the lane of its statements: `high`, `low` or `auto`
            priority: Priority {
                .of(Kind::OneOf(&["high", "low", "auto"])).or(Absent::Text("auto"))
            }

            /// Statements with high priority by themselves: transactions, statements or none.
            ///
            /// See [Priority](sizing.md#priority).
            high_prio_mode: Mode {
                .of(Kind::OneOf(&["transactions", "statements", "none"]))
                .or(Absent::Text("transactions")).option("MODE").for_all("Scheduling")
            }

            /// Times in a row that a client may use the high lane; then it goes once by the low
            /// lane. 0 is never.
            high_prio_tickets: u32 {
                .number("times", 0, u32::MAX as u64).or_number(u32::MAX as u64)
                .for_all("Scheduling")
            }

            /// A statement that runs for longer ends with error 3024. Its client's connection and
            /// its backend are closed. The server may run the statement on until it notices. Looked
            /// at once a second, like `transaction_ms_max`.
            statement_max: Option<Duration> {
                .key("statement_ms_max").milliseconds(1).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// A transaction that is open for longer is rolled back: its backend is closed, and its
            /// client's connection too.
            transaction_max: Option<Duration> {
                .key("transaction_ms_max").milliseconds(1).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// A client that keeps a backend (an open transaction, a pin) and has sent nothing for
            /// this long is closed with error 9508, and so is one that stops within a local file.
            /// Looked at once a second, like `transaction_ms_max`.
            kept_idle_max: Option<Duration> {
                .key("kept_idle_s_max").seconds(1, YEAR_S).or_nothing("no limit")
                .for_all("Limits on clients")
            }

            /// A client without a statement for this long is closed, also one with an open
            /// transaction. Without it, and where `wait_timeout` is shorter, the session's
            /// `wait_timeout` counts. See [Timeouts](timeouts.md).
            idle_max: Option<Duration> {
                .key("idle_s_max").seconds(1, YEAR_S).or_nothing("no limit")
                .for_all("Limits on clients")
            }
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
    SERVER_ROWS.iter()
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

impl FromValue for ProxyProtocol {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, ProxyProtocol::from_name)
    }
}

impl FromValue for BackendTlsMode {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, BackendTlsMode::from_name)
    }
}

/// What a user's clients have to prove, as typed.
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

/// Where HTTP is served.
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
        self.slow_statement.is_some() || self.statement_log != StatementLog::Off
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

/// Where the accounts stand, which decides what users there have to be.
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

impl FromValue for Priority {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, Priority::from_name)
    }
}

impl FromValue for Method {
    fn from_value(row: &Row, value: &Value) -> Result<Self, String> {
        named(row, value, Method::from_name)
    }
}
