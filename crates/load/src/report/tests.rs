//! The report's texts, letter by letter, beside what sysbench 1.0.20 prints.
use super::*;
use clap::Parser;
use load_core::stats::Class;
use std::time::Duration;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    load: LoadArgs,
}

fn args(more: &str) -> LoadArgs {
    let line = format!("load select run --target mysql://a@h/t --threads 4 {more}");
    Line::parse_from(line.split_whitespace()).load
}

fn last_text(args: &LoadArgs, measured: &Measured) -> String {
    Whole::last(args, measured).text(args)
}

#[test]
fn the_header_names_threads_interval_and_seed() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        header(&args("")),
        format!(
            "sysbench 1.0.20 (using onramp {version})\n\nRunning the test with following options:\n\
             Number of threads: 4\nInitializing random number generator from current time\n\n\n\
             Initializing worker threads...\n\n"
        )
    );
    let full = header(&args("--report-interval 10 --rand-seed 7"));
    assert!(full.contains("threads: 4\nReport intermediate results every 10 second(s)\nInit"));
    assert!(full.contains("\nInitializing random number generator from seed (7).\n"));
}

/// 3 reads of 1, 2 and 3 ms, one write and two others; 2 events of 10 and 20 ms.
fn counts() -> Stats {
    let mut stats = Stats::default();
    let classes = [
        Class::Read,
        Class::Read,
        Class::Read,
        Class::Write,
        Class::Other,
        Class::Other,
    ];
    for (ms, class) in (1..).zip(classes) {
        stats.succeeded(class, Duration::from_millis(ms), None);
    }
    for ms in [10, 20] {
        stats.events += 1;
        stats.event_latency.record(Duration::from_millis(ms));
    }
    stats.ignored = 1;
    stats.failed = 2;
    stats.reconnects = 1;
    stats
}

fn gauges(connected: u64) -> Gauges {
    Gauges {
        connected,
        executing: 3,
        waiting: 17,
        ..Gauges::default()
    }
}

#[test]
fn an_open_loop_has_its_rate_and_its_queue() {
    let args = args("--rate 0:10,5s:500");
    let text = header(&args);
    assert!(text.contains("threads: 4\nTarget transaction rate: 500/sec\nInit"));
    let lines = interval(&args, 2.0, 2.0, &gauges(4), &counts());
    assert!(
        lines.ends_with("\n[ 2s ] queue length: 17, concurrency: 3\n"),
        "{lines}"
    );
}

#[test]
fn an_interval_is_one_line() {
    assert_eq!(
        interval(&args(""), 2.0, 2.0, &gauges(4), &counts()),
        "[ 2s ] thds: 4 tps: 1.00 qps: 3.00 (r/w/o: 1.50/0.50/1.00) lat (ms,95%): 20.00 \
         err/s: 1.50 reconn/s: 0.50\n"
    );
    assert_eq!(
        interval(
            &args("--percentile 99"),
            1.0,
            1.0,
            &gauges(1),
            &Stats::default()
        ),
        "[ 1s ] thds: 1 tps: 0.00 qps: 0.00 (r/w/o: 0.00/0.00/0.00) lat (ms,99%): 0.00 \
         err/s: 0.00 reconn/s: 0.00\n"
    );
}

#[test]
fn the_last_report_has_four_parts() {
    let mut measured = Measured {
        window: counts(),
        seconds: 2.0,
        ..Measured::default()
    };
    measured.tally.add(1, Duration::from_secs(2));
    measured.tally.add(3, Duration::from_secs(2));
    let expected = "\
SQL statistics:
    queries performed:
        read:                            3
        write:                           1
        other:                           2
        total:                           6
    transactions:                        2      (1.00 per sec.)
    queries:                             6      (3.00 per sec.)
    ignored errors:                      3      (1.50 per sec.)
    reconnects:                          1      (0.50 per sec.)

General statistics:
    total time:                          2.0000s
    total number of events:              2

Latency (ms):
         min:                                   10.00
         avg:                                   15.00
         max:                                   20.00
         95th percentile:                       20.00
         sum:                                   30.00

Threads fairness:
    events (avg/stddev):           2.0000/1.00
    execution time (avg/stddev):   2.0000/0.00

";
    assert_eq!(last_text(&args(""), &measured), expected);
}

