//! `network build` and `network run` beside a device: the processor's bits, and who worked.

use serde_json::Value;

use super::folder::{Folder, Run, finish, noise};
use super::support::emulator::lend;
use super::{is_emulated, on_device, worked};

/// More points than go through a layer together.
const POINTS: usize = 1100;

const RUN: [&str; 4] = ["network", "run", "net.gguf", "points.safetensors"];

/// A network's build, whose layers have a layout with blocks and one without.
const BUILD: [&str; 13] = [
    "network",
    "build",
    "in.safetensors",
    "--layer",
    "hidden:relu:q8_0",
    "--layer",
    "middle",
    "--layer",
    "head:int8",
    "--to",
    "ternary_lanes",
    "--calibrate",
    "points.safetensors",
];

fn build<'a>(more: &[&'a str]) -> Vec<&'a str> {
    BUILD.into_iter().chain(more.iter().copied()).collect()
}

/// The model, its points, and `net.gguf` as the processor builds it.
fn inputs() -> Folder {
    let folder = Folder::new();
    let (hidden, middle, head) = (noise(1, 30 * 32), noise(2, 17 * 30), noise(3, 5 * 17));
    let bias = noise(4, 30);
    folder.safetensors(
        "in.safetensors",
        &[
            ("head.weight", &[5, 17], &head),
            ("hidden.bias", &[30], &bias),
            ("hidden.weight", &[30, 32], &hidden),
            ("middle.weight", &[17, 30], &middle),
        ],
    );
    let points = noise(5, POINTS * 32);
    folder.safetensors("points.safetensors", &[("points", &[POINTS, 32], &points)]);
    folder.ok(&build(&["-o", "net.gguf"]));
    folder
}

fn report(run: &Run) -> Value {
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
    serde_json::from_str(&run.out).unwrap()
}

/// Removes what differs from engine to engine; gives the engine and the note.
fn by(report: &mut Value) -> (String, Option<String>) {
    let fields = report.as_object_mut().unwrap();
    for passing in ["seconds", "file"] {
        fields.remove(passing);
    }
    let engine = fields.remove("engine").unwrap();
    let note = fields.remove("engine_note").unwrap();
    let word = |value: Value| value.as_str().map(str::to_owned);
    (word(engine).unwrap(), word(note))
}

#[test]
fn the_device_builds_and_runs_the_same_network() {
    let folder = inputs();
    let expected = std::fs::read(folder.path("net.gguf")).unwrap();
    let lines = folder.ok(&[&RUN[..], &["--digest"]].concat());
    let mut reports = Vec::new();
    for choice in ["scalar", "cuda"] {
        let on = |arguments: &[&str]| {
            worked(
                &folder,
                &[arguments, &["--backend", choice]].concat(),
                "seed=5",
            )
        };
        let Some(built) = on(&build(&["-o", "found.gguf", "--force", "--json"])) else {
            return;
        };
        let mut built = report(&built);
        assert_eq!(by(&mut built), (choice.to_owned(), None));
        assert!(std::fs::read(folder.path("found.gguf")).unwrap() == expected);
        let ran = on(&[&RUN[..], &["--json"]].concat()).unwrap();
        let mut ran = report(&ran);
        assert_eq!(by(&mut ran), (choice.to_owned(), None));
        let digest = on(&[&RUN[..], &["--digest"]].concat()).unwrap();
        assert_eq!(
            (digest.code, digest.out.as_str()),
            (Some(0), lines.as_str())
        );
        let text = on(&RUN).unwrap().out;
        assert!(text.contains(&format!(" s by {choice}, logits ")), "{text}");
        reports.push((built, ran));
    }
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn what_has_no_room_is_done_by_the_processor_and_told() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    let expected = std::fs::read(folder.path("net.gguf")).unwrap();
    let lines = folder.ok(&[&RUN[..], &["--digest"]].concat());
    let cuda = ["--backend", "cuda"];
    let run = [&RUN[..], &cuda].concat();
    let made = [&build(&["-o", "found.gguf", "--force"])[..], &cuda].concat();
    let mut engines = Vec::new();
    // No allocation at all, and every one from some point in the middle of the work on.
    for first in [1, 4, 8, 12, 16, 24] {
        let switches = format!("fail=alloc:{first}+");
        let on = |command: &[&str], more: &[&str]| {
            on_device(&folder, &[command, more].concat(), &switches)
        };
        let Some(digest) = on(&run, &["--digest"]) else {
            return;
        };
        assert_eq!(
            (digest.code, digest.out.as_str()),
            (Some(0), lines.as_str())
        );
        let (engine, note) = by(&mut report(&on(&run, &["--json"]).unwrap()));
        let told = "cuda had no room for it: out of device memory: ";
        let is_told = |note: &Option<String>| note.as_ref().is_some_and(|it| it.starts_with(told));
        assert_eq!(
            is_told(&note),
            engine != "cuda",
            "{first}: {engine}, {note:?}"
        );
        engines.push(engine);
        let (engine, note) = by(&mut report(&on(&made, &["--json"]).unwrap()));
        assert_eq!(engine, "cuda");
        assert!(std::fs::read(folder.path("found.gguf")).unwrap() == expected);
        if first == 1 {
            assert!(is_told(&note), "{note:?}");
            let text = on(&run, &[]).unwrap().out;
            assert!(text.contains(&format!("; {told}")), "{text}");
            let text = on(&made, &[]).unwrap().out;
            assert!(
                text.contains(&format!("the processor did part of the work: {told}")),
                "{text}"
            );
        }
    }
    // All by the processor, and a batch by each.
    assert!(!engines[0].contains("cuda"), "{engines:?}");
    assert!(
        engines.iter().any(|name| name.starts_with("cuda, ")),
        "{engines:?}"
    );
}

