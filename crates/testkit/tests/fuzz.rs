//! Every target of `testkit::fuzz` on its corpus, and on a bounded number of mutations of it.
//!
//! The same inputs on every machine: `ONRAMP_FUZZ_INPUTS` says how many mutations each target gets
//! (6,000 unless it is set), `ONRAMP_FUZZ_SEED` with which seed. What fails is written out, to be
//! put into the corpus as a file once it is mended. `make fuzz` searches further, with libFuzzer.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on says where by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use testkit::fuzz::mutate::Mutator;
use testkit::fuzz::{TARGETS, Target};

const INPUTS: u64 = 6_000;
/// A corpus is read by people too.
const CORPUS_FILES_MAX: usize = 80;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

fn number(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The corpus of a target, in the order of its files' names.
fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let place = folder().join("corpus").join(target.name);
    let files = fs::read_dir(&place).unwrap_or_else(|why| panic!("{}: {why}", place.display()));
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(path).unwrap());
    files.into_iter().map(read).collect()
}

/// Failure of a target, if there is one.
fn failure(target: &Target, input: &[u8]) -> Option<String> {
    let failed = catch_unwind(|| (target.check)(input)).err()?;
    let text = failed.downcast_ref::<String>().cloned();
    let text = text.or_else(|| failed.downcast_ref::<&str>().map(ToString::to_string));
    Some(text.unwrap_or_else(|| "a panic without words".into()))
}

#[test]
fn targets_hold_on_their_corpus_and_its_mutations() {
    let (inputs, seed) = (
        number("ONRAMP_FUZZ_INPUTS", INPUTS),
        number("ONRAMP_FUZZ_SEED", 1),
    );
    let mut failed = Vec::new();
    std::thread::scope(|scope| {
        let run =
            |target: &'static Target| scope.spawn(move || first_failure(target, seed, inputs));
        let running: Vec<_> = TARGETS.iter().map(run).collect();
        failed.extend(
            running
                .into_iter()
                .filter_map(|target| target.join().unwrap()),
        );
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn first_failure(target: &Target, seed: u64, inputs: u64) -> Option<String> {
    let corpus = corpus(target);
    for (path, input) in &corpus {
        if let Some(said) = failure(target, input) {
            return Some(format!("{}: {said}", path.display()));
        }
    }
    let known: Vec<Vec<u8>> = corpus.into_iter().map(|(_, input)| input).collect();
    let mut mutator = Mutator::new(&known, seed);
    for number in 0..inputs {
        let input = mutator.input();
        if let Some(said) = failure(target, &input) {
            let text = input.escape_ascii();
            let name = target.name;
            return Some(format!("{name}, input {number}: {said}\n  b\"{text}\""));
        }
    }
    None
}

/// A target that only one of the two ways runs would be searched by nobody, or guarded by nobody.
#[test]
fn every_target_has_a_binary_and_a_corpus() {
    let expected: BTreeSet<String> = TARGETS.iter().map(|target| target.name.into()).collect();
    let names = |folder: PathBuf| -> BTreeSet<String> {
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path());
        files
            .map(|file| file.file_stem().unwrap().to_string_lossy().into_owned())
            .collect()
    };
    assert_eq!(names(folder().join("fuzz_targets")), expected);
    assert_eq!(names(folder().join("corpus")), expected);
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for target in &TARGETS {
        let name = target.name;
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "{name}");
        let binary = folder().join(format!("fuzz_targets/{name}.rs"));
        let binary = fs::read_to_string(binary).unwrap();
        assert!(binary.contains(&format!("\"{name}\"")), "{name}");
        let files = corpus(target).len();
        assert!((1..=CORPUS_FILES_MAX).contains(&files), "{name}: {files}");
    }
}
