//! SPM.

use proptest::collection::vec;
use proptest::prelude::*;
use tercet_core::model::tokenizer::{Encoding, Specials, TokenizerError};

use super::support::{EXACT, Entries, Owned, slices};

/// Tokens with scores after the specials and, with `bytes`, the 256 byte tokens.
fn entries(tokens: &[(&str, f32)], bytes: bool, test: impl FnOnce(Entries<'_>)) {
    let mut texts = vec!["<unk>".to_owned(), "<s>".to_owned(), "</s>".to_owned()];
    let (mut kinds, mut scores) = (vec![2, 3, 3], vec![0.0; 3]);
    if bytes {
        texts.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
        kinds.extend([6; 256]);
        scores.extend([0.0; 256]);
    }
    for (text, score) in tokens {
        texts.push((*text).to_owned());
        kinds.push(1);
        scores.push(*score);
    }
    let texts = slices(&texts);
    test(
        Entries::default()
            .with("model", "llama")
            .with("tokens", &texts[..])
            .with("token_type", &kinds[..])
            .with("scores", &scores[..]),
    );
}

const TOKENS: &[(&str, f32)] = &[
    ("▁", -10.0),
    ("a", -11.0),
    ("b", -12.0),
    ("c", -13.0),
    ("ab", -2.0),
    ("bc", -1.0),
    ("abc", -5.0),
    ("▁a", -3.0),
    ("▁▁", -4.0),
    ("aa", -6.0),
    ("aaa", -7.0),
    ("é", -14.0),
    ("éa", -6.5),
];

fn with(tokens: &[(&str, f32)], test: impl FnOnce(&Owned)) {
    entries(tokens, true, |entries| test(&Owned::of(&entries)));
}

#[test]
fn the_highest_score_merges_first_and_the_leftmost_of_equal_ones() {
    with(TOKENS, |tokenizer| {
        // "bc" before "ab"; then "▁a" before "abc", where there is one.
        assert_eq!(tokenizer.cut("abc", EXACT), ["▁a", "bc"]);
        assert_eq!(tokenizer.cut("babc", EXACT), ["▁", "b", "abc"]);
        assert_eq!(tokenizer.cut("aab", EXACT), ["▁a", "ab"]);
        assert_eq!(tokenizer.cut("xaaaaa", EXACT), ["▁", "<0x78>", "aa", "aaa"]);
        assert_eq!(tokenizer.cut("  a", EXACT), ["▁▁", "▁a"]);
    });
}

#[test]
fn bos_and_a_space_come_first_unless_the_file_says_otherwise() {
    entries(TOKENS, true, |entries| {
        let ends = Encoding::default();
        let tokenizer = Owned::of(&entries);
        assert_eq!(tokenizer.cut("a", ends), ["<s>", "▁a"]);
        assert_eq!(tokenizer.cut("", ends), ["<s>"]);
        let entries = entries
            .with("add_space_prefix", false)
            .with("add_bos_token", false)
            .with("add_eos_token", true);
        assert_eq!(Owned::of(&entries).cut("a", ends), ["a", "</s>"]);
    });
}

#[test]
fn a_space_is_put_after_special_tokens_too() {
    let special = Encoding {
        special: true,
        ..EXACT
    };
    with(TOKENS, |tokenizer| {
        assert_eq!(
            tokenizer.cut("a<s>a<s><unk>a", special),
            ["▁a", "<s>", "▁a", "<s>", "<unk>", "▁a"]
        );
        assert_eq!(tokenizer.cut("<unk>", EXACT).len(), 6);
    });
}

#[test]
fn what_is_no_token_becomes_bytes() {
    with(TOKENS, |tokenizer| {
        assert_eq!(
            tokenizer.cut("é中", EXACT),
            ["▁", "é", "<0xE4>", "<0xB8>", "<0xAD>"]
        );
        // Not UTF-8: a byte that begins a character takes along as many as that would have, a space among them.
        let text = b"\xc3 a\xff\x80a";
        assert_eq!(
            tokenizer.cut(text, EXACT),
            [
                "▁", "<0xC3>", "<0xE2>", "<0x96>", "<0x81>", "a", "<0xFF>", "<0x80>", "<0x61>"
            ]
        );
    });
    entries(TOKENS, false, |entries| {
        let refused = Owned::of(&entries).try_encode("é中".as_bytes(), Encoding::default());
        assert_eq!(refused, Err(TokenizerError::Byte { byte: 0xE4 }));
    });
}

#[test]
fn a_single_byte_text_stands_in_for_a_byte_token() {
    entries(&[("x", -1.0), ("▁", -1.0)], false, |entries| {
        assert_eq!(Owned::of(&entries).cut("x", EXACT), ["▁", "x"]);
    });
}

#[test]
fn spaces_come_back_and_the_first_is_left_out_before_text_alone() {
    with(TOKENS, |tokenizer| {
        let tokens = tokenizer.encode(" a  b", EXACT);
        assert_eq!(tokenizer.decode(&tokens, Specials::Hidden), b" a  b");
        // As in llama.cpp: after BOS the space stays.
        let tokens = tokenizer.encode("a", Encoding::default());
        assert_eq!(tokenizer.decode(&tokens, Specials::Hidden), b" a");
        assert_eq!(tokenizer.decode(&tokens, Specials::Shown), b"<s> a");
    });
}

/// Merges by looking for the best pair each time.
fn slowly(text: &str) -> Vec<String> {
    let escaped = format!("▁{}", text.replace(' ', "▁"));
    let mut parts: Vec<String> = escaped.chars().map(String::from).collect();
    loop {
        let mut best: Option<(f32, usize)> = None;
        for at in 1..parts.len() {
            let joined = parts[at - 1].clone() + &parts[at];
            if let Some((_, score)) = TOKENS.iter().find(|(text, _)| *text == joined)
                && best.is_none_or(|(highest, _)| *score > highest)
            {
                best = Some((*score, at));
            }
        }
        let Some((_, at)) = best else {
            return parts;
        };
        let right = parts.remove(at);
        parts[at - 1] += &right;
    }
}

proptest! {
    #[test]
    fn merges_are_those_of_looking_for_the_best_pair_each_time(text in "[abcé ]{1,80}") {
        with(TOKENS, |tokenizer| {
            assert_eq!(tokenizer.cut(&text, EXACT), slowly(&text));
        });
    }

    #[test]
    fn decoding_gives_back_any_bytes_but_the_sign_for_a_space(text in vec(any::<u8>(), 0..200)) {
        with(TOKENS, |tokenizer| {
            let encoding = Encoding { ends: false, ..Encoding::default() };
            let tokens = tokenizer.encode(&text, encoding);
            // Bytes of the sign that are tokens of their own stay, as do those of a space that is part of none.
            let spaces = |text: &[u8]| String::from_utf8_lossy(text).replace('▁', " ");
            assert_eq!(spaces(&tokenizer.decode(&tokens, Specials::Hidden)), spaces(&text));
        });
    }
}
