//! The controller against servers that are formulas: what it finds is compared with the best fixed
//! number, which a sweep over all numbers finds, and with what each moment's best would bring.
//!
//! A server says its throughput from how many statements run at once and the time. What is measured
//! of it has noise that is correlated over a second, as a machine's is, from a seed.

use super::*;

/// Windows a second.
const WINDOWS: usize = 10;
/// Seconds of a run, and the second of the change.
const SECONDS: usize = 60;
const CHANGE: usize = 30;
const UNIT: usize = 2;
const HIGHEST: usize = 128;
const SEEDS: u64 = 16;

/// Statements a second with so many at once, after so many seconds.
type Server = fn(f64, usize) -> f64;

/// Sixteen cores that share nothing: one that queues beyond.
fn knee(running: f64, _: usize) -> f64 {
    running.min(16.0) * 1000.0
}

/// A server whose knee is where the controller begins.
fn early_knee(running: f64, _: usize) -> f64 {
    running.min(4.0) * 5000.0
}

/// A shared cache, a little work for all on behalf of each: the universal scalability law.
fn scalability_law(running: f64, _: usize) -> f64 {
    let beside = running - 1.0;
    3000.0 * running / (1.0 + 0.05 * beside + 0.002 * running * beside)
}

/// Statements that wait for the same locks.
fn contention(running: f64, _: usize) -> f64 {
    let beside = running - 1.0;
    2000.0 * running / (1.0 + 0.2 * beside + 0.01 * running * beside)
}

/// Throughput where half of the processors are taken away.
fn half_taken(running: f64, second: usize) -> f64 {
    let share = if second < CHANGE { 1.0 } else { 0.5 };
    scalability_law(running, second) * share
}

/// A server limited by its disks first and by its processors then: fewer at once would do.
fn fewer_needed(running: f64, second: usize) -> f64 {
    let most = if second < CHANGE { 32.0 } else { 8.0 };
    running.min(most) * 1000.0
}

/// The other way round.
fn more_needed(running: f64, second: usize) -> f64 {
    let most = if second < CHANGE { 8.0 } else { 40.0 };
    running.min(most) * 1000.0
}

/// Nine of ten take 1 ms, one takes 50.
fn two_classes(running: f64, _: usize) -> f64 {
    running.min(16.0) / (0.9 * 0.001 + 0.1 * 0.05)
}

/// Noise from a seed: SplitMix64, twelve of which make a normal distribution's deviation.
struct Noise(u64);

impl Noise {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn normal(&mut self) -> f64 {
        let unit = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        (0..12).map(|_| unit(self.bits())).sum::<f64>() - 6.0
    }
}

/// Result of a run.
struct Run {
    /// Statements in all.
    done: f64,
    /// The limit in each window.
    limits: Vec<usize>,
}

fn run(server: Server, noise: f64, seed: u64) -> Run {
    let mut climb = HillClimb::new(UNIT, HIGHEST, 4 * UNIT);
    let (mut random, mut drift) = (Noise(seed), 0.0);
    let (mut done, mut limits) = (0.0, Vec::new());
    for window in 0..SECONDS * WINDOWS {
        let running = climb.running_max();
        assert!((UNIT..=HIGHEST).contains(&running), "{running}");
        let truth = server(running as f64, window / WINDOWS);
        drift = 0.9 * drift + random.normal() * noise * 0.3;
        let seen = truth * (random.normal() * noise + drift).exp();
        climb.window_ended(seen, true);
        done += truth / WINDOWS as f64;
        limits.push(running);
    }
    Run { done, limits }
}

/// The most that a fixed number brings.
fn best_fixed(server: Server) -> f64 {
    let of = |running: usize| -> f64 {
        let seconds = (0..SECONDS).map(|second| server(running as f64, second));
        seconds.sum()
    };
    (1..=HIGHEST).map(of).fold(0.0, f64::max)
}

/// The mean over the seeds of what is found, as a share of the best fixed number's.
fn share(server: Server, noise: f64) -> f64 {
    let of = |seed| run(server, noise, seed).done;
    (0..SEEDS).map(of).sum::<f64>() / SEEDS as f64 / best_fixed(server)
}

#[test]
fn what_is_found_is_as_good_as_the_best_fixed_number() {
    let servers: [(&str, Server); 8] = [
        ("knee", knee),
        ("early_knee", early_knee),
        ("scalability_law", scalability_law),
        ("contention", contention),
        ("half_taken", half_taken),
        ("fewer_needed", fewer_needed),
        ("more_needed", more_needed),
        ("two_classes", two_classes),
    ];
    // Its first seconds, in which it looks for the number, and those after the change are in it.
    for (name, server) in servers {
        let least = if name == "more_needed" { 0.94 } else { 0.965 };
        for noise in [0.02, 0.05] {
            let found = share(server, noise);
            assert!(found >= least, "{name} with noise {noise}: {found:.3}");
        }
        let found = share(server, 0.1);
        assert!(found >= least - 0.015, "{name}: {found:.3}");
    }
}

