//! Random stories of many clients, told to the server and through the pool: `testkit::oracle`.
//!
//! `ONRAMP_ORACLE_SEEDS` says how many seeds (250 unless it is set, 50 on MySQL),
//! `ONRAMP_ORACLE_SEED` runs one. The server and the pool stay up across seeds, so a pool also
//! has to get over what the scripts before left. A seed that fails is told again to a pool of its
//! own, cut down, and printed as a test to be pasted into this folder.

use crate::world::{found, start_pool};
use std::time::{Duration, Instant};
use testkit::onramp::Pool;
use testkit::oracle::{Difference, Pair, Step, Verdict, draw, ground, legal, shrink, story};
use testkit::real::{Flavour, Real};

const SEEDS: u64 = 250;
/// The same on MySQL: from seed 56 on, what its OK packets count of older warnings differs.
const MYSQL_SEEDS: u64 = 50;
/// What a script may ask for; the pool has two more, for what it pins and a script does not, and
/// still fewer than there are clients.
const BACKENDS: usize = 3;
/// Failing seeds after which the rest is not worth the time.
const FAILURES_MAX: usize = 3;
const SHRINK_TRIES: usize = 150;
const SHRINK_TIME_MAX: Duration = Duration::from_secs(40);

/// A seed that takes longer is named: something in it waits for a lock or a backend.
const SLOW: Duration = Duration::from_secs(2);

#[test]
fn the_oracle_finds_no_difference_on_mariadb() {
    let arguments = ["--innodb-lock-wait-timeout=2", "--lock-wait-timeout=4"];
    let Some(real) = found(Real::start(&arguments), "oracle on MariaDB") else {
        return;
    };
    consult(&real);
}

#[test]
fn the_oracle_finds_no_difference_on_mysql() {
    let arguments = ["--innodb-lock-wait-timeout=2", "--lock-wait-timeout=4"];
    let Some(real) = found(Real::start_mysql(&arguments), "oracle on MySQL") else {
        return;
    };
    consult(&real);
}

struct Oracle<'a> {
    real: &'a Real,
    pairs: usize,
}

impl Oracle<'_> {
    /// A pool that nobody has used, and the server behind it.
    fn fresh(&mut self) -> (Pool, Pair) {
        self.pairs += 1;
        let name = format!("oracle{}.toml", self.pairs);
        let backends = BACKENDS + 2;
        let extra = format!("backends_max = {backends}\ngroups = 1\nwait_ms_max = 4000");
        let pool = start_pool(self.real, &name, &extra);
        let pair = Pair {
            admin: self.real.admin(),
            direct: self.real.address(),
            pooled: pool.address.clone(),
        };
        (pool, pair)
    }

    /// A failing script, cut down, as words; `before` are the scripts that its pool has served.
    fn report(&mut self, seed: u64, before: &[Vec<Step>], steps: &[Step]) -> Option<String> {
        let steps = self.with_what_it_needs(before, steps)?;
        let began = Instant::now();
        let short = shrink(&steps, BACKENDS, SHRINK_TRIES, |steps| {
            began.elapsed() < SHRINK_TIME_MAX && self.differs_alone(steps).is_some()
        });
        let difference = self.differs_alone(&short)?;
        let name = match self.real.flavour() {
            Flavour::MariaDb => format!("seed_{seed}"),
            Flavour::MySql => format!("mysql_seed_{seed}"),
        };
        let story = story(&name, BACKENDS, &short);
        Some(format!("seed {seed} differs:\n{story}{difference}\n"))
    }

    /// A script that differs on a pool of its own: this one, or with the fewest of those before it.
    fn with_what_it_needs(&mut self, before: &[Vec<Step>], steps: &[Step]) -> Option<Vec<Step>> {
        let mut count = 0;
        loop {
            let mut all: Vec<Step> = Vec::new();
            for script in &before[before.len() - count..] {
                all.extend_from_slice(script);
                all.extend((0..ground::CLIENTS_MAX).map(Step::vanish));
            }
            all.extend_from_slice(steps);
            let all = legal(&all, BACKENDS);
            if self.differs_alone(&all).is_some() {
                return Some(all);
            }
            if count == before.len() {
                return None;
            }
            count = (2 * count + 1).min(before.len());
        }
    }

    fn differs_alone(&mut self, steps: &[Step]) -> Option<Difference> {
        let (_pool, mut pair) = self.fresh();
        differs(pair.compare(steps))
    }
}

fn differs(verdict: Verdict) -> Option<Difference> {
    match verdict {
        Verdict::Differs(difference) => Some(*difference),
        Verdict::Same | Verdict::Fickle(_) => None,
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
    )
}

fn consult(real: &Real) {
    let flavour = real.flavour();
    real.create_user("app", "app");
    real.create_user("other", "other's");
    let mut admin = real.admin();
    for sql in ground::statements() {
        admin.must(&sql);
    }
    let mut oracle = Oracle { real, pairs: 0 };
    let seeds = match number("ONRAMP_ORACLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let usual = match flavour {
                Flavour::MariaDb => SEEDS,
                Flavour::MySql => MYSQL_SEEDS,
            };
            1..number("ONRAMP_ORACLE_SEEDS").unwrap_or(usual) + 1
        }
    };
    let (mut pool, mut pair) = oracle.fresh();
    let mut before = Vec::new();
    let (mut steps, mut fickle, mut failed) = (0, Vec::new(), Vec::<u64>::new());
    let started = Instant::now();
    for seed in seeds.clone() {
        let script = draw(seed, BACKENDS, flavour);
        steps += script.len();
        let began = Instant::now();
        let verdict = pair.compare(&script);
        if began.elapsed() > SLOW {
            eprintln!("seed {seed} took {:.1?}", began.elapsed());
        }
        match verdict {
            Verdict::Same => {}
            Verdict::Fickle(difference) => fickle.push((seed, difference)),
            Verdict::Differs(difference) => {
                eprintln!("seed {seed} differs, to be cut down: {difference}");
                let report = oracle.report(seed, &before, &script);
                let once = || format!("seed {seed} differed once: {difference}");
                eprintln!("{}", report.unwrap_or_else(once));
                failed.push(seed);
                before.clear();
                (pool, pair) = oracle.fresh();
            }
        }
        before.push(script);
        if failed.len() >= FAILURES_MAX {
            break;
        }
    }
    drop(pool);
    let (seeds, took) = (seeds.end - seeds.start, started.elapsed());
    eprintln!("oracle on {flavour:?}: {seeds} seeds, {steps} steps, {took:.1?}");
    for (seed, difference) in &fickle {
        eprintln!("seed {seed}: the server itself answers otherwise twice: {difference}");
    }
    assert!(failed.is_empty(), "seeds {failed:?} differ: see above");
    assert!(fickle.len() < 5, "{} scripts are fickle", fickle.len());
}
