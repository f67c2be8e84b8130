//! Drawing a script from a seed.
//!
//! Each client has a queue of steps that a habit gave it. Again and again some client takes its
//! next step, or draws a new habit if it has none; so the stories of several clients run through
//! each other. What is not legal at its moment (see `claims`) is left out.
//!
//! Tags of a step, before its text: `pins`, `takes`, `gives`, `opens`, `closes`, `manual`,
//! `automatic`, `excludes` and `includes` are claims; `init`, `ping`, `reset`, `leave`, `vanish`,
//! `multi=on|off`, `user=app|other`, `together`, `bytes` (with `%` and two digits for a byte),
//! `attribute`, and with the name of a prepared statement `prepare=`, `execute=`, `cursor=`,
//! `again=`, `bulk=`, `fetch=`, `long=`, `clear=`, `close=` are acts; without one the text is SQL.
//! Parameters stand with commas between them (rows of them with bars), `~` for NULL or for what
//! came as long data.
//!
//! `b` in front says that a second client does it, one that had nothing to do and does nothing else
//! until the story ends. `blocked` is SQL that waits while the steps behind it are taken, up to the
//! one that says `answers`. `kill=query|connection|command` ends the other one of the two.

use super::claims::{Backends, Claims, legal};
use super::ground::CLIENTS_MAX;
use super::habits::{self, Habit, LEFT_OUT, On};
use super::script::{Act, Claim, Kill, Login, Step};
use crate::real::Flavour;
use crate::sim::random::Random;
use std::collections::VecDeque;
use wire::capabilities as cap;

const WORDS: [&str; 6] = ["red", "green", "Blau", "x", "a b", "word"];
const STEPS: (u64, u64) = (25, 60);

struct Drawing {
    random: Random,
    habits: Vec<&'static Habit>,
    weights: u64,
    claims: Claims,
    queues: [VecDeque<Step>; CLIENTS_MAX],
    /// Clients whose reads lock inside of a transaction.
    serializable: [bool; CLIENTS_MAX],
    /// Clients that have named the access of a transaction at its START, which MySQL reports when a
    /// tracker is switched on later.
    named_access: [bool; CLIENTS_MAX],
    /// Clients of the other account, who may not end those of the first; the pool does not count
    /// the right to end anybody.
    other: [bool; CLIENTS_MAX],
    /// The second client of somebody's story, and whose it is.
    second: [Option<usize>; CLIENTS_MAX],
    /// Capabilities that some clients of this script have, and some do not.
    accents: Vec<Accent>,
    clients: usize,
    steps: Vec<Step>,
}

/// Capability that a client may have at login, or lack.
#[derive(Clone, Copy, Debug)]
enum Accent {
    With(u32),
    Without(u32),
    Extended(u32),
}

/// Collations of logins: of latin1, utf8mb3, utf8mb4, koi8r.
const COLLATIONS: [u16; 5] = [8, 33, 46, 224, 7];

/// One of ucs2, in which no client may speak: a change of user that names it is refused.
const NOT_SPOKEN: u16 = 35;

/// Clients that differ here share no backend, or speak to the pool in another form.
const ACCENTS: [Accent; 12] = [
    Accent::With(cap::FOUND_ROWS),
    Accent::With(cap::MULTI_STATEMENTS),
    Accent::With(cap::LOCAL_FILES),
    Accent::With(cap::COMPRESS),
    Accent::With(cap::ZSTD),
    Accent::With(cap::QUERY_ATTRIBUTES),
    Accent::With(cap::IGNORE_SPACE),
    Accent::With(cap::INTERACTIVE),
    Accent::Without(cap::SESSION_TRACK),
    Accent::Without(cap::DEPRECATE_EOF),
    Accent::Extended(cap::EXTENDED_BULK),
    Accent::Extended(cap::EXTENDED_METADATA),
];

/// The script of a seed, in which there are backends enough at any moment.
#[must_use]
pub fn draw(seed: u64, backends: Backends) -> Vec<Step> {
    let mut random = Random::new(seed);
    let everything = std::env::var_os("ONRAMP_ORACLE_ALL").is_some();
    let known = |habit: &&Habit| {
        let on = match habit.on {
            On::Both => true,
            On::MariaDb => backends.of == Flavour::MariaDb,
            On::MySql => backends.of == Flavour::MySql,
        };
        on && (everything || LEFT_OUT.iter().all(|(name, _)| *name != habit.name))
    };
    let mut habits: Vec<&Habit> = habits::all().filter(known).collect();
    // A script that does a few things often finds more than one that does everything once.
    let few = 6 + random.index(8);
    while random.chance(2) && habits.len() > few || habits.len() > 3 * few {
        habits.swap_remove(random.index(habits.len()));
    }
    let mut drawing = Drawing::new(random, backends, habits);
    let steps = drawing.random.between(STEPS.0, STEPS.1);
    for _ in 0..steps * 4 {
        if drawing.steps.len() as u64 >= steps {
            break;
        }
        drawing.next();
    }
    hurry(seed, &mut drawing.steps);
    secure(seed, &mut drawing.steps);
    if backends.of == Flavour::MariaDb {
        forbid_schemas(seed, &mut drawing.steps);
    }
    // What such clients may say is known only now.
    legal(&drawing.steps, backends)
}

