//! Each rule with one text that breaks it and one that does not.

use super::*;

const HEADER: &str = "//! What.\n//! How.\n//! Why.\n";

/// The offences of a file with a good header, as `line: what`.
fn offences(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let source = Source::new(path, &format!("{HEADER}{text}"));
    check(&source, &mut found);
    found
        .iter()
        .map(|offence| format!("{}: {}", offence.line, offence.what))
        .collect()
}

#[test]
fn bounds_the_length_of_a_line_in_characters() {
    assert_eq!(
        offences("src/a.rs", &format!("// {}\n", "é".repeat(97))),
        [""; 0]
    );
    let long = format!("// {}\n", "é".repeat(98));
    assert_eq!(offences("src/a.rs", &long), ["4: 101 columns, 100 allowed"]);
}

#[test]
fn wants_a_header() {
    let headers = |path, text| {
        let mut found = Vec::new();
        check_header(&Source::new(path, text), &mut found);
        found.len()
    };
    assert_eq!(headers("src/a.rs", "//! One.\n//!\n//! Three.\n"), 0);
    assert_eq!(headers("src/a.rs", "//! One.\nuse a;\n"), 1);
    assert_eq!(headers("src/a.rs", "\n//! One.\n//!\n//! Three.\n"), 1);
    assert_eq!(headers("tests/a.rs", "//! One.\n"), 0);
    assert_eq!(headers("tests/a.rs", "use a;\n"), 1);
}

#[test]
fn bans_unfinished_code_everywhere() {
    let text = "fn a() {\n    dbg!(1);\n    todo!();\n    unimplemented!()\n}\n// TODO: b\n";
    assert_eq!(offences("crates/climb/src/a.rs", text).len(), 4);
    assert_eq!(offences("tests/a.rs", "// FIXME, XXX\n").len(), 2);
    assert_eq!(
        offences("src/a.rs", "const A: &str = \"TODO dbg!()\"; // dbg!\n"),
        [""; 0]
    );
    assert_eq!(offences("src/a.rs", "// METHODO XXXL\n"), [""; 0]);
}

#[test]
fn bans_debug_text_in_messages() {
    let text = "fn a() {\n    // {:?}\n    println!(\"{b:?}\");\n}\n";
    let found = ["6: Debug text in a message"];
    assert_eq!(offences("crates/pool/src/a.rs", text), found);
    for path in [
        "crates/pool/src/client.rs",
        "crates/pool/src/a/tests.rs",
        "tests/e2e/a.rs",
    ] {
        assert_eq!(offences(path, text), [""; 0]);
    }
}

#[test]
fn bans_the_clock_where_time_is_an_argument() {
    let text = "fn a() {\n    let now = std::time::Instant::now();\n}\n";
    assert_eq!(
        offences("crates/pool/src/a.rs", text),
        ["5: `Instant::now` is not used here"]
    );
    assert_eq!(offences("crates/load/src/crowd.rs", text).len(), 1);
    for path in [
        "crates/reactor/src/clock.rs",
        "crates/climb/src/a.rs",
        "crates/load/src/report.rs",
        "crates/load/src/report/text.rs",
        "crates/testkit/src/a.rs",
        "crates/pool/src/a/tests.rs",
        "tests/a.rs",
    ] {
        assert_eq!(offences(path, text), [""; 0], "{path}");
    }
    let in_tests = "#[cfg(test)]\nmod tests {\n    fn a() { thread::sleep(b) }\n}\n";
    assert_eq!(offences("crates/pool/src/a.rs", in_tests), [""; 0]);
}

#[test]
fn allows_unsafe_in_reactor_only() {
    let text = "fn a() {\n    // SAFETY: b.\n    unsafe { c() }\n}\n";
    assert_eq!(
        offences("crates/wire/src/a.rs", text),
        ["6: `unsafe` outside `reactor`"]
    );
    assert_eq!(offences("crates/reactor/src/a.rs", text), [""; 0]);
    assert_eq!(
        offences("src/a.rs", "#![forbid(unsafe_code)]\n// unsafe\n"),
        [""; 0]
    );
}

#[test]
fn wants_a_reason_for_unsafe() {
    let reactor = |text| offences("crates/reactor/src/a.rs", text).len();
    assert_eq!(reactor("fn a() {\n    unsafe { c() }\n}\n"), 1);
    assert_eq!(reactor("// SAFETY: b.\n\nunsafe impl Send for A {}\n"), 1);
    assert_eq!(
        reactor("// SAFETY: b,\n// and c.\nunsafe impl Send for A {}\n"),
        0
    );
    assert_eq!(reactor("// SAFETY: b.\nlet a =\n    unsafe { c() };\n"), 0);
    assert_eq!(reactor("// SAFETY: b.\nd();\nunsafe { c() };\n"), 1);
    assert_eq!(reactor("// SAFETY: b.\n#[inline]\nunsafe fn c() {}\n"), 0);
    assert_eq!(reactor("/// # Safety\n/// d.\npub unsafe fn c() {}\n"), 0);
    assert_eq!(reactor("let a = unsafe { c() }; // SAFETY: b.\n"), 0);
    assert_eq!(reactor("// b.\nunsafe { c() };\n"), 1);
}

#[test]
fn finds_merges_that_are_not_resolved_in_documents() {
    let mut found = Vec::new();
    check_document("docs/a.md", "a\n<<<<<<< HEAD\nb\n>>>>>>> c\n", &mut found);
    let lines: Vec<_> = found.iter().map(|offence| offence.line).collect();
    assert_eq!(lines, [2, 4]);
}
