//! Byte-level BPE and byte vocabularies.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::model::tokenizer::{Encoding, Loss, Specials, TokenizerError};

use super::support::{EXACT, Entries, LOSSY, Owned, byte_level, slices};

const MERGES: &[(&str, &str)] = &[
    ("l", "l"),
    (" ", "w"),
    ("h", "e"),
    ("o", "r"),
    ("he", "ll"),
    (" w", "or"),
    ("hell", "o"),
    ("l", "o"),
    ("a", "a"),
    ("aa", "aa"),
    ("1", "2"),
    ("\u{e9}", "\u{e9}"),
];

/// Special tokens: two that are control tokens, one that is user-defined.
const MORE: &[&str] = &["<s>", "</s>", "<tab>"];

fn with_pre(pre: &'static str, test: impl FnOnce(&Owned)) {
    // The two bytes of é merge first.
    let (mut tokens, mut names) = byte_level(&MERGES[..11], &[]);
    tokens.push("Ã©".to_owned());
    names.push("Ã ©".to_owned());
    tokens.extend(MORE.iter().map(|text| (*text).to_owned()));
    let kinds: Vec<i32> = (0..tokens.len() as i32)
        .map(|id| match tokens.len() as i32 - id {
            1 => 4,
            2 | 3 => 3,
            _ => 1,
        })
        .collect();
    let (tokens, names) = (slices(&tokens), slices(&names));
    let entries = Entries::default()
        .with("model", "gpt2")
        .with("pre", pre)
        .with("tokens", &tokens[..])
        .with("token_type", &kinds[..])
        .with("merges", &names[..])
        .with("bos_token_id", tokens.len() as u32 - 3)
        .with("eos_token_id", tokens.len() as u32 - 2)
        .with("add_bos_token", true)
        .with("add_eos_token", true);
    test(&Owned::of(&entries));
}

#[test]
fn pairs_merge_by_rank_and_never_across_pieces() {
    with_pre("gpt-2", |tokenizer| {
        assert_eq!(
            tokenizer.cut("hello world", EXACT),
            ["hello", "Ġwor", "l", "d"]
        );
        // "lo" ranks below "ll", so three l's leave the last for it.
        assert_eq!(tokenizer.cut("lllo", EXACT), ["ll", "lo"]);
        assert_eq!(tokenizer.cut("aaaaaaa", EXACT), ["aaaa", "aa", "a"]);
        assert_eq!(tokenizer.cut("é12", EXACT), ["Ã©", "12"]);
    });
    with_pre("smollm", |tokenizer| {
        assert_eq!(tokenizer.cut("12", EXACT), ["1", "2"]);
    });
}

#[test]
fn the_file_says_whether_bos_and_eos_are_added() {
    with_pre("gpt-2", |tokenizer| {
        let ends = Encoding::default();
        assert_eq!(tokenizer.cut("he", ends), ["<s>", "he", "</s>"]);
        assert_eq!(tokenizer.cut("", ends), ["<s>", "</s>"]);
        assert!(tokenizer.cut("", EXACT).is_empty());
    });
}

#[test]
fn special_tokens_are_cut_out_where_asked_user_defined_ones_always() {
    let special = Encoding {
        special: true,
        ..EXACT
    };
    with_pre("gpt-2", |tokenizer| {
        let text = "he<s></s>he<tab><s";
        assert_eq!(
            tokenizer.cut(text, special),
            ["he", "<s>", "</s>", "he", "<tab>", "<", "s"]
        );
        assert_eq!(
            tokenizer.cut(text, EXACT),
            [
                "he", "<", "s", ">", "<", "/", "s", ">", "he", "<tab>", "<", "s"
            ]
        );
    });
}

