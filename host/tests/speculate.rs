//! Drafts: whatever is proposed, a text and its logits are those without.

use tercet_core::model::{CacheType, Pattern, Sampler};
use tercet_host::language::tokenizer::Tokenizer;
use tercet_host::language::{
    DraftModel, Drafter, Generated, Generation, LanguageFile, Lookup, RunOptions, View, generate,
    run, same_vocabulary, tiny,
};
use tercet_host::parallel::Threads;
use tercet_host::{Error, Result};

use crate::files::Folder;

const PATTERNS: [Pattern; 3] = [
    Pattern::FULL,
    Pattern {
        window: 9,
        sinks: 2,
        stride: 0,
    },
    Pattern {
        window: 9,
        sinks: 0,
        stride: 5,
    },
];

fn open(folder: &Folder, name: &str, seed: u64) -> LanguageFile {
    let path = folder.file(name);
    tiny::llama(&path, tiny::LLAMA_32, seed, false).unwrap();
    LanguageFile::open(&path).unwrap()
}

fn how(temperature: f32, ends: &[u32]) -> Generation<'_> {
    Generation {
        sampler: Sampler {
            temperature,
            top_k: 20,
            seed: 5,
            penalty: if temperature == 0.0 { 1.0 } else { 1.1 },
            ..Sampler::GREEDY
        },
        recent: 8,
        tokens: 80,
        ends,
    }
}

fn text(
    file: &LanguageFile,
    (kind, pattern): (CacheType, Pattern),
    prompt: &[u32],
    how: &Generation<'_>,
    drafter: Option<&mut dyn Drafter>,
) -> Result<Generated> {
    let mut view = View::of(file)?;
    let model = view.model(file)?;
    let options = RunOptions {
        pattern: Some(pattern),
        cache: Some(kind),
        ..RunOptions::default()
    };
    let done = run(&mut Threads::alone(), file, &model, &options, |decoder| {
        let mut told = Vec::new();
        let generated = generate(decoder, prompt, how, drafter, &mut |_| {}, &mut |token| {
            told.push(token);
            Ok(true)
        })?;
        assert_eq!(told, generated.tokens);
        // What was not drawn is forgotten.
        let len = prompt.len() + generated.tokens.len() - 1;
        assert_eq!(decoder.len(0) as usize, len);
        Ok(generated)
    });
    done.map(|(generated, _)| generated)
}

fn same(found: &Generated, expected: &Generated) {
    assert_eq!(found.tokens, expected.tokens);
    assert_eq!(
        (found.ended, found.digest),
        (expected.ended, expected.digest)
    );
    assert!(found.accepted <= found.drafted);
    assert!(found.accepted < found.tokens.len());
}

/// Proposes what a text is known to be, with every so many-th token wrong.
struct Known {
    text: Vec<u32>,
    wrong: usize,
}

impl Drafter for Known {
    fn propose(&mut self, text: &[u32], most: usize) -> Result<Vec<u32>> {
        let rest = self.text.iter().enumerate().skip(text.len()).take(most);
        let proposed = rest.map(|(at, &token)| match (at + 1) % self.wrong {
            0 => (token + 1) % 290,
            _ => token,
        });
        Ok(proposed.collect())
    }
}

#[test]
fn drafts_change_no_token_and_no_logit() {
    let folder = Folder::new();
    let file = open(&folder, "model.gguf", 1);
    let repeats: Vec<u32> = (0..48).map(|at| 260 + at % 6).collect();
    let plain: Vec<u32> = (0..40).map(|at| 3 + at * 7).collect();
    let (mut drafted, mut accepted) = (0, 0);
    for kind in CacheType::ALL {
        for pattern in PATTERNS {
            for (prompt, temperature) in [(&repeats, 0.0), (&plain, 0.9)] {
                let how = how(temperature, &[]);
                let run = |drafter: Option<&mut dyn Drafter>| {
                    text(&file, (kind, pattern), prompt, &how, drafter).unwrap()
                };
                let expected = run(None);
                assert_eq!((expected.drafted, expected.accepted), (0, 0));
                let found = run(Some(&mut Lookup { longest: 4 }));
                same(&found, &expected);
                drafted += found.drafted;
                accepted += found.accepted;
                for wrong in [1, 3, 1000] {
                    let text = [&prompt[..], &expected.tokens].concat();
                    let found = run(Some(&mut Known { text, wrong }));
                    same(&found, &expected);
                    assert!(found.drafted > 0);
                    match wrong {
                        1 => assert_eq!(found.accepted, 0),
                        1000 => {
                            assert_eq!(found.accepted, found.drafted);
                            // 4, 8, 16, 16 … and one more a step.
                            assert!(found.accepted > 70, "{}", found.accepted);
                        }
                        _ => assert!(found.accepted < found.drafted && found.accepted > 0),
                    }
                }
            }
        }
    }
    assert!(
        accepted > 0 && drafted > accepted,
        "{accepted} of {drafted}"
    );
}

