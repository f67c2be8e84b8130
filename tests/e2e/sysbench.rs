//! `onramp sysbench` beside the real sysbench, on one server: the same statements in the server's
//! general log, the same counts in the report, rows drawn alike, the same report to the letter.
//!
//! Where sysbench is not installed these tests skip; what it is known to print is tested in the
//! crate.

use crate::world::*;
use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};

/// A server, and the options in front of those of the workload.
pub(crate) struct Stage {
    pub(crate) real: Real,
    options: Vec<String>,
}

impl Stage {
    /// A server with three tables of a thousand rows, made by the real sysbench.
    pub(crate) fn new(test: &str) -> Option<Stage> {
        if Command::new("sysbench").arg("--version").output().is_err() {
            skipped(test, "sysbench is not installed");
            return None;
        }
        let log = format!("--general-log-file={}-general.log", std::process::id());
        let real = found(Real::start(&[&log]), test)?;
        real.create_user("sb", "sb");
        real.execute(&["CREATE DATABASE sbtest"]);
        let account = "--mysql-host=127.0.0.1 --mysql-user=sb --mysql-password=sb";
        let options = format!("{account} --mysql-port={}", real.port());
        let options = options.split(' ').map(str::to_owned).collect();
        let stage = Stage { real, options };
        let sizes = ["--tables=3", "--table-size=1000"];
        let made = stage.sysbench("oltp_read_write", &sizes, "prepare");
        assert!(made.status.success(), "{made:?}");
        Some(stage)
    }

    fn run(&self, program: &mut Command, script: &str, more: &[&str], command: &str) -> Output {
        program.arg(script).args(&self.options).args(more);
        let command = Some(command).filter(|command| !command.is_empty());
        program.args(command).output().unwrap()
    }

    pub(crate) fn sysbench(&self, script: &str, more: &[&str], command: &str) -> Output {
        self.run(&mut Command::new("sysbench"), script, more, command)
    }

    pub(crate) fn onramp(&self, script: &str, more: &[&str], command: &str) -> Output {
        let mut program = Command::new(binary());
        self.run(program.arg("sysbench"), script, more, command)
    }

    /// Runs the real sysbench, or `onramp sysbench`.
    pub(crate) fn by(&self, real: bool, script: &str, more: &[&str], command: &str) -> Output {
        match real {
            true => self.sysbench(script, more, command),
            false => self.onramp(script, more, command),
        }
    }

    /// The program, running, with its output in pipes.
    pub(crate) fn spawn(&self, script: &str, more: &[&str], command: &str) -> Child {
        let mut program = Command::new(binary());
        program.arg("sysbench").arg(script).args(&self.options);
        program.args(more).arg(command);
        let piped = program.stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().unwrap()
    }

    /// Statements that `work` has the server run, statement by statement, with how each was sent.
    pub(crate) fn logged(&self, work: impl FnOnce()) -> Vec<(String, String)> {
        let log = self.real.folder().join("data");
        let log = log.join(format!("{}-general.log", std::process::id()));
        self.real.execute(&["SET GLOBAL general_log = 1"]);
        work();
        self.real.execute(&["SET GLOBAL general_log = 0"]);
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&log, "").unwrap();
        entries(&text)
    }
}

/// The statements of a general log: `Query` or `Execute`, and the text.
fn entries(log: &str) -> Vec<(String, String)> {
    let mut entries: Vec<(String, String)> = Vec::new();
    for line in log.lines() {
        // TIME? \t THREAD KIND \t TEXT; a text may go on in further lines.
        let parts: Vec<&str> = line.splitn(4, '\t').collect();
        let kind = parts.iter().position(|part| {
            let words: Vec<&str> = part.split_whitespace().collect();
            let is_kind = |word: &str| word.starts_with(|c: char| c.is_ascii_alphabetic());
            words.len() >= 2 && words[0].parse::<u64>().is_ok() && is_kind(words[1])
        });
        match kind {
            Some(at) => {
                let kind = parts[at].split_whitespace().nth(1).unwrap().to_owned();
                entries.push((kind, parts[at + 1..].join("\t")));
            }
            _ => {
                if let Some((_, text)) = entries.last_mut() {
                    text.push('\n');
                    text.push_str(line);
                }
            }
        }
    }
    entries.retain(|(kind, text)| {
        ["Query", "Execute"].contains(&kind.as_str()) && !text.starts_with("SET GLOBAL")
    });
    entries
}

/// The text with `#` for every number, and one blank for several.
fn skeleton(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut out = String::new();
    for c in words.join(" ").chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if c != '#' || !out.ends_with('#') {
            out.push(c);
        }
    }
    out
}

