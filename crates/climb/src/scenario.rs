//! Scenarios: ladders whose rungs, workload and arguments are chosen to show one behaviour.
//!
//! The problem: that a pool keeps a slow minute from becoming an outage is not seen with patient
//! clients and equal statements. The mechanism: a scenario is data, a list of steps; a step is a
//! ladder of its own (rungs, paths, a workload, arguments for load and pool) with a name that its
//! rows carry. All steps run on the same tables. What the user adds (`--pool-arg`, `--load-arg`,
//! `--time`) holds for each step.
//!
//! The workloads are sysbench's scripts, with counts of statements that make them what is wanted.

use crate::ladder::Path;
use crate::options::{Plan, Scenario};

/// A ladder within a climb.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Name of its rows; empty where a climb has only one ladder.
    pub(crate) name: String,
    pub(crate) plan: Plan,
}

/// Differences between steps.
struct Preset {
    name: &'static str,
    rungs: &'static [u32],
    paths: &'static [Path],
    workload: &'static str,
    load_args: &'static [&'static str],
    pool_args: &'static [&'static str],
}

/// Clients whose patience is 1 s, so that N of them ask for N statements a second at least. The sum
/// of k over up to 20,000 rows takes a core about 2 ms, so two cores answer about a thousand a
/// second, and what asking alone costs (logins, refusals) stays small beside it.
const SNOWBALL: [Preset; 1] = [Preset {
    name: "patience 1 s",
    rungs: &[100, 500, 1_000, 2_000, 5_000],
    paths: &[Path::Direct, Path::Onramp],
    workload: "oltp_read_only",
    load_args: &[
        "--give-up=1s",
        "--point-selects=0",
        "--simple-ranges=0",
        "--sum-ranges=1",
        "--order-ranges=0",
        "--distinct-ranges=0",
        "--range-size=20000",
        "--skip-trx=on",
    ],
    // Who has waited for half of the patience is told so: it could not be served in time.
    pool_args: &["--wait-ms-max=500"],
}];

const TRANSACTION_RUNGS: &[u32] = &[64, 1_000, 10_000];
const ONE_UPDATE: &[&str] = &["--index-updates=0", "--delete-inserts=0"];
const NO_PRIORITY: &[&str] = &["--high-prio-mode=none"];

const UPDATE: [Preset; 2] = [
    Preset {
        name: "update",
        rungs: TRANSACTION_RUNGS,
        paths: &Path::DEFAULT,
        workload: "oltp_write_only",
        load_args: ONE_UPDATE,
        pool_args: &[],
    },
    Preset {
        name: "update, no high lane",
        rungs: TRANSACTION_RUNGS,
        paths: &[Path::Onramp],
        workload: "oltp_write_only",
        load_args: ONE_UPDATE,
        pool_args: NO_PRIORITY,
    },
];

const READ_WRITE: [Preset; 2] = [
    Preset {
        name: "read-write",
        rungs: TRANSACTION_RUNGS,
        paths: &Path::DEFAULT,
        workload: "oltp_read_write",
        load_args: &[],
        pool_args: &[],
    },
    Preset {
        name: "read-write, no high lane",
        rungs: TRANSACTION_RUNGS,
        paths: &[Path::Onramp],
        workload: "oltp_read_write",
        load_args: &[],
        pool_args: NO_PRIORITY,
    },
];

/// 99 rows by key, then a tenth of a second of nothing, over and over. A slow statement that waits
/// (for a lock, for a disk) takes a place and no core, so what it costs the others is the pool's.
const ONE_SLOW: &[&str] = &[
    "--statement=99*SELECT c FROM sbtest# WHERE id=?",
    "--statement=SELECT SLEEP(0.1)",
];

/// Room for all who sleep at a time: at 50,000 statements a second there are 50 of them.
const STALLS: &[&str] = &[
    "--oversubscribe=1",
    "--stall-ms-max=5",
    "--backends-max=200",
];
const NO_STALLS: &[&str] = &[
    "--oversubscribe=1",
    "--stall-ms-max=86400000",
    "--backends-max=200",
];

const SLOW: [Preset; 2] = [
    Preset {
        name: "one slow in 100",
        rungs: &[100, 1_000],
        paths: &Path::DEFAULT,
        workload: "statements",
        load_args: ONE_SLOW,
        pool_args: STALLS,
    },
    Preset {
        name: "one slow in 100, no stall",
        rungs: &[100, 1_000],
        paths: &[Path::Onramp],
        workload: "statements",
        load_args: ONE_SLOW,
        pool_args: NO_STALLS,
    },
];

