//! Runs one check over many sets, a few at a time, and reports every set that failed.

use crate::sets::Set;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What came of one set.
#[derive(Debug)]
pub enum Outcome {
    /// All checks passed.
    Passed,
    /// What is wrong, a line each.
    Failed(Vec<String>),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        result.map_or_else(|why| Self::Failed(vec![why]), |()| Self::Passed)
    }
}

/// Applies `check` to each set, in as many threads as there are processors, and fails with a list of what failed.
pub fn each(title: &str, sets: &[Set], check: impl Fn(&Set) -> Outcome + Sync) {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(set) = sets.get(index) else { break };
                    let outcome = check(set);
                    outcomes.lock().expect("invariant: no thread panics with the lock").push((index, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("invariant: no thread panics with the lock");
    outcomes.sort_by_key(|(index, _)| *index);
    report(title, outcomes.into_iter().map(|(index, outcome)| (sets[index].name.clone(), outcome)).collect());
}

/// Prints what failed, writes it to `XFSKIT_REPORT`, and fails if something failed.
pub fn report(title: &str, outcomes: Vec<(String, Outcome)>) {
    let (mut passed, mut failed) = (0, 0);
    let mut text = String::new();
    for (name, outcome) in outcomes {
        let lines = match outcome {
            Outcome::Passed => {
                passed += 1;
                continue;
            }
            Outcome::Failed(lines) => {
                failed += 1;
                lines
            }
        };
        for line in lines {
            writeln!(text, "{name}: {line}").expect("invariant: a string can be written to");
        }
    }
    let summary = format!("{title}: {passed} passed, {failed} failed");
    println!("{text}{summary}");
    if let Some(folder) = std::env::var_os("XFSKIT_REPORT") {
        std::fs::create_dir_all(&folder).expect("the report's folder can be made");
        let path = std::path::Path::new(&folder).join(format!("{}.txt", title.replace(' ', "-")));
        std::fs::write(&path, format!("{text}{summary}\n")).expect("the report's folder can be written");
    }
    assert!(passed + failed > 0, "{title}: no set was chosen");
    assert!(failed == 0, "{summary}");
}
