//! What is refused, and by which entry.

use tercet_core::gguf::Reader;
use tercet_core::model::tokenizer::{Scanner, Tokenizer, TokenizerError, Vocabulary};

use super::support::{Entries, Owned, byte_level, slices};

fn spm() -> Entries<'static> {
    Entries::default()
        .with("model", "llama")
        .with("tokens", &["<unk>", "<s>", "</s>", "a"][..])
        .with("token_type", &[2, 3, 3, 1][..])
        .with("scores", &[0.0f32, 0.0, 0.0, -1.0][..])
}

fn missing(key: &'static str) -> TokenizerError {
    TokenizerError::Missing { key }
}

fn wrong_type(key: &'static str) -> TokenizerError {
    TokenizerError::Type { key }
}

#[test]
fn entries_that_are_missing_or_of_another_type_are_named() {
    assert!(Owned::new(&spm().file()).is_ok());
    assert_eq!(
        spm().without("model").refused(),
        missing("tokenizer.ggml.model")
    );
    assert_eq!(
        spm().without("tokens").refused(),
        missing("tokenizer.ggml.tokens")
    );
    assert_eq!(
        spm().with("model", 3u32).refused(),
        wrong_type("tokenizer.ggml.model")
    );
    assert_eq!(
        spm().with("tokens", &[1u32][..]).refused(),
        wrong_type("tokenizer.ggml.tokens")
    );
    assert_eq!(
        spm().with("scores", &[1.0f64; 4][..]).refused(),
        wrong_type("tokenizer.ggml.scores")
    );
    assert_eq!(
        spm().with("token_type", "x").refused(),
        wrong_type("tokenizer.ggml.token_type")
    );
    assert_eq!(
        spm().with("add_bos_token", 1u32).refused(),
        wrong_type("tokenizer.ggml.add_bos_token")
    );
    assert_eq!(
        spm().with("eos_token_id", -1i32).refused(),
        wrong_type("tokenizer.ggml.eos_token_id")
    );
    assert_eq!(spm().with("model", "bert").refused(), TokenizerError::Model);
    assert_eq!(
        spm().with("model", "gpt2").refused(),
        missing("tokenizer.ggml.merges")
    );
}

#[test]
fn lengths_and_counts_that_differ_are_refused() {
    let key = "tokenizer.ggml.scores";
    let length = TokenizerError::Length {
        key,
        expected: 4,
        found: 3,
    };
    assert_eq!(spm().with("scores", &[1.0f32; 3][..]).refused(), length);
    let key = "tokenizer.ggml.token_type";
    let length = TokenizerError::Length {
        key,
        expected: 4,
        found: 5,
    };
    assert_eq!(spm().with("token_type", &[1; 5][..]).refused(), length);
    let none: [&str; 0] = [];
    let count = TokenizerError::Count {
        key: "tokenizer.ggml.tokens",
        count: 0,
    };
    assert_eq!(spm().with("tokens", &none[..]).refused(), count);
}

#[test]
fn ids_that_no_token_has_are_refused_but_for_padding() {
    for (key, name) in [
        ("bos_token_id", "tokenizer.ggml.bos_token_id"),
        ("eos_token_id", "tokenizer.ggml.eos_token_id"),
        ("eot_token_id", "tokenizer.ggml.eot_token_id"),
        ("eom_token_id", "tokenizer.ggml.eom_token_id"),
        ("unknown_token_id", "tokenizer.ggml.unknown_token_id"),
    ] {
        let refused = TokenizerError::Id {
            key: name,
            id: 4,
            tokens: 4,
        };
        assert_eq!(spm().with(key, 4u32).refused(), refused);
        let id = 1 << 32;
        let refused = TokenizerError::Id {
            key: name,
            id,
            tokens: 4,
        };
        assert_eq!(spm().with(key, id).refused(), refused);
    }
    let file = spm().with("padding_token_id", 4u32).file();
    let vocabulary = Vocabulary::new(&Reader::new(&file).unwrap(), &file).unwrap();
    assert_eq!(vocabulary.padding(), None);
}

