//! Writes of a client, or of an account, as the numbers by which a replica tells that it has them.
//!
//! The problem: whoever has written must find that where it reads, on a replica that follows a
//! moment later. The mechanism: the servers report the number of each transaction (MariaDB in
//! `last_gtid`, MySQL by `session_track_gtids`); a replica is asked to wait for them. A range
//! stands for all numbers in it: a replica that has the last has those before it, as long as it
//! commits in order, which is the default.
//!
//! Invariants: at most [`SOURCES_MAX`] sources; what may have been written and was not reported
//! makes the whole [`OwnWrites::is_unsure`], until a later number is known; what was not logged
//! does for good.

use sql::lex::Server;
use std::fmt::Write as _;

/// Domains or servers whose numbers are kept; with more, no replica is asked.
pub const SOURCES_MAX: usize = 4;

/// Numbers of one source: of a domain of MariaDB's, or of a server (and tag) of MySQL's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    name: Box<str>,
    /// MariaDB's server in the last number.
    server: Box<str>,
    first: u64,
    last: u64,
}

/// Writes that a read has to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnWrites {
    sources: Vec<Source>,
    is_unsure: bool,
    /// True if no replica is asked any more.
    is_lost: bool,
}

impl OwnWrites {
    /// True if something may have been written whose number is not known.
    #[must_use]
    pub fn is_unsure(&self) -> bool {
        self.is_unsure || self.is_lost
    }

