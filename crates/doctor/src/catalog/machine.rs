//! The machine: processors, what others take of them, and the clock.
//!
//! None of these stops a connection. They are what makes the figures of a run worse than those of
//! another machine, and what nobody thinks of afterwards.

use crate::facts::Facts;
use crate::finding::{Amount, Finding, Status};
use crate::number::thousands;
use crate::question::Question;

/// Clock sources that are read without a system call, or nearly so.
const QUICK_CLOCKS: [&str; 5] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "xen",
];
/// Share, in thousandths, from which on others are felt.
const STEAL_PERMILLE_MAX: u64 = 20;

pub(super) fn cpus(facts: &Facts, _question: &Question) -> Option<Finding> {
    let cpus = facts.host.cpus?;
    let (status, why) = match cpus {
        1 => (
            Status::Warn,
            "server, pool and clients take turns on one processor: the figures are of a machine \
             that is always late",
        ),
        _ => (
            Status::Ok,
            "so many statements run at once, however many connections execute; the rest wait \
             their turn, in the server as threads that contend, in a pool as a line",
        ),
    };
    Some(
        Finding::observed("cpus", status, Amount::Number(cpus), Amount::Unknown)
            .why(why)
            .remedy("give it two or more"),
    )
}

pub(super) fn steal(facts: &Facts, _question: &Question) -> Option<Finding> {
    let steal = facts.host.steal_permille?;
    let status = if steal > STEAL_PERMILLE_MAX {
        Status::Warn
    } else {
        Status::Ok
    };
    let percent = |permille: u64| Amount::Words(format!("{}.{} %", permille / 10, permille % 10));
    Some(
        Finding::observed("steal", status, percent(steal), percent(STEAL_PERMILLE_MAX))
            .why(
                "the share of processor time since boot that the hypervisor gave to other guests; \
                 latencies are not this machine's where it is high",
            )
            .remedy("measure on a host of its own, or at another hour; watch: vmstat 1, column st"),
    )
}

pub(super) fn clock_source(facts: &Facts, _question: &Question) -> Option<Finding> {
    let clock = facts.host.clock_source.as_str();
    if clock.is_empty() {
        return None;
    }
    let is_quick = QUICK_CLOCKS.contains(&clock);
    let status = if is_quick { Status::Ok } else { Status::Warn };
    let need = Amount::Words("tsc".into());
    Some(
        Finding::observed("clock_source", status, Amount::Words(clock.into()), need)
            .why(
                "the server reads the clock several times in each statement; from hpet or acpi_pm \
                 that is a system call and microseconds each time",
            )
            .remedy(
                "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, if \
                 available_clocksource beside it has it",
            ),
    )
}

/// A server that is busy before the run, as seen from its host.
pub(super) fn sockets(facts: &Facts, _question: &Question) -> Option<Finding> {
    let sockets = facts.host.count("tcp_sockets")?;
    Some(
        Finding::observed(
            "tcp_sockets",
            Status::Ok,
            Amount::Number(sockets),
            Amount::Unknown,
        )
        .why(format!(
            "{} TCP sockets are in use now, {} orphaned, {} wait; what they hold counts in the \
                 numbers above",
            thousands(sockets),
            thousands(facts.host.count("tcp_orphans").unwrap_or_default()),
            thousands(facts.host.count("tcp_time_wait").unwrap_or_default())
        )),
    )
}
