//! Checks that the list of modules matches the shipped files.

use std::collections::BTreeMap;

use tercet_kernels::{Architecture, module, modules};

/// Returns the names that follow `.entry` in PTX.
fn entries(ptx: &str) -> Vec<&str> {
    ptx.split(".entry ")
        .skip(1)
        .filter_map(|rest| rest.split(['(', '\n', ' ']).next())
        .collect()
}

fn directive<'a>(ptx: &'a str, name: &str) -> Option<&'a str> {
    (ptx.lines()).find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
}

#[test]
fn modules_have_the_kernels_they_list() {
    assert!(!modules().is_empty());
    for module in modules() {
        assert_eq!(entries(module.ptx), module.kernels, "{}", module.name);
        assert!(!module.kernels.is_empty(), "{}", module.name);
    }
}

#[test]
fn kernels_have_one_name_each() {
    let mut homes = BTreeMap::new();
    for module in modules() {
        for &kernel in module.kernels {
            let other = homes.insert((kernel, module.architecture), module.name);
            assert_eq!(other, None, "{kernel} is also in {}", module.name);
        }
    }
}

#[test]
fn modules_are_written_for_their_architecture() {
    for module in modules() {
        let target = directive(module.ptx, ".target ");
        assert_eq!(
            target,
            Some(module.architecture.target()),
            "{}",
            module.name
        );
        let [(major, minor), _] = module.architecture.versions();
        let version = directive(module.ptx, ".version ");
        assert_eq!(version, Some(format!("{major}.{minor}").as_str()));
    }
}

#[test]
fn modules_hold_nothing_of_the_machine_that_made_them() {
    for module in modules() {
        assert!(module.ptx.is_ascii(), "{}", module.name);
        for trace in [".file", "/home", "/tmp", "/work", "\r"] {
            assert!(!module.ptx.contains(trace), "{}: {trace}", module.name);
        }
    }
}

#[test]
fn a_device_gets_what_it_takes() {
    for listed in modules() {
        let found = module(listed.name, listed.architecture.capability());
        assert!(found.is_some_and(|found| found.architecture >= listed.architecture));
        assert_eq!(module(listed.name, (7, 0)), None);
    }
    assert_eq!(module("no such file", (9, 0)), None);
}

#[test]
fn architectures_run_where_the_manual_says() {
    let devices = [(7, 0), (7, 5), (8, 0), (8, 9), (9, 0), (10, 0), (12, 1)];
    let takes = |architecture: Architecture| devices.map(|device| architecture.runs_on(device));
    let (no, yes) = (false, true);
    assert_eq!(
        takes(Architecture::Sm75),
        [no, yes, yes, yes, yes, yes, yes]
    );
    assert_eq!(takes(Architecture::Sm80), [no, no, yes, yes, yes, yes, yes]);
    assert_eq!(takes(Architecture::Sm90a), [no, no, no, no, yes, no, no]);
}
