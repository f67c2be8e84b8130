//! Random stories of many clients, told to the server and through the pool: `testkit::oracle`.
//!
//! `ONRAMP_ORACLE_SEEDS` says how many seeds ([`SEEDS`] unless it is set, [`MYSQL_SEEDS`] on MySQL)
//! or which, as in `501-1500`; `ONRAMP_ORACLE_SEED` runs one; `ONRAMP_ORACLE_CUT` bounds how many
//! that differ are cut down, and then all seeds are told (docs/oracle.md). `ONRAMP_ORACLE_BACKENDS`
//! gives the pools another number of backends: with one for each client, who is refused would have
//! been refused without need. Some are told at the
//! same time, each to a server of its own: what a script does to a whole server (its global
//! variables, its read lock) must meet nobody else. Server and pool stay up across seeds, so a pool
//! also has to get over what the scripts before left. The seeds with odd numbers have a pool that
//! reaches the server under TLS. A seed that fails is told again to a pool of
//! its own, cut down, and printed as a story that can be saved in `tests/stories`.

use crate::world::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use testkit::oracle::{
    Backends, Difference, Pair, Step, Verdict, draw, ground, legal, shrink, story,
};
use testkit::tls::{CERT_FILE, KEY_FILE};

const SEEDS: u64 = 400;
const MYSQL_SEEDS: u64 = 400;
/// Seeds that are told at the same time, each to a server of its own.
const TELLERS: u64 = 2;
/// Backends that a script may ask for; the pool has two more, for what it pins and a script does
/// not, and still fewer than there are clients.
const BACKENDS: usize = 3;
/// Failing seeds after which the rest is not worth the time: where the seeds are the usual ones,
/// and where somebody has asked for many.
const FAILURES_MAX: usize = 3;
const SOAK_FAILURES_MAX: usize = 25;
const SHRINK_TRIES: usize = 600;
/// Time that a failing script may take to be cut down; the second where many seeds run.
const SHRINK_TIME_MAX: Duration = Duration::from_secs(40);
const SOAK_SHRINK_TIME_MAX: Duration = Duration::from_secs(200);

/// One script in so many may meet a refusal with error 1235.
const REFUSED_SHARE: u64 = 4;

/// Arguments of the servers, besides their certificates.
const ARGUMENTS: [&str; 2] = ["--innodb-lock-wait-timeout=2", "--lock-wait-timeout=4"];

/// A seed that takes longer is named: something in it waits for a lock or a backend.
const SLOW: Duration = Duration::from_secs(2);

#[test]
fn the_oracle_finds_no_difference_on_mariadb() {
    consult("oracle on MariaDB", SEEDS, Real::start);
}

#[test]
fn the_oracle_finds_no_difference_on_mysql() {
    consult("oracle on MySQL", MYSQL_SEEDS, Real::start_mysql);
}

/// An INSERT that fails has given the number that is next. MySQL gives out the one after it once
/// the table has been opened again.
#[test]
fn rows_are_numbered_alike_on_any_connection() {
    let real = or_return!(own(Real::start_mysql(&ARGUMENTS)));
    let (mut one, mut other) = (real.admin(), real.admin());
    one.must("CREATE DATABASE numbers");
    one.must("CREATE TABLE numbers.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT UNIQUE)");
    one.must("INSERT INTO numbers.t (v) VALUES (0)");
    one.must("INSERT IGNORE INTO numbers.t (id, v) VALUES (2, 0)");
    other.must("INSERT INTO numbers.t (v) VALUES (1)");
    assert_eq!(one.value("SELECT id FROM numbers.t WHERE v = 1"), "2");
}

/// Names of the pools' configurations.
static POOLS: AtomicUsize = AtomicUsize::new(1);

struct Oracle<'a> {
    real: &'a Real,
    /// The pool reaches the server under TLS.
    is_tls: bool,
}

