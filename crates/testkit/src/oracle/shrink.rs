//! Cutting a failing script down to what matters.
//!
//! The problem: a script fails at its fortieth step, and thirty-five of them have nothing to do
//! with it. The mechanism: cut off what follows the failing step, then take away whole clients,
//! then pieces of half the script's length, a quarter, ... down to single steps, as long as what is
//! left still fails (delta debugging). Invariant: what is left is legal and fails; a judge that
//! never says yes leaves the script as it was.

use super::claims::{Backends, legal};
use super::ground::CLIENTS_MAX;
use super::script::Step;

/// The shortest script that was found to still fail; `fails` judges one, `tries_max` bounds how
/// often it is asked.
pub fn shrink(
    steps: &[Step],
    backends: Backends,
    tries_max: usize,
    mut fails: impl FnMut(&[Step]) -> bool,
) -> Vec<Step> {
    let mut best = steps.to_vec();
    let mut tries = tries_max;
    let mut attempt = |best: &mut Vec<Step>, candidate: Vec<Step>| {
        let candidate = legal(&candidate, backends);
        let shorter = candidate.len() < best.len() && tries > 0;
        if shorter {
            tries -= 1;
            if fails(&candidate) {
                *best = candidate;
                return true;
            }
        }
        false
    };
    for who in 0..CLIENTS_MAX {
        let without = best.iter().filter(|step| step.who != who).cloned();
        let without = without.collect();
        attempt(&mut best, without);
    }
    let mut piece = best.len() / 2;
    while piece > 0 {
        let mut cut = false;
        let mut at = 0;
        while at < best.len() {
            let end = (at + piece).min(best.len());
            let candidate = [&best[..at], &best[end..]].concat();
            if attempt(&mut best, candidate) {
                cut = true;
            } else {
                at += piece;
            }
        }
        // Single steps are gone through until none of them can be spared.
        if piece > 1 || !cut {
            piece /= 2;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Act, draw};
    use crate::real::Flavour;

    const THREE: Backends = Backends {
        count: 3,
        of: Flavour::MariaDb,
    };

    #[test]
    fn only_what_is_needed_is_left() {
        let steps = draw(1, THREE);
        let last = steps.last().unwrap().clone();
        let fails = |steps: &[Step]| {
            steps.contains(&last) && steps.iter().any(|s| matches!(s.act, Act::Join(_)))
        };
        let left = shrink(&steps, THREE, 1000, fails);
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn a_judge_who_never_agrees_changes_nothing() {
        let steps = draw(2, THREE);
        assert_eq!(shrink(&steps, THREE, 1000, |_| false), steps);
    }
}