/// Says which clients name no schemas (CLIENT_NO_SCHEMA): three of four in every fourth script.
/// They say `other.t`, and mean `t`. Some ask at once what the connection has left. It is drawn
/// apart too. Not on MySQL, which warns of the capability with each statement: its count of
/// warnings is known to differ at times (docs/pool/limits.md).
fn forbid_schemas(seed: u64, steps: &mut Vec<Step>) {
    let mut random = Random::new(seed.rotate_left(16) ^ 2);
    if !random.chance(250) {
        return;
    }
    for mut step in std::mem::take(steps) {
        let who = step.who;
        let mut asks = false;
        if let Act::Join(login) = &mut step.act
            && random.chance(750)
        {
            login.with |= cap::NO_SCHEMA;
            asks = random.chance(500);
        }
        steps.push(step);
        if asks {
            steps.push(Step::sql(who, "SHOW WARNINGS"));
        }
    }
}

/// Says which clients are under TLS: a quarter of those of every other script, on both ways. It is
/// drawn apart too.
fn secure(seed: u64, steps: &mut [Step]) {
    let mut random = Random::new(seed.rotate_left(32) ^ 1);
    if random.chance(500) {
        return;
    }
    for step in steps {
        if let Act::Join(login) = &mut step.act
            && random.chance(250)
        {
            login.with |= cap::SSL;
        }
    }
}

/// Says which steps come at once, before the pool has its answers about the step before, and which
/// only after that: of some scripts all do, of some none, of most a part. It is drawn apart from
/// the rest, so that a seed keeps its script.
fn hurry(seed: u64, steps: &mut [Step]) {
    let mut random = Random::new(!seed);
    let late = *random.pick(&[0, 250, 500, 1000]);
    for step in steps {
        step.late = random.chance(late);
    }
}

impl Drawing {
    fn new(mut random: Random, backends: Backends, habits: Vec<&'static Habit>) -> Drawing {
        let mut accents = ACCENTS.to_vec();
        while accents.len() > 3 {
            accents.swap_remove(random.index(accents.len()));
        }
        Drawing {
            weights: habits.iter().map(|habit| habit.weight).sum(),
            habits,
            claims: Claims::new(backends),
            queues: Default::default(),
            serializable: [false; CLIENTS_MAX],
            named_access: [false; CLIENTS_MAX],
            other: [false; CLIENTS_MAX],
            second: [None; CLIENTS_MAX],
            accents,
            clients: CLIENTS_MAX,
            steps: Vec::new(),
            random,
        }
    }

    fn next(&mut self) {
        let who = match self.claims.alone() {
            Some(alone) => alone,
            None => self.random.index(self.clients),
        };
        if self.is_second(who) {
            return;
        }
        // Where somebody has left in a story of two, the other goes on with it.
        let goes_on = self.queues[who].front().is_some_and(|step| step.who != who);
        let step = if !self.claims.is_here(who) && !goes_on {
            self.queues[who].clear();
            self.join(who)
        } else {
            if self.queues[who].is_empty() {
                self.draw_habit(who);
            }
            match self.queues[who].pop_front() {
                Some(step) => step,
                None => return,
            }
        };
        if self.suits(&step) && self.claims.admit(&step) {
            self.note(&step);
            self.steps.push(step);
        } else {
            // What follows would make no sense.
            self.queues[who].clear();
        }
    }

    /// True if somebody's story has this client in it.
    fn is_second(&self, who: usize) -> bool {
        let first = self.second.iter().position(|second| *second == Some(who));
        first.is_some_and(|first| !self.queues[first].is_empty())
    }

    /// True if a step may be taken now, as far as it is not a matter of claims.
    fn suits(&self, step: &Step) -> bool {
        let tracks = "session_track_transaction_info = CHAR";
        if self.named_access[step.who] && step.texts().iter().any(|text| text.contains(tracks)) {
            return false;
        }
        match &step.act {
            // Nobody is interrupted in the middle of a habit.
            Act::Together(all) => all
                .iter()
                .all(|(who, _)| self.queues[*who].is_empty() && !self.is_second(*who)),
            Act::Kill(whom, _) => self.other[step.who] == self.other[*whom],
            Act::Blocked(_, steps) => steps.iter().all(|step| self.suits(step)),
            _ => true,
        }
    }