#[test]
fn defaults_are_llama_cpp_s() {
    let file = spm().file();
    let vocabulary = Vocabulary::new(&Reader::new(&file).unwrap(), &file).unwrap();
    let ids = [
        vocabulary.bos(),
        vocabulary.eos(),
        vocabulary.unknown(),
        vocabulary.eot(),
    ];
    assert_eq!(ids, [Some(1), Some(2), Some(0), None]);
    assert!(vocabulary.adds_bos() && !vocabulary.adds_eos() && vocabulary.adds_space_prefix());

    let (tokens, names) = byte_level(&[("a", "b")], &[]);
    let (tokens, names) = (slices(&tokens), slices(&names));
    let bpe = Entries::default()
        .with("model", "gpt2")
        .with("tokens", &tokens[..])
        .with("merges", &names[..]);
    for (pre, scanner, adds_bos, bos) in [
        ("gpt-2", Scanner::Gpt2, false, Some(11)),
        ("smollm", Scanner::SmolLm, false, Some(11)),
        ("llama-bpe", Scanner::Llama3, true, Some(11)),
        ("glm4", Scanner::Llama3, false, None),
        ("qwen2", Scanner::Qwen2, false, Some(11)),
    ] {
        let file = bpe.clone().with("pre", pre).file();
        let vocabulary = Vocabulary::new(&Reader::new(&file).unwrap(), &file).unwrap();
        assert_eq!(
            (vocabulary.scanner(), vocabulary.adds_bos()),
            (scanner, adds_bos),
            "{pre}"
        );
        assert_eq!(
            (vocabulary.bos(), vocabulary.eos()),
            (bos, Some(11)),
            "{pre}"
        );
        assert!(!vocabulary.adds_space_prefix());
    }
    // A name is asked for where texts are cut; a caller may give it.
    assert_eq!(bpe.refused(), missing("tokenizer.ggml.pre"));
    assert_eq!(
        bpe.clone().with("pre", "default").refused(),
        TokenizerError::Pre
    );
    let file = bpe.file();
    let reader = Reader::new(&file).unwrap();
    let vocabulary = Vocabulary::with_pre(&reader, &file, "llama-bpe").unwrap();
    assert_eq!(vocabulary.scanner(), Scanner::Llama3);
    assert_eq!(
        Vocabulary::with_pre(&reader, &file, "x"),
        Err(TokenizerError::Pre)
    );
}

#[test]
fn a_bos_or_eos_that_is_added_must_be_there() {
    let one = Entries::default()
        .with("model", "llama")
        .with("tokens", &["a"][..]);
    assert_eq!(one.refused(), missing("tokenizer.ggml.bos_token_id"));
    let one = one.with("add_bos_token", false);
    assert!(Owned::new(&one.file()).is_ok());
    assert_eq!(
        one.with("add_eos_token", true).refused(),
        missing("tokenizer.ggml.eos_token_id")
    );
}

#[test]
fn tokens_that_cannot_be_are_refused() {
    let repeated = ["<unk>", "a", "</s>", "a"];
    assert_eq!(
        spm().with("tokens", &repeated[..]).refused(),
        TokenizerError::Repeated { id: 3, first: 1 }
    );
    let kind = TokenizerError::TokenType { id: 3, kind: 7 };
    assert_eq!(spm().with("token_type", &[2, 3, 3, 7][..]).refused(), kind);
    let score = [0.0, f32::NAN, 0.0, 0.0];
    assert_eq!(
        spm().with("scores", &score[..]).refused(),
        TokenizerError::Score { id: 1 }
    );
    assert_eq!(
        spm().with("token_type", &[2, 3, 3, 6][..]).refused(),
        TokenizerError::ByteText { id: 3 }
    );
    let long = "x".repeat(513);
    let texts = ["<unk>", &long, "</s>", "a"];
    let len = TokenizerError::SpecialLength { id: 1, len: 513 };
    assert_eq!(spm().with("tokens", &texts[..]).refused(), len);
    // Several tokens may have no text; they are never found.
    let empty = ["<unk>", "<s>", "", ""];
    assert!(Owned::new(&spm().with("tokens", &empty[..]).file()).is_ok());
}

#[test]
fn merges_that_name_no_tokens_are_refused() {
    let (tokens, _) = byte_level(&[("a", "b")], &[]);
    let tokens = slices(&tokens);
    let bpe = Entries::default()
        .with("model", "gpt2")
        .with("pre", "gpt-2")
        .with("tokens", &tokens[..]);
    for (merges, rank) in [
        (&["a b", "b c"][..], 1),
        (&["ab b"][..], 0),
        (&["a b", "a b", "ab"][..], 2),
        (&["a  b"][..], 0),
        (&[""][..], 0),
    ] {
        assert_eq!(
            bpe.clone().with("merges", merges).refused(),
            TokenizerError::Merge { rank }
        );
    }
    assert!(Owned::new(&bpe.with("merges", &["a b", "a b"][..]).file()).is_ok());
}

#[test]
fn an_index_of_another_length_or_another_file_is_refused() {
    let file = spm().file();
    let vocabulary = Vocabulary::new(&Reader::new(&file).unwrap(), &file).unwrap();
    let expected = vocabulary.index_len();
    for found in [0, expected - 1, expected + 1] {
        let wrong = TokenizerError::Index { expected, found };
        assert_eq!(
            Tokenizer::new(&vocabulary, &file, &mut vec![0; found]).unwrap_err(),
            wrong
        );
        assert_eq!(
            Tokenizer::attach(&vocabulary, &file, &vec![0; found]).unwrap_err(),
            wrong
        );
    }
    let mut index = vec![0; expected];
    let short = &file[..100];
    assert_eq!(
        Tokenizer::new(&vocabulary, short, &mut index).unwrap_err(),
        TokenizerError::File
    );
}
