//! The questions' readers on the rows of real servers.
//!
//! The problem: a column that is called or written otherwise than the manual says is found by no
//! made-up row. The mechanism: the answers of MariaDB 10.11, Galera 4 and MySQL 9.7 to exactly
//! these texts, as `mariadb --batch` prints them, recorded from `scripts/cluster.sh`; Aurora's and
//! RDS' are written by their manuals.

use cluster::questions::{Rows, report, texts};
use cluster::*;

/// Answers, each with a line of columns and one for each row, and an empty line behind it.
fn answers(recorded: &str) -> Vec<Rows> {
    let value = |it: &str| (it != "NULL").then(|| it.as_bytes().to_vec());
    let answer = |text: &str| {
        let mut lines = text.lines().map(|line| line.split('\t'));
        Rows {
            columns: lines
                .next()
                .into_iter()
                .flatten()
                .map(str::to_owned)
                .collect(),
            rows: lines.map(|line| line.map(value).collect()).collect(),
        }
    };
    // A text without rows has no columns either: two empty lines.
    recorded
        .split("\n\n")
        .map(|text| answer(text.trim_start_matches('\n')))
        .collect()
}

fn read(kind: Kind, recorded: &str) -> Report {
    report(kind, &answers(recorded)).expect("the rows are read")
}

#[test]
fn mariadb_tells_its_replication() {
    let writer = read(Kind::Replication, include_str!("rows/mariadb-writer.txt"));
    assert!(!writer.read_only && writer.sources.is_empty());
    assert!(writer.version.starts_with("10.11.19-MariaDB"));
    assert_eq!((writer.server_id, writer.gtid.as_str()), (1, "0-1-7"));
    let replica = read(Kind::Replication, include_str!("rows/mariadb-replica.txt"));
    let source = &replica.sources[0];
    assert!(replica.read_only && source.applier && source.error.is_empty());
    assert_eq!(
        (source.receiver, source.lag_ms),
        (Receiver::Connected, Some(0))
    );
    assert_eq!((source.host.as_str(), source.server_id), ("127.0.0.1", 1));
    let alone = read(Kind::Replication, include_str!("rows/mariadb-alone.txt"));
    let source = &alone.sources[0];
    assert_eq!(
        (source.receiver, source.lag_ms),
        (Receiver::Connecting, None)
    );
    assert!(source.error.contains("127.0.0.1"), "{}", source.error);
}

#[test]
fn mysql_tells_its_replication() {
    let writer = read(Kind::Replication, include_str!("rows/mysql-writer.txt"));
    assert!(!writer.read_only && !writer.super_read_only && writer.sources.is_empty());
    let replica = read(Kind::Replication, include_str!("rows/mysql-replica.txt"));
    let source = &replica.sources[0];
    assert!(replica.super_read_only && source.applier);
    assert_eq!(
        (source.receiver, source.lag_ms),
        (Receiver::Connected, Some(1_000))
    );
    assert_eq!(
        (source.server_uuid.as_str(), source.server_id),
        (writer.server_uuid.as_str(), 1)
    );
    let alone = read(Kind::Replication, include_str!("rows/mysql-alone.txt"));
    assert_eq!(alone.sources[0].receiver, Receiver::Connecting);
    assert_eq!(alone.sources[0].lag_ms, None);
    // Before 8.0.22 the columns have their old names.
    let old = include_str!("rows/mysql-replica.txt").replace("Replica_", "Slave_");
    let old = old
        .replace("Source_", "Master_")
        .replace("Behind_Source", "Behind_Master");
    assert_eq!(read(Kind::Replication, &old).sources, replica.sources);
}

#[test]
fn galera_tells_its_state() {
    let node = |text| read(Kind::Galera, text).galera.expect("it is a node");
    let inside = node(include_str!("rows/galera.txt"));
    assert!(inside.primary && inside.ready && !inside.desync && !inside.rejects);
    assert_eq!((inside.state, inside.size, inside.local_index), (4, 3, 0));
    assert_eq!(inside.members.len(), 3);
    // The cluster of the script copies by rsync, which blocks its donor.
    assert!(inside.donor_rejects);
    let outside = node(include_str!("rows/galera-out.txt"));
    assert!(!outside.primary && !outside.ready);
    assert_eq!(
        (outside.state, outside.state_text.as_str()),
        (0, "Initialized")
    );
    assert_eq!(outside.cluster, inside.cluster);
}

#[test]
fn a_group_tells_its_members() {
    let members = |text| {
        let report = read(Kind::GroupReplication, text);
        let group = report.group.expect("it has a list");
        let states = group
            .members
            .iter()
            .map(|it| (it.state.clone(), it.primary));
        (report.read_only, states.collect::<Vec<_>>())
    };
    let online = |primary| ("ONLINE".to_owned(), primary);
    let (read_only, states) = members(include_str!("rows/group-primary.txt"));
    assert!(!read_only);
    assert_eq!(states, [online(true), online(false), online(false)]);
    assert!(members(include_str!("rows/group-secondary.txt")).0);
    let (_, states) = members(include_str!("rows/group-minority.txt"));
    let gone = |primary| ("UNREACHABLE".to_owned(), primary);
    assert_eq!(states, [gone(true), gone(false), online(false)]);
}