/// The ladders of a climb: those of its scenario, or the one that the options ask for.
pub(crate) fn steps(plan: &Plan) -> Vec<Step> {
    let presets: [&[Preset]; 2] = match plan.raw.scenario {
        None => {
            return vec![Step {
                name: String::new(),
                plan: plan.clone(),
            }];
        }
        Some(Scenario::Snowball) => [&SNOWBALL, &[]],
        Some(Scenario::Transactions) => [&UPDATE, &READ_WRITE],
        Some(Scenario::Update) => [&UPDATE, &[]],
        Some(Scenario::ReadWrite) => [&READ_WRITE, &[]],
        Some(Scenario::Slow) => [&SLOW, &[]],
        Some(Scenario::Failover | Scenario::Switchover) => [&[], &[]],
    };
    let presets = presets.into_iter().flatten();
    presets.map(|preset| step(plan, preset)).collect()
}

fn step(plan: &Plan, preset: &Preset) -> Step {
    let mut plan = plan.clone();
    let chosen = |list: &[&str], more: &[String]| {
        let own = list.iter().map(|word| (*word).to_owned());
        own.chain(more.iter().cloned()).collect()
    };
    if plan.raw.rungs.is_empty() {
        plan.rungs = preset.rungs.to_vec();
    }
    // A ladder of all usual paths takes others too.
    if preset.paths != Path::DEFAULT || plan.raw.paths.is_empty() {
        let wanted = |path: &Path| plan.raw.paths.is_empty() || plan.paths.contains(path);
        plan.paths = preset.paths.iter().copied().filter(wanted).collect();
    }
    preset.workload.clone_into(&mut plan.raw.workload);
    plan.raw.load_arg = chosen(preset.load_args, &plan.raw.load_arg);
    plan.raw.pool_arg = chosen(preset.pool_args, &plan.raw.pool_arg);
    Step {
        name: preset.name.to_owned(),
        plan,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ClimbArgs;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        climb: ClimbArgs,
    }

    fn of(words: &[&str]) -> Vec<Step> {
        let words = std::iter::once("climb").chain(words.iter().copied());
        let plan = Line::try_parse_from(words).unwrap().climb.check().unwrap();
        steps(&plan)
    }

    #[test]
    fn without_a_scenario_there_is_one_ladder_without_a_name() {
        let steps = of(&["--rungs=5", "--paths=onramp"]);
        assert_eq!(steps.len(), 1);
        assert_eq!(
            (&steps[0].name[..], &steps[0].plan.rungs[..]),
            ("", &[5][..])
        );
    }

    #[test]
    fn a_scenario_brings_rungs_paths_and_arguments() {
        let steps = of(&["--scenario=transactions"]);
        let names: Vec<&str> = steps.iter().map(|step| &step.name[..]).collect();
        assert_eq!(names[..2], ["update", "update, no high lane"]);
        assert_eq!(steps[0].plan.paths, Path::DEFAULT);
        assert_eq!(steps[1].plan.paths, [Path::Onramp]);
        assert_eq!(steps[1].plan.raw.pool_arg, ["--high-prio-mode=none"]);
        assert_eq!(steps[3].plan.raw.workload, "oltp_read_write");
    }

    #[test]
    fn each_half_of_the_transactions_is_a_scenario() {
        let names = |scenario: &str| -> Vec<String> {
            let steps = of(&[&format!("--scenario={scenario}")]);
            steps.into_iter().map(|step| step.name).collect()
        };
        let (update, read_write) = (names("update"), names("read-write"));
        assert_eq!(update, ["update", "update, no high lane"]);
        assert_eq!(read_write, ["read-write", "read-write, no high lane"]);
        assert_eq!(names("transactions"), [update, read_write].concat());
    }

    #[test]
    fn what_the_user_says_goes_before_the_preset() {
        let steps = of(&[
            "--scenario=snowball",
            "--rungs=7",
            "--paths=onramp",
            "--load-arg=--give-up=2s",
        ]);
        let plan = &steps[0].plan;
        assert_eq!(
            (&plan.rungs[..], &plan.paths[..]),
            (&[7][..], &[Path::Onramp][..])
        );
        let steps = of(&["--scenario=read-write", "--paths=haproxy,onramp"]);
        let paths: Vec<_> = steps.iter().map(|step| &step.plan.paths[..]).collect();
        assert_eq!(paths, [&[Path::HaProxy, Path::Onramp][..], &[Path::Onramp]]);
        // The last of two counts.
        assert_eq!(plan.raw.load_arg.first().unwrap(), "--give-up=1s");
        assert_eq!(plan.raw.load_arg.last().unwrap(), "--give-up=2s");
    }

    #[test]
    fn a_scenario_chooses_its_workload_itself() {
        let words = ["climb", "--scenario=slow", "--workload=oltp_insert"];
        assert!(Line::try_parse_from(words).is_err());
    }
}
