//! Tokens to bytes.

use tercet_core::gguf::Reader;
use tercet_core::model::tokenizer::{Pieces, Specials, TokenKind, TokenizerError, Vocabulary};

use super::support::{Entries, Owned};

/// A token of every type, and one that llama.cpp makes a control token by its text.
fn every_kind(model: &'static str, test: impl FnOnce(&[u8])) {
    let tokens = [
        "nothing",
        "▁Ġa",
        "<unk>",
        "<s>",
        "▁user",
        "unused",
        "<0x0a>",
        "<|im_end|>",
        "",
    ];
    let kinds = [0, 1, 2, 3, 4, 5, 6, 1, 1];
    let none: [&str; 0] = [];
    let entries = Entries::default()
        .with("model", model)
        .with("tokens", &tokens[..])
        .with("token_type", &kinds[..])
        .with("merges", &none[..])
        .with("eos_token_id", 3u32)
        .with("eot_token_id", 5u32);
    test(&entries.file());
}

#[test]
fn pieces_are_llama_cpp_s() {
    let expected = |normal: &'static str| {
        [
            "",
            normal,
            "<unk>",
            "<s>",
            "▁user",
            "",
            "\n",
            "<|im_end|>",
            "",
        ]
    };
    for (model, normal) in [("llama", " Ġa"), ("gpt2", "▁ a")] {
        every_kind(model, |file| {
            let tokenizer = Owned::new(file).unwrap();
            for (id, expected) in (0..).zip(expected(normal)) {
                let shown = tokenizer
                    .view()
                    .pieces()
                    .piece(id, Specials::Shown)
                    .unwrap();
                assert_eq!(
                    shown.collect::<Vec<u8>>(),
                    expected.as_bytes(),
                    "{model} {id}"
                );
                let hidden = tokenizer
                    .view()
                    .pieces()
                    .piece(id, Specials::Hidden)
                    .unwrap();
                let expected = if [2, 3, 7].contains(&id) {
                    ""
                } else {
                    expected
                };
                assert_eq!(
                    hidden.collect::<Vec<u8>>(),
                    expected.as_bytes(),
                    "{model} {id}"
                );
            }
        });
    }
}

#[test]
fn ends_are_those_of_the_file_and_those_of_llama_cpp() {
    every_kind("gpt2", |file| {
        let tokenizer = Owned::new(file).unwrap();
        let pieces = *tokenizer.view().pieces();
        let ends: Vec<u32> = (0..9).filter(|&id| pieces.is_end(id)).collect();
        assert_eq!(ends, [3, 5, 7]);
        assert_eq!(pieces.kind(7), Some(TokenKind::Control));
        assert_eq!((pieces.kind(9), pieces.is_end(9)), (None, false));
    });
}

#[test]
fn decoding_alone_needs_an_element_a_token_or_fewer() {
    every_kind("gpt2", |file| {
        let vocabulary = Vocabulary::new(&Reader::new(file).unwrap(), file).unwrap();
        let mut index = [0; 9];
        let pieces = Pieces::new(&vocabulary, file, &mut index).unwrap();
        assert_eq!(pieces.text(4), Some("▁user".as_bytes()));
        let refused = pieces.piece(9, Specials::Shown).unwrap_err();
        assert_eq!(refused, TokenizerError::Token { id: 9, tokens: 9 });
        for len in 1..9 {
            let mut index = vec![77; len];
            let fewer = Pieces::new(&vocabulary, file, &mut index).unwrap();
            for id in 0..11 {
                assert_eq!(fewer.text(id), pieces.text(id), "{id} of {len}");
            }
        }
        for found in [0, 10] {
            let mut index = vec![0; found];
            let refused = Pieces::new(&vocabulary, file, &mut index).unwrap_err();
            let expected = 9;
            assert_eq!(refused, TokenizerError::Index { expected, found });
        }
    });
}
