//! Each measure, in a small tree in which it finds what it should.

use super::*;

fn source(path: &str, text: &str) -> Source {
    Source::new(path, text)
}

fn measure(name: &str, sources: &[Source], documents: &[(&str, &str)]) -> Measure {
    let documents: Vec<(String, String)> = documents
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    all(sources, &documents)
        .into_iter()
        .find(|measure| measure.name == name)
        .expect("the measure is there")
}

fn of_code(name: &str, files: &[(&str, &str)]) -> (usize, Vec<String>) {
    let sources: Vec<Source> = files
        .iter()
        .map(|(path, text)| source(path, text))
        .collect();
    let measure = measure(name, &sources, &[]);
    let places = measure
        .places
        .into_iter()
        .map(|(n, of)| format!("{n} {of}"));
    (measure.value, places.collect())
}

#[test]
fn methods_that_reach_one_another_are_a_component() {
    let files = [
        (
            "crates/a/src/b.rs",
            "impl T {\n fn a(&self) { self.b(); }\n fn b(&self) { Self::c(); other.a(); }\n}\n",
        ),
        (
            "crates/a/src/c.rs",
            "impl T {\n fn c() { x.self_a(); self.a::<u8>() }\n fn d(&self) { self.a() }\n}\n\
             impl U {\n fn a(&self) { self.a() }\n}\n\
             #[cfg(test)]\nmod tests {\n impl T {\n fn e(&self) { self.d() }\n }\n}\n",
        ),
        (
            "crates/z/src/b.rs",
            "impl T {\n fn a(&self) { self.d() }\n}\n",
        ),
    ];
    let found = of_code("largest component of calls of a type", &files);
    assert_eq!(found, (3, vec!["3 T of a".to_owned()]));
    let methods = of_code("methods of a type", &files);
    assert_eq!(methods.1, ["4 T of a", "1 T of z", "1 U of a"]);
}

#[test]
fn fields_that_others_see_are_open() {
    let text = "pub struct T<N: Net> {\n a: u8,\n pub b: (u8, u8),\n #[serde(default)]\n \
                pub(crate) c: HashMap<u8, u8>,\n publisher: u8,\n}\nstruct U(pub u8);\n";
    let found = of_code("open fields of a type", &[("crates/a/src/b.rs", text)]);
    assert_eq!(found, (2, vec!["2 T crates/a/src/b.rs:1".to_owned()]));
}

#[test]
fn an_impl_is_at_home_in_its_types_file_and_folder() {
    let files = [
        ("crates/a/src/t.rs", "struct T;\nenum U {}\nimpl T {}\n"),
        ("crates/a/src/t/inner.rs", "impl T {}\n"),
        (
            "crates/a/src/tea.rs",
            "impl T {}\nimpl Clone for T {}\nimpl Foreign {}\n",
        ),
        (
            "crates/a/src/z.rs",
            "impl fmt::Debug for crate::t::T {}\nimpl<A> U {}\n",
        ),
    ];
    let found = of_code("files with `impl` of a type outside of its own", &files);
    assert_eq!(
        found,
        (2, vec!["2 T of a".to_owned(), "1 U of a".to_owned()])
    );
}

#[test]
fn counts_functions_that_pack_parameters_into_tuples() {
    let text = "fn a(b: (u8, u8)) {}\nfn c(d: &mut (u8, u8)) {}\n\
                fn e(f: u8, g: ()) -> (u8, u8) {}\n\
                #[cfg(test)]\nmod tests {\n fn h(i: (u8, u8)) {}\n}\n";
    let found = of_code(
        "functions with tuples of parameters",
        &[("crates/a/src/b.rs", text)],
    );
    assert_eq!(found, (2, vec!["2 a".to_owned()]));
}

#[test]
fn a_subject_in_three_folders_is_scattered() {
    let files = [
        ("crates/a/src/kill.rs", ""),
        ("crates/a/src/x/kill_jobs.rs", ""),
        ("crates/a/src/y/kill.rs", ""),
        ("crates/a/src/y/killing.rs", ""),
        ("crates/a/src/x/jobs.rs", ""),
        ("crates/a/src/kill/tests.rs", ""),
    ];
    let found = of_code("subjects in more than two folders", &files);
    assert_eq!(found, (1, vec!["1 kill in 3 of a".to_owned()]));
}

#[test]
fn a_file_and_its_folder_are_one_room_of_the_pool() {
    let files = [
        ("crates/pool/src/lib.rs", ""),
        ("crates/pool/src/a.rs", ""),
        ("crates/pool/src/a/b.rs", ""),
        ("crates/pool/src/c/d.rs", ""),
        ("crates/load/src/e.rs", ""),
    ];
    let found = of_code("rooms at the top of the pool", &files);
    assert_eq!(found, (2, vec!["1 a".to_owned(), "1 c".to_owned()]));
}

