//! Texts that the monitor sends, and the reading of their answers.
//!
//! The problem: each kind of cluster and each product says in other words and columns who it is.
//! The mechanism: a list of texts for each, and a reader that takes columns by name; one that is
//! missing or unreadable is a failure that names it. Who may ask is left to the server: its error
//! is the caller's [`Failure::Broken`].

use crate::report::{
    AuroraRow, Failure, Galera, GroupMember, GroupReplication, Receiver, Report, Source,
    TopologyRow,
};
use crate::settings::{Kind, SERVERS_MAX};

/// Answer to one text: its columns and rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values of each row in the text protocol; `None` is NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

const MARIADB: &str = "SELECT @@version AS version, @@server_id AS server_id, '' AS server_uuid, \
    @@global.read_only AS read_only, 0 AS super_read_only, \
    @@global.innodb_read_only AS innodb_read_only, 0 AS offline_mode, \
    @@global.gtid_current_pos AS gtid";
const MYSQL: &str = "SELECT @@version AS version, @@server_id AS server_id, \
    @@server_uuid AS server_uuid, @@global.read_only AS read_only, \
    @@global.super_read_only AS super_read_only, \
    @@global.innodb_read_only AS innodb_read_only, @@global.offline_mode AS offline_mode, \
    @@global.gtid_executed AS gtid";
const AURORA: &str = "SELECT @@version AS version, @@server_id AS server_id, \
    @@server_uuid AS server_uuid, @@global.read_only AS read_only, 0 AS super_read_only, \
    @@global.innodb_read_only AS innodb_read_only, @@global.offline_mode AS offline_mode, \
    @@global.gtid_executed AS gtid, @@aurora_server_id AS aurora_server_id";
/// MariaDB's list has the channels of all connections, also without a default one.
const ALL_SLAVES: &str = "SHOW ALL SLAVES STATUS";
const SLAVE: &str = "SHOW SLAVE STATUS";
const REPLICA: &str = "SHOW REPLICA STATUS";
/// A node that is out of its component refuses every SELECT with error 1047, but not these.
const WSREP_STATUS: &str = "SHOW GLOBAL STATUS LIKE 'wsrep\\_%'";
const WSREP_VARIABLES: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', \
    'server_id', 'server_uuid', 'read_only', 'super_read_only', 'innodb_read_only', \
    'offline_mode', 'wsrep_desync', 'wsrep_reject_queries', 'wsrep_sst_donor_rejects_queries', \
    'wsrep_sst_method', 'pxc_maint_mode')";
const MEMBERS: &str = "SELECT MEMBER_ID, MEMBER_HOST, MEMBER_PORT, MEMBER_STATE, MEMBER_ROLE, \
    COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE AS QUEUE, VIEW_ID \
    FROM performance_schema.replication_group_members \
    LEFT JOIN performance_schema.replication_group_member_stats USING (MEMBER_ID)";
/// Aurora keeps rows of instances that are gone.
const HOSTS: &str = "SELECT SERVER_ID, SESSION_ID = 'MASTER_SESSION_ID' AS WRITER, \
    ROUND(REPLICA_LAG_IN_MILLISECONDS) AS LAG_MS, \
    TIMESTAMPDIFF(MICROSECOND, LAST_UPDATE_TIMESTAMP, NOW(6)) DIV 1000 AS AGE \
    FROM information_schema.replica_host_status \
    WHERE LAST_UPDATE_TIMESTAMP > NOW() - INTERVAL 3 MINUTE";
/// Query of the table that a cluster of three in several zones has, without role and status.
const TOPOLOGY: &str = "SELECT * FROM mysql.rds_topology";

/// The first MySQL that speaks of replicas.
const SPEAKS_OF_REPLICAS: (u32, u32, u32) = (8, 0, 22);
/// Methods by which a donor blocks writes while it gives.
const BLOCKING_METHODS: [&str; 2] = ["rsync", "mysqldump"];

fn is_mariadb(greeting_version: &str) -> bool {
    greeting_version.to_ascii_lowercase().contains("mariadb")
}

