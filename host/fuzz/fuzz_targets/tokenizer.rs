//! Tokenizers: any metadata ends in an error or in a vocabulary by which any text is encoded and decoded; without loss
//! a byte-level one gives the text back.
//!
//! The input is two bytes of options, two of the text's length, the text, and a GGUF file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tercet_core::gguf::Reader;
use tercet_core::model::tokenizer::{
    Decoder, Encoding, Loss, Method, Specials, Tokenizer, TokenizerError, Vocabulary,
};

const PRES: &[&str] = &["gpt-2", "smollm", "llama-bpe", "qwen2"];

fn vocabulary(file: &[u8], options: u8) -> Option<Vocabulary> {
    let reader = Reader::inspect(file).ok()?;
    let pre = PRES.get(usize::from(options >> 4));
    pre.map_or_else(
        || Vocabulary::new(&reader, file),
        |pre| Vocabulary::with_pre(&reader, file, pre),
    )
    .ok()
}

fn look(tokenizer: &Tokenizer<'_>, text: &[u8], encoding: Encoding) {
    let mut scratch = vec![0; encoding.scratch_len(text.len())];
    let tokens = tokenizer.encode(text, encoding, &mut scratch).unwrap();
    let tokens: Vec<u32> = match tokens.collect() {
        Ok(tokens) => tokens,
        Err(TokenizerError::Byte { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    // Less scratch gives the same tokens, or says how much is missing.
    for len in [0, 64, 256] {
        let mut scratch = vec![0; len];
        let fewer = tokenizer
            .encode(text, encoding, &mut scratch)
            .and_then(Iterator::collect::<Result<Vec<u32>, _>>);
        match fewer {
            Ok(fewer) => assert_eq!(fewer, tokens),
            Err(error) => assert!(
                matches!(error, TokenizerError::Scratch { needed, found } if needed > found)
            ),
        }
    }
    let pieces = tokenizer.pieces();
    let mut decoder = Decoder::new(*pieces, Specials::Shown);
    let mut decoded = Vec::new();
    for &id in &tokens {
        decoded.extend(decoder.next(id).unwrap());
    }
    let vocabulary = pieces.vocabulary();
    let exact = encoding.loss == Loss::Refused
        && !encoding.ends
        && vocabulary.method() == Method::Bpe
        && !vocabulary.adds_space_prefix();
    if exact && tokens.iter().all(|&id| plain(tokenizer, id)) {
        assert_eq!(decoded, text);
    }
}

/// Whether a token stands for what it was found by: a byte of type 6 does not, nor one that is printed as nothing.
fn plain(tokenizer: &Tokenizer<'_>, id: u32) -> bool {
    use tercet_core::model::tokenizer::TokenKind::{Control, Normal, Unknown, UserDefined};
    match tokenizer.pieces().kind(id) {
        Some(Normal) => true,
        // Cut out of the text as it is; by its letters, it would be another.
        Some(Control | Unknown | UserDefined) => {
            let text = tokenizer.pieces().text(id).unwrap();
            text.iter().all(|byte| byte.is_ascii_graphic())
        }
        _ => false,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[options, _, low, high], rest)) = bytes.split_first_chunk() else {
        return;
    };
    let len = usize::from(u16::from_le_bytes([low, high]) % 512);
    let Some((text, file)) = rest.split_at_checked(len) else {
        return;
    };
    let Some(vocabulary) = vocabulary(file, options) else {
        return;
    };
    let mut index = vec![0; vocabulary.index_len()];
    let Ok(tokenizer) = Tokenizer::new(&vocabulary, file, &mut index) else {
        return;
    };
    for id in 0..vocabulary.tokens() {
        let text = tokenizer.pieces().text(id).unwrap();
        assert!(text.is_empty() || tokenizer.token(text) == Some(id));
        for specials in [Specials::Hidden, Specials::Shown] {
            tokenizer
                .pieces()
                .piece(id, specials)
                .unwrap()
                .for_each(drop);
        }
        tokenizer.pieces().is_end(id);
    }
    let encoding = Encoding {
        ends: options & 1 == 1,
        special: options & 2 == 2,
        loss: if options & 4 == 4 {
            Loss::Refused
        } else {
            Loss::Allowed
        },
    };
    look(&tokenizer, text, encoding);
});
