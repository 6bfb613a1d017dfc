//! What the cache of a conversation holds: answers do not depend on it, nor on where it was kept.

use std::fs;

use tercet_core::model::{CacheType, Pattern, Sampler};
use tercet_host::language::chat::{
    Answer, CachedTokens, History, Kept, Message, ModelId, Role, Session,
};
use tercet_host::language::{Decoder, Generation, LanguageFile, RunOptions, View, run, tiny};
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

fn open(folder: &Folder, seed: u64) -> LanguageFile {
    let path = folder.file(&format!("chat{seed}.gguf"));
    tiny::chat(&path, tiny::CHAT, seed, false).unwrap();
    LanguageFile::open(&path).unwrap()
}

fn with<T>(
    file: &LanguageFile,
    kind: CacheType,
    pattern: Pattern,
    work: impl FnOnce(&mut Decoder<'_, '_, Threads>) -> Result<T>,
) -> Result<T> {
    let mut view = View::of(file).unwrap();
    let model = view.model(file).unwrap();
    let options = RunOptions {
        pattern: Some(pattern),
        cache: Some(kind),
        chunk: 16,
        ..RunOptions::default()
    };
    run(&mut Threads::alone(), file, &model, &options, work).map(|(done, _)| done)
}

const HOW: Generation<'static> = Generation {
    sampler: Sampler {
        temperature: 0.9,
        seed: 3,
        ..Sampler::GREEDY
    },
    recent: 0,
    tokens: 12,
    ends: &[],
};

fn answer(
    held: &mut CachedTokens,
    decoder: &mut Decoder<'_, '_, Threads>,
    prompt: &[u32],
) -> Result<Answer> {
    held.answer(decoder, prompt, &HOW, None, &|| false, &mut |_| Ok(true))
}

/// Tokens of no meaning.
fn text(len: u32, salt: u32) -> Vec<u32> {
    (0..len)
        .map(|at| 3 + (at * 7 + salt * at * at) % 290)
        .collect()
}

#[test]
fn an_answer_is_that_of_an_empty_cache_however_much_is_held() {
    let folder = Folder::new();
    let file = open(&folder, 1);
    let first = text(90, 1);
    // It goes on, is cut within, is the same again, shorter, or another from the first token on.
    let mut longer = first.clone();
    longer.extend(text(20, 2));
    let mut other = first[..70].to_vec();
    other.extend(text(9, 5));
    let prompts = [
        longer,
        other,
        first.clone(),
        first[..40].to_vec(),
        text(30, 3),
    ];
    for kind in CacheType::ALL {
        for pattern in PATTERNS {
            for prompt in &prompts {
                let expected = with(&file, kind, pattern, |decoder| {
                    answer(&mut CachedTokens::default(), decoder, prompt)
                });
                let found = with(&file, kind, pattern, |decoder| {
                    let mut held = CachedTokens::default();
                    let before = answer(&mut held, decoder, &first)?;
                    assert_eq!(held.tokens().len(), 90 + 11);
                    assert_eq!(before.cached, 0);
                    let found = answer(&mut held, decoder, prompt)?;
                    assert_eq!(held.tokens()[..prompt.len()], prompt[..]);
                    Ok(found)
                });
                let (expected, found) = (expected.unwrap(), found.unwrap());
                let drawn = |answer: &Answer| {
                    let generated = &answer.generated;
                    (generated.tokens.clone(), generated.digest)
                };
                assert_eq!(drawn(&found), drawn(&expected), "{kind:?} {pattern:?}");
                let same = prompt.iter().zip(&first).take_while(|(a, b)| a == b);
                let same = same.count().min(prompt.len() - 1);
                // A ring that has gone on too far begins anew.
                let ring = pattern.is_ring() && found.cached == 0;
                assert!(found.cached == same || ring, "{} of {same}", found.cached);
                if same == 90 {
                    assert_eq!(found.cached, 90, "by few positions a ring goes back too");
                }
            }
        }
    }
}