impl Oracle<'_> {
    /// A pool that nobody has used, and the server behind it.
    fn fresh(&self) -> Pair {
        let name = format!("oracle{}.toml", POOLS.fetch_add(1, Ordering::Relaxed));
        let backends = backends_max();
        let tls = tls(self.real, "optional");
        let extra = format!("backends_max = {backends}\ngroups = 1\nwait_ms_max = 20000\n{tls}");
        let to_server = if self.is_tls {
            "tls = \"required\"\n"
        } else {
            ""
        };
        let text = config_to(&self.real.address(), to_server, &extra);
        let file = config_file(self.real, &name, &text);
        let pool = Pool::start(binary(), &["--config", file.to_str().unwrap()]);
        let pool = pool.unwrap_or_else(|why| panic!("{why}"));
        let mut admin = self.real.admin();
        // It empties tables while the server may still be at rolling back for who has vanished.
        admin.must("SET SESSION innodb_lock_wait_timeout = 50, SESSION lock_wait_timeout = 50");
        Pair {
            admin,
            direct: self.real.address(),
            pool,
            backends,
        }
    }

    /// A failing script, cut down, as words; `before` are the scripts that its pool has served.
    fn report(&self, seed: u64, before: &[Vec<Step>], steps: &[Step]) -> Option<String> {
        let steps = self.with_what_it_needs(before, steps)?;
        let began = Instant::now();
        let short = shrink(&steps, backends_of(self.real), SHRINK_TRIES, |steps| {
            began.elapsed() < patience().1 && self.differs_alone(steps).is_some()
        });
        let difference = self.differs_alone(&short)?;
        let name = match self.real.flavour() {
            Flavour::MariaDb => format!("seed_{seed}"),
            Flavour::MySql => format!("mysql_seed_{seed}"),
        };
        let story = story(&name, BACKENDS, &short);
        let steps = short.len();
        Some(format!(
            "seed {seed} differs in {steps} steps:\n{story}{difference}\n"
        ))
    }

    /// A script that differs on a pool of its own: this one, or with the fewest of those before it.
    fn with_what_it_needs(&self, before: &[Vec<Step>], steps: &[Step]) -> Option<Vec<Step>> {
        let mut count = 0;
        loop {
            let mut all: Vec<Step> = Vec::new();
            for script in &before[before.len() - count..] {
                all.extend_from_slice(script);
                all.extend((0..ground::CLIENTS_MAX).map(Step::vanish));
            }
            all.extend_from_slice(steps);
            let all = legal(&all, backends_of(self.real));
            if self.differs_alone(&all).is_some() {
                return Some(all);
            }
            if count == before.len() {
                return None;
            }
            count = (2 * count + 1).min(before.len());
        }
    }

    fn differs_alone(&self, steps: &[Step]) -> Option<Difference> {
        let mut pair = self.fresh();
        differs(pair.compare(steps))
    }
}

/// Backends that the scripts for a server may ask for.
fn backends_of(real: &Real) -> Backends {
    Backends {
        count: BACKENDS,
        of: real.flavour(),
    }
}

fn differs(verdict: Verdict) -> Option<Difference> {
    match verdict {
        Verdict::Differs(difference) => Some(*difference),
        Verdict::Same { .. } | Verdict::Fickle(_) | Verdict::Stuck(_) => None,
    }
}

fn number(name: &str, text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{name} is no number: {text}"))
}

/// Failures after which nothing more is told, and time for which each is cut down.
fn patience() -> (usize, Duration) {
    match std::env::var_os("ONRAMP_ORACLE_SEEDS") {
        Some(_) if cuts_max().is_some() => (usize::MAX, SHRINK_TIME_MAX),
        Some(_) => (SOAK_FAILURES_MAX, SOAK_SHRINK_TIME_MAX),
        None => (FAILURES_MAX, SHRINK_TIME_MAX),
    }
}

/// Number of failing scripts to cut down, if somebody has said so.
fn cuts_max() -> Option<usize> {
    let name = "ONRAMP_ORACLE_CUT";
    let text = std::env::var(name).ok()?;
    Some(usize::try_from(number(name, &text)).unwrap_or(usize::MAX))
}

/// Number of a pool's backends, unless somebody has said another.
fn backends_max() -> usize {
    let name = "ONRAMP_ORACLE_BACKENDS";
    let Ok(text) = std::env::var(name) else {
        return BACKENDS + 2;
    };
    usize::try_from(number(name, &text)).unwrap_or(usize::MAX)
}

/// The seeds to be told: the first and the last.
fn seeds(usual: u64) -> (u64, u64) {
    if let Ok(seed) = std::env::var("ONRAMP_ORACLE_SEED") {
        let seed = number("ONRAMP_ORACLE_SEED", &seed);
        return (seed, seed);
    }
    let Ok(text) = std::env::var("ONRAMP_ORACLE_SEEDS") else {
        return (1, usual);
    };
    let (first, last) = text.split_once('-').unwrap_or(("1", &text));
    let name = "ONRAMP_ORACLE_SEEDS";
    (number(name, first), number(name, last))
}

/// Findings of some seeds.
#[derive(Debug, Default)]
struct Findings {
    seeds: u64,
    steps: usize,
    failed: Vec<u64>,
    /// Differences, and scripts that could not be told, although nobody but the server had a part
    /// in it.
    fickle: Vec<String>,
    /// Scripts in which the pool refused a question about the statement before.
    scripts_refused: u64,
    /// Number of such questions, by their form, and the first seed with one.
    refused: BTreeMap<String, (usize, u64)>,
}

