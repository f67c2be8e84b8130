//! Scripts of sysbench in their files, unmodified: those of Debian's package beside the real
//! sysbench, and small ones of our own that show one behaviour each.
//!
//! Where sysbench is not installed these tests skip.

use crate::sysbench::{Stage, count, text};
use crate::world::*;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Output;

/// Folder of the scripts in Debian's package.
const FOLDER: &str = "/usr/share/sysbench";

/// All of them but the module that the others share.
const SCRIPTS: [&str; 11] = [
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
];

fn file_of(script: &str) -> String {
    format!("{FOLDER}/{script}.lua")
}

fn stage(test: &str) -> Option<Stage> {
    let stage = Stage::new(test)?;
    let missing = SCRIPTS
        .iter()
        .find(|script| !PathBuf::from(file_of(script)).exists());
    if let Some(script) = missing {
        testkit::real::skipped(test, &format!("sysbench's package lacks {script}.lua"));
        return None;
    }
    Some(stage)
}

/// A script of our own in a file.
fn own(stage: &Stage, name: &str, script: &str) -> String {
    let path = stage.real.folder().join(name);
    fs::write(&path, script).unwrap();
    path.to_str().unwrap().to_owned()
}

fn done(output: &Output, what: &str) -> String {
    assert!(output.status.success(), "{what}: {output:?}");
    text(&output.stdout)
}

/// Reason why a run failed.
fn reason(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = text(&output.stderr);
    let fatal = errors.lines().rfind(|line| line.starts_with("FATAL: "));
    fatal.unwrap_or_else(|| panic!("{errors}")).to_owned()
}

#[test]
fn every_script_of_the_package_prepares_runs_and_cleans_up() {
    let Some(stage) = pooled(stage) else { return };
    let cleanup = stage.sysbench("oltp_read_write", &["--tables=3"], "cleanup");
    done(&cleanup, "cleanup");
    for script in SCRIPTS {
        let file = file_of(script);
        let mut options = vec!["--threads=3"];
        match script {
            "bulk_insert" => {}
            "select_random_points" | "select_random_ranges" => options.push("--table-size=200"),
            _ => options.extend(["--tables=2", "--table-size=200"]),
        }
        done(&stage.onramp(&file, &options, "prepare"), script);
        let runs = [&options[..], &["--events=60", "--time=0"]].concat();
        let report = done(&stage.onramp(&file, &runs, "run"), script);
        let events = count(&report, "total number of events:");
        assert_eq!(events, 60, "{script}: {report}");
        done(&stage.onramp(&file, &options, "cleanup"), script);
        let mut admin = stage.real.admin();
        let count = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'sbtest'";
        assert_eq!(admin.value(count), "0", "{script}");
    }
}

/// A statement without the numbers that were drawn for it.
fn without_numbers((command, sql): (String, String)) -> (String, String) {
    let mut masked = String::new();
    for c in sql.chars() {
        match c {
            '0'..='9' if masked.ends_with('#') => {}
            '0'..='9' => masked.push('#'),
            _ => masked.push(c),
        }
    }
    (command, masked)
}

/// One connection, so that the order is one. What `run` draws from one `--rand-seed` is the same;
/// sysbench 1.0.20 itself fills other rows in two runs of `prepare`.
#[test]
fn statements_are_sysbenchs_to_the_last_number_of_a_seed() {
    let Some(stage) = pooled(stage) else { return };
    for script in SCRIPTS {
        for variant in [
            &[][..],
            &["--db-ps-mode=disable"],
            &["--rand-type=pareto", "--skip_trx=on"],
            &["--rand-type=uniform", "--percentile=0"],
            &["--rand-type=gaussian"],
        ] {
            let file = file_of(script);
            let is_bulk = script == "bulk_insert";
            if is_bulk && variant.len() > 1 {
                continue;
            }
            let fixed = ["--events=4", "--time=0", "--rand-seed=11"];
            let tables = ["--table-size=200", "--tables=3"];
            let more = match script {
                "bulk_insert" => &tables[..0],
                "select_random_points" | "select_random_ranges" => &tables[..1],
                _ => &tables[..],
            };
            let options = [&fixed[..], variant, more].concat();
            let mut reports = Vec::new();
            let streams = ["sysbench", "onramp"].map(|program| {
                let mut report = String::new();
                let [made, ran] = [&["cleanup", "prepare"][..], &["run"]].map(|commands| {
                    stage.logged(|| {
                        for command in commands {
                            let output = stage.by(program == "sysbench", &file, &options, command);
                            report = done(&output, &format!("{program} {script} {command}"));
                        }
                    })
                });
                reports.push(report);
                let made = made.into_iter().map(without_numbers);
                made.chain(ran).collect::<Vec<_>>()
            });
            let [theirs, ours] = streams;
            for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                assert_eq!(ours, theirs, "{script} {variant:?}, statement {at}");
            }
            assert_eq!(ours.len(), theirs.len(), "{script} {variant:?}");
            assert!(ours.len() >= 3, "{script}: {ours:?}");
            for label in "read: write: other: total: transactions: queries:".split(' ') {
                let [theirs, ours] = [0, 1].map(|report| count(&reports[report], label));
                assert_eq!(ours, theirs, "{script} {variant:?} {label}");
            }
        }
    }
}