    fn note(&mut self, step: &Step) {
        let who = step.who;
        if let Act::Join(login) | Act::ChangeUser(login) = &step.act
            && login.collation != Some(NOT_SPOKEN)
        {
            self.other[who] = login.other;
        }
        let says = |part| step.texts().iter().any(|text| text.contains(part));
        self.serializable[who] |= says("SERIALIZABLE");
        self.named_access[who] |= says("START TRANSACTION READ");
        self.serializable[who] &= step.claim != Claim::Frees;
        self.named_access[who] &= step.claim != Claim::Frees;
    }

    fn join(&mut self, who: usize) -> Step {
        let mut login = Login {
            schema: !self.random.chance(200),
            other: self.random.chance(50),
            ..Login::default()
        };
        if self.random.chance(50) {
            login.collation = Some(*self.random.pick(&COLLATIONS));
        }
        for accent in self.accents.clone() {
            if self.random.chance(250) {
                match accent {
                    Accent::With(flag) => login.with |= flag,
                    Accent::Without(flag) => login.without |= flag,
                    Accent::Extended(flag) => login.extended |= flag,
                }
            }
        }
        Step::new(who, Act::Join(login), Claim::Frees)
    }

    fn draw_habit(&mut self, who: usize) {
        let mut at = self.random.below(self.weights);
        let mut chosen = self.habits[0];
        for habit in &self.habits {
            chosen = habit;
            if at < habit.weight {
                break;
            }
            at -= habit.weight;
        }
        let way = *self.random.pick(chosen.ways);
        let parts: Vec<&str> = way.split(" ;; ").collect();
        if parts.iter().any(|part| for_two(part)) {
            return self.draw_for_two(who, &parts);
        }
        // Stories are broken off, too.
        let len = if self.random.chance(150) {
            1 + self.random.index(parts.len())
        } else {
            parts.len()
        };
        for part in &parts[..len] {
            let step = self.step(who, part);
            self.queues[who].push_back(step);
        }
    }

    /// Draws a story of two, told to its end, by clients that hold nothing.
    fn draw_for_two(&mut self, who: usize, parts: &[&str]) {
        let free = |other: &usize| {
            *other != who
                && self.claims.is_here(*other)
                && self.queues[*other].is_empty()
                && !self.claims.holds(*other)
                && !self.is_second(*other)
                && !self.serializable[*other]
        };
        let others: Vec<usize> = (0..self.clients).filter(free).collect();
        if others.is_empty() || self.claims.holds(who) || self.serializable[who] {
            return;
        }
        let second = *self.random.pick(&others);
        self.second[who] = Some(second);
        let mut waits: Option<(Step, Vec<Step>)> = None;
        for part in parts {
            let (tags, _) = split(part);
            let step = self.step(who, part);
            if tags.contains(&"blocked") {
                waits = Some((step, Vec::new()));
                continue;
            }
            match &mut waits {
                Some((_, steps)) => steps.push(step),
                None => self.queues[who].push_back(step),
            }
            if tags.contains(&"answers")
                && let Some((mut step, steps)) = waits.take()
                && let Act::Sql(sql) = step.act
            {
                step.act = Act::Blocked(sql, steps);
                self.queues[who].push_back(step);
            }
        }
    }

    fn step(&mut self, who: usize, part: &str) -> Step {
        let (tags, text) = split(part);
        let text = self.filled(who, text);
        let second = self.second[who].unwrap_or(who);
        let (who, whom) = match tags.contains(&"b") {
            true => (second, who),
            false => (who, second),
        };
        let mut step = Step::sql(who, text.clone());
        for tag in tags {
            let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
            if ["b", "blocked", "answers"].contains(&name) {
                continue;
            }
            if let Some(claim) = claim(name) {
                step.claim = claim;
            } else if name == "together" {
                step.act = self.together();
            } else if name == "kill" {
                step.act = Act::Kill(whom, kill(value));
            } else {
                let act = act(name, value, &text);
                step.act = act.unwrap_or_else(|| panic!("{part}: no such tag: {tag}"));
                if matches!(
                    step.act,
                    Act::Reset | Act::Leave | Act::Vanish | Act::ChangeUser(_)
                ) {
                    step.claim = Claim::Frees;
                }
            }
        }
        step
    }

    /// Plain reads of several clients, which may run in any order and be pipelined on one backend.
    fn together(&mut self) -> Act {
        let count = 2 + self.random.index(self.clients - 1);
        let mut all: Vec<(usize, String)> = Vec::new();
        for who in 0..self.clients {
            if all.len() < count && self.claims.is_here(who) {
                let reads = habits::reads().ways;
                let way = reads[self.random.index(9)];
                all.push((who, self.filled(who, way)));
            }
        }
        Act::Together(all)
    }