    /// True if there is nothing to wait for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && !self.is_unsure()
    }

    /// Notes a write that may have happened and was not reported.
    pub fn doubt(&mut self) {
        self.is_unsure = true;
    }

    /// Notes a write that may have happened and that no replica is told of.
    pub fn lose(&mut self) {
        self.is_lost = true;
    }

    /// Adds a `last_gtid` that MariaDB has reported: domain, server and number.
    pub fn note_gtid(&mut self, gtid: &[u8]) {
        let parts = std::str::from_utf8(gtid).ok();
        let parts = parts.and_then(|text| text.split_once('-'));
        let read = parts.and_then(|(domain, rest)| {
            let (server, number) = rest.split_once('-')?;
            let plain = |text: &str| text.parse::<u32>().is_ok();
            let number = number
                .parse()
                .ok()
                .filter(|_| plain(domain) && plain(server))?;
            Some((domain, server, number))
        });
        match read {
            Some((domain, server, number)) => self.add((domain, server), number, number),
            None if gtid.is_empty() => {}
            None => self.doubt(),
        }
    }

    /// Adds a block that MySQL has reported: an encoding, and a set of numbers as text.
    pub fn note_set(&mut self, block: &[u8]) {
        let text = block.get(1..).and_then(|body| {
            let mut reader = wire::packet::Reader::new(body);
            reader.lenenc_bytes("a set of GTIDs").ok()
        });
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let plain = |text: &&str| !text.contains(['\'', '\\', '"']);
        let Some(text) = text.filter(plain) else {
            return self.doubt();
        };
        for of_server in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let mut parts = of_server.split(':').map(str::trim);
            let server = parts.next().unwrap_or_default();
            let mut name = server.to_owned();
            for part in parts {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                match (first.parse(), last.parse()) {
                    (Ok(first), Ok(last)) => self.add((&name, ""), first, last),
                    _ => name = format!("{server}:{part}"),
                }
            }
        }
    }

    fn add(&mut self, (name, server): (&str, &str), first: u64, last: u64) {
        // What came before it unseen has a lower number.
        let first = if std::mem::take(&mut self.is_unsure) {
            1
        } else {
            first
        };
        if let Some(source) = self.sources.iter_mut().find(|source| *source.name == *name) {
            source.first = source.first.min(first);
            if last > source.last {
                (source.last, source.server) = (last, server.into());
            }
            return;
        }
        self.is_lost |= self.sources.len() >= SOURCES_MAX;
        if !self.is_lost {
            self.sources.push(Source {
                name: name.into(),
                server: server.into(),
                first,
                last,
            });
        }
    }

    /// Takes what was reported just now, or is in doubt.
    pub fn take(&mut self, noted: &OwnWrites) {
        for source in &noted.sources {
            self.add((&source.name, &source.server), source.first, source.last);
        }
        self.is_unsure |= noted.is_unsure;
        self.is_lost |= noted.is_lost;
    }

    /// Adds the writes of another.
    pub fn join(&mut self, other: &OwnWrites) {
        let is_unsure = std::mem::take(&mut self.is_unsure) || other.is_unsure;
        for source in &other.sources {
            self.add((&source.name, &source.server), source.first, source.last);
        }
        (self.is_unsure, self.is_lost) = (is_unsure, self.is_lost || other.is_lost);
    }

    /// True if a server that has these has those of `other` too, none of which is unsure.
    #[must_use]
    pub fn covers(&self, other: &OwnWrites) -> bool {
        let has = |theirs: &Source| {
            let mut own = self.sources.iter();
            own.any(|own| {
                own.name == theirs.name && own.first <= theirs.first && own.last >= theirs.last
            })
        };
        !other.is_unsure() && other.sources.iter().all(has)
    }

    /// Question to a replica that is answered by 0 once it has them, and by another number, or
    /// NULL, after so many milliseconds.
    #[must_use]
    pub fn question(&self, server: Server, wait_ms: u64) -> String {
        let mut set = String::new();
        for source in &self.sources {
            let Source {
                name,
                server: of,
                first,
                last,
            } = source;
            let comma = if set.is_empty() { "" } else { "," };
            let _ = match server.is_mysql() {
                true => write!(set, "{comma}{name}:{first}-{last}"),
                false => write!(set, "{comma}{name}-{of}-{last}"),
            };
        }
        let function = match server.is_mysql() {
            true => "WAIT_FOR_EXECUTED_GTID_SET",
            false => "MASTER_GTID_WAIT",
        };
        let (seconds, rest) = (wait_ms / 1000, wait_ms % 1000);
        format!("SELECT {function}('{set}',{seconds}.{rest:03})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: Server = Server::MariaDb(101_100);
    const MYSQL: Server = Server::MySql(90_700);

    fn block(text: &str) -> Vec<u8> {
        [&[0, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    }

    #[test]
    fn the_last_number_of_each_domain_is_waited_for() {
        let mut writes = OwnWrites::default();
        assert!(writes.is_empty());
        for gtid in ["0-1-7", "3-1-2", "0-2-9", "0-1-8"] {
            writes.note_gtid(gtid.as_bytes());
        }
        let question = "SELECT MASTER_GTID_WAIT('0-2-9,3-1-2',1.050)";
        assert_eq!(writes.question(MARIADB, 1050), question);
        for odd in ["0-1-2'", "a-1-2", "0-1", "0-1-99999999999999999999"] {
            let mut writes = writes.clone();
            writes.note_gtid(odd.as_bytes());
            assert!(writes.is_unsure(), "{odd}");
        }
    }

    #[test]
    fn the_numbers_of_each_server_are_a_range() {
        let mut writes = OwnWrites::default();
        writes.note_set(&block("a-b:5"));
        writes.note_set(&block("a-b:7-8,\nc:t:1:3"));
        let question = "SELECT WAIT_FOR_EXECUTED_GTID_SET('a-b:5-8,c:t:1-3',0.250)";
        assert_eq!(writes.question(MYSQL, 250), question);
        writes.note_set(&block("a'b:5"));
        assert!(writes.is_unsure());
        writes.note_set(&block("a-b:9"));
        assert!(!writes.is_unsure(), "what came before has a lower number");
        assert!(writes.question(MYSQL, 1).contains("a-b:1-9"));
        writes.note_set(b"");
        assert!(writes.is_unsure());
        writes.lose();
        writes.note_set(&block("a-b:9"));
        assert!(writes.is_unsure(), "it is not logged");
    }

    #[test]
    fn a_server_has_what_it_has_waited_for_and_nothing_else_for_certain() {
        let of = |all: &[&str]| {
            let mut writes = OwnWrites::default();
            all.iter()
                .for_each(|gtid| writes.note_gtid(gtid.as_bytes()));
            writes
        };
        let mut has = OwnWrites::default();
        assert!(has.covers(&OwnWrites::default()));
        has.join(&of(&["0-1-3", "0-1-9"]));
        assert!(has.covers(&of(&["0-1-5"])) && has.covers(&of(&["0-1-9"])));
        assert!(!has.covers(&of(&["0-1-10"])) && !has.covers(&of(&["1-1-5"])));
        let mut unsure = of(&["0-1-5"]);
        unsure.doubt();
        assert!(!has.covers(&unsure));
        has.join(&unsure);
        assert!(has.is_unsure());
    }

    #[test]
    fn the_sources_are_bounded() {
        let mut writes = OwnWrites::default();
        for domain in 0..SOURCES_MAX {
            writes.note_gtid(format!("{domain}-1-1").as_bytes());
        }
        assert!(!writes.is_unsure());
        writes.note_gtid(b"99-1-1");
        writes.note_gtid(b"0-1-2");
        assert!(writes.is_unsure() && writes.sources.len() == SOURCES_MAX);
    }
}