#[test]
fn in_the_steady_state_trying_costs_less_than_3_percent() {
    for server in [knee as Server, scalability_law, contention, two_classes] {
        for seed in 0..SEEDS {
            let limits = run(server, 0.02, seed).limits;
            let late = &limits[limits.len() / 2..];
            let done: f64 = late.iter().map(|running| server(*running as f64, 0)).sum();
            let most = best_fixed(server) / SECONDS as f64 * late.len() as f64;
            assert!(done / most >= 0.97, "{:.3} with seed {seed}", done / most);
        }
    }
}

#[test]
fn a_change_is_followed_within_seconds() {
    for seed in 0..SEEDS {
        let limits = run(more_needed, 0.02, seed).limits;
        let within = |seconds: usize| &limits[..(CHANGE + seconds) * WINDOWS];
        let before = within(0).last().unwrap();
        assert!((6..=20).contains(before), "{before} with seed {seed}");
        let reached = within(8).iter().any(|running| *running >= 32);
        assert!(reached, "seed {seed}: {:?}", &within(8)[CHANGE * WINDOWS..]);
    }
}

#[test]
fn without_a_gain_fewer_run() {
    let flat: Server = |_, _| 10_000.0;
    let late = |seed| {
        run(flat, 0.02, seed)
            .limits
            .split_off(SECONDS * WINDOWS / 2)
    };
    let late: Vec<usize> = (0..SEEDS).flat_map(late).collect();
    let mean = late.iter().sum::<usize>() as f64 / late.len() as f64;
    assert!(mean < 4.0, "{mean}");
}

#[test]
fn a_limit_that_nobody_waits_for_stays() {
    for limit in [4, 8] {
        let mut climb = HillClimb::new(UNIT, HIGHEST, 8);
        climb.limit = limit;
        for window in 0..200 {
            // The load itself rises and falls.
            climb.window_ended(1000.0 + f64::from(window % 50) * 100.0, false);
            assert_eq!(climb.limit, limit);
        }
    }
}

#[test]
fn a_limit_that_was_found_for_another_load_comes_down_to_where_it_began() {
    let mut climb = HillClimb::new(UNIT, HIGHEST, 8);
    climb.limit = HIGHEST;
    // A lull of a second or two does not undo what was found.
    for _ in 0..REST_MAX {
        climb.window_ended(1000.0, false);
    }
    assert!(climb.limit > HIGHEST / 2, "{}", climb.limit);
    for _ in 0..200 {
        climb.window_ended(1000.0, false);
        assert!((8..=HIGHEST).contains(&climb.limit));
    }
    assert_eq!(climb.limit, 8);
}

#[test]
fn fewer_than_there_are_clients_are_found_below_a_limit_that_nobody_waits_for() {
    // Sixty-four clients come after a load for which many at once were right.
    const CLIENTS: usize = 64;
    for (server, limit) in [
        (scalability_law as Server, HIGHEST),
        (scalability_law, CLIENTS),
        (contention, HIGHEST),
        (contention, CLIENTS),
    ] {
        for seed in 0..SEEDS {
            let mut climb = HillClimb::new(UNIT, HIGHEST, 4 * UNIT);
            climb.limit = limit;
            let (mut random, mut late) = (Noise(seed), Vec::new());
            for window in 0..SECONDS * WINDOWS {
                let limit = climb.running_max();
                let truth = server(limit.min(CLIENTS) as f64, 0);
                climb.window_ended(truth * (random.normal() * 0.05).exp(), limit < CLIENTS);
                if window >= 10 * WINDOWS {
                    late.push(truth);
                }
            }
            let found = late.iter().sum::<f64>() / late.len() as f64;
            let share = found / best_fixed(server) * SECONDS as f64;
            assert!(share >= 0.95, "{share:.3} from {limit} with seed {seed}");
        }
    }
}

#[test]
fn where_there_is_one_number_only_it_is_that() {
    let mut climb = HillClimb::new(4, 3, 100);
    for _ in 0..200 {
        assert_eq!(climb.running_max(), 4);
        climb.window_ended(1000.0, true);
    }
}

#[test]
fn a_lower_bound_holds_at_once() {
    let mut climb = HillClimb::new(UNIT, HIGHEST, 100);
    climb.bound(17);
    for _ in 0..200 {
        assert!(climb.running_max() <= 17);
        climb.window_ended(1000.0 * climb.running_max() as f64, true);
    }
    assert_eq!(climb.limit, 17);
}

#[test]
fn windows_alternate_so_that_what_drifts_falls_on_both() {
    let mut climb = HillClimb::new(UNIT, HIGHEST, 8);
    climb.window_ended(1000.0, true);
    let mut limits = Vec::new();
    for window in 0..8 {
        limits.push(climb.running_max());
        // Noise that leaves the verdict open, and a drift that would decide it.
        let noisy = if window % 2 == 0 { 1.0 } else { 1.3 };
        climb.window_ended(1000.0 * noisy, true);
    }
    assert_eq!(limits, [8, 10, 10, 8, 8, 10, 10, 8]);
}