#[test]
fn little_memory_takes_more_parts_and_gives_the_same_bits() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    let lines = folder.ok(&[&RUN[..], &["--digest"]].concat());
    let run = [&RUN[..], &["--digest", "--backend", "cuda"]].concat();
    let Some(run) = on_device(&folder, &run, "memory=256K") else {
        return;
    };
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert_eq!(run.out, lines);
}

/// `TERCET_BACKEND=cuda` is a wish, and `--backend cuda` a demand.
#[test]
fn a_device_that_fails_leaves_the_work_to_the_processor_with_one_warning() {
    if !is_emulated() {
        return;
    }
    let folder = inputs();
    let expected = std::fs::read(folder.path("net.gguf")).unwrap();
    let lines = folder.ok(&[&RUN[..], &["--digest"]].concat());
    let run = [&RUN[..], &["--digest"]].concat();
    let made = build(&["-o", "found.gguf", "--force"]);
    let wished = |arguments: &[&str], switches: &str| {
        let mut command = folder.command(arguments);
        command.env("TERCET_BACKEND", "cuda");
        command.env("TERCET_EMULATOR", format!("tell=0,{switches}"));
        lend(&mut command).then(|| finish(&mut command))
    };
    for switches in ["", "fail=lost:2", "fail=launch:1", "fail=launch:2"] {
        for arguments in [&run, &made] {
            let Some(done) = wished(arguments, switches) else {
                return;
            };
            assert_eq!(done.code, Some(0), "{arguments:?} {done:?}");
            let warnings: Vec<_> = done.err.lines().collect();
            assert_eq!(warnings.len(), usize::from(!switches.is_empty()));
            for warning in warnings {
                assert!(
                    warning.starts_with("warning: ") && warning.contains(": cuda failed, "),
                    "{warning}"
                );
            }
            if arguments == &run {
                assert_eq!(done.out, lines);
            } else {
                assert!(std::fs::read(folder.path("found.gguf")).unwrap() == expected);
            }
        }
    }
    std::fs::remove_file(folder.path("found.gguf")).unwrap();
    let before = folder.files();
    for arguments in [&run, &made] {
        let demand = [&arguments[..], &["--backend", "cuda"]].concat();
        let lost = on_device(&folder, &demand, "fail=lost:2").unwrap();
        assert_eq!((lost.code, lost.out.as_str()), (Some(1), ""), "{lost:?}");
        assert!(
            lost.err
                .starts_with("error: cuda: the CUDA device was lost: CUDA_ERROR_"),
            "{}",
            lost.err
        );
        assert_eq!(lost.err.lines().count(), 1);
        assert_eq!(folder.files(), before);
    }
}