/// Major, minor and patch; 0 where the text has none.
fn version_of(greeting_version: &str) -> (u32, u32, u32) {
    let mut numbers = greeting_version
        .split(|it: char| !it.is_ascii_digit())
        .map(|it| it.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    (next(), next(), next())
}

/// Texts to send, one after the other, to a server whose greeting has this version.
pub fn texts(kind: Kind, greeting_version: &str) -> &'static [&'static str] {
    let mariadb = is_mariadb(greeting_version);
    let old = version_of(greeting_version) < SPEAKS_OF_REPLICAS;
    match kind {
        Kind::Replication if mariadb => &[MARIADB, ALL_SLAVES],
        Kind::Replication if old => &[MYSQL, SLAVE],
        Kind::Replication => &[MYSQL, REPLICA],
        Kind::Galera => &[WSREP_VARIABLES, WSREP_STATUS],
        Kind::GroupReplication => &[MYSQL, MEMBERS],
        Kind::Aurora => &[AURORA, HOSTS],
        Kind::Rds if mariadb => &[MARIADB, ALL_SLAVES],
        Kind::Rds if old => &[MYSQL, SLAVE, TOPOLOGY],
        Kind::Rds => &[MYSQL, REPLICA, TOPOLOGY],
    }
}

/// Text by which a server names those that replicate from it, with their `report_host`.
pub fn replicas_text(kind: Kind, greeting_version: &str) -> Option<&'static str> {
    let is_old = version_of(greeting_version) < SPEAKS_OF_REPLICAS;
    match kind {
        Kind::Replication | Kind::Rds if is_mariadb(greeting_version) || is_old => {
            Some("SHOW SLAVE HOSTS")
        }
        Kind::Replication | Kind::Rds => Some("SHOW REPLICAS"),
        Kind::Galera | Kind::GroupReplication | Kind::Aurora => None,
    }
}

/// Addresses in the answer to [`replicas_text`]. One without `report_host` has none.
///
/// # Errors
/// The column that is missing.
pub fn replicas(answer: &Rows) -> Result<Vec<String>, String> {
    let read = |row: &Row<'_>| Ok((row.text("Host")?, row.text("Port")?));
    let all: Vec<(String, String)> = list(answer, read)?;
    let named = all.iter().filter(|(host, _)| !host.is_empty());
    Ok(named.map(|(host, port)| address(host, port)).collect())
}

