//! The steps of the whole check: those written here, and those that follow from the boards and the targets.

use crate::boards::Board;
use crate::targets::Target;

/// A step: a script of `.ci/steps`, and its argument behind a colon.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// As it is called.
    pub name: String,
    /// The folder that it builds into: no two steps of one folder run at a time, since one would wait for the other's
    /// lock or replace what it runs. Empty if no other step builds there.
    pub folder: &'static str,
    /// Whether it comes before all others: it takes seconds, and what it finds is found soon.
    pub early: bool,
    /// Whether it belongs to `quick`.
    pub quick: bool,
    /// Whether it runs only by name: another step runs it too, or a machine of the workflow does in less time.
    pub part: bool,
}

impl Step {
    fn new(name: &str, folder: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            folder,
            early: false,
            quick: false,
            part: false,
        }
    }
}

/// What is checked before each commit.
const QUICK: &[&str] = &["fmt", "clippy", "test", "core", "conformance:host"];

/// What takes seconds.
const EARLY: &[&str] = &["fmt", "shell", "licences"];

/// What the workspace itself builds into, its tests and lints.
const HOST: &str = "target/debug";
/// The programs of `.ci/desktop` on this machine.
const RELEASE: &str = "target/desktop";
/// What is built for other targets: one folder, so that what runs while they are built is built once.
const CROSS: &str = "cross";
/// The tools that run on the desk.
const TOOLS: &str = "tools";
/// A folder that no other step builds into, or none.
const OWN: &str = "";

/// All steps. Those of a folder start in this order; which folder is next, the scheduler chooses.
pub fn all(boards: &[Board], targets: &[Target]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut add = |folder: &'static str, names: &[&str]| {
        steps.extend(names.iter().map(|name| Step::new(name, folder)));
    };
    let of = |kind: &'static str| targets.iter().filter(move |target| target.kind == kind);
    add(OWN, EARLY);
    add(HOST, &["clippy", "test", "bench", "core"]);
    add(RELEASE, &["conformance:host", "counts", "amx"]);
    for board in boards {
        add(CROSS, &[&format!("board:{}", board.name)]);
        for target in &board.others {
            add(CROSS, &[&format!("board:{}:{target}", board.name)]);
        }
    }
    add(CROSS, &["footprint", "no_panic", "verify"]);
    for target in of("desktop") {
        add(CROSS, &[&format!("conformance:{}", target.name)]);
    }
    add(
        CROSS,
        &["features", "matrix", "clippy:firmware", "clippy:mcu"],
    );
    for target in of("checked") {
        add(CROSS, &[&format!("cross:{}", target.name)]);
    }
    add("c", &["c:host"]);
    add(CROSS, &["c:an386", "c:an385", "c:microbit", "c:an505"]);
    for processor in ["m0", "m3", "m4", "m7", "m33", "m55", "rv32"] {
        add("mcu", &[&format!("mcu:{processor}")]);
    }
    add(CROSS, &["hardware:nucleo-f411re", "hardware:pico"]);
    add(
        HOST,
        &[
            "cuda:checked",
            "cuda:asan",
            "clippy:features",
            "features:host",
        ],
    );
    add(HOST, &["python", "doc", "clippy:fuzz", "clippy:peers"]);
    add(
        OWN,
        &[
            "cuda:ptx",
            "cuda:emulator",
            "sanitize",
            "fuzz",
            "loom",
            "readme",
        ],
    );
    add(TOOLS, &["runner", "desk"]);
    add("soak", &["soak", "soak:valgrind"]);
    for (name, folder) in [
        ("references", HOST),
        ("wheel:aarch64-unknown-linux-gnu", CROSS),
    ] {
        steps.push(Step {
            part: true,
            ..Step::new(name, folder)
        });
    }
    for step in &mut steps {
        step.early = EARLY.contains(&&*step.name);
        step.quick = QUICK.contains(&&*step.name);
    }
    steps
}

/// The steps that the words name, each once, in the order of the list; all but the parts of others if there is no word.
///
/// A word names a step, all steps that begin with it and a colon, or, with a colon in it, all that begin with it;
/// `quick` is a group.
///
/// # Errors
/// A word that names none.
pub fn choose(steps: &[Step], words: &[String]) -> Result<Vec<Step>, String> {
    if words.is_empty() {
        return Ok(steps.iter().filter(|step| !step.part).cloned().collect());
    }
    for word in words {
        if !steps.iter().any(|step| named(step, word)) {
            return Err(format!("no step {word}; .ci/test list names them"));
        }
    }
    let chosen = steps
        .iter()
        .filter(|step| words.iter().any(|word| named(step, word)));
    Ok(chosen.cloned().collect())
}

/// Whether a word names a step.
pub fn named(step: &Step, word: &str) -> bool {
    let rest = step.name.strip_prefix(word);
    let begins = rest.is_some_and(|rest| rest.starts_with(':') || word.contains(':'));
    rest == Some("") || begins || (word == "quick" && step.quick)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Step> {
        let board = |name: &str, others: &[&str]| Board {
            name: name.to_owned(),
            target: "t".to_owned(),
            others: others.iter().map(|&other| other.to_owned()).collect(),
        };
        let target = |name: &str, kind: &str| Target {
            name: name.to_owned(),
            kind: kind.to_owned(),
        };
        let boards = [board("an385", &["soft"]), board("an3850", &[])];
        all(
            &boards,
            &[target("big", "desktop"), target("pane", "checked")],
        )
    }

    fn chosen(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let chosen = choose(&steps(), &words)?;
        Ok(chosen.into_iter().map(|step| step.name).collect())
    }

    #[test]
    fn boards_and_targets_make_steps() {
        let all = chosen(&[]).expect("all");
        for step in [
            "board:an385",
            "board:an385:soft",
            "conformance:big",
            "cross:pane",
        ] {
            assert!(all.iter().any(|name| name == step), "{step}");
        }
    }

    #[test]
    fn a_word_names_a_step_its_arguments_or_what_begins_with_it() {
        assert_eq!(chosen(&["fmt", "fmt"]), Ok(vec!["fmt".to_owned()]));
        let boards = ["board:an385", "board:an385:soft", "board:an3850"];
        assert_eq!(chosen(&["board"]), Ok(boards.map(str::to_owned).to_vec()));
        assert_eq!(chosen(&["board:an385:"]), Ok(vec![boards[1].to_owned()]));
    }

    #[test]
    fn no_step_is_there_twice() {
        let mut all: Vec<String> = steps().into_iter().map(|step| step.name).collect();
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn quick_is_a_group_and_a_part_runs_only_by_name() {
        assert_eq!(chosen(&["quick"]).map(|quick| quick.len()), Ok(QUICK.len()));
        assert!(!chosen(&[]).is_ok_and(|all| all.contains(&"references".to_owned())));
        for part in ["references", "wheel"] {
            assert_eq!(chosen(&[part]).map(|part| part.len()), Ok(1));
        }
    }

    #[test]
    fn a_word_that_names_nothing_is_refused() {
        let error = chosen(&["fmt", "board:an99"]);
        assert_eq!(
            error,
            Err("no step board:an99; .ci/test list names them".to_owned())
        );
    }
}