#[test]
fn help_lists_the_options_of_the_script_as_sysbench_does() {
    let Some(stage) = pooled(stage) else { return };
    for script in ["oltp_read_write", "select_random_points"] {
        let behind_version = |output: &Output| {
            let help = done(output, script);
            help.split_once("\n\n").unwrap().1.to_owned()
        };
        let theirs = behind_version(&stage.sysbench(&file_of(script), &[], "help"));
        let ours = behind_version(&stage.onramp(&file_of(script), &[], "help"));
        assert_eq!(ours, theirs);
    }
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let Some(stage) = pooled(stage) else { return };
    let run = |name: &str, script: &str| {
        let file = own(&stage, name, script);
        (reason(&stage.onramp(&file, &["--events=5"], "run")), file)
    };
    let (said, file) = run("index.lua", "function event()\n  local x\n  x.y = 1\nend\n");
    let expected =
        format!("FATAL: `thread_run' function failed: {file}:3: attempt to index local 'x'");
    assert!(said.starts_with(&expected), "{said}");
    let (said, file) = run("syntax.lua", "function event()\n  x = = 1\nend\n");
    assert!(said.starts_with(&format!("FATAL: {file}:2: ")), "{said}");
    let script = "function thread_init()\n  con = sysbench.sql.driver():connect()\nend\n\
         function event()\n  con:query('SELECT * FROM nowhere')\nend\n";
    let (said, file) = run("sql.lua", script);
    let expected = format!(
        "FATAL: `thread_run' function failed: {file}:5: SQL error, errno = 1146, state = '42S02': "
    );
    assert!(said.starts_with(&expected), "{said}");
    let (said, _) = run("none.lua", "x = 1\n");
    says(&said, "none.lua: the script has no function event()");
}

#[test]
fn results_are_what_the_server_returned() {
    let Some(stage) = pooled(stage) else { return };
    let script = r##"
        function show(...)
          local parts = {}
          for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
          print("> " .. table.concat(parts, " "))
        end
        function prepare()
          local con = sysbench.sql.driver():connect()
          show(con:query_row("SELECT 1, NULL, 'x'"))
          local rs = con:query("SELECT id FROM sbtest1 WHERE id <= 3 ORDER BY id")
          show(rs.nrows, rs.nfields)
          local row = rs:fetch_row()
          while row do show(row[1]); row = rs:fetch_row() end
          show(con:query("DO 1"))
          local stmt = con:prepare("SELECT ? + 1, ?, ?, CAST(? AS DOUBLE)")
          local t = sysbench.sql.type
          local a, b = stmt:bind_create(t.BIGINT), stmt:bind_create(t.VARCHAR, 10)
          local c, d = stmt:bind_create(t.INT), stmt:bind_create(t.DOUBLE)
          stmt:bind_param(a, b, c, d)
          a:set(41); b:set("it's"); c:set(nil); d:set(2.5)
          local r = stmt:execute():fetch_row()
          show(r[1], r[2], r[3], r[4])
          stmt:close()
          local big = string.rep("x", 3000000)
          show(string.len(con:query_row("SELECT '" .. big .. "'")))
          local inner = coroutine.wrap(function()
            for i = 1, 2 do coroutine.yield((con:query_row("SELECT " .. i))) end
          end)
          show(inner(), inner())
          show(pcall(con.query, con, "SELECT * FROM nowhere"))
          con:disconnect()
          show(pcall(con.query, con, "DO 1"))
        end
        function event() end
        "##;
    let file = own(&stage, "results.lua", script);
    let shown = done(&stage.onramp(&file, &[], "prepare"), "results");
    let shown: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("> "))
        .collect();
    let expected = "1 nil x;3 1;1;2;3;nil;42 it's nil 2.5;3000000;1 2";
    assert_eq!(shown[..9], expected.split(';').collect::<Vec<_>>());
    says(shown[9], "SQL error, errno = 1146, state = '42S02': ");
    says(shown[10], "the connection was closed by disconnect()");
}

