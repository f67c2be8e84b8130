//! Processors of each part: `--cpus server=0,pool=1,load=1`.
//!
//! The problem: where all parts share the processors, what a proxy uses is taken from the server,
//! and rates through it say little about a server that has a machine of its own. The mechanism: a
//! process inherits the affinity of the thread that starts it, so that thread has the part's
//! processors while it starts one, and its own again afterwards. Programs that count processors
//! count those of their affinity.
//!
//! Mistakes are found before anything starts: a processor that the machine has not, and one that
//! this process may not use.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processors that the machine has, as a list with ranges.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// A part of a climb that has processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Server,
    /// The proxy of a path: the pool, or a peer.
    Pool,
    Load,
}

impl Part {
    const ALL: [Self; 3] = [Self::Server, Self::Pool, Self::Load];

    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Pool => "pool",
            Self::Load => "load",
        }
    }
}

/// Processors by part, each list sorted and without repetitions; an empty one leaves the part as
/// it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processors([Vec<usize>; 3]);

impl Processors {
    pub(crate) fn of(&self, part: Part) -> &[usize] {
        &self.0[part as usize]
    }

    /// True if nothing else runs on the server's processors, of what is measured.
    pub(crate) fn server_is_apart(&self) -> bool {
        let [server, pool, load] = &self.0;
        let is_apart = |other: &Vec<usize>| {
            !other.is_empty() && !other.iter().any(|number| server.contains(number))
        };
        !server.is_empty() && is_apart(pool) && is_apart(load)
    }

    /// Checks the numbers against this machine and this process.
    pub(crate) fn check(&self) -> Result<(), String> {
        let online = fs::read_to_string(ONLINE).ok();
        let online = online.and_then(|text| parse_list(text.trim(), ',').ok());
        let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&n| allowed.is_set(n))
            .collect();
        self.check_with(online.as_deref().unwrap_or(&allowed), &allowed)
    }

    fn check_with(&self, online: &[usize], allowed: &[usize]) -> Result<(), String> {
        let missing = |among: &[usize]| {
            let mut named = Part::ALL.iter().flat_map(|&part| {
                let numbers = self.of(part).iter();
                numbers.map(move |&number| (part.name(), number))
            });
            named.find(|(_, number)| !among.contains(number))
        };
        if let Some((part, number)) = missing(online) {
            let there = list_text(online);
            return Err(format!(
                "{part}={number}: this machine has the processors {there}"
            ));
        }
        if let Some((part, number)) = missing(allowed) {
            let there = list_text(allowed);
            return Err(format!(
                "{part}={number}: this process may only use the processors {there} (taskset, \
                 cpuset of its group)"
            ));
        }
        Ok(())
    }
}

impl FromStr for Processors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "write as server=0,pool=1,load=1, and several as pool=1-3+6";
        let mut all = Self::default();
        for word in text.split(',') {
            let (name, list) = word
                .split_once('=')
                .ok_or_else(|| format!("'{word}' has no =; {expected}"))?;
            let part = Part::ALL
                .into_iter()
                .find(|part| part.name() == name.trim());
            let part = part.ok_or_else(|| {
                format!("'{name}' is none of server, pool (or the path's proxy), load; {expected}")
            })?;
            if !all.of(part).is_empty() {
                return Err(format!("{name} is named twice; {expected}"));
            }
            all.0[part as usize] = parse_list(list.trim(), '+')
                .map_err(|fault| format!("{word}: {fault}; {expected}"))?;
        }
        Ok(all)
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Part::ALL
            .into_iter()
            .filter(|&part| !self.of(part).is_empty());
        let words = named.map(|part| format!("{}={}", part.name(), list_text(self.of(part))));
        out.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

/// Reads numbers and ranges.
fn parse_list(text: &str, between: char) -> Result<Vec<usize>, String> {
    let number = |text: &str| match text.parse::<usize>() {
        Ok(number) if number < CpuSet::MAX_CPU => Ok(number),
        _ => Err(format!("'{text}' is no number of a processor")),
    };
    let mut numbers = Vec::new();
    for word in text.split(between) {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("{word} is an empty range"));
        }
        numbers.extend(first..=last);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// Numbers as [`parse_list`] reads them: `0-3+6`.
fn list_text(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let words = runs.map(|run| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join("+")
}

/// Calls `start` with this thread on these processors, which a process that it starts inherits.
pub(crate) fn on<T>(numbers: &[usize], start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if numbers.is_empty() {
        return start();
    }
    let before = sched_getaffinity(None)?;
    let mut wanted = CpuSet::new();
    numbers.iter().for_each(|&number| wanted.set(number));
    sched_setaffinity(None, &wanted)?;
    let started = start();
    sched_setaffinity(None, &before)?;
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Processors {
        text.parse().unwrap()
    }

    #[test]
    fn each_part_has_its_list() {
        let all = read("server=2-5,load=0+8+0");
        assert_eq!(all.of(Part::Server), [2, 3, 4, 5]);
        assert_eq!(all.of(Part::Load), [0, 8]);
        assert_eq!(all.of(Part::Pool), [0; 0]);
        assert_eq!(all.to_string(), "server=2-5,load=0+8");
        let most = format!("pool=0-{}", CpuSet::MAX_CPU - 1);
        assert_eq!(read(&most).to_string(), most);
    }

    #[test]
    fn the_server_is_apart_where_all_others_are_elsewhere() {
        for (text, is_apart) in [
            ("server=0,pool=1,load=1", true),
            ("server=0,pool=1-2,load=0+1", false),
            ("server=0,pool=1", false),
            ("pool=1,load=2", false),
        ] {
            assert_eq!(read(text).server_is_apart(), is_apart, "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let beyond = format!("load={}", CpuSet::MAX_CPU);
        for (text, words) in [
            ("server", "'server' has no =; write as server=0,pool=1"),
            ("proxy=1", "'proxy' is none of server, pool"),
            ("load=1,load=2", "load is named twice"),
            ("load=", "load=: '' is no number of a processor"),
            ("load=1-", "load=1-: '' is no number"),
            ("load=3-1", "load=3-1: 3-1 is an empty range"),
            ("load=0-99999999999999999999", "is no number of a processor"),
            (&beyond, "is no number of a processor"),
        ] {
            let error = text.parse::<Processors>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_processor_must_be_there_and_allowed() {
        let check = |text: &str| read(text).check_with(&[0, 1, 2, 3], &[1, 2]);
        assert_eq!(check("server=1,pool=2"), Ok(()));
        assert_eq!(
            check("server=1,pool=2-4").unwrap_err(),
            "pool=4: this machine has the processors 0-3"
        );
        let text = check("server=0").unwrap_err();
        assert!(
            text.starts_with("server=0: this process may only use the processors 1-2"),
            "{text}"
        );
    }

    #[test]
    fn a_thread_has_its_own_processors_again() {
        let before = sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU).rfind(|&number| before.is_set(number));
        let last = last.unwrap();
        let during = on(&[last], || Ok(sched_getaffinity(None)?)).unwrap();
        assert_eq!((during.count(), during.is_set(last)), (1, true));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        let error = on(&[last], || Err::<(), _>(io::Error::other("no program")));
        assert_eq!(error.unwrap_err().to_string(), "no program");
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
