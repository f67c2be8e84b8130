//! The rules that the manifests are held to: which crate may use which, and why each crate from
//! outside is here.
//!
//! The edges are what keeps the crates apart: `wire` can have no socket if it cannot reach one,
//! and `climb` measures `pool` from outside if it cannot call it. The manifests are read line by
//! line. That is enough for the tables that cargo writes, and it keeps this crate without a
//! dependency; `[dependencies.NAME]` tables are understood, renamed packages are not used here.

use crate::offence::Offence;

/// Crates of the workspace that each of them may use.
const EDGES: &[(&str, &[&str])] = &[
    ("files", &[]),
    ("cluster", &[]),
    ("wire", &["files"]),
    ("sql", &["wire"]),
    ("session", &["sql", "wire"]),
    ("measure", &[]),
    ("chart", &[]),
    ("reactor", &["files"]),
    ("handover", &["reactor"]),
    ("httpd", &["reactor"]),
    ("console", &["sql", "wire", "reactor"]),
    (
        "pool",
        &[
            "session", "sql", "wire", "reactor", "measure", "handover", "httpd", "console",
            "files", "cluster",
        ],
    ),
    ("load-core", &["sql", "wire", "reactor", "measure", "httpd"]),
    ("load-locust", &["load-core", "reactor", "measure"]),
    (
        "load-lua",
        &["load-core", "sql", "wire", "reactor", "measure"],
    ),
    (
        "load-http",
        &["load-core", "load-locust", "reactor", "measure"],
    ),
    (
        "load",
        &[
            "load-core",
            "load-http",
            "load-locust",
            "load-lua",
            "sql",
            "wire",
            "reactor",
            "measure",
            "chart",
            "httpd",
        ],
    ),
    ("doctor", &["wire", "reactor", "measure"]),
    ("climb", &["wire", "measure", "doctor", "chart"]),
    (
        "onramp",
        &[
            "pool",
            "load",
            "load-http",
            "doctor",
            "climb",
            "wire",
            "reactor",
        ],
    ),
    (
        "testkit",
        &[
            "session", "sql", "wire", "measure", "reactor", "pool", "load", "doctor", "climb",
        ],
    ),
    ("xtask", &[]),
    // Outside of the workspace: see the manifests.
    ("onramp-fuzz", &["testkit"]),
    ("drivers-sqlx", &[]),
];

/// Tests only: anybody's, and nobody's program.
const TEST_CRATE: &str = "testkit";

/// Crates that tests of one crate may use besides: the pool's errors are looked up in the catalogue
/// of `onramp explain`.
const TEST_EDGES: &[(&str, &str)] = &[("pool", "doctor")];

/// The crate with the end-to-end tests: those may use any crate.
const END_TO_END_CRATE: &str = "onramp";

/// Document with the reason for each dependency, relative to the workspace.
pub(crate) const REASONS_PATH: &str = "deny.toml";

/// Facts of a manifest that the rules need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) path: String,
    /// Empty if it has no package.
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One line of a table of dependencies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) table: Table,
    pub(crate) line: usize,
}

/// Table that a dependency stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Program,
    Tests,
    Workspace,
}

impl Manifest {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let mut manifest = Self {
            path: path.to_owned(),
            name: String::new(),
            dependencies: Vec::new(),
        };
        let mut section = "";
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if let Some(header) = text.strip_prefix('[') {
                section = header.split(']').next().unwrap_or_default();
                if let Some((table, name)) = section.rsplit_once('.') {
                    manifest.add(table, name, line);
                }
            } else if let Some((key, value)) = text.split_once('=') {
                if section == "package" && key.trim() == "name" {
                    manifest.name = value.trim().trim_matches('"').to_owned();
                }
                let name = key.split('.').next().unwrap_or_default().trim();
                manifest.add(section, name, line);
            }
        }
        manifest
    }

    /// Notes the dependency if `section` is a table of dependencies.
    fn add(&mut self, section: &str, name: &str, line: usize) {
        let table = match section.rsplit('.').next() {
            _ if section == "workspace.dependencies" => Table::Workspace,
            Some("dependencies" | "build-dependencies") => Table::Program,
            Some("dev-dependencies") => Table::Tests,
            _ => return,
        };
        if !name.starts_with('#') {
            self.dependencies.push(Dependency {
                name: name.to_owned(),
                table,
                line,
            });
        }
    }
}

/// Holds all manifests to the edges.
pub(crate) fn check_edges(manifests: &[Manifest], offences: &mut Vec<Offence>) {
    for manifest in manifests
        .iter()
        .filter(|manifest| !manifest.name.is_empty())
    {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == manifest.name) else {
            let what = format!("crate `{}` has no edges", manifest.name);
            let remedy = "say in xtask/src/edges.rs which crates it may use";
            offences.push(Offence::new(&manifest.path, 1, what, remedy));
            continue;
        };
        for dependency in &manifest.dependencies {
            if is_ours(manifests, &dependency.name) && !is_allowed(manifest, dependency, allowed) {
                let what = format!("`{}` may not use `{}`", manifest.name, dependency.name);
                let remedy = match dependency.name.as_str() {
                    TEST_CRATE => "move it to [dev-dependencies]",
                    _ => "move what both need to a crate both may use (xtask/src/edges.rs)",
                };
                offences.push(Offence::new(&manifest.path, dependency.line, what, remedy));
            }
        }
    }
}