fn address(host: &str, port: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Reads the answers to [`texts`], in their order.
///
/// # Errors
/// The column that is missing or cannot be read, with its value.
pub fn report(kind: Kind, answers: &[Rows]) -> Result<Report, Failure> {
    read(kind, answers).map_err(Failure::Broken)
}

fn read(kind: Kind, answers: &[Rows]) -> Result<Report, String> {
    let answer = |place: usize| {
        answers
            .get(place)
            .ok_or(format!("answer {} is missing", place + 1))
    };
    let first = answer(0)?;
    if kind == Kind::Galera {
        return read_galera(&Named(first), &Named(answer(1)?));
    }
    let row = first.iter().next().ok_or("the first answer has no row")?;
    let mut report = Report {
        version: row.text("version")?,
        server_id: row.number("server_id")?,
        server_uuid: row.text("server_uuid")?,
        read_only: row.is_on("read_only")?,
        super_read_only: row.is_on("super_read_only")?,
        innodb_read_only: row.is_on("innodb_read_only")?,
        offline: row.is_on("offline_mode")?,
        gtid: row.text("gtid")?.replace('\n', ""),
        ..Report::default()
    };
    match kind {
        Kind::Replication => report.sources = list(answer(1)?, source)?,
        Kind::GroupReplication => {
            let members = list(answer(1)?, member)?;
            let views = answer(1)?.iter().map(|row| row.text("VIEW_ID"));
            let view = views.collect::<Result<Vec<_>, _>>()?;
            let view = view.into_iter().max_by_key(String::len).unwrap_or_default();
            report.group = Some(GroupReplication { view, members });
        }
        Kind::Aurora => {
            report.aurora_id = row.text("aurora_server_id")?;
            report.aurora = list(answer(1)?, aurora_row)?;
        }
        Kind::Rds => {
            report.sources = list(answer(1)?, source)?;
            if let Some(topology) = answers.get(2) {
                report.topology = list(topology, topology_row)?;
            }
        }
        Kind::Galera => {}
    }
    Ok(report)
}

fn list<T>(rows: &Rows, read: fn(&Row<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
    rows.iter()
        .take(SERVERS_MAX)
        .map(|row| read(&row))
        .collect()
}

/// One source, in the words of whichever product.
fn source(row: &Row<'_>) -> Result<Source, String> {
    let number = |names| {
        row.first(names)?
            .parse()
            .map_err(|_| unreadable(names, row))
    };
    let receiver = match row
        .first(&["Slave_IO_Running", "Replica_IO_Running"])?
        .as_str()
    {
        "Yes" => Receiver::Connected,
        "No" => Receiver::Stopped,
        _ => Receiver::Connecting,
    };
    let lag = row.first(&["Seconds_Behind_Master", "Seconds_Behind_Source"])?;
    let errors = [row.text("Last_IO_Error")?, row.text("Last_SQL_Error")?];
    Ok(Source {
        channel: row.first(&["Connection_name", "Channel_Name"])?,
        host: row.first(&["Master_Host", "Source_Host"])?,
        port: u16::try_from(number(&["Master_Port", "Source_Port"])?)
            .map_err(|_| unreadable(&["Master_Port"], row))?,
        server_id: number(&["Master_Server_Id", "Source_Server_Id"])?,
        server_uuid: row
            .first(&["Master_UUID", "Source_UUID"])
            .unwrap_or_default(),
        receiver,
        applier: row.first(&["Slave_SQL_Running", "Replica_SQL_Running"])? == "Yes",
        lag_ms: lag
            .parse::<u64>()
            .ok()
            .map(|seconds| seconds.saturating_mul(1_000)),
        error: errors
            .into_iter()
            .find(|it| !it.is_empty())
            .unwrap_or_default(),
    })
}

fn unreadable(names: &[&str], row: &Row<'_>) -> String {
    let value = row.first(names).unwrap_or_default();
    format!("column {} is '{value}', which cannot be read", names[0])
}

fn member(row: &Row<'_>) -> Result<GroupMember, String> {
    Ok(GroupMember {
        id: row.text("MEMBER_ID")?,
        address: address(&row.text("MEMBER_HOST")?, &row.text("MEMBER_PORT")?),
        state: row.text("MEMBER_STATE")?,
        primary: row.text("MEMBER_ROLE")? == "PRIMARY",
        // A member that is not heard has no statistics.
        queue: row
            .number("QUEUE")
            .or_else(|why| row.if_null("QUEUE", 0, why))?,
    })
}

fn aurora_row(row: &Row<'_>) -> Result<AuroraRow, String> {
    Ok(AuroraRow {
        id: row.text("SERVER_ID")?,
        writer: row.is_on("WRITER")?,
        lag_ms: row
            .number("LAG_MS")
            .or_else(|why| row.if_null("LAG_MS", 0, why))?,
        // The server's clock may have been set back.
        age_ms: row.number("AGE").unwrap_or(0),
    })
}

fn topology_row(row: &Row<'_>) -> Result<TopologyRow, String> {
    Ok(TopologyRow {
        address: address(&row.text("endpoint")?, &row.text("port")?),
        target: row.text("role").is_ok_and(|role| role.ends_with("_TARGET")),
        status: row.text("status").unwrap_or_default(),
    })
}

fn read_galera(variables: &Named<'_>, status: &Named<'_>) -> Result<Report, String> {
    let method = variables.text("wsrep_sst_method")?;
    let rejects_as_donor = variables
        .text("wsrep_sst_donor_rejects_queries")
        .unwrap_or_default();
    let members = status.text("wsrep_incoming_addresses")?;
    let members = members
        .split(',')
        .map(str::trim)
        .filter(|it| it.contains(':'));
    let maintained = variables
        .text("pxc_maint_mode")
        .is_ok_and(|mode| mode != "DISABLED");
    let node = Galera {
        state: status.number("wsrep_local_state")?,
        state_text: status.text("wsrep_local_state_comment")?,
        primary: status.text("wsrep_cluster_status")? == "Primary",
        size: status.number("wsrep_cluster_size")?,
        cluster: status.text("wsrep_cluster_state_uuid")?,
        // A node that is out of its component has the greatest number there is, and in some
        // versions more than that.
        local_index: status.number("wsrep_local_index").unwrap_or(u64::MAX),
        ready: is_on(&status.text("wsrep_ready")?),
        desync: is_on(&variables.text("wsrep_desync")?),
        queue: status.number("wsrep_local_recv_queue")?,
        rejects: maintained || variables.text("wsrep_reject_queries")? != "NONE",
        donor_rejects: is_on(&rejects_as_donor) || BLOCKING_METHODS.contains(&method.as_str()),
        node: status.text("wsrep_gcomm_uuid").unwrap_or_default(),
        members: members.take(SERVERS_MAX).map(str::to_owned).collect(),
    };
    let flag = |name| variables.text(name).is_ok_and(|value| is_on(&value));
    Ok(Report {
        version: variables.text("version")?,
        server_id: variables.number("server_id")?,
        server_uuid: variables.text("server_uuid").unwrap_or_default(),
        read_only: is_on(&variables.text("read_only")?),
        super_read_only: flag("super_read_only"),
        innodb_read_only: flag("innodb_read_only"),
        offline: flag("offline_mode"),
        gtid: status.text("wsrep_last_committed").unwrap_or_default(),
        galera: Some(node),
        ..Report::default()
    })
}

/// True unless 0 or OFF; MariaDB 12 has grades of `read_only` that are none of these.
fn is_on(value: &str) -> bool {
    !["0", "OFF", ""].contains(&value)
}

/// Answer to SHOW STATUS or SHOW VARIABLES: a name and a value in each row.
struct Named<'a>(&'a Rows);

impl Named<'_> {
    fn text(&self, name: &str) -> Result<String, String> {
        let value = |row: &Vec<Option<Vec<u8>>>| match row.as_slice() {
            [Some(key), value] if key.eq_ignore_ascii_case(name.as_bytes()) => Some(words(value)),
            _ => None,
        };
        let mut rows = self.0.rows.iter();
        rows.find_map(value)
            .ok_or_else(|| format!("there is no {name}: is this server of the kind?"))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        let value = self.text(name)?;
        value
            .parse()
            .map_err(|_| format!("{name} is '{value}', which is no number"))
    }
}