#[test]
fn longer_special_tokens_are_cut_first_wherever_they_stand() {
    let (tokens, names) = byte_level(&[], &["xab", "abcd", "cd", "bcd"]);
    let kinds: Vec<i32> = (0..tokens.len())
        .map(|id| if id < 256 { 1 } else { 4 })
        .collect();
    let (tokens, names) = (slices(&tokens), slices(&names));
    let entries = Entries::default()
        .with("model", "gpt2")
        .with("tokens", &tokens[..])
        .with("token_type", &kinds[..])
        .with("merges", &names[..]);
    let tokenizer = Owned::of(&entries);
    assert_eq!(tokenizer.cut("xabcd", EXACT), ["x", "abcd"]);
    assert_eq!(tokenizer.cut("xabcxabcd", EXACT), ["xab", "c", "x", "abcd"]);
    assert_eq!(tokenizer.cut("bcdcdcbcd", EXACT), ["bcd", "cd", "c", "bcd"]);
    let long = "abcd".repeat(40);
    assert_eq!(tokenizer.cut(&long, EXACT), ["abcd"; 40]);
}

#[test]
fn a_whole_piece_that_is_a_token_wins_where_merges_are_ignored() {
    // "hell" cannot come of the merges.
    let (tokens, names) = byte_level(&[("h", "e")], &["hell"]);
    let (tokens, names) = (slices(&tokens), slices(&names));
    let entries = Entries::default()
        .with("model", "gpt2")
        .with("tokens", &tokens[..])
        .with("merges", &names[..]);
    let llama = entries
        .clone()
        .with("pre", "llama-bpe")
        .with("bos_token_id", 0u32);
    assert_eq!(
        Owned::of(&llama).cut("hell hell", EXACT),
        ["hell", "Ġ", "he", "l", "l"]
    );
    let qwen = entries.with("pre", "qwen2");
    assert_eq!(Owned::of(&qwen).cut("hell", EXACT), ["he", "l", "l"]);
}

#[test]
fn without_merges_every_byte_is_a_token_and_no_scratch_is_needed() {
    let (tokens, names) = byte_level(&[], &[]);
    let (tokens, names) = (slices(&tokens), slices(&names));
    let entries = Entries::default()
        .with("model", "gpt2")
        .with("tokens", &tokens[..])
        .with("merges", &names[..]);
    let tokenizer = Owned::of(&entries);
    let text: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    let tokens: Result<Vec<u32>, _> = tokenizer
        .view()
        .encode(&text, EXACT, &mut [])
        .unwrap()
        .collect();
    assert_eq!(
        tokens.unwrap(),
        text.iter().map(|&byte| byte.into()).collect::<Vec<u32>>()
    );
    assert_eq!(tokenizer.encode(b"\xff", LOSSY), [0xEF, 0xBF, 0xBD]);
}

#[test]
fn a_byte_without_a_token_is_lost_or_refused() {
    let (mut tokens, names) = byte_level(&[("a", "b")], &[]);
    tokens.remove(0);
    let (tokens, names) = (slices(&tokens), slices(&names));
    let entries = Entries::default()
        .with("model", "gpt2")
        .with("pre", "gpt-2")
        .with("tokens", &tokens[..])
        .with("merges", &names[..]);
    let tokenizer = Owned::of(&entries);
    // What was there keeps its neighbours apart all the same.
    assert_eq!(tokenizer.cut("a\0bab\0", LOSSY), ["a", "b", "ab"]);
    let refused = tokenizer.try_encode(b"ab\0", EXACT);
    assert_eq!(refused, Err(TokenizerError::Byte { byte: 0 }));
}

#[test]
fn scratch_that_is_short_says_what_the_piece_needs() {
    with_pre("gpt-2", |tokenizer| {
        let tokenizer = tokenizer.view();
        let text = b"he hellohello";
        let encode = |len: usize| {
            let mut scratch = vec![0; len];
            tokenizer
                .encode(text, EXACT, &mut scratch)?
                .collect::<Result<Vec<u32>, _>>()
        };
        // The marks of special tokens, and five words for each of the eleven bytes of the longer piece.
        let needed = 2 + 5 * 11;
        for found in 2..needed {
            let needed = if found < 12 { 12 } else { needed };
            assert_eq!(
                encode(found),
                Err(TokenizerError::Scratch { needed, found })
            );
        }
        assert!(encode(needed).is_ok());
        assert_eq!(
            encode(1),
            Err(TokenizerError::Scratch {
                needed: 2,
                found: 1
            })
        );
    });
}