    fn filled(&mut self, who: usize, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').expect("a closing brace");
            out.push_str(before);
            match name {
                "t" => out.push_str(&format!("t{who}")),
                "d" => out.push_str(&format!("d{who}")),
                "l" => out.push_str(&format!("lock{who}")),
                "p" => out.push_str(&format!("adds{who}")),
                "v" => out.push_str(&format!("v{who}")),
                "o" if self.serializable[who] => out.push_str(&format!("t{who}")),
                "o" => out.push_str(&format!("t{}", self.random.index(self.clients))),
                "n" => out.push_str(&self.random.below(10).to_string()),
                "k" => out.push_str(&self.random.between(1, 20).to_string()),
                "w" => out.push_str(self.random.pick::<&str>(&WORDS)),
                other => panic!("{text}: no such placeholder: {other}"),
            }
            rest = after;
        }
        out + rest
    }
}

/// True if a second client has a part in it.
fn for_two(part: &str) -> bool {
    let (tags, _) = split(part);
    tags.iter()
        .any(|tag| *tag == "b" || tag.starts_with("kill="))
}

fn kill(value: &str) -> Kill {
    match value {
        "query" => Kill::Query,
        "connection" => Kill::Connection,
        "command" => Kill::Command,
        other => panic!("no such kill: {other}"),
    }
}

/// Bytes of a text in which `%` and two hexadecimal digits are a byte.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        out.push(u8::from_str_radix(digits, 16).expect("hexadecimal digits"));
        out.extend_from_slice(rest.as_bytes());
    }
    out
}

fn split(part: &str) -> (Vec<&str>, &str) {
    match part.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((tags, text)) => (tags.split(' ').collect(), text),
        None => (Vec::new(), part),
    }
}

fn claim(name: &str) -> Option<Claim> {
    Some(match name {
        "pins" => Claim::Pins,
        "takes" => Claim::Takes,
        "gives" => Claim::GivesBack,
        "opens" => Claim::Opens,
        "closes" => Claim::Closes,
        "manual" => Claim::Manual,
        "automatic" => Claim::Automatic,
        "excludes" => Claim::Excludes,
        "includes" => Claim::Includes,
        _ => return None,
    })
}

fn act(name: &str, value: &str, text: &str) -> Option<Act> {
    let slot = || value.parse().expect("a statement's name is a number");
    let row = |text: &str| {
        let param = |text: &str| (text != "~").then(|| text.to_string());
        let all = text.split(',').filter(|text| !text.is_empty());
        all.map(param).collect()
    };
    let params = || row(text);
    let login = || Login {
        schema: value == "app",
        other: value == "other",
        collation: text.parse().ok(),
        ..Login::default()
    };
    Some(match name {
        "init" => Act::InitDb(text.into()),
        "bytes" => Act::Bytes(bytes(text)),
        "attribute" => Act::Attribute(text.into()),
        "bulk" => Act::Bulk(slot(), text.split('|').map(row).collect()),
        "ping" => Act::Ping,
        "statistics" => Act::Statistics,
        "reset" => Act::Reset,
        "leave" => Act::Leave,
        "vanish" => Act::Vanish,
        "multi" => Act::MultiStatements(value == "on"),
        "user" => Act::ChangeUser(login()),
        "prepare" => Act::Prepare(slot(), text.into()),
        "execute" => Act::Execute(slot(), params(), false),
        "cursor" => Act::Execute(slot(), params(), true),
        "again" => Act::Again(slot(), params()),
        "cut" => Act::Cut(slot()),
        "fetch" => Act::Fetch(slot(), text.parse().expect("a number of rows")),
        "long" => Act::LongData(slot(), 0, text.into()),
        "clear" => Act::ResetStatement(slot()),
        "close" => Act::Close(slot()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::claims::legal;

    const THREE: Backends = Backends {
        count: 3,
        of: Flavour::MariaDb,
    };

    #[test]
    fn a_seed_gives_one_legal_script() {
        for seed in 0..200 {
            let steps = draw(seed, THREE);
            assert_eq!(steps, draw(seed, THREE), "seed {seed}");
            assert_eq!(steps, legal(&steps, THREE), "seed {seed}");
            assert!(steps.len() > 15, "seed {seed}: {} steps", steps.len());
        }
    }

    #[test]
    fn every_way_of_every_habit_can_be_read() {
        let mut drawing = Drawing::new(Random::new(1), THREE, Vec::new());
        drawing.second[0] = Some(1);
        for way in habits::all().flat_map(|habit| habit.ways) {
            for part in way.split(" ;; ") {
                drawing.step(0, part);
            }
        }
    }

    #[test]
    fn what_is_left_out_exists() {
        for (name, _) in LEFT_OUT {
            let exists = habits::all().any(|habit| habit.name == name);
            assert!(exists, "{name}");
        }
    }
}