fn words(value: &Option<Vec<u8>>) -> String {
    value
        .as_ref()
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .unwrap_or_default()
}

impl Rows {
    fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|values| Row {
            columns: &self.columns,
            values,
        })
    }
}

/// One row, read by the names of its columns.
struct Row<'a> {
    columns: &'a [String],
    values: &'a [Option<Vec<u8>>],
}

impl Row<'_> {
    fn value(&self, name: &str) -> Option<&Option<Vec<u8>>> {
        let place = self
            .columns
            .iter()
            .position(|it| it.eq_ignore_ascii_case(name))?;
        self.values.get(place)
    }

    /// A column's text; NULL is empty.
    fn text(&self, name: &str) -> Result<String, String> {
        self.value(name)
            .map(words)
            .ok_or_else(|| format!("column {name} is missing"))
    }

    /// The first of several names that there is.
    fn first(&self, names: &[&str]) -> Result<String, String> {
        let found = names.iter().find_map(|name| self.value(name));
        found
            .map(words)
            .ok_or_else(|| format!("column {} is missing", names[0]))
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        let value = self.text(name)?;
        value
            .parse()
            .map_err(|_| format!("column {name} is '{value}', which is no number"))
    }

    fn if_null(&self, name: &str, value: u64, why: String) -> Result<u64, String> {
        match self.value(name) {
            Some(None) => Ok(value),
            _ => Err(why),
        }
    }

    fn is_on(&self, name: &str) -> Result<bool, String> {
        self.text(name).map(|value| is_on(&value))
    }
}
