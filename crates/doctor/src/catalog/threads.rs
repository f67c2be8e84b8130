//! Threads: what bounds a thread for each connection, where the server runs.
//!
//! The error is always the same, `Can't create a new thread (errno 11)`, or errno 12 as glibc
//! leaves it: pthread_create answers EAGAIN whatever the kernel said. So all bounds are looked at.

use crate::facts::{Facts, Process};
use crate::finding::{Demand, Finding, Severity};
use crate::need::{MAPS_OF_SERVER, MAPS_PER_THREAD, PID_MAX_MAX, PIDS_RESERVED};
use crate::number::{round_up, thousands};
use crate::question::{PerWay, Question};
use crate::setting::Setting;

/// The process whose limits are the server's: its own, or those of this process, from which a
/// server would be started.
pub(super) fn server_process(facts: &Facts) -> &Process {
    facts.server_process.as_ref().unwrap_or(&facts.this)
}

/// A thread each on the direct way, none on the others.
fn threads(base: u64) -> PerWay<Option<Demand>> {
    [Some(Demand::new(base, 1)), None, None]
}

fn is_asked(question: &Question) -> Option<()> {
    question.role.has_server().then_some(())
}

pub(super) fn max_map_count(facts: &Facts, question: &Question) -> Option<Finding> {
    is_asked(question)?;
    let have = facts.host.sysctl("vm.max_map_count");
    let process = facts.server_process.as_ref();
    let known = process.and_then(|process| Some((process.maps?, process.threads?)));
    // What the running threads have goes to the connections that they serve.
    let base = known.map_or(MAPS_OF_SERVER, |(maps, threads)| {
        maps.saturating_sub(MAPS_PER_THREAD * threads.saturating_sub(1))
    });
    let demands = [Some(Demand::new(base, MAPS_PER_THREAD)), None, None];
    let finding = Finding::of(question, "max_map_count", Severity::Wall, have, demands);
    let value = round_up(finding.needed()).max(have.unwrap_or_default());
    Some(finding
        .why(format!(
            "a thread's stack and its guard page are two memory maps of the server; with {} maps \
             of its own it needs {} + 2 x N. Past it pthread_create fails (error 1135; errno 11, \
             or 12 in the words of sysbench)",
            thousands(base), thousands(base)
        ))
        .settings(vec![Setting::Sysctl("vm.max_map_count", vec![value])]))
}

pub(super) fn pid_max(facts: &Facts, question: &Question) -> Option<Finding> {
    is_asked(question)?;
    let have = facts.host.sysctl("kernel.pid_max");
    let used = facts.host.count("pids").or(facts.host.count("threads"));
    let base = PIDS_RESERVED + used.unwrap_or_default();
    let finding = Finding::of(question, "pid_max", Severity::Wall, have, threads(base));
    let value = round_up(finding.needed())
        .max(have.unwrap_or_default())
        .min(PID_MAX_MAX);
    Some(finding
        .why(format!(
            "every thread has a process number; {} are in use and the first {PIDS_RESERVED} are \
             not given out again. Past it a thread cannot be made (error 1135, errno 11)",
            thousands(used.unwrap_or_default())
        ))
        .settings(vec![Setting::Sysctl("kernel.pid_max", vec![value])]))
}

pub(super) fn threads_max(facts: &Facts, question: &Question) -> Option<Finding> {
    is_asked(question)?;
    let have = facts.host.sysctl("kernel.threads-max");
    let base = facts.host.count("threads").unwrap_or_default();
    let finding = Finding::of(question, "threads_max", Severity::Wall, have, threads(base));
    let value = round_up(finding.needed()).max(have.unwrap_or_default());
    Some(finding
        .why(format!(
            "the kernel runs so many threads in all, and {} run now. Past it a thread cannot be \
             made (error 1135, errno 11)",
            thousands(base)
        ))
        .settings(vec![Setting::Sysctl("kernel.threads-max", vec![value])]))
}

pub(super) fn group_pids(facts: &Facts, question: &Question) -> Option<Finding> {
    is_asked(question)?;
    let process = server_process(facts);
    let group = &process.group;
    let base = group.pids_now.unwrap_or_default();
    let finding = Finding::of(
        question,
        "group_pids",
        Severity::Wall,
        group.pids_max,
        threads(base),
    );
    let value = round_up(finding.needed());
    Some(finding
        .why(format!(
            "the control group {} of {} bounds its threads (pids.max, systemd's TasksMax); {} are \
             in use. Past it a thread cannot be made (error 1135, errno 11)",
            group.pids_path, words(facts), thousands(base)
        ))
        .settings(vec![Setting::Tasks(value)]))
}

pub(super) fn user_processes(facts: &Facts, question: &Question) -> Option<Finding> {
    is_asked(question)?;
    let process = server_process(facts);
    let have = if process.nproc_is_free {
        Some(crate::facts::NO_LIMIT)
    } else {
        process.nproc_soft
    };
    let base = process.user_threads.unwrap_or_default();
    let finding = Finding::of(
        question,
        "user_processes",
        Severity::Wall,
        have,
        threads(base),
    );
    let value = round_up(finding.needed());
    Some(finding
        .why(format!(
            "RLIMIT_NPROC of {} bounds all threads of its user, who has {}; root's and those with \
             CAP_SYS_RESOURCE are free of it. A running server keeps the limit it was started with",
            words(facts), thousands(base)
        ))
        .settings(vec![Setting::Threads(value)]))
}

/// Process whose limits were read, in words.
pub(super) fn words(facts: &Facts) -> String {
    match &facts.server_process {
        Some(process) => format!("{} (process {})", process.name, process.pid),
        None => "this shell, from which a server would be started".to_owned(),
    }
}
