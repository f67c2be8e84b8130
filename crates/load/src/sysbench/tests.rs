//! Lines as people type them, and what becomes of them.
use super::*;
use crate::manner::Dialect;
use load_core::workload::Workload;
use std::io::Write;
use wire::dsn::Dsn;

fn read(line: &str) -> Result<Line, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Line::read(&words)
}

fn load(line: &str) -> Result<LoadArgs, String> {
    translate::load_args(&read(line)?)
}

/// The two published lines, but for the host's name.
const OLD: &str = "--test=sysbench/tests/db/select.lua --mysql-host=127.0.0.1 \
    --mysql-user=sbtest --mysql-password=sb:t@st --oltp-tables-count=10 --report-interval=1 \
    --num-threads=10000 --max-time=300 --max-requests=0 --oltp-table-size=10000000 \
    --rand-type=uniform --rand-init=on run";
const NEW: &str = "/opt/share/oltp_read_write.lua --mysql-user=root --mysql-port=3306 \
    --mysql-socket=/home/mysql/s1/s1.sock --mysql-host=localhost --mysql-db=sysbenchtest \
    --tables=10 --table-size=5000000 --threads=200 --report-interval=5 --time=10 run";

#[test]
fn a_published_line_of_0_5_is_understood() {
    let args = load(OLD).unwrap();
    assert_eq!(
        (args.workload, args.command),
        (Workload::OldSelect, Action::Run)
    );
    assert_eq!(
        (args.connections, args.time.as_secs(), args.events),
        (10_000, 300, 0)
    );
    assert_eq!((args.tables, args.table_size), (10, 10_000_000));
    assert_eq!((args.report_interval, args.connect_rate), (1, 0));
    assert_eq!(args.target.place(), "127.0.0.1:3306");
    assert_eq!(
        (args.target.password.as_str(), args.target.schema.as_str()),
        ("sb:t@st", "sbtest")
    );
    assert_eq!(args.manner.dialect, Dialect::Old);
    assert!(args.manner.from_timer && args.manner.counts_by_text());
    assert!(args.tolerance.stop_on_error);
}

#[test]
fn a_published_line_of_1_0_is_understood() {
    let args = load(NEW).unwrap();
    assert_eq!(
        (args.workload, args.command),
        (Workload::ReadWrite, Action::Run)
    );
    assert_eq!(
        (args.connections, args.time.as_secs(), args.report_interval),
        (200, 10, 5)
    );
    assert_eq!((args.tables, args.table_size), (10, 5_000_000));
    assert_eq!(
        args.target.socket.as_deref(),
        Some("/home/mysql/s1/s1.sock")
    );
    assert_eq!(
        (args.target.user.as_str(), args.target.schema.as_str()),
        ("root", "sysbenchtest")
    );
    assert_eq!(args.manner.dialect, Dialect::New);
    assert!(args.manner.finishes_events() && !args.manner.counts_by_text());
    let text = format!("{:?} {:?}", args.rand, args.script);
    assert!(text.contains("Special") && text.contains("Auto"), "{text}");
}

#[test]
fn defaults_are_those_of_the_version() {
    let new = load("oltp_point_select run").unwrap();
    assert_eq!(
        (new.connections, new.events, new.time.as_secs()),
        (1, 0, 10)
    );
    assert_eq!(
        (new.tables, new.table_size, new.percentile),
        (1, 10_000, 95)
    );
    assert_eq!(new.target.user, "sbtest");
    assert_eq!(new.end_timeout, 86_400, "it waits for what is under way");
    let old = load("--test=oltp.lua run").unwrap();
    assert_eq!((old.events, old.time.as_secs()), (10_000, 0));
    assert_eq!(old.workload, Workload::OldOltp);
}

#[test]
fn names_may_be_written_either_way_and_switches_bare() {
    for line in [
        "oltp_read_write --table_size=5000 --skip_trx --range-selects=off run",
        "--skip-trx=1 oltp_read_write --range_selects=false run --table-size=5000",
    ] {
        let args = load(line).unwrap();
        assert_eq!(args.table_size, 5_000, "{line}");
        assert!(args.script.skip_trx && !args.script.range_selects, "{line}");
    }
    let old = load("--test=oltp --oltp_skip_trx=on --oltp-read-only --oltp-point-selects=3 run");
    let script = old.unwrap().script;
    assert!(script.skip_trx && script.oltp_read_only);
    assert_eq!(script.point_selects, 3);
}