#[test]
fn a_checkpoint_reports_what_came_since_the_one_before() {
    let mut args = args("--report-checkpoints 9,2,2");
    let at = header(&args);
    assert!(at.contains("threads: 4\nReport checkpoint(s) at 2, 2, 9 seconds\nInit"));
    let rest = Rest {
        window: counts(),
        from_s: 2.0,
    };
    let mut tally = Tally::default();
    tally.add(2, Duration::from_millis(30));
    let text = Whole::checkpoint(&args, (9.0, 9.5), 1, &rest, &tally).text(&args);
    for expected in [
        "[ 9s ] Checkpoint report:\nSQL statistics:\n    queries performed:\n",
        "    queries:                             6      (0.80 per sec.)\n",
        "    total time:                          9.5000s\n",
        "    total number of events:              2\n",
        "    events (avg/stddev):           2.0000/0.00\n",
        "    execution time (avg/stddev):   0.0300/0.00\n\n",
    ] {
        assert!(text.contains(expected), "{expected}{text}");
    }
    let (mut window, mut all) = (counts(), counts());
    window.events = 0;
    all.events = 40;
    let measured = Measured {
        window: all,
        rest: Some(Rest {
            window,
            from_s: 9.5,
        }),
        seconds: 12.5,
        ..Measured::default()
    };
    let text = last_text(&args, &measured);
    assert!(text.contains("    queries:                             6      (2.00 per sec.)\n"));
    assert!(text.contains("    total time:                          12.5000s\n"));
    assert!(text.contains("    total number of events:              0\n"));
    args.manner.dialect = Dialect::Old;
    let text = Whole::checkpoint(&args, (9.0, 9.5), 1, &rest, &tally).text(&args);
    assert!(
        text.starts_with("[   9s] Checkpoint report:\nOLTP test statistics:\n"),
        "{text}"
    );
}

/// Lines that sysbench 0.5 wrote, in logs that its users have published.
#[test]
fn the_report_of_0_5_counts_commits() {
    let mut args = args("--report-interval 1");
    args.manner.dialect = Dialect::Old;
    let mut window = counts();
    window.commits = 1;
    let mut measured = Measured {
        window: window.clone(),
        whole_seconds: 2.0,
        ..Measured::default()
    };
    measured.tally.add(2, Duration::from_secs(2));
    assert_eq!(
        header(&args),
        "sysbench 0.5:  multi-threaded system evaluation benchmark\n\nRunning the test with \
         following options:\nNumber of threads: 4\nReport intermediate results every 1 \
         second(s)\nRandom number generator seed is 0 and will be ignored\n\n\nInitializing \
         worker threads...\n\n"
    );
    assert_eq!(
        interval(&args, 2.0, 2.0, &gauges(4), &window),
        "[   2s] threads: 4, tps: 0.50, reads: 1.50, writes: 0.50, response time: 20.00ms (95%), \
         errors: 1.50, reconnects:  0.50\n"
    );
    let expected = "\
OLTP test statistics:
    queries performed:
        read:                            3
        write:                           1
        other:                           2
        total:                           6
    transactions:                        1      (0.50 per sec.)
    read/write requests:                 4      (2.00 per sec.)
    other operations:                    2      (1.00 per sec.)
    ignored errors:                      3      (1.50 per sec.)
    reconnects:                          1      (0.50 per sec.)

General statistics:
    total time:                          2.0000s
    total number of events:              2
    total time taken by event execution: 0.0300s
    response time:
         min:                                 10.00ms
         avg:                                 15.00ms
         max:                                 20.00ms
         approx.  95 percentile:              20.00ms

Threads fairness:
    events (avg/stddev):           2.0000/0.00
    execution time (avg/stddev):   2.0000/0.00

";
    assert_eq!(last_text(&args, &measured), expected);
    args.manner.from_timer = true;
    assert!(
        header(&args)
            .contains("second(s)\nInitializing random number generator from timer.\n\nRandom")
    );
}

#[test]
fn a_line_of_sysbench_is_reported_to_the_last_event() {
    let mut args = args("--percentile 0");
    args.manner.dialect = Dialect::New;
    args.manner.forced = true;
    let measured = Measured {
        window: counts(),
        drain: counts(),
        seconds: 2.0,
        whole_seconds: 4.0,
        unfinished: 3,
        ..Measured::default()
    };
    let text = last_text(&args, &measured);
    for expected in [
        "    queries:                             12     (3.00 per sec.)\n",
        "    total time:                          4.0000s\n",
        "    total number of events:              4\n",
        "         percentile stats:               disabled\n",
        "\n\nNumber of unfinished transactions on forced shutdown: 3\n\nGeneral",
    ] {
        assert!(text.contains(expected), "{expected}{text}");
    }
    let text = header(&args);
    assert!(text.contains("current time\n\nForcing shutdown in 20 seconds\n\nInitializing worker"));
}