/// The number behind a label of the report.
pub(crate) fn count(report: &str, label: &str) -> u64 {
    let line = report
        .lines()
        .find(|line| line.trim_start().starts_with(label));
    let line = line.unwrap_or_else(|| panic!("no {label} in {report}"));
    let (_, rest) = line.split_once(':').unwrap();
    rest.split_whitespace().next().unwrap().parse().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const SCRIPTS: [&str; 10] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_insert",
    "oltp_update_index",
    "oltp_update_non_index",
    "select_random_points",
    "select_random_ranges",
    // The last: it takes rows away.
    "oltp_delete",
];

/// Options that change what is sent, beside the plain ones.
const VARIANTS: [&str; 3] = [
    "",
    "--db-ps-mode=disable",
    "--skip_trx=on --point_selects=3 --sum-ranges=2 --delete_inserts=2 --index_updates=2",
];

/// Options that only one script has.
fn own_option(script: &str) -> &'static str {
    match script {
        "select_random_points" => "--random_points=4",
        "select_random_ranges" => "--number_of_ranges=3",
        _ => "--range-size=50",
    }
}

#[test]
fn statements_and_counts_are_those_of_the_real_sysbench() {
    let stage = or_return!(pooled(Stage::new));
    let mut seed = 1;
    for script in SCRIPTS {
        for variant in VARIANTS {
            // The same numbers as in a run before would write what is there already.
            seed += 1;
            let fixed = "--tables=3 --table-size=1000 --events=3 --rand-type=uniform";
            let own = if variant.contains(' ') {
                own_option(script)
            } else {
                ""
            };
            let options = format!("{fixed} --rand-seed={seed} {variant} {own}");
            let options = words(&options);
            let (mut theirs, mut ours) = (None, None);
            let expected = stage.logged(|| theirs = Some(stage.sysbench(script, &options, "run")));
            let found = stage.logged(|| ours = Some(stage.onramp(script, &options, "run")));
            let (theirs, ours) = (theirs.unwrap(), ours.unwrap());
            let case = format!("{script} {variant:?}");
            assert!(theirs.status.success(), "{case}: {theirs:?}");
            assert!(ours.status.success(), "{case}: {ours:?}");
            let skeletons = |entries: &[(String, String)]| -> Vec<String> {
                let one = |(kind, text): &(String, String)| format!("{kind} {}", skeleton(text));
                entries.iter().map(one).collect()
            };
            assert_eq!(skeletons(&found), skeletons(&expected), "{case}");
            let counts = |output: &Output| -> Vec<u64> {
                let report = text(&output.stdout);
                let labels = "read: write: other: total: transactions: queries:".split(' ');
                labels.map(|label| count(&report, label)).collect()
            };
            let (mut expected, mut found) = (counts(&theirs), counts(&ours));
            if script == "oltp_delete" {
                // A row that is gone already makes a write an "other": chance.
                for counts in [&mut expected, &mut found] {
                    counts[1] += counts[2];
                    counts[2] = 0;
                }
            }
            assert_eq!(
                found, expected,
                "{case}: read, write, other, total, events, queries"
            );
        }
    }
}

/// Rows of point selects, in tenths of the table, weighted to its middle and its beginning.
fn drawn(stage: &Stage, kind: &str, real: bool) -> Vec<f64> {
    const EVENTS: &str = "--events=4000";
    let option = format!("--rand-type={kind}");
    let options = ["--db-ps-mode=disable", "--table-size=1000", EVENTS, &option];
    let entries = stage.logged(|| {
        let output = stage.by(real, "oltp_point_select", &options, "run");
        assert!(output.status.success(), "{output:?}");
    });
    assert_eq!(entries.len(), 4_000);
    let mut bins = vec![0.0; EDGES.len()];
    for (_, text) in entries {
        let row: u32 = text.rsplit('=').next().unwrap().parse().unwrap();
        let bin = EDGES.iter().position(|edge| row <= *edge).unwrap();
        bins[bin] += 1.0;
    }
    bins
}

/// Upper ends of the bins: narrow where pareto and special are hot.
const EDGES: [u32; 16] = [
    1, 5, 25, 100, 200, 350, 450, 494, 498, 502, 506, 550, 650, 800, 900, 1_000,
];

#[test]
fn rows_are_drawn_as_the_real_sysbench_draws_them() {
    let stage = or_return!(pooled(Stage::new));
    let mut seen: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for kind in ["uniform", "gaussian", "special", "pareto"] {
        let (theirs, ours) = (drawn(&stage, kind, true), drawn(&stage, kind, false));
        // Two samples of one size: chi-square is the sum of (a-b)^2/(a+b).
        let pairs = theirs.iter().zip(&ours).filter(|(a, b)| **a + **b >= 10.0);
        let (mut square, mut bins) = (0.0, 0.0);
        for (a, b) in pairs {
            square += (a - b) * (a - b) / (a + b);
            bins += 1.0;
        }
        assert!(bins >= 5.0, "{kind}: {theirs:?}");
        // Chance alone exceeds this once in some 100,000 runs.
        let limit: f64 = bins + 4.5 * f64::sqrt(2.0 * bins) + 4.0;
        assert!(
            square < limit,
            "{kind}: {square:.1} of {limit:.1}\n{theirs:?}\n{ours:?}"
        );
        seen.insert(kind, theirs);
    }
    assert_ne!(seen["uniform"], seen["pareto"]);
}