fn is_ours(manifests: &[Manifest], name: &str) -> bool {
    manifests.iter().any(|manifest| manifest.name == name)
}

fn is_allowed(manifest: &Manifest, dependency: &Dependency, allowed: &[&str]) -> bool {
    let name = dependency.name.as_str();
    match dependency.table {
        Table::Program => allowed.contains(&name),
        Table::Tests => {
            allowed.contains(&name)
                || name == TEST_CRATE
                || TEST_EDGES.contains(&(manifest.name.as_str(), name))
                || manifest.name == END_TO_END_CRATE
        }
        // Naming a crate for the members to use is not using it.
        Table::Workspace => true,
    }
}

/// Wants a line `#   NAME  reason` for each crate from outside.
pub(crate) fn check_reasons(manifests: &[Manifest], reasons: &str, offences: &mut Vec<Offence>) {
    let given: Vec<&str> = reasons.lines().filter_map(named_in_reason).collect();
    for manifest in manifests {
        for dependency in &manifest.dependencies {
            let name = dependency.name.as_str();
            if !is_ours(manifests, name) && !given.contains(&name) {
                let what = format!("`{name}` has no reason");
                let remedy = format!("say in the table of {REASONS_PATH} what it is for");
                offences.push(Offence::new(&manifest.path, dependency.line, what, remedy));
            }
        }
    }
}

/// The crate that a line of the table is about.
fn named_in_reason(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("#   ")?.split_whitespace();
    let name = words.next()?;
    words.next().map(|_| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = r#"
[workspace]
members = ["crates/*"]

[workspace.dependencies]
wire = { path = "crates/wire" }
# a comment = not a crate
serde = "1"

[package]
name = "onramp"

[dependencies]
pool.workspace = true
"#;

    fn manifest(name: &str, rest: &str) -> Manifest {
        Manifest::parse(name, &format!("[package]\nname = \"{name}\"\n{rest}"))
    }

    /// The offences against the edges, as `path:line`.
    fn offences(manifests: &[Manifest]) -> Vec<String> {
        let mut found = Vec::new();
        check_edges(manifests, &mut found);
        found
            .iter()
            .map(|offence| format!("{}:{}", offence.path, offence.line))
            .collect()
    }

    #[test]
    fn reads_a_manifest() {
        let root = Manifest::parse("Cargo.toml", ROOT);
        assert_eq!(root.name, "onramp");
        let dependencies: Vec<_> = root
            .dependencies
            .iter()
            .map(|d| (d.name.as_str(), d.table, d.line))
            .collect();
        let expected = [
            ("wire", Table::Workspace, 6),
            ("serde", Table::Workspace, 8),
            ("pool", Table::Program, 14),
        ];
        assert_eq!(dependencies, expected);
    }

    #[test]
    fn reads_every_form_of_table() {
        let text = r#"
[dependencies.wire]
workspace = true
[target.'cfg(unix)'.dependencies]
reactor = { path = "../reactor" }
[dev-dependencies]
testkit.workspace = true
"#;
        let names: Vec<_> = manifest("pool", text)
            .dependencies
            .into_iter()
            .map(|dependency| (dependency.name, dependency.table))
            .collect();
        let expected = [
            ("wire".to_owned(), Table::Program),
            ("reactor".to_owned(), Table::Program),
            ("testkit".to_owned(), Table::Tests),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn holds_programs_to_their_edges() {
        let wire = manifest("wire", "");
        let pool = manifest(
            "pool",
            "[dependencies]\nwire.workspace = true\nlibc = \"1\"\n",
        );
        let climb = manifest("climb", "[dependencies]\npool.workspace = true\n");
        assert_eq!(offences(&[wire, pool, climb]), ["climb:4"]);
    }

    #[test]
    fn keeps_the_test_crate_to_tests() {
        let testkit = || manifest("testkit", "");
        let in_program = manifest("pool", "[dependencies]\ntestkit.workspace = true\n");
        assert_eq!(offences(&[testkit(), in_program]), ["pool:4"]);
        let in_tests = manifest("pool", "[dev-dependencies]\ntestkit.workspace = true\n");
        assert_eq!(offences(&[testkit(), in_tests]), [""; 0]);
    }

    #[test]
    fn lets_only_end_to_end_tests_use_any_crate() {
        let tests = "[dev-dependencies]\nload.workspace = true\n";
        let manifests = [
            manifest("load", ""),
            manifest("onramp", tests),
            manifest("pool", tests),
        ];
        assert_eq!(offences(&manifests), ["pool:4"]);
    }

    #[test]
    fn wants_edges_for_a_new_crate() {
        assert_eq!(offences(&[manifest("helpers", "")]), ["helpers:1"]);
    }

    #[test]
    fn wants_a_reason_for_a_crate_from_outside() {
        let root = [
            Manifest::parse("Cargo.toml", ROOT),
            manifest("wire", ""),
            manifest("pool", ""),
        ];
        let unexplained = |reasons| {
            let mut found = Vec::new();
            check_reasons(&root, reasons, &mut found);
            found.len()
        };
        assert_eq!(unexplained("#   serde  reads the options\n"), 0);
        assert_eq!(unexplained("#   serde\nserde = 1\n"), 1);
    }
}