/// The event is run again after an error that is ignored, and the hook may ignore others.
#[test]
fn ignored_errors_run_the_event_again() {
    let Some(stage) = pooled(stage) else { return };
    let script = r##"
        local runs = 0
        function thread_init() con = sysbench.sql.driver():connect() end
        function sysbench.hooks.sql_error_ignorable(e) return e.sql_errno == 1146 end
        function sysbench.hooks.before_restart_event(e) print("again", e.sql_errno, e.query) end
        function event()
          runs = runs + 1
          if runs == 2 then con:query("SELECT * FROM nowhere") end
          if runs == 4 then con:query("KILL CONNECTION_ID()") end
          con:query("DO 1")
        end
        function thread_done() print("runs", runs, con:query_row("SELECT 7")) end
        "##;
    let file = own(&stage, "again.lua", script);
    let options = words("--events=3 --time=0 --mysql-ignore-errors=1927,2006,2013");
    let report = done(&stage.onramp(&file, &options, "run"), "again");
    says(&report, "again\t1146\tSELECT * FROM nowhere\n");
    assert!(report.contains("runs\t6\t7\n"), "{report}");
    assert_eq!(count(&report, "total number of events:"), 3, "{report}");
    assert_eq!(count(&report, "ignored errors:"), 3, "{report}");
    assert_eq!(count(&report, "reconnects:"), 1, "{report}");
    let script = "function thread_init() con = sysbench.sql.driver():connect() end\n\
         function event() con:query('SELECT * FROM nowhere') end\n";
    let refused = own(&stage, "refused.lua", script);
    let said = reason(&stage.onramp(&refused, &["--events=3"], "run"));
    says(&said, "refused.lua:2: SQL error, errno = 1146");
}

/// Features of 0.5: plain globals, options as globals, dofile beside the script.
#[test]
fn scripts_of_0_5_find_their_globals() {
    let Some(stage) = pooled(stage) else { return };
    let common = "function set_vars() rows = tonumber(oltp_table_size) or 10 end\n";
    own(&stage, "common05.lua", common);
    let script = r##"
        pathtest = string.match(test, "(.*/)") or ""
        dofile(pathtest .. "common05.lua")
        function prepare()
          set_vars()
          db_connect()
          db_query("CREATE TABLE old05 (id INT, t VARCHAR(20))")
          db_bulk_insert_init("INSERT INTO old05 VALUES")
          for i = 1, rows do db_bulk_insert_next("(" .. i .. ",'" .. sb_rand_str("@#@") .. "')") end
          db_bulk_insert_done()
          db_disconnect()
        end
        function thread_init(thread_id) set_vars() end
        function event(thread_id)
          db_query("SELECT t FROM old05 WHERE id = " .. sb_rand_uniform(1, rows))
          db_query("COMMIT")
        end
        function cleanup() db_query("DROP TABLE old05") end
        "##;
    let file = own(&stage, "old05.lua", script);
    let test = format!("--test={file}");
    let options = words("--oltp-table-size=25 --num-threads=2 --max-requests=10");
    let run = |command: &str| done(&stage.onramp(&test, &options, command), command);
    run("prepare");
    let report = run("run");
    assert!(report.contains("sysbench 0.5:"), "{report}");
    assert_eq!(count(&report, "read:"), 10, "{report}");
    assert_eq!(count(&report, "transactions:"), 10, "{report}");
    let mut admin = stage.real.admin();
    assert_eq!(admin.value("SELECT COUNT(*) FROM sbtest.old05"), "25");
    run("cleanup");
}