/// The report's lines with `#` for every number. Whether a run of two seconds lives to print its
/// second interval is chance, so equal lines on intervals are one.
fn form(report: &str) -> Vec<String> {
    let lines = report
        .lines()
        .filter(|line| !line.starts_with("sysbench 1.0.20 (using "));
    let mut form: Vec<_> = lines.map(|line| skeleton(line).replace(".#", "")).collect();
    form.dedup_by(|next, line| next == line && line.starts_with("[ #s ]"));
    form
}

#[test]
fn the_report_has_the_real_one_s_form_and_columns() {
    let stage = or_return!(pooled(Stage::new));
    for more in [
        &["--time=2", "--report-interval=1", "--threads=2"][..],
        &["--events=5", "--percentile=0", "--rand-seed=9"],
        &["--events=5", "--forced-shutdown=3", "--percentile=99"],
        &["--events=1", "--histogram"],
        &["--time=2", "--threads=2", "--report-checkpoints= 1,,1"],
    ] {
        let options = [&["--tables=3", "--table-size=1000"], more].concat();
        let theirs = stage.sysbench("oltp_read_only", &options, "run");
        let ours = stage.onramp("oltp_read_only", &options, "run");
        let (theirs, ours) = (text(&theirs.stdout), text(&ours.stdout));
        assert_eq!(form(&ours), form(&theirs), "{more:?}\n{ours}\n{theirs}");
        for label in "read:,total:,transactions:,total time:,events (avg".split(',') {
            let place = |report: &str| {
                let line = report.lines().find(|line| line.contains(label)).unwrap();
                let from = line.find(':').unwrap() + 1;
                line[from..].find(|c: char| c != ' ').unwrap() + from
            };
            assert_eq!(place(&ours), place(&theirs), "{label}");
        }
        // Numbers that stand to the right end in the same column.
        for label in [" min:", " max:", " sum:"] {
            let line = |report: &str| {
                report
                    .lines()
                    .find(|line| line.contains(label))
                    .map(str::len)
            };
            let width = |report: &str| line(report).unwrap();
            assert_eq!(width(&ours), width(&theirs), "{label}");
        }
    }
}

/// The numbers behind the label in each report of an output.
fn numbers(output: &str, label: &str) -> Vec<f64> {
    let lines = output.lines().map(str::trim_start);
    let values = lines.filter_map(|line| line.strip_prefix(label));
    let number = |value: &str| {
        let value = value.trim_start();
        let end = value.find(|c: char| c != '.' && !c.is_ascii_digit());
        value[..end.unwrap_or(value.len())].parse().unwrap()
    };
    values.map(number).collect()
}

#[test]
fn checkpoints_report_what_came_since_the_one_before_as_the_real_sysbench_does() {
    let stage = or_return!(pooled(Stage::new));
    let options = words("--threads=2 --time=3 --report-interval=1 --report-checkpoints=2,1");
    for real in [true, false] {
        let output = stage.by(real, "oltp_point_select", &options, "run");
        assert!(output.status.success(), "{output:?}");
        let output = text(&output.stdout);
        let heads = output.lines().filter(|line| line.contains("heckpoint"));
        let expected = [
            "Report checkpoint(s) at 1, 2 seconds",
            "[ 1s ] Checkpoint report:",
            "[ 2s ] Checkpoint report:",
        ];
        assert_eq!(heads.collect::<Vec<_>>(), expected, "{output}");
        let events = numbers(&output, "total number of events:");
        let total = numbers(&output, "total time:");
        let fairness = numbers(&output, "events (avg/stddev):");
        assert_eq!((events.len(), total.len(), fairness.len()), (3, 3, 3));
        let mut from = 0.0;
        // The real one reads its clocks and counters one after the other, and may be interrupted in
        // between; a sum over the whole time would still be off by more.
        let slack = if real { 0.25 } else { 0.02 };
        let rates = output.lines().filter_map(|line| {
            let line = line.trim_start().strip_prefix("transactions:")?;
            let (_, rate) = line.split_once('(')?;
            rate.split(' ').next()?.parse::<f64>().ok()
        });
        for (at, rate) in rates.enumerate() {
            // Each rate is over its own part of the time, which the whole time tells.
            let length = total[at] - from;
            let off = (rate * length - events[at]).abs();
            assert!(off <= events[at] * slack + 1.0, "{at}: {output}");
            let off = (fairness[at] * 2.0 - events[at]).abs();
            assert!(off <= events[at] * slack + 10.0, "{at}: {output}");
            if !real {
                assert_eq!(fairness[at] * 2.0, events[at], "{at}: {output}");
            }
            from = total[at];
        }
        if !real {
            let place = |what: &str| output.find(what).unwrap();
            let is_before = place("[ 2s ] Checkpoint") < place("[ 2s ] thds:");
            assert!(is_before, "{output}");
        }
    }
}