#[test]
fn an_answer_that_is_stopped_is_the_beginning_of_the_whole_one() {
    let folder = Folder::new();
    let file = open(&folder, 1);
    let prompt = text(40, 1);
    let kind = CacheType::Int8;
    let whole = with(&file, kind, Pattern::FULL, |decoder| {
        answer(&mut CachedTokens::default(), decoder, &prompt)
    });
    let whole = whole.unwrap();
    assert!(!whole.stopped);
    for stop in 0..14 {
        let done = with(&file, kind, Pattern::FULL, |decoder| {
            let mut held = CachedTokens::default();
            let drawn = std::cell::Cell::new(0);
            // Before the first step, or when so many tokens were drawn.
            let stops = || stop == 0 || drawn.get() == stop;
            let found = held.answer(decoder, &prompt, &HOW, None, &stops, &mut |_| {
                drawn.set(drawn.get() + 1);
                Ok(true)
            })?;
            assert_eq!(
                found.generated.tokens[..],
                whole.generated.tokens[..stop.min(12)]
            );
            assert_eq!(found.stopped, stop < 12, "{stop}");
            // The next answer is as ever.
            let next = answer(&mut held, decoder, &prompt)?;
            assert_eq!(next.generated.digest, whole.generated.digest);
            Ok(())
        });
        done.unwrap();
    }
}

#[test]
fn a_cache_goes_on_in_another_process_and_nowhere_else() {
    let folder = Folder::new();
    let (file, other) = (open(&folder, 1), open(&folder, 2));
    let (id, foreign) = (ModelId::of(&file), ModelId::of(&other));
    assert!(!id.is(&foreign));
    let first = text(100, 1);
    let mut second = first.clone();
    second.extend(text(9, 4));
    for kind in CacheType::ALL {
        for pattern in PATTERNS {
            let path = folder.file(&format!(
                "{}-{}.cache",
                kind.name(),
                pattern.stride + pattern.sinks
            ));
            let write = |overwrite| {
                with(&file, kind, pattern, |decoder| {
                    let mut held = CachedTokens::default();
                    answer(&mut held, decoder, &first)?;
                    Kept::write(&path, decoder, &held, &id, overwrite)?;
                    answer(&mut held, decoder, &second)
                })
            };
            let expected = write(false).unwrap();
            assert!(matches!(write(false), Err(Error::OutputExists { .. })));
            let bytes = fs::read(&path).unwrap();
            write(true).unwrap();
            assert!(
                fs::read(&path).unwrap() == bytes,
                "the same bytes each time"
            );
            let kept = Kept::open(&path).unwrap();
            let found = with(&file, kind, pattern, |decoder| {
                let mut held = kept.put_back(decoder, &id)?;
                assert_eq!(held.tokens().len(), 111);
                // A prompt that is cut into what was put back is begun anew if it must be.
                let cut = answer(&mut held, decoder, &first[..60])?;
                let plain = with(&file, kind, pattern, |decoder| {
                    answer(&mut CachedTokens::default(), decoder, &first[..60])
                })?;
                assert_eq!(cut.generated.digest, plain.generated.digest);
                let mut held = kept.put_back(decoder, &id)?;
                answer(&mut held, decoder, &second)
            });
            let found = found.unwrap();
            assert_eq!(found.generated.tokens, expected.generated.tokens);
            assert_eq!(found.generated.digest, expected.generated.digest);
            assert_eq!(found.cached, 100);
        }
    }
    let kept = Kept::open(&folder.file("int8-0.cache")).unwrap();
    let refused = |kind, pattern, file: &LanguageFile, id: &ModelId, context: Option<u32>| {
        let mut view = View::of(file).unwrap();
        let model = view.model(file).unwrap();
        let options = RunOptions {
            pattern: Some(pattern),
            cache: Some(kind),
            context,
            ..RunOptions::default()
        };
        let done = run(&mut Threads::alone(), file, &model, &options, |decoder| {
            let error = kept.put_back(decoder, id).unwrap_err();
            assert_eq!(decoder.len(0), 0);
            Ok(error.to_string())
        });
        done.unwrap().0
    };
    let full = Pattern::FULL;
    let of = |told: String, said: &str| {
        assert!(
            told.contains("int8-0.cache: ") && told.contains(said),
            "{told}"
        );
    };
    of(
        refused(CacheType::Int16, full, &file, &id, None),
        "its cache_type is `int8`, not `int16`",
    );
    of(
        refused(CacheType::Int8, PATTERNS[1], &file, &id, None),
        "its attended is ",
    );
    of(
        refused(CacheType::Int8, full, &other, &foreign, None),
        "its model_digest is ",
    );
    of(
        refused(CacheType::Int8, full, &file, &id, Some(64)),
        "64 tokens",
    );
}