fn consult(name: &str, usual: u64, start: fn(&[&str]) -> Result<Real, String>) {
    let (first, last) = seeds(usual);
    let next = AtomicU64::new(first);
    let failures = AtomicUsize::new(0);
    let started = Instant::now();
    let shown = [
        format!("--ssl-cert={CERT_FILE}"),
        format!("--ssl-key={KEY_FILE}"),
    ];
    let tellers = TELLERS.min(last + 1 - first);
    let findings: Vec<Findings> = thread::scope(|scope| {
        let tell = || {
            let arguments = ARGUMENTS
                .into_iter()
                .chain(shown.iter().map(String::as_str));
            let arguments: Vec<&str> = arguments.collect();
            let mut findings = Findings::default();
            loop {
                let real = found(start(&arguments), name)?;
                if !tell_seeds(&real, (&next, last), &failures, &mut findings) {
                    return Some(findings);
                }
            }
        };
        let tellers: Vec<_> = (0..tellers).map(|_| scope.spawn(tell)).collect();
        let told = tellers.into_iter().map(|teller| teller.join());
        told.filter_map(|findings| findings.expect("a teller does not panic"))
            .collect()
    });
    let seeds: u64 = findings.iter().map(|told| told.seeds).sum();
    let steps: usize = findings.iter().map(|told| told.steps).sum();
    eprintln!(
        "{name}: {seeds} seeds, {steps} steps, {:.1?}",
        started.elapsed()
    );
    report_refused(name, seeds, &findings);
    let failed: Vec<u64> = findings
        .iter()
        .flat_map(|told| told.failed.clone())
        .collect();
    let fickle: Vec<&String> = findings.iter().flat_map(|told| &told.fickle).collect();
    for words in &fickle {
        eprintln!("{words}");
    }
    assert!(failed.is_empty(), "seeds {failed:?} differ: see above");
    let few = 5.max(seeds / 100);
    assert!(
        (fickle.len() as u64) < few,
        "{} scripts are fickle",
        fickle.len()
    );
}

/// Says which questions the pool refused with error 1235, the commonest first.
fn report_refused(name: &str, seeds: u64, findings: &[Findings]) {
    let scripts: u64 = findings.iter().map(|told| told.scripts_refused).sum();
    let mut forms: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for (form, (count, seed)) in findings.iter().flat_map(|told| &told.refused) {
        let (all, first) = forms.entry(form).or_insert((0, *seed));
        (*all, *first) = (*all + count, *seed.min(first));
    }
    let all: usize = forms.values().map(|(count, _)| count).sum();
    eprintln!("{name}: {all} questions refused with error 1235, in {scripts} scripts");
    let mut forms: Vec<_> = forms.into_iter().collect();
    forms.sort_by_key(|(form, (count, _))| (std::cmp::Reverse(*count), *form));
    for (form, (count, seed)) in forms {
        eprintln!("{count:6}  {form} (seed {seed})");
    }
    let few = 5.max(seeds / REFUSED_SHARE);
    assert!(
        scripts <= few,
        "{name}: refusals in more than {few} scripts"
    );
}

/// The seed that is being told. It is named where the telling itself fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("seed {} could not be told to its end", self.0);
        }
    }
}

/// Tells one seed after the other to one server, and to one pool for as long as none differs.
/// Returns whether that server is of no use any more, so that the next seeds need another.
fn tell_seeds(
    real: &Real,
    (next, last): (&AtomicU64, u64),
    failures: &AtomicUsize,
    findings: &mut Findings,
) -> bool {
    real.create_user("app", "app");
    real.create_user("other", "other's");
    let mut admin = real.admin();
    if real.flavour() == Flavour::MySql {
        admin.must("INSTALL COMPONENT 'file://component_query_attributes'");
    }
    for sql in ground::statements() {
        admin.must(&sql);
    }
    let oracles = [false, true].map(|is_tls| Oracle { real, is_tls });
    let mut pairs = oracles.each_ref().map(Oracle::fresh);
    let mut befores = [Vec::new(), Vec::new()];
    while failures.load(Ordering::Relaxed) < patience().0 {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed > last {
            break;
        }
        let place = usize::from(seed % 2 == 1);
        let (oracle, pair) = (&oracles[place], &mut pairs[place]);
        let before = &mut befores[place];
        let script = draw(seed, backends_of(real));
        findings.seeds += 1;
        findings.steps += script.len();
        let began = Instant::now();
        let told = Told(seed);
        let verdict = pair.compare(&script);
        drop(told);
        if began.elapsed() > SLOW {
            eprintln!("seed {seed} took {:.1?}", began.elapsed());
        }
        match verdict {
            Verdict::Same { refused } => {
                findings.scripts_refused += u64::from(!refused.is_empty());
                for form in refused {
                    findings.refused.entry(form).or_insert((0, seed)).0 += 1;
                }
            }
            Verdict::Fickle(difference) => findings.fickle.push(format!(
                "seed {seed}: the server itself answers otherwise twice: {difference}"
            )),
            Verdict::Stuck(words) => {
                let words = format!("seed {seed}: the server keeps a transaction: {words}");
                findings.fickle.push(words);
                return true;
            }
            Verdict::Differs(difference) => {
                eprintln!("seed {seed} differs: {difference}");
                let failed_before = failures.fetch_add(1, Ordering::Relaxed);
                if cuts_max().is_none_or(|max| failed_before < max) {
                    let report = oracle.report(seed, before, &script);
                    let once = || format!("seed {seed} differed once: {difference}");
                    eprintln!("{}", report.unwrap_or_else(once));
                }
                findings.failed.push(seed);
                before.clear();
                *pair = oracle.fresh();
            }
        }
        before.push(script);
    }
    false
}
