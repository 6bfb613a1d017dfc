//! Files of language models that are cut short, and memory that does not suffice.

use std::fs;
use std::path::Path;

use tercet_core::block::Format;
use tercet_core::gguf::Reader;
use tercet_core::model::Pattern;
use tercet_host::language::tokenizer::Tokenizer;
use tercet_host::language::{LanguageFile, RunOptions, View, Windows, perplexity, run, tiny};
use tercet_host::parallel::Threads;
use tercet_host::{DType, Error, TensorFile};

use crate::files::Folder;

fn write(folder: &Folder) -> [std::path::PathBuf; 2] {
    let (bitnet, llama) = (folder.file("bitnet.gguf"), folder.file("llama.gguf"));
    let format = DType::Block(Format::Q2_0);
    tiny::bitnet(&bitnet, tiny::BITNET_64, 1, format, false).unwrap();
    tiny::llama(&llama, tiny::LLAMA_32, 1, false).unwrap();
    [bitnet, llama]
}

/// What a file is refused with, as a model and by its tokenizer.
fn refusals(path: &Path) -> [Error; 2] {
    let file = LanguageFile::open(path).unwrap();
    let model = View::of(&file).unwrap_err();
    let tokenizer = TensorFile::open(path).and_then(|model| Tokenizer::open(&model, None));
    [model, tokenizer.unwrap_err()]
}

#[test]
fn a_file_that_is_cut_short_is_refused_at_every_length_with_what_is_missing() {
    let folder = Folder::new();
    for path in write(&folder) {
        let bytes = fs::read(&path).unwrap();
        let reader = Reader::new(&bytes).unwrap();
        let header = bytes.len() - reader.data().len();
        let tensors: Vec<(usize, String)> = reader
            .tensors()
            .map(|info| {
                (
                    header + info.offset as usize + info.data.len(),
                    info.name.to_owned(),
                )
            })
            .collect();
        let cut = folder.file("cut.gguf");
        let lengths = (0..bytes.len()).step_by(251);
        // And the last bytes of the header and of each tensor.
        let ends = tensors.iter().map(|(end, _)| *end).chain([header]);
        for len in lengths.chain(ends.map(|end| end - 1)) {
            fs::write(&cut, &bytes[..len]).unwrap();
            for error in refusals(&cut) {
                let said = error.to_string();
                assert!(
                    said.starts_with(&format!("{}: ", cut.display())),
                    "{len}: {said}"
                );
                match tensors.iter().find(|(end, _)| len >= header && len < *end) {
                    // The first tensor that lacks something, by its name.
                    Some((_, name)) => assert!(
                        said.contains(&format!("tensor `{name}`")) && said.contains("bytes where"),
                        "{len}: {said}"
                    ),
                    None => assert!(
                        [
                            "the file ends",
                            "do not fit",
                            "more than the file has",
                            "needs",
                            "empty",
                            "GGUF"
                        ]
                        .iter()
                        .any(|part| said.contains(part)),
                        "{len}: {said}"
                    ),
                }
            }
        }
    }
}

/// A model, opened.
fn with<T>(
    path: &Path,
    work: impl FnOnce(&LanguageFile, &tercet_core::model::Model<'_, '_>) -> T,
) -> T {
    let file = LanguageFile::open(path).unwrap();
    let mut view = View::of(&file).unwrap();
    let model = view.model(&file).unwrap();
    work(&file, &model)
}

#[test]
fn what_a_run_takes_is_told_before_and_grows_with_what_is_asked() {
    let folder = Folder::new();
    let [path, _] = write(&folder);
    with(&path, |file, model| {
        let usage = |options: RunOptions| {
            let usage = options.usage(&Threads::alone(), file, model).unwrap();
            (usage.cache, usage.steps)
        };
        let plain = RunOptions::default();
        let (cache, steps) = usage(plain);
        // A page of 64 positions, 2 layers and a head of 4: codes and scales of keys and values; 640 positions.
        assert_eq!(cache, 10 * 64 * 2 * (4 + 4 + 4 + 4));
        assert_eq!(
            usage(RunOptions {
                sequences: 3,
                ..plain
            }),
            (3 * cache, steps)
        );
        let one = usage(RunOptions { chunk: 1, ..plain });
        assert!(one.0 == cache && one.1 * 16 < steps, "{one:?} {steps}");
        let window = Pattern {
            window: 64,
            ..Pattern::FULL
        };
        let ring = usage(RunOptions {
            pattern: Some(window),
            ..plain
        });
        assert!(ring.0 < cache && ring.1 < steps, "{ring:?}");
        let half = usage(RunOptions {
            context: Some(320),
            ..plain
        });
        assert_eq!(half.0 * 2, cache);
    });
}

#[test]
fn memory_that_does_not_suffice_is_told_before_work_begins() {
    let folder = Folder::new();
    let [path, _] = write(&folder);
    with(&path, |file, model| {
        // Some ten terabytes, and what no address reaches.
        for sequences in [1 << 30, usize::MAX] {
            let options = RunOptions {
                sequences,
                ..RunOptions::default()
            };
            let done = run(
                &mut Threads::alone(),
                file,
                model,
                &options,
                |_| -> Result<(), _> { panic!("work begins") },
            );
            let said = done.unwrap_err().to_string();
            assert!(said.starts_with(&format!("{}: ", path.display())), "{said}");
            if cfg!(target_os = "linux") {
                let usage = options.usage(&Threads::alone(), file, model).unwrap();
                let needed = usage.cache.saturating_add(usage.steps);
                let told = format!(
                    "needs {needed} bytes of memory, {} of cache and {} of steps, but only ",
                    usage.cache, usage.steps
                );
                assert!(said.contains(&told) && said.ends_with("are left"), "{said}");
            }
        }
    });
}

#[test]
fn costs_that_leave_64_bits_are_an_error() {
    let folder = Folder::new();
    let path = folder.file("llama.gguf");
    tiny::llama(&path, tiny::LLAMA_32, 1, false).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let reader = Reader::new(&bytes).unwrap();
    let gains = reader.tensor("output_norm.weight").unwrap();
    let at = bytes.len() - reader.data().len() + gains.offset as usize;
    // Logits of some 10³⁰.
    for gain in bytes[at..][..4 * 32].chunks_exact_mut(4) {
        gain.copy_from_slice(&1e30f32.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    with(&path, |file, model| {
        let windows = Windows {
            context: 64,
            begin: None,
            second_half: false,
        };
        let tokens: Vec<u32> = (0..60).collect();
        let options = RunOptions::default();
        let done = run(&mut Threads::alone(), file, model, &options, |decoder| {
            perplexity(decoder, &tokens, &windows, &|_| 1, &mut |_| {})
        });
        let said = done.unwrap_err().to_string();
        assert!(said.contains("64 bits"), "{said}");
    });
}