#[test]
fn a_cache_that_is_not_whole_is_refused() {
    let folder = Folder::new();
    let file = open(&folder, 1);
    let id = ModelId::of(&file);
    let path = folder.file("talk.cache");
    with(&file, CacheType::Int8, Pattern::FULL, |decoder| {
        let mut held = CachedTokens::default();
        answer(&mut held, decoder, &text(10, 1))?;
        Kept::write(&path, decoder, &held, &id, false)
    })
    .unwrap();
    let bytes = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let bad = folder.file("bad.cache");
    // Cut anywhere, or one bit turned anywhere behind the header.
    let step = (bytes.len() / 40).max(1);
    for at in (0..bytes.len()).step_by(step) {
        fs::write(&bad, &bytes[..at]).unwrap();
        let error = Kept::open(&bad).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{}: ", bad.display())),
            "{error}"
        );
        let mut turned = bytes.clone();
        let place = header + at * (bytes.len() - header) / bytes.len();
        turned[place] ^= 4;
        fs::write(&bad, turned).unwrap();
        let error = Kept::open(&bad).unwrap_err().to_string();
        assert!(error.contains("changed after they were written"), "{error}");
    }
    // Of another format.
    fs::write(&bad, "{}").unwrap();
    assert!(Kept::open(&bad).is_err());
}

#[test]
fn a_session_is_read_as_it_was_written_and_no_other() {
    let folder = Folder::new();
    let file = open(&folder, 1);
    let id = ModelId::of(&file);
    let path = folder.file("talk.json");
    let mut history = History::new(Some("be \"brief\"\u{1F600}\0"));
    history.add("a".into(), "b\n".into());
    let session = Session::new(id.clone(), 7u8, Some("{{ }}".into()), &history);
    session.write(&path, false).unwrap();
    assert!(matches!(
        session.write(&path, false),
        Err(Error::OutputExists { .. })
    ));
    session.write(&path, true).unwrap();
    let (again, said) = Session::<u8>::read(&path, &id).unwrap();
    assert_eq!((&again, &said), (&session, &history));
    // The same file under another name.
    let moved = ModelId {
        file: "moved".into(),
        ..id.clone()
    };
    assert!(Session::<u8>::read(&path, &moved).is_ok());
    let json = fs::read_to_string(&path).unwrap();
    let bad = folder.file("bad.json");
    let refused = |text: &str, said: &str| {
        fs::write(&bad, text).unwrap();
        let error = Session::<u8>::read(&bad, &id).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{}: ", bad.display())),
            "{error}"
        );
        assert!(error.contains(said), "{said}: {error}");
    };
    refused("", "EOF");
    refused(&json[..json.len() / 2], "EOF");
    refused(&"[".repeat(100_000), "bad session");
    refused(
        &json.replace("\"tercet_chat\": 1", "\"tercet_chat\": 2"),
        "its version is 2",
    );
    refused(&json.replace("\"user\"", "\"system\""), "in turn");
    refused(&json.replace("\"user\"", "\"judge\""), "judge");
    refused(
        &json.replace("\"left_out\": 0", "\"left_out\": 4"),
        "leaves out 4 of 2 messages",
    );
    refused(&json.replace("\"left_out\": 0", "\"left_out\": -1"), "-1");
    refused(&json.replace("\"options\": 7", "\"options\": 700"), "700");
    refused(&json.replace("\"content\"", "\"contents\""), "contents");
    refused(
        &json.replace(&id.digest, "0123456789abcdef"),
        "it is of another model",
    );
    let odd = [Message::new(Role::User, "a")].to_vec();
    assert!(History::of(odd, 0).is_err());
}