const FIRST: &str = "version\tserver_id\tserver_uuid\tread_only\tsuper_read_only\t\
    innodb_read_only\toffline_mode\tgtid\taurora_server_id\n\
    8.0.39\t7\tu\t0\t0\t1\t0\t\treader-1\n\n";

#[test]
fn aurora_tells_its_instances() {
    let hosts = "SERVER_ID\tWRITER\tLAG_MS\tAGE\nwriter-1\t1\tNULL\t412\nreader-1\t0\t18\t950\n";
    let report = read(Kind::Aurora, &format!("{FIRST}{hosts}"));
    assert!(report.innodb_read_only);
    assert_eq!(report.aurora_id, "reader-1");
    let writer = AuroraRow {
        id: "writer-1".into(),
        writer: true,
        lag_ms: 0,
        age_ms: 412,
    };
    assert_eq!(report.aurora[0], writer);
    assert_eq!(report.aurora[1].lag_ms, 18);
}

#[test]
fn rds_tells_a_deployment() {
    let topology = "id\tendpoint\tport\trole\tstatus\tversion\n\
        1\tblue\t3306\tBLUE_GREEN_DEPLOYMENT_SOURCE\tSWITCHOVER_IN_PROGRESS\t1.0\n\
        2\tgreen\t3306\tBLUE_GREEN_DEPLOYMENT_TARGET\tSWITCHOVER_IN_PROGRESS\t1.0\n";
    let report = read(Kind::Rds, &format!("{FIRST}\n\n{topology}"));
    let row = |address: &str, target| TopologyRow {
        address: address.into(),
        target,
        status: "SWITCHOVER_IN_PROGRESS".into(),
    };
    assert_eq!(
        report.topology,
        [row("blue:3306", false), row("green:3306", true)]
    );
    // A cluster in several zones has neither roles nor states.
    let zones = "id\tendpoint\tport\nx\tone\t3306\n";
    assert_eq!(
        read(Kind::Rds, &format!("{FIRST}\n\n{zones}")).topology[0].status,
        ""
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let why = |kind, recorded: &str| match report(kind, &answers(recorded)) {
        Err(Failure::Broken(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(Kind::Replication, ""), "the first answer has no row");
    assert_eq!(
        why(Kind::Replication, &FIRST.replace("read_only", "x")),
        "column read_only is missing"
    );
    let no_number = FIRST.replace("\t7\t", "\tseven\t");
    assert_eq!(
        why(Kind::Replication, &no_number),
        "column server_id is 'seven', which is no number"
    );
    assert!(why(Kind::Galera, FIRST).contains("there is no wsrep_sst_method"));
    let port = include_str!("rows/mysql-replica.txt").replace("\t1\tlog.000001", "\t1\tx");
    let port = port.replacen("127.0.0.1\trepl\t", "127.0.0.1\trepl\t9", 1);
    assert!(why(Kind::Replication, &port).contains("which cannot be read"));
}

#[test]
fn texts_follow_kind_and_version() {
    let has =
        |kind, version, text: &str| texts(kind, version).iter().any(|it| it.starts_with(text));
    assert!(has(
        Kind::Replication,
        "5.5.5-10.11.19-MariaDB",
        "SHOW ALL SLAVES"
    ));
    assert!(has(Kind::Replication, "9.7.4", "SHOW REPLICA"));
    assert!(has(Kind::Replication, "8.0.22", "SHOW REPLICA"));
    assert!(has(Kind::Replication, "8.0.15", "SHOW SLAVE"));
    assert!(!has(
        Kind::Rds,
        "10.11.6-MariaDB",
        "SELECT * FROM mysql.rds"
    ));
    for kind in [
        Kind::Galera,
        Kind::GroupReplication,
        Kind::Aurora,
        Kind::Rds,
    ] {
        assert!(texts(kind, "8.0.36").len() >= 2);
    }
}

#[test]
fn replicas_are_named_by_their_report_host() {
    let rows = |text: &str| {
        let mut lines = text.lines().map(|line| line.split('\t'));
        Rows {
            columns: lines.next().unwrap().map(str::to_owned).collect(),
            rows: lines
                .map(|line| line.map(|it| Some(it.as_bytes().to_vec())).collect())
                .collect(),
        }
    };
    let mysql =
        "Server_Id\tHost\tPort\tSource_Id\tReplica_UUID\n2\tdb2\t3306\t1\tu\n3\t\t3306\t1\tv";
    assert_eq!(questions::replicas(&rows(mysql)).unwrap(), ["db2:3306"]);
    let mariadb = "Server_id\tHost\tPort\tMaster_id\n2\t2001:db8::1\t3306\t1";
    let expected = ["[2001:db8::1]:3306"];
    assert_eq!(questions::replicas(&rows(mariadb)).unwrap(), expected);
    let why = questions::replicas(&rows("Server_id\tPort\n2\t3306")).unwrap_err();
    assert_eq!(why, "column Host is missing");
    let many = format!("Host\tPort{}", "\nx\t1".repeat(1000));
    assert_eq!(
        questions::replicas(&rows(&many)).unwrap().len(),
        SERVERS_MAX
    );
}