#[test]
fn sleeping_and_custom_commands_hold_nobody_up() {
    let Some(stage) = pooled(stage) else { return };
    let script = r##"
        ffi.cdef("int usleep(unsigned int useconds);")
        sysbench.cmdline.options = { naps = {"how many", 3} }
        function nap() for i = 1, sysbench.opt.naps do ffi.C.usleep(200000) end end
        sysbench.cmdline.commands = { doze = {nap, sysbench.cmdline.PARALLEL_COMMAND} }
        function event() nap() end
        "##;
    let file = own(&stage, "sleep.lua", script);
    // One after the other it would be 20 s.
    let options = ["--threads=50", "--events=50", "--time=0", "--naps=2"];
    let report = done(&stage.onramp(&file, &options, "run"), "run");
    assert_eq!(count(&report, "total number of events:"), 50, "{report}");
    let mut lines = report.lines().map(str::trim);
    let seconds = lines
        .find_map(|line| line.strip_prefix("total time:"))
        .unwrap();
    let seconds: f64 = seconds.trim().trim_end_matches('s').parse().unwrap();
    assert!((0.4..18.0).contains(&seconds), "{seconds}");
    done(&stage.onramp(&file, &options, "doze"), "doze");
    let said = reason(&stage.onramp(&file, &["--nops=1"], "run"));
    assert_eq!(said, "FATAL: invalid option: --nops");
    let said = reason(&stage.onramp(&file, &[], "frob"));
    assert!(said.starts_with("FATAL: Unknown command: frob"), "{said}");
}

/// Findings of sysbench's own tests of its scripts' functions.
#[test]
fn scripts_meet_the_small_habits_of_sysbench() {
    let Some(stage) = pooled(stage) else { return };
    let script = r##"
        print("body")
        function init(tid) print("init", tid) end
        function done(tid) print("done", tid) end
        function prepare(tid) print("prepare", tid) end
        function event(tid)
          local con = sysbench.sql.driver():connect()
          con:query("CREATE TEMPORARY TABLE habits (a CHAR(4))")
          local stmt = con:prepare("INSERT INTO habits VALUES (?)")
          local param = stmt:bind_create(sysbench.sql.type.CHAR, 4)
          stmt:bind_param(param)
          param:set("abcdefgh")
          stmt:execute()
          print(con, stmt, param, con:query("SELECT 1"))
          print(con:query_row("SELECT a FROM habits"))
        end
        "##;
    let file = own(&stage, "habits.lua", script);
    let quiet = ["--events=1", "--time=0", "--verbosity=0"];
    let [theirs, ours] = ["sysbench", "onramp"].map(|program| {
        ["prepare", "run", ""].map(|command| {
            let output = stage.by(program == "sysbench", &file, &quiet, command);
            done(&output, &format!("{program} {command}"))
        })
    });
    // A script is loaded once more for each connection, and for what it declares.
    let heard = |texts: [String; 3]| {
        texts.map(|text| {
            let mut lines: Vec<&str> = text.lines().filter(|line| *line != "body").collect();
            lines.insert(0, if text.contains("body\n") { "body" } else { "" });
            lines.join("\n")
        })
    };
    let (theirs, ours) = (heard(theirs), heard(ours));
    assert_eq!(ours, theirs);
    assert!(ours[1].ends_with("\nabcd\ndone\tnil"), "{ours:?}");
}

