//! The structure of the workspace, measured: `cargo run -p xtask -- house [CRATE]`.
//!
//! A report for whoever is about to change the structure, not a check: it names modules by size and
//! by imports, functions that are long or take many parameters, and the import cycles. The one
//! thing that is checked is that no crate's cycles grow: [`check_cycles`] is part of `tidy`.
//!
//! Lines are those of the program; tests do not count.

use crate::functions::{Function, blocks, functions};
use crate::measures::Measure;
use crate::modules::{self, Cycle, Modules};
use crate::offence::Offence;
use crate::source::Source;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Rows of each list.
const ROWS_MAX: usize = 12;
/// More parameters than this are listed.
const PARAMETERS_MAX: usize = 5;

/// Crates that still have import cycles, and how many modules stand in one. A number may only
/// become smaller; a crate that is not here has none.
const CYCLES_KNOWN: &[(&str, usize)] = &[];

/// Checks for import cycles that are larger than what is known, and numbers that have become too
/// large.
pub(crate) fn check_cycles(sources: &[Source], offences: &mut Vec<Offence>) {
    compare_cycles(&modules::crates(sources), CYCLES_KNOWN, offences);
}

fn compare_cycles(
    crates: &BTreeMap<String, Modules>,
    known: &[(&str, usize)],
    offences: &mut Vec<Offence>,
) {
    for (name, modules) in crates {
        let allowed = known
            .iter()
            .find(|known| known.0 == name)
            .map_or(0, |k| k.1);
        let cycles = modules.cycles();
        let count = cycles
            .iter()
            .map(|cycle| cycle.members.len())
            .sum::<usize>();
        if count > allowed {
            let what = format!("{count} modules stand in import cycles, {allowed} known");
            let ways: Vec<String> = cycles.iter().map(describe_way).collect();
            let remedy = format!("turn one of these imports round: {}", ways.join("; or "));
            offences.push(Offence::new(&root_of(modules), 1, what, remedy));
        } else if count < allowed {
            let what = format!("only {count} modules of `{name}` stand in import cycles now");
            let remedy = format!("write {count} for {allowed} in CYCLES_KNOWN");
            offences.push(Offence::new("xtask/src/house.rs", 1, what, remedy));
        }
    }
}

fn root_of(modules: &Modules) -> String {
    modules.files.values().next().cloned().unwrap_or_default()
}

/// `a imports b (file:line), b imports a (file:line)`: the arrow with the fewest imports comes
/// last, for it closes the cycle and is the cheapest to cut.
fn describe_way(cycle: &Cycle) -> String {
    let mut way = cycle.way.clone();
    if let Some(weakest) = (0..way.len()).min_by_key(|&i| way[i].imports) {
        way.rotate_left(weakest + 1);
    }
    let arrows = way.iter().map(|arrow| {
        let times = if arrow.imports == 1 {
            String::new()
        } else {
            format!(", {} times", arrow.imports)
        };
        format!(
            "{} imports {} ({}{times})",
            arrow.from, arrow.to, arrow.place
        )
    });
    arrows.collect::<Vec<_>>().join(", ")
}

/// The report: of one crate, or of all.
pub(crate) fn report(sources: &[Source], only: Option<&str>) -> String {
    let mut out = String::new();
    for (name, modules) in &modules::crates(sources) {
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let of_crate = |source: &&Source| modules.files.values().any(|path| *path == source.path);
        let sources: Vec<&Source> = sources.iter().filter(of_crate).collect();
        report_crate(&mut out, name, modules, &sources);
    }
    out
}

/// The numbers that are held to bounds, each with the places that make most of it.
pub(crate) fn report_measures(measures: &[Measure]) -> String {
    let mut out = String::new();
    for measure in measures {
        line(&mut out, &format!("== {}: {}", measure.name, measure.value));
        for (number, place) in measure.places.iter().take(ROWS_MAX) {
            line(&mut out, &format!("  {number:6}  {place}"));
        }
    }
    out
}

fn report_crate(out: &mut String, name: &str, modules: &Modules, sources: &[&Source]) {
    let lines: usize = sources.iter().map(|source| lines_of(source)).sum();
    line(
        out,
        &format!(
            "== {name}: {lines} lines in {} modules",
            modules.files.len()
        ),
    );

    let mut sizes: Vec<(usize, String)> = sources
        .iter()
        .map(|source| {
            let module = modules::module_of(&source.path)
                .map(|m| m.1)
                .unwrap_or_default();
            let (fan_in, fan_out) = fans(modules, &module);
            let row = format!("{fan_in:4} in {fan_out:4} out  {}", source.path);
            (lines_of(source), row)
        })
        .collect();
    list(
        out,
        "lines, modules that import it, modules that it imports",
        &mut sizes,
    );

    let mut of_types: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources {
        let of_program = blocks(&source.code).into_iter();
        for block in of_program.filter(|block| !source.is_test_line(block.line)) {
            *of_types.entry(block.of).or_default() += block.functions.len();
        }
    }
    let mut of_types: Vec<_> = of_types.into_iter().map(|(name, n)| (n, name)).collect();
    list(
        out,
        "methods of a type, in all of its `impl` blocks",
        &mut of_types,
    );

    let all: Vec<(&str, Function)> = sources
        .iter()
        .flat_map(|source| {
            let of_program = functions(&source.code)
                .into_iter()
                .filter(|function| !source.is_test_line(function.line));
            of_program.map(|function| (source.path.as_str(), function))
        })
        .collect();
    let place =
        |path: &str, function: &Function| format!("{path}:{} {}", function.line, function.name);
    let mut long: Vec<_> = all.iter().map(|(p, f)| (f.lines, place(p, f))).collect();
    list(out, "lines of the longest functions", &mut long);
    let many = all.iter().filter(|(_, f)| f.parameters > PARAMETERS_MAX);
    let mut many: Vec<_> = many.map(|(p, f)| (f.parameters, place(p, f))).collect();
    list(out, "functions with more than 5 parameters", &mut many);

    for cycle in modules.cycles() {
        let count = cycle.members.len();
        line(
            out,
            &format!("  import cycle of {count}: {}", cycle.members.join(" ")),
        );
        line(out, &format!("    {}", describe_way(&cycle)));
    }
}

