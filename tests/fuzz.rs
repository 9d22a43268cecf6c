//! The functions that are fuzzed, called with the inputs that once made trouble (`fuzz/crashes/NAME/`) and with random
//! ones: a fixed share of them, or 20,000 of each with `XFSKIT_FULL=1`.

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// No input may take longer, on a machine that does other things, too.
const LIMIT: Duration = Duration::from_secs(10);

fn runs() -> usize {
    if std::env::var("XFSKIT_FULL").is_ok_and(|value| value == "1") { 20_000 } else { 500 }
}

fn call(target: fn(&[u8]), input: &[u8]) {
    let start = Instant::now();
    target(input);
    assert!(start.elapsed() < LIMIT, "{:?} for {input:?}", start.elapsed());
}

fn replay(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/crashes").join(name);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        call(target, &std::fs::read(entry.path()).expect("invariant: the inputs are readable"));
    }
}

fn random(target: fn(&[u8]), strategy: impl Strategy<Value = Vec<u8>>) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    for _ in 0..runs() {
        let input = strategy.new_tree(&mut runner).expect("invariant: nothing is filtered").current();
        call(target, &input);
    }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(proptest::prelude::any::<u8>(), 0..most)
}

#[test]
fn image() {
    replay("image", targets::image);
    random(targets::image, bytes(80));
}

#[test]
fn journal() {
    replay("journal", targets::journal);
    random(targets::journal, bytes(2000));
}

#[test]
fn partition() {
    replay("partition", targets::partition);
    random(targets::partition, bytes(6000));
}

#[test]
fn undo() {
    replay("undo", targets::undo);
    random(targets::undo, bytes(3000));
}
