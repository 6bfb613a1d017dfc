//! The committed table holds on this machine.

use std::fmt::Write;
use tercet_core::conformance;

/// What the committed file must contain; `TERCET_OVERWRITE=1` renews it.
fn printed() -> String {
    let mut text =
        String::from("# One digest an operation (64-bit FNV-1a); see tercet_core::conformance.\n");
    conformance::run(&mut |name, digest| writeln!(text, "{name} {digest:016x}").unwrap());
    text
}

#[test]
fn this_machine_prints_the_committed_table() {
    let found = printed();
    if std::env::var_os("TERCET_OVERWRITE").is_some() {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/conformance.txt"),
            &found,
        )
        .unwrap();
        return;
    }
    assert_eq!(
        found,
        conformance::TABLE,
        "renew with TERCET_OVERWRITE=1 if the rules changed"
    );
}

#[test]
fn a_second_run_gives_the_same_bits() {
    assert_eq!(printed(), printed());
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = conformance::entries().map(|entry| entry.0).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
