//! Drawing a script from a seed.
//!
//! Each client has a queue of steps that a habit gave it. Again and again some client takes its
//! next step, or draws a new habit if it has none; so the stories of several clients run through
//! each other. What is not legal at its moment (see `claims`) is left out.
//!
//! Tags of a step, before its text: `pins`, `takes`, `gives`, `opens`, `closes`, `manual`,
//! `automatic`, `excludes` and `includes` are claims; `init`, `ping`, `reset`, `leave`, `vanish`,
//! `multi=on|off`, `user=app|other`, `together`, and with the name of a prepared statement
//! `prepare=`, `execute=`, `cursor=`, `again=`, `fetch=`, `long=`, `clear=`, `close=` are acts;
//! without one the text is SQL. Parameters stand with commas between them, `~` for NULL or for what
//! came as long data.

use super::claims::Claims;
use super::ground::CLIENTS_MAX;
use super::habits::{self, Habit, LEFT_OUT, On};
use super::script::{Act, Claim, Login, Step};
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
    clients: usize,
    steps: Vec<Step>,
}

/// The script of a seed, in which fewer than `backends` clients hold one at any moment.
#[must_use]
pub fn draw(seed: u64, backends: usize, flavour: Flavour) -> Vec<Step> {
    let mut random = Random::new(seed);
    let everything = std::env::var_os("ONRAMP_ORACLE_ALL").is_some();
    let known = |habit: &&Habit| {
        let on = match habit.on {
            On::Both => true,
            On::MariaDb => flavour == Flavour::MariaDb,
            On::MySql => flavour == Flavour::MySql,
        };
        on && (everything || LEFT_OUT.iter().all(|(name, _)| *name != habit.name))
    };
    let mut habits: Vec<&Habit> = habits::all().filter(known).collect();
    // A script that does a few things often finds more than one that does everything once.
    let few = 6 + random.index(8);
    while random.chance(2) && habits.len() > few || habits.len() > 3 * few {
        habits.swap_remove(random.index(habits.len()));
    }
    let clients = CLIENTS_MAX;
    let mut drawing = Drawing {
        weights: habits.iter().map(|habit| habit.weight).sum(),
        habits,
        claims: Claims::new(backends),
        queues: Default::default(),
        serializable: [false; CLIENTS_MAX],
        clients,
        steps: Vec::new(),
        random,
    };
    let steps = drawing.random.between(STEPS.0, STEPS.1);
    for _ in 0..steps * 4 {
        if drawing.steps.len() as u64 >= steps {
            break;
        }
        drawing.next();
    }
    drawing.steps
}

impl Drawing {
    fn next(&mut self) {
        let who = match self.claims.alone() {
            Some(alone) => alone,
            None => self.random.index(self.clients),
        };
        let step = if !self.claims.is_here(who) {
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
        // Nobody is interrupted in the middle of a habit.
        let interrupts = match &step.act {
            Act::Together(all) => all.iter().any(|(who, _)| !self.queues[*who].is_empty()),
            _ => false,
        };
        if !interrupts && self.claims.admit(&step) {
            self.serializable[who] |= step.texts().iter().any(|t| t.contains("SERIALIZABLE"));
            self.serializable[who] &= step.claim != Claim::Frees;
            self.steps.push(step);
        } else {
            // What follows would make no sense.
            self.queues[who].clear();
        }
    }

    fn join(&mut self, who: usize) -> Step {
        let mut with = 0;
        let mut without = 0;
        for (flag, per_mille) in [(cap::FOUND_ROWS, 100), (cap::MULTI_STATEMENTS, 100)] {
            with |= if self.random.chance(per_mille) {
                flag
            } else {
                0
            };
        }
        for (flag, per_mille) in [(cap::SESSION_TRACK, 150), (cap::DEPRECATE_EOF, 150)] {
            without |= if self.random.chance(per_mille) {
                flag
            } else {
                0
            };
        }
        let login = Login {
            schema: !self.random.chance(100),
            with,
            without,
            other: self.random.chance(50),
        };
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

    fn step(&mut self, who: usize, part: &str) -> Step {
        let (tags, text) = split(part);
        let text = self.filled(who, text);
        let mut step = Step::sql(who, text.clone());
        for tag in tags {
            let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
            if let Some(claim) = claim(name) {
                step.claim = claim;
            } else if name == "together" {
                step.act = self.together();
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

    /// Plain reads of several clients, which may run in any order and ride on one backend.
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
    let params = || {
        let param = |text: &str| (text != "~").then(|| text.to_string());
        let all = text.split(',').filter(|text| !text.is_empty());
        all.map(param).collect()
    };
    let login = || Login {
        schema: value == "app",
        with: 0,
        without: 0,
        other: value == "other",
    };
    Some(match name {
        "init" => Act::InitDb(text.into()),
        "ping" => Act::Ping,
        "reset" => Act::Reset,
        "leave" => Act::Leave,
        "vanish" => Act::Vanish,
        "multi" => Act::MultiStatements(value == "on"),
        "user" => Act::ChangeUser(login()),
        "prepare" => Act::Prepare(slot(), text.into()),
        "execute" => Act::Execute(slot(), params(), false),
        "cursor" => Act::Execute(slot(), params(), true),
        "again" => Act::Again(slot(), params()),
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

    #[test]
    fn a_seed_gives_one_legal_script() {
        for seed in 0..200 {
            let steps = draw(seed, 3, Flavour::MariaDb);
            assert_eq!(steps, draw(seed, 3, Flavour::MariaDb), "seed {seed}");
            assert_eq!(steps, legal(&steps, 3), "seed {seed}");
            assert!(steps.len() > 15, "seed {seed}: {} steps", steps.len());
        }
    }

    #[test]
    fn every_way_of_every_habit_can_be_read() {
        let mut drawing = Drawing {
            random: Random::new(1),
            habits: Vec::new(),
            weights: 0,
            claims: Claims::new(3),
            queues: Default::default(),
            serializable: [false; CLIENTS_MAX],
            clients: 4,
            steps: Vec::new(),
        };
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