/// Events run to their end when the time is over, however long that takes; a signal ends the wait.
#[test]
fn a_signal_ends_the_wait_for_the_last_events() {
    let Some(stage) = pooled(stage) else { return };
    let script = "function thread_init() con = sysbench.sql.driver():connect() end\n\
         function event() con:query('SELECT SLEEP(100000)') end\n";
    let file = own(&stage, "long.lua", script);
    let mut run = stage.spawn(&file, &["--threads=2", "--time=1"], "run");
    let mut errors = BufReader::new(run.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("2 events that have begun run to their end") {
        line.clear();
        assert!(errors.read_line(&mut line).unwrap() > 0, "it ended");
    }
    testkit::onramp::terminate(&run);
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    let output = run.wait_with_output().unwrap();
    let report = text(&output.stdout);
    let events = count(&report, "total number of events:");
    assert_eq!(events, 0, "{report}{rest}");
    assert_eq!(output.status.code(), Some(0), "{rest}");
}

#[test]
fn a_script_that_fills_its_memory_is_told_of_the_bound() {
    let Some(stage) = pooled(stage) else { return };
    let script = "function event()\n  kept = kept or {}\n\
         for i = 1, 10 do kept[#kept + 1] = string.rep('x', 1024 * 1024) .. #kept end\nend\n";
    let file = own(&stage, "fill.lua", script);
    let said = reason(&stage.onramp(&file, &["--time=0", "--events=1000"], "run"));
    let bound = "the script's memory is full: the Lua state of a group may take 256 MiB, and 4 MiB \
                 more for each of its threads";
    assert!(said.contains(bound), "{said}");
}

/// Hooks of reports stand in place of sysbench's text, with sysbench's numbers, as sysbench has it:
/// the same script prints lines of the same form there.
#[test]
fn hooks_of_reports_are_called_in_place_of_the_text() {
    let Some(stage) = pooled(stage) else { return };
    let script = r##"
        function thread_init() con = sysbench.sql.driver():connect() end
        function event() con:query("SELECT 1"); con:query("DO 1") end
        local function names(stat)
          local all = {}
          for name in pairs(stat) do all[#all + 1] = name end
          table.sort(all)
          return table.concat(all, " ")
        end
        function sysbench.hooks.report_intermediate(stat)
          if told then return end
          told = true
          print("> intermediate", stat.threads_running, stat.events > 0, stat.reads > 0,
            stat.latency_pct < 60, stat.time_interval > 1 and stat.time_interval < 60,
            stat.writes, stat.errors)
          print("> names", names(stat))
        end
        function sysbench.hooks.report_cumulative(stat)
          print("> cumulative", stat.reads == stat.events, stat.other == stat.events,
            stat.latency_min <= stat.latency_avg, stat.latency_avg <= stat.latency_max)
          print("> names", names(stat))
        end
        "##;
    let file = own(&stage, "hooks.lua", script);
    // The first interval alone is told: what happens in those behind it depends on who is first at
    // the end, and sysbench prints from two threads at once there.
    let options = ["--threads=2", "--time=5", "--report-interval=2"];
    let [theirs, ours] = ["sysbench", "onramp"].map(|program| {
        let output = stage.by(program == "sysbench", &file, &options, "run");
        let report = done(&output, program);
        assert!(!report.contains("qps"), "{report}");
        assert!(!report.contains("SQL statistics"), "{report}");
        let lines = report.lines().filter(|line| line.starts_with("> "));
        lines.map(str::to_owned).collect::<Vec<String>>()
    });
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 4, "{ours:?}");
}

/// The ready-made reports, with an error in a hook that does not end the run.
#[test]
fn reports_in_json_are_one_array_and_errors_in_hooks_are_said() {
    let Some(stage) = pooled(stage) else { return };
    let script = "function thread_init() con = sysbench.sql.driver():connect() end\n\
         function event() con:query('SELECT 1') end\n\
         sysbench.hooks.report_intermediate = sysbench.report_json\n\
         function sysbench.hooks.report_cumulative(stat)\n  local x\n  x.y = 1\nend\n";
    let file = own(&stage, "json.lua", script);
    let output = stage.onramp(&file, &["--time=2", "--report-interval=1"], "run");
    let report = done(&output, "json");
    let (_, array) = report.split_once("Threads started!\n\n").unwrap();
    let array: serde_json::Value = serde_json::from_str(array).unwrap();
    let points = array.as_array().unwrap();
    assert!(!points.is_empty());
    assert!(points[0]["qps"]["reads"].as_f64().unwrap() > 0.0, "{array}");
    let errors = text(&output.stderr);
    let expected = format!(
        "FATAL: `sysbench.hooks.report_cumulative' function failed: {file}:6: attempt to index"
    );
    assert!(errors.contains(&expected), "{errors}");
}

/// Statements of thread_init and thread_done are in the report.
#[test]
fn statements_around_the_events_are_counted_as_sysbench_counts_them() {
    let Some(stage) = pooled(stage) else { return };
    let script = "function thread_init()\n  con = sysbench.sql.driver():connect()\n\
         con:query('SET autocommit = 0')\n  con:query('SELECT 1')\nend\n\
         function event() con:query('SELECT 1') end\n\
         function thread_done() con:query('SELECT 2'); con:query('DO 1') end\n";
    let file = own(&stage, "around.lua", script);
    for more in [&[][..], &["--report-checkpoints=1"]] {
        let options = [&["--threads=3", "--time=0", "--events=30"], more].concat();
        let theirs = done(&stage.sysbench(&file, &options, "run"), "sysbench");
        let ours = done(&stage.onramp(&file, &options, "run"), "onramp");
        for label in ["read:", "write:", "other:", "total:", "queries:"] {
            assert_eq!(count(&ours, label), count(&theirs, label), "{label}");
        }
    }
}