#[test]
fn exit_statuses_are_those_of_the_real_sysbench() {
    let stage = or_return!(pooled(Stage::new));
    for [script, more, command] in table(
        "oltp_point_select => --events=1 => run
         oltp_point_select => --tables=9 --events=100 => run
         oltp_point_select => --no-such-option=1 => run
         oltp_point_select => --threads=abc => run
         oltp_point_select => --report-checkpoints=-1 => run
         oltp_point_select => --mysql-password=wrong => run
         oltp_point_select => => bogus
         oltp_nonsense => => run
         oltp_read_write => => help
         oltp_read_write => --table-size=10 => prepare
         oltp_read_write => --table-size=10 => prewarm
         oltp_read_write => --tables=9 => cleanup
         oltp_read_write => --tables=2 --table-size=10 => prepare
         --version => =>",
    ) {
        let more = &words(more)[..];
        let theirs = stage.sysbench(script, more, command);
        if command == "cleanup" {
            stage.sysbench(script, &["--table-size=10"], "prepare");
        }
        if command == "prepare" && theirs.status.success() {
            stage.sysbench(script, more, "cleanup");
        }
        let ours = stage.onramp(script, more, command);
        let case = format!("{script} {more:?} {command}: {ours:?} {theirs:?}");
        assert_eq!(ours.status.code(), theirs.status.code(), "{case}");
    }
}

/// Output of sysbench 0.5 for such a line, in logs that its users have published.
const OLD_REPORT: &str = "\
sysbench 0.5:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 3
Initializing random number generator from timer.

Random number generator seed is 0 and will be ignored


Initializing worker threads...

Threads started!

OLTP test statistics:
    queries performed:
        read:                            30
        write:                           0
        other:                           0
        total:                           30
    transactions:                        0      (0.00 per sec.)
    read/write requests:                 30     (";

#[test]
fn a_line_of_0_5_runs_and_reports_as_0_5_did() {
    let stage = or_return!(pooled(Stage::new));
    let options = "--oltp-tables-count=3 --oltp-table-size=1000 --num-threads=3 \
                   --max-requests=30 --max-time=300 --rand-type=uniform --rand-init=on";
    let options = words(options);
    let script = "--test=sysbench/tests/db/select.lua";
    let mut output = None;
    let entries = stage.logged(|| output = Some(stage.onramp(script, &options, "run")));
    let output = output.unwrap();
    let report = text(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(report.starts_with(OLD_REPORT), "{report}");
    assert_eq!(entries.len(), 30);
    for (kind, text) in entries {
        let expected = "SELECT pad FROM sbtest# WHERE id=#";
        assert_eq!((&*kind, &*skeleton(&text)), ("Query", expected));
    }
}

#[test]
fn rows_in_bulk_are_sent_as_the_real_sysbench_sends_them() {
    let stage = or_return!(pooled(Stage::new));
    stage.sysbench("oltp_read_write", &["--tables=3"], "cleanup");
    let options = ["--threads=1", "--events=60000"];
    let rows_of = |work: &dyn Fn() -> Output| -> Vec<usize> {
        let entries = stage.logged(|| {
            let output = work();
            assert!(output.status.success(), "{output:?}");
            let events = count(&text(&output.stdout), "total number of events:");
            assert_eq!(events, 60_000);
        });
        let rows = |(_, text): &(String, String)| text.matches("),(").count() + 1;
        entries.iter().map(rows).collect()
    };
    let mut all = Vec::new();
    for real in [true, false] {
        stage.sysbench("bulk_insert", &options, "prepare");
        all.push(rows_of(&|| stage.by(real, "bulk_insert", &options, "run")));
        stage.sysbench("bulk_insert", &options, "cleanup");
    }
    let (theirs, ours) = (&all[0], &all[1]);
    assert_eq!(ours.iter().sum::<usize>(), 60_000);
    assert_eq!(theirs.iter().sum::<usize>(), 60_000);
    assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
    let near = |(a, b): (&usize, &usize)| a.abs_diff(*b) * 100 <= *b;
    let are_near = ours.iter().zip(theirs).take(1).all(near);
    assert!(are_near, "{ours:?} {theirs:?}");
}