#[test]
fn a_long_run_takes_no_quadratic_time() {
    with_pre("gpt-2", |tokenizer| {
        let text = vec![b'a'; 1 << 20];
        let start = Instant::now();
        let tokens = tokenizer.encode(&text, EXACT);
        assert_eq!(tokens.len(), text.len() / 4);
        // A quadratic merge would take hours.
        assert!(start.elapsed() < Duration::from_secs(60));
    });
}

/// The merges of a piece, by looking for the best pair each time.
fn slowly(piece: &[u8]) -> Vec<Vec<u8>> {
    let ranks: HashMap<(&[u8], &[u8]), usize> = MERGES[..11]
        .iter()
        .enumerate()
        .map(|(rank, (left, right))| ((left.as_bytes(), right.as_bytes()), rank))
        .collect();
    let mut parts: Vec<Vec<u8>> = piece.iter().map(|&byte| vec![byte]).collect();
    loop {
        let pairs = parts.windows(2).enumerate();
        let ranked =
            pairs.filter_map(|(at, pair)| Some((*ranks.get(&(&pair[0][..], &pair[1][..]))?, at)));
        let Some((_, at)) = ranked.min() else {
            return parts;
        };
        let right = parts.remove(at + 1);
        parts[at].extend(right);
    }
}

proptest! {
    #[test]
    fn decoding_gives_back_any_bytes(
        text in vec(any::<u8>(), 0..300),
        pre in prop::sample::select(vec!["gpt-2", "smollm", "llama3", "qwen2"]),
        special: bool,
    ) {
        with_pre(pre, |tokenizer| {
            let encoding = Encoding { special, ..EXACT };
            let tokens = tokenizer.encode(&text, encoding);
            assert_eq!(tokenizer.decode(&tokens, Specials::Shown), text);
        });
    }

    #[test]
    fn decoding_gives_back_any_text(text: String, pre in prop::sample::select(vec!["gpt-2", "smollm", "llama3", "qwen2"])) {
        with_pre(pre, |tokenizer| {
            let tokens = tokenizer.encode(&text, LOSSY);
            assert_eq!(tokenizer.encode(&text, EXACT), tokens);
            assert_eq!(tokenizer.decode(&tokens, Specials::Hidden), text.as_bytes());
        });
    }

    #[test]
    fn what_is_lost_is_what_is_no_character(text in vec(any::<u8>(), 0..60)) {
        // Surrogates are characters to llama.cpp.
        prop_assume!(!text.contains(&0xED));
        let mut whole = Vec::new();
        let mut rest = &text[..];
        while !rest.is_empty() {
            match std::str::from_utf8(rest) {
                Ok(_) => { whole.extend(rest); break; }
                Err(error) => {
                    whole.extend(&rest[..error.valid_up_to()]);
                    whole.extend("\u{fffd}".as_bytes());
                    rest = &rest[error.valid_up_to() + 1..];
                }
            }
        }
        with_pre("llama3", |tokenizer| {
            let tokens = tokenizer.encode(&text, LOSSY);
            assert_eq!(tokenizer.decode(&tokens, Specials::Hidden), whole);
        });
    }

    #[test]
    fn merges_are_those_of_looking_for_the_best_pair_each_time(piece in "[helowra]{1,90}") {
        with_pre("gpt-2", |tokenizer| {
            let tokens = tokenizer.encode(&piece, EXACT);
            let parts: Vec<Vec<u8>> = tokens.iter().map(|&id| tokenizer.decode(&[id], Specials::Hidden)).collect();
            assert_eq!(parts, slowly(piece.as_bytes()));
        });
    }

    #[test]
    fn scratch_of_the_stated_length_is_enough(text in vec(any::<u8>(), 0..200), loss in prop::sample::select(vec![Loss::Allowed, Loss::Refused])) {
        with_pre("qwen2", |tokenizer| {
            let encoding = Encoding { ends: true, special: true, loss };
            assert!(tokenizer.try_encode(&text, encoding).is_ok());
        });
    }
}