#[test]
fn the_version_follows_from_the_script() {
    for (line, dialect, workload) in [
        ("--test=oltp run", Dialect::Old, Workload::OldOltp),
        (
            "--test=tests/db/oltp_simple.lua run",
            Dialect::Old,
            Workload::OldSimple,
        ),
        (
            "--test=oltp_point_select run",
            Dialect::New,
            Workload::PointSelect,
        ),
        ("bulk_insert run", Dialect::New, Workload::BulkInsert),
        ("--test=bulk_insert run", Dialect::Old, Workload::BulkInsert),
    ] {
        let args = load(line).unwrap();
        assert_eq!(
            (args.manner.dialect, args.workload),
            (dialect, workload),
            "{line}"
        );
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (line, expected) in [
        ("oltp_read_write --foo-bar=1 run", "--foo-bar"),
        (
            "oltp_read_write --threads=abc run",
            "'abc' is not a whole number",
        ),
        ("oltp_read_write --threads=0 run", "0"),
        ("oltp_read_write --threads=4000000000 run", "32 bits"),
        ("oltp_read_write --threads run", "--threads=..."),
        ("oltp_read_write --skip-trx=maybe run", "on or off"),
        ("oltp_read_write --thread-stack-size=64X run", "64K"),
        ("oltp_read_write", "a command is required"),
        ("oltp_read_write bogus", "'bogus'"),
        ("oltp_read_write run more", "'more'"),
        ("oltp_nonsense run", "oltp_nonsense"),
        ("", "no script"),
        ("oltp_read_write --rand-type=foo run", "foo"),
        ("oltp_read_write --db-ps-mode=foo run", "foo"),
        ("oltp_read_write --db-driver=pgsql run", "pgsql"),
        ("oltp_read_write --mysql-ssl=verify run", "VERIFY_CA"),
        (
            "oltp_read_write --mysql-ssl=required --mysql-ssl-cert=/c run",
            "name both",
        ),
        ("oltp_read_write --percentile=101 run", "101"),
        (
            "oltp_read_write --mysql-port=99999 --mysql-host=h run",
            "99999",
        ),
        (
            "oltp_read_write --config-file=/nowhere/at/all run",
            "/nowhere/at/all",
        ),
        ("oltp_read_write --forced-shutdown=x run", "'x'"),
        ("oltp_read_write --report-checkpoints=5,x run", "'x'"),
        (
            "oltp_read_write --histogram --percentile=0 run",
            "--percentile=0",
        ),
    ] {
        let error = load(line).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
        assert!(!error.contains('\n'), "{line}: {error}");
    }
}

#[test]
fn old_names_are_noted_and_unknown_options_of_0_5_left_out() {
    let new = read("oltp_read_write --num-threads=4 run").unwrap();
    assert_eq!(new.value("threads"), "4");
    assert!(new.notes[0].contains("--threads"), "{:?}", new.notes);
    let old = read("--test=oltp --num-threads=4 --oltp-my-own=7 run").unwrap();
    assert_eq!(old.notes.len(), 1);
    assert!(old.notes[0].contains("--oltp-my-own"), "{:?}", old.notes);
}

#[test]
fn targets_are_dealt_port_by_port_then_host_by_host() {
    let args = load("select_random_points --mysql-host=a,b --mysql-port=1,2 run").unwrap();
    let mut places = vec![args.target.place()];
    places.extend(args.manner.more_targets.iter().map(Dsn::place));
    assert_eq!(places, ["a:1", "a:2", "b:1", "b:2"]);
    let args = load("bulk_insert --mysql-socket=/x,/y --mysql-host=a run").unwrap();
    assert_eq!(args.manner.more_targets[0].place(), "/y");
}

#[test]
fn the_end_by_force_is_a_number_a_share_or_a_twentieth() {
    for (option, expected) in [
        ("--forced-shutdown", Some(5)),
        ("--forced-shutdown=30%", Some(30)),
        ("--forced-shutdown=7", Some(7)),
        ("--forced-shutdown=off", None),
    ] {
        let args = load(&format!("oltp_insert --time=100 {option} run")).unwrap();
        assert_eq!(args.manner.forced, expected.is_some(), "{option}");
        assert_eq!(args.end_timeout, expected.unwrap_or(86_400), "{option}");
    }
}

#[test]
fn a_configuration_file_stands_in_its_place() {
    let path = std::env::temp_dir().join(format!("onramp-sysbench-{}.cfg", std::process::id()));
    let mut file = std::fs::File::create(&path).unwrap();
    writeln!(
        file,
        "# a comment\nthreads=7\n\n tables = 3 # more\nskip_trx"
    )
    .unwrap();
    let name = path.to_str().unwrap();
    let line = format!("--tables=2 --config-file={name} --threads=9 oltp_read_write run");
    let args = load(&line);
    std::fs::remove_file(&path).unwrap();
    let args = args.unwrap();
    assert_eq!(
        (args.connections, args.tables, args.script.skip_trx),
        (9, 3, true)
    );
}

#[test]
fn help_and_version_are_answers() {
    let version = help::answer(&read("--version").unwrap());
    assert_eq!(version.as_deref(), Some("sysbench 1.0.20\n"));
    let general = help::answer(&read("--help").unwrap()).unwrap();
    assert!(general.contains("--mysql-ignore-errors=LIST") && general.contains("oltp_delete"));
    let script = help::answer(&read("oltp_read_write help").unwrap()).unwrap();
    assert!(
        script.contains("--table-size=N") && script.contains("[10000]"),
        "{script}"
    );
    let old = help::answer(&read("--test=oltp.lua help").unwrap()).unwrap();
    assert!(old.contains("--oltp-table-size=N"), "{old}");
    assert_eq!(help::answer(&read("oltp_read_write run").unwrap()), None);
}