/// Lines of a file that are not tests.
fn lines_of(source: &Source) -> usize {
    (1..=source.text.lines().count())
        .filter(|&line| !source.is_test_line(line))
        .count()
}

/// Number of modules that import this one, and of those that it imports.
fn fans(modules: &Modules, module: &[String]) -> (usize, usize) {
    let count = |ends: &mut Vec<&Vec<String>>| {
        ends.sort();
        ends.dedup();
        ends.len()
    };
    let imports = &modules.imports;
    let mut into: Vec<_> = imports
        .iter()
        .filter(|i| i.to == module)
        .map(|i| &i.from)
        .collect();
    let mut out: Vec<_> = imports
        .iter()
        .filter(|i| i.from == module)
        .map(|i| &i.to)
        .collect();
    (count(&mut into), count(&mut out))
}

fn list(out: &mut String, title: &str, rows: &mut [(usize, String)]) {
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    line(out, &format!("  {title}"));
    for (number, row) in rows.iter().take(ROWS_MAX) {
        line(out, &format!("  {number:6}  {row}"));
    }
    if rows.len() > ROWS_MAX {
        line(
            out,
            &format!("          and {} more", rows.len() - ROWS_MAX),
        );
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cyclic() -> Vec<Source> {
        let file = |name: &str, text: &str| Source::new(&format!("crates/a/src/{name}"), text);
        vec![
            file("b.rs", "use crate::c::X;\nuse crate::c::Y;\n"),
            file("c.rs", "use crate::b::X;\n"),
        ]
    }

    fn offences(known: &[(&str, usize)]) -> Vec<String> {
        let mut found = Vec::new();
        compare_cycles(&modules::crates(&cyclic()), known, &mut found);
        found
            .iter()
            .map(|o| format!("{}; {}", o.what, o.remedy))
            .collect()
    }

    #[test]
    fn a_cycle_may_shrink_and_not_grow() {
        assert_eq!(offences(&[("a", 2)]), [""; 0]);
        assert_eq!(
            offences(&[("a", 3)]),
            ["only 2 modules of `a` stand in import cycles now; write 2 for 3 in CYCLES_KNOWN"]
        );
        assert_eq!(
            offences(&[]),
            [
                "2 modules stand in import cycles, 0 known; turn one of these imports round: \
              b imports c (crates/a/src/b.rs:1, 2 times), c imports b (crates/a/src/c.rs:1)"
            ]
        );
    }

    #[test]
    fn reports_sizes_fans_and_cycles() {
        let report = report(&cyclic(), Some("a"));
        assert!(
            report.starts_with("== a: 3 lines in 2 modules\n"),
            "{report}"
        );
        assert!(
            report.contains("     2     1 in    1 out  crates/a/src/b.rs\n"),
            "{report}"
        );
        assert!(report.contains("import cycle of 2: b c\n"), "{report}");
        assert_eq!(super::report(&cyclic(), Some("z")), "");
    }

    #[test]
    fn reports_the_methods_of_a_type_over_all_files() {
        let file = |name: &str, text: &str| Source::new(&format!("crates/a/src/{name}"), text);
        let sources = [
            file(
                "b.rs",
                "impl<N: Net<Sock = X>> A<N> {\n    fn a() {}\n    fn b() {}\n}\n",
            ),
            file(
                "c.rs",
                "impl<N> fmt::Debug for crate::A<N>\nwhere\n N: X,\n{\n fn c() {}\n}\n\
                          fn f(x: impl Fn() -> u8) -> u8 {\n x()\n}\n",
            ),
            file(
                "d.rs",
                "impl B {\n    fn d() {}\n}\n\
                          #[cfg(test)]\nmod tests {\n impl B {\n fn e() {}\n }\n}\n",
            ),
        ];
        let report = report(&sources, Some("a"));
        let types = report.split("`impl` blocks\n").nth(1).unwrap();
        assert!(
            types.starts_with("       3  A\n       1  B\n  lines"),
            "{types}"
        );
    }

    #[test]
    fn reports_functions_with_many_parameters() {
        let text = "fn f(a: u8, b: (u8, u8, u8), c: u8, d: u8) {}\nfn g(a: u8) {}\n";
        let report = report(&[Source::new("crates/a/src/b.rs", text)], None);
        let many = report.split("more than 5 parameters\n").nth(1);
        assert_eq!(many, Some("       6  crates/a/src/b.rs:1 f\n"));
    }
}
