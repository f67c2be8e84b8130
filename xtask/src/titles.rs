//! Titles of commits: part of `tidy`.
//!
//! A title begins with one of [`VERBS`], so that a reader of the log knows what kind of change it
//! is. Commits up to [`BEGINNING`] are older than the rule. Where git, or that commit, is not there
//! (a source archive, a shallow clone), nothing is checked.

use crate::offence::Offence;
use std::path::Path;
use std::process::Command;

/// The last commit before the rule.
const BEGINNING: &str = "9416215fcd124447507d5902c2526e3761dfc33b";
/// First words of titles.
const VERBS: &[&str] = &[
    "Add", "Fix", "Remove", "Rename", "Move", "Refactor", "Speed up", "Test", "Document",
];
/// The most characters of a title.
const TITLE_MAX: usize = 72;

/// Commits of the repository at `root` whose titles break the rule.
pub(crate) fn check(root: &Path, offences: &mut Vec<Offence>) {
    let range = format!("{BEGINNING}..HEAD");
    let log = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", &range])
        .current_dir(root)
        .output();
    if let Ok(log) = log
        && log.status.success()
    {
        check_log(&String::from_utf8_lossy(&log.stdout), offences);
    }
}

/// Lines of an abbreviated hash and a title.
fn check_log(log: &str, offences: &mut Vec<Offence>) {
    for line in log.lines() {
        let (hash, title) = line.split_once(' ').unwrap_or((line, ""));
        let begins = |verb: &&str| {
            let rest = title.strip_prefix(*verb);
            rest.is_some_and(|rest| rest.starts_with([' ', ':']))
        };
        if !VERBS.iter().any(begins) {
            let what =
                format!("commit {hash}: the title \"{title}\" begins with none of the verbs");
            let remedy = format!("begin it with one of: {}", VERBS.join(", "));
            offences.push(Offence::new("CONTRIBUTING.md", 1, what, remedy));
        }
        let count = title.chars().count();
        if count > TITLE_MAX {
            let what =
                format!("commit {hash}: {count} characters in its title, {TITLE_MAX} allowed");
            let remedy = "say the rest in the body".to_owned();
            offences.push(Offence::new("CONTRIBUTING.md", 1, what, remedy));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_begins_with_a_verb_of_the_list() {
        let long = format!("c3 Fix {}", "x".repeat(TITLE_MAX));
        let log = format!(
            "a1 Fix: bound a turn\nb2 Let no command ride\n{long}\nd4 Speed up logins\n\
             e5 Addition\n"
        );
        let mut offences = Vec::new();
        check_log(&log, &mut offences);
        let found: Vec<&str> = offences.iter().map(|o| &o.what[..9]).collect();
        assert_eq!(found, ["commit b2", "commit c3", "commit e5"]);
    }
}
