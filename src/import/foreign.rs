//! Files of other proxies than ProxySQL, told by their own marks.
//!
//! Who imports one of these gets the page that helps instead of an error of ProxySQL's syntax.

/// Page with a section for each program.
const PAGE: &str = "docs/pool/migrating.md";

/// Line that only a file of this program has: it begins so, or has a key with such a value.
enum Mark {
    /// Line that is this, or begins with it and a blank.
    Word(&'static str),
    /// The line begins with it.
    Start(&'static str),
    /// Line that is a key with this value, blanks apart.
    Pair(&'static str, &'static str),
}

use Mark::{Pair, Start, Word};

/// Programs with the section of the page, and their marks. The more particular ones stand first.
const PROGRAMS: [(&str, &str, &[Mark]); 5] = [
    ("onramp pool", "", &[Start("[[user]]"), Start("[backend]")]),
    (
        "PgBouncer",
        "#from-pgbouncer",
        &[Start("[pgbouncer]"), Start("[databases]")],
    ),
    (
        "MySQL Router",
        "#from-mysql-router",
        &[Start("[routing"), Start("[metadata_cache")],
    ),
    (
        "MaxScale",
        "#from-maxscale",
        &[
            Start("[maxscale]"),
            Pair("type", "server"),
            Pair("type", "service"),
            Pair("type", "listener"),
            Pair("type", "monitor"),
        ],
    ),
    (
        "HAProxy",
        "#from-haproxy",
        &[
            Word("global"),
            Word("defaults"),
            Word("frontend"),
            Word("backend"),
            Word("listen"),
        ],
    ),
];

/// A sentence about a file that is another program's; `None`: none of these has a mark in it.
pub(super) fn told(text: &str) -> Option<String> {
    let (name, section, _) = PROGRAMS
        .iter()
        .find(|(.., marks)| text.lines().any(|line| has_mark(line, marks)))?;
    if section.is_empty() {
        return Some(format!(
            "this is a file of {name} already: start the pool with --config, or look for mistakes \
             in it with onramp pool --config FILE --check"
        ));
    }
    Some(format!(
        "this is a file of {name}; import reads those of ProxySQL, MaxScale and MySQL Router. \
         {PAGE}{section} says what its settings are here"
    ))
}

fn has_mark(line: &str, marks: &[Mark]) -> bool {
    marks.iter().any(|mark| match mark {
        Word(word) => {
            let rest = line.strip_prefix(word);
            // `listen = ...` is a setting, and `listen name` opens a section.
            rest.is_some_and(|rest| {
                let next = rest.trim_start();
                let is_apart = rest.is_empty() || rest.starts_with([' ', '\t']);
                is_apart && !next.starts_with(['=', ':', '{', '('])
            })
        }
        Start(start) => line.trim_start().starts_with(start),
        Pair(key, value) => line.split_once('=').is_some_and(|(name, rest)| {
            name.trim().eq_ignore_ascii_case(key) && rest.trim().eq_ignore_ascii_case(value)
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_other_programs_are_told_by_their_marks() {
        for (text, name) in [
            (
                "[databases]\nshop = host=10.0.0.1\n\n[pgbouncer]\n",
                "PgBouncer",
            ),
            (";comment\n[pgbouncer]\nlisten_port = 6432\n", "PgBouncer"),
            (
                "global\n    maxconn 5\n\nfrontend in\n    bind :3306\n",
                "HAProxy",
            ),
            ("# c\nlisten mysql\n  bind *:3306\n  mode tcp\n", "HAProxy"),
            ("defaults\n mode tcp\n", "HAProxy"),
            ("[maxscale]\nthreads=auto\n", "MaxScale"),
            ("[server1]\ntype = server\naddress=10.0.0.1\n", "MaxScale"),
            (
                "[DEFAULT]\nuser=r\n[routing:rw]\nbind_port=6446\n",
                "MySQL Router",
            ),
            (
                "listen = [\"a\"]\n[backend]\naddress = \"b\"\n",
                "onramp pool",
            ),
        ] {
            let told = told(text).unwrap_or_default();
            assert!(
                told.starts_with(&format!("this is a file of {name}")),
                "{text}: {told}"
            );
        }
        for text in [
            "",
            "mysql_servers = ({ address = \"a\" })",
            "mysql_variables=\n{\n interfaces=\"0.0.0.0:6033\"\n}\n",
            "global = 5",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }

    #[test]
    fn the_page_has_a_section_for_each_program() {
        let page = include_str!("../../docs/pool/migrating.md");
        for (name, section, _) in &PROGRAMS[1..] {
            assert!(page.contains(&format!("\n## From {name}\n")), "{section}");
            let anchor = format!("#from-{}", name.to_lowercase().replace(' ', "-"));
            assert_eq!(*section, anchor);
        }
    }
}