#[test]
fn counts_look_ups_and_bare_keys_of_the_pool() {
    let text = "fn a(k: Key) -> u8 {\n self.clients\n  .get_mut(k);\n self.backends.remove(k);\n \
                self.backends.len();\n}\nfn b(k: ClientId, l: &KeyMap) {\n let x: Key;\n}\n\
                fn c() -> Option<reactor::Key> {}\n";
    let files = [
        ("crates/pool/src/a.rs", text),
        ("crates/load/src/a.rs", text),
    ];
    assert_eq!(of_code("look-ups of clients and backends", &files).0, 2);
    assert_eq!(
        of_code("signatures of the pool with a bare Key", &files).0,
        2
    );
}

#[test]
fn doc_comments_are_judged_by_their_first_words() {
    let text = "//! What it is.\n//! Which goes on.\n\n/// Whether so.\n/// Who else.\nfn a() {}\n\
                /// Whatever.\nfn b() {}\n// What.\n/// The same.\nfn c() {}\n\
                /// That of it.\nfn d() {}\n";
    let files = [("crates/a/src/b.rs", text)];
    let questions = of_code("doc comments that open with a question word", &files);
    assert_eq!(questions.0, 2);
    assert_eq!(
        questions.1,
        ["2 of 5 doc comments in all", "2 crates/a/src/b.rs"]
    );
    let pointers = "doc comments that open with \"The same\" or \"That of\"";
    assert_eq!(of_code(pointers, &files).0, 2);
    let text = "/// When it ended.\na: Time,\n/// Whenever.\nb: u8,\n/// It is closed.\nEnd,\n";
    let others = "doc comments that open with neither noun nor verb";
    assert_eq!(of_code(others, &[("crates/a/src/b.rs", text)]).0, 2);
}

#[test]
fn an_event_above_a_function_is_found() {
    let text = "/// A client of\n/// the pool is gone. It left.\n#[must_use]\n\
                pub(crate) const fn a() {}\n\
                impl T {\n    /// Its file has failed.\n    fn b(&self);\n}\n\
                /// The clients that are gone.\nfn c() {}\n\
                /// True if it is gone.\nfn d() {}\n\
                /// The client: it is gone.\nfn e() {}\n\
                /// The file is closed.\nstruct F { f: fn(u8) }\n\
                /// A call is made.\nlet g: fn(u8) = h;\nfn h() {}\n\
                #[cfg(test)]\nmod tests {\n/// A file is there.\nfn i() {}\n}\n";
    let files = [
        ("crates/a/src/b.rs", text),
        ("tests/e2e/b.rs", "/// A file is there.\nfn a() {}\n"),
    ];
    let found = of_code("doc comments of functions that state an event", &files);
    assert_eq!(found, (2, vec!["2 crates/a/src/b.rs".to_owned()]));
}

#[test]
fn a_noun_above_a_function_without_a_value_is_found() {
    let text = "/// The file.\nfn a(x: u8) {}\n/// The file.\nfn b() -> u8 { 1 }\n\
                /// Closes the file.\nfn c() {}\n/// Its file.\n#[inline]\nfn d(\n) {}\n\
                fn e() {}\n#[cfg(test)]\nmod tests {\n/// A file.\nfn f() {}\n}\n";
    let name = "doc comments of functions without a value that open with no verb";
    let found = of_code(name, &[("crates/a/src/b.rs", text)]);
    assert_eq!(found, (2, vec!["2 crates/a/src/b.rs".to_owned()]));
}

#[test]
fn counts_words_of_docs_and_rows_of_the_limits() {
    let limits = "# Limits\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n\
                  Text.\n\n## More\n| a |\n|---|\n| 5 |\n";
    let documents = [
        ("docs/pool/limits.md", limits),
        ("docs/decisions/0001-x.md", "not counted"),
        ("README.md", "not counted"),
        ("docs/a.md", "three words here"),
    ];
    let words = measure("words of docs", &[], &documents);
    assert_eq!(words.places[1], (3, "docs/a.md".to_owned()));
    let rows = measure("rows of limits.md", &[], &documents);
    assert_eq!(rows.value, 3);
    assert_eq!(rows.places[0], (2, "Limits".to_owned()));
}

#[test]
fn counts_lines_of_the_program_and_of_tests() {
    let files = [
        (
            "crates/pool/src/a/b.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n",
        ),
        ("crates/load/src/a.rs", "fn a() {}\nfn b() {}\n"),
        ("crates/testkit/src/a.rs", "fn a() {}\n"),
        ("tests/e2e/a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n"),
    ];
    let of = |name| of_code(name, &files);
    assert_eq!(
        of("product lines"),
        (3, vec!["2 load".into(), "1 pool".into()])
    );
    assert_eq!(
        of("product lines of pool, session and sql"),
        (1, vec!["1 pool/a".into()])
    );
    assert_eq!(of("test lines").0, 8);
    assert_eq!(of("lines of end-to-end tests").0, 3);
}
