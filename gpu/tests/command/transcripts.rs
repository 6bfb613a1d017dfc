//! `TRANSCRIPTS.md` beside what the command prints: the same lines, whatever the machine's figures.

use super::support::{Folder, noise};

const TRANSCRIPTS: &str = include_str!("../../TRANSCRIPTS.md");

/// What a command's block holds, from its prompt to the next or to the block's end.
fn shown(command: &str) -> &'static str {
    let prompt = format!("$ {command}\n");
    let from = TRANSCRIPTS.find(&prompt);
    let rest = &TRANSCRIPTS[from.unwrap_or_else(|| panic!("no {command}")) + prompt.len()..];
    let end = ["\n$ ", "\n```"]
        .into_iter()
        .filter_map(|end| rest.find(end));
    &rest[..end.min().unwrap_or(rest.len())]
}

/// The words that every line begins with that stands on any machine, in their order.
fn holds(text: &str, beginnings: &[&str]) {
    let mut lines = text.lines();
    for beginning in beginnings {
        assert!(
            lines.any(|line| words(line).starts_with(beginning)),
            "no {beginning}: {text}"
        );
    }
}

/// A line with one blank between words.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_shown_is_what_is_printed() {
    let folder = Folder::new();
    let rows = noise(3, 4000 * 16);
    folder.safetensors("points.safetensors", &[("rows", &[4000, 16], &rows)]);
    std::fs::write(folder.path("text.txt"), "a text to train on, ".repeat(80)).unwrap();
    for (command, arguments, beginnings) in [
        (
            "tercet info",
            &["info"][..],
            &[
                "tercet 0.",
                "processor ",
                "instruction sets scalar",
                "used ",
                "tuning ",
                "GPUs none: ",
            ][..],
        ),
        (
            "tercet verify --firmware images",
            &["verify"],
            &[
                "engine operations agree seconds",
                "core, scalar 176 176 ",
                "scalar, all threads ",
                "no GPU: ",
                "all digests are the released ones, on ",
            ],
        ),
        (
            "tercet tune",
            &["tune", "--quick"],
            &[
                "processor ",
                "GPU ",
                "operation fastest, from so many elements on",
                "quantize_integer ",
                "matmul ",
                "wrote ",
            ],
        ),
        (
            "tercet train shakespeare.txt --preset tiny --plan",
            &["train", "text.txt", "--plan"],
            &[
                "memory bytes for",
                "weights ",
                "moments ",
                "codes by columns ",
                "file ",
                "tokens ",
                "batches ",
                "sums ",
                "activations ",
                "kept ",
                "writing ",
                "evaluation ",
                "total ",
                "less: ",
            ],
        ),
        (
            "tercet train shakespeare.txt --preset tiny --find-batch 1000000000",
            &["train", "text.txt", "--find-batch", "1000000000"],
            &["a batch of ", "use: --batch "],
        ),
        (
            "tercet kmeans points.npy -k 8 --explain",
            &["kmeans", "points.safetensors", "-k", "8", "--explain"],
            &[
                "kmeans: ",
                "engine predicted launch ",
                "kmeans: 1 call by ",
                "recommended: ",
            ],
        ),
        (
            "tercet kmeans points.npy -k 8 --profile edge",
            &[
                "kmeans",
                "points.safetensors",
                "-k",
                "8",
                "--profile",
                "edge",
            ],
            &["error: --profile edge: kmeans needs "],
        ),
    ] {
        holds(shown(command), beginnings);
        let run = folder.run(arguments);
        let printed = format!("{}{}", run.err, run.out);
        // A machine with a device has its own lines of it.
        let here = beginnings.iter().copied();
        let here: Vec<_> = here
            .filter(|it| !["GPUs none: ", "no GPU: "].contains(it))
            .collect();
        holds(&printed, &here);
    }
    // Every board, with every digest.
    let boards = shown("tercet verify --firmware images").lines();
    let boards: Vec<_> = boards
        .filter(|line| line.starts_with("emulated "))
        .collect();
    assert_eq!(boards.len(), 8);
    let digests = tercet_core::conformance::entries()
        .filter(|(name, _)| tercet_core::conformance::is_small(name))
        .count();
    for board in boards {
        let all = format!(") {digests} {digests} ");
        assert!(words(board).contains(&all), "{board}");
    }
}