#[test]
fn a_text_ends_where_it_ends_without_drafts() {
    let folder = Folder::new();
    let file = open(&folder, "model.gguf", 1);
    let prompt = [1, 262, 270];
    let options = (CacheType::Int8, Pattern::FULL);
    let whole = text(&file, options, &prompt, &how(0.9, &[]), None).unwrap();
    for at in [0, 1, 5, 6, 20] {
        let ends = [whole.tokens[at]];
        let expected = text(&file, options, &prompt, &how(0.9, &ends), None).unwrap();
        assert!(expected.ended);
        let all = [&prompt[..], &whole.tokens].concat();
        let mut known = Known {
            text: all,
            wrong: 1000,
        };
        let found = text(&file, options, &prompt, &how(0.9, &ends), Some(&mut known));
        same(&found.unwrap(), &expected);
    }
    for tokens in 1..12 {
        let how = Generation {
            tokens,
            ..how(0.9, &[])
        };
        for wrong in [5, 1000] {
            let text_of = [&prompt[..], &whole.tokens].concat();
            let mut known = Known {
                text: text_of,
                wrong,
            };
            let found = text(&file, options, &prompt, &how, Some(&mut known)).unwrap();
            assert_eq!(found.tokens, whole.tokens[..tokens]);
            // Nothing is proposed that could not be drawn, and the first token is the prompt's.
            assert!(wrong == 5 || found.drafted < tokens);
        }
    }
}

#[test]
fn a_model_drafts_for_another_of_its_vocabulary() {
    let folder = Folder::new();
    let (file, small) = (
        open(&folder, "model.gguf", 1),
        open(&folder, "small.gguf", 2),
    );
    let prompt: Vec<u32> = (0..30).map(|at| 3 + at * 9).collect();
    for temperature in [0.0, 0.8] {
        let how = how(temperature, &[]);
        let options = (CacheType::Int16Int8, Pattern::FULL);
        let expected = text(&file, options, &prompt, &how, None).unwrap();
        // By itself every draft is right, by another some are not; one with little room ends before the text does.
        for (draft, context) in [(&file, 640), (&small, 640), (&file, 64)] {
            let mut view = View::of(draft).unwrap();
            let model = view.model(draft).unwrap();
            let short = RunOptions {
                context: Some(context),
                ..RunOptions::default()
            };
            let (found, _) = run(&mut Threads::alone(), draft, &model, &short, |decoder| {
                let mut drafter = DraftModel::new(decoder, how.sampler, how.recent);
                text(&file, options, &prompt, &how, Some(&mut drafter))
            })
            .unwrap();
            same(&found, &expected);
            assert!(found.drafted > 0);
            if std::ptr::eq(draft, &file) {
                assert_eq!(found.accepted, found.drafted);
                assert_eq!(found.accepted > 60, context == 640);
            }
        }
    }
    let tokenizer =
        |file: &LanguageFile| Tokenizer::read(&file.reader().unwrap(), file.bytes(), None).unwrap();
    let path = folder.file("chat.gguf");
    tiny::chat(&path, tiny::CHAT, 1, false).unwrap();
    let other = LanguageFile::open(&path).unwrap();
    let (one, more) = (tokenizer(&file), tokenizer(&other));
    assert!(same_vocabulary(&one, &tokenizer(&small), small.path()).is_ok());
    let error = same_vocabulary(&one, &more, &path).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    let error = error.to_string();
    assert!(
        error.contains("chat.gguf: ") && error.contains("token 297 is `<|im_start|>`, but none"),
        "{error}"
    );
}
