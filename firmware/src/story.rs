//! Writes a text: the bundled language model continues a prompt. Its GGUF file lies in flash unchanged.
//!
//! The text and the digest of all logits are those of `tercet generate gpu/models/nano.gguf -p ROMEO: -n 110 --temp
//! 0.8 --seed 1`. Sizes of all memory are constants of the file, which the build script reads.

use tercet_core::conformance::Digest;
use tercet_core::gguf::Aligned;
use tercet_core::model::tokenizer::{Decoder, Pieces, Specials, TokenizerError, Vocabulary};
use tercet_core::model::{
    DecoderLayer, Draws, End, Event, Generator, Model, ModelError, Place, Sampler,
};
use tercet_core::scalar::Only;

mod model {
    //! Facts that the build script read in the file, and all RAM of the work, except the stack.
    include!(concat!(env!("OUT_DIR"), "/story.rs"));
}
pub use model::Memory;
use model::{BUILT, CONFIG, ENDS, LAYOUTS, NEEDS, PARTS, PROMPT, VOCABULARY};

// By value, so that the image has a symbol for it and its bytes are counted as data (`firmware/programs.toml`).
static FILE: Aligned<[u8; include_bytes!("../../gpu/models/nano.gguf").len()]> =
    Aligned(*include_bytes!("../../gpu/models/nano.gguf"));

/// Tokens to draw.
const TOKENS: u32 = 110;
const SAMPLER: Sampler = Sampler {
    temperature: 0.8,
    seed: 1,
    ..Sampler::GREEDY
};

/// Events while a text is written.
#[derive(Debug)]
pub enum Told<'t> {
    /// The next bytes of the text; not always whole characters.
    Text(&'t [u8]),
    /// A token was processed; the number of tokens so far.
    Taken(u32),
}

/// Reason why nothing more was written. The committed file causes none of these.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Error {
    /// The file is another one than the program was built for, or not a model that can run.
    Model(ModelError),
    /// The file's vocabulary cannot be read.
    Vocabulary(TokenizerError),
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<TokenizerError> for Error {
    fn from(error: TokenizerError) -> Self {
        Self::Vocabulary(error)
    }
}

impl Error {
    /// Returns the error in a few words, without `core::fmt`; [`ModelError::Room`] also has figures.
    pub const fn text(&self) -> &'static str {
        match self {
            Self::Model(ModelError::OtherFile) => {
                "the file is not the one that this program was built for"
            }
            Self::Model(ModelError::Room { memory, .. }) => memory,
            Self::Model(ModelError::NotFinite { .. }) => "the model came to something not finite",
            Self::Model(_) => "the file is no model that is run here",
            Self::Vocabulary(_) => "the file's vocabulary is not read",
        }
    }
}

/// Writes the text and returns the digest of all logits. Calls `told` with each event, and `piece` with each piece of
/// work. `piece` must do the work, and so can measure it or do something else before.
///
/// # Errors
/// Those of [`Error`]; errors of the file come before the first token.
pub fn write(
    memory: &mut Memory,
    piece: &mut dyn FnMut(&mut dyn FnMut()),
    told: &mut dyn FnMut(Told<'_>),
) -> Result<u64, Error> {
    write_file(&FILE.0, memory, piece, told)
}

/// Does [`write`] with the model of a file that is no larger than the bundled one.
///
/// # Errors
/// Those of [`Error`]; errors of the file come before the first token.
// A frame of its own, so that the measured stack is that of all of this.
#[inline(never)]
pub fn write_file(
    file: &[u8],
    memory: &mut Memory,
    piece: &mut dyn FnMut(&mut dyn FnMut()),
    told: &mut dyn FnMut(Told<'_>),
) -> Result<u64, Error> {
    let mut layers = [DecoderLayer::EMPTY; CONFIG.layers];
    let model = Model::built(file, &BUILT, &mut layers)?;
    let vocabulary = Vocabulary::from_words(&VOCABULARY);
    let mut decoder = Decoder::new(
        Pieces::new(&vocabulary, file, &mut memory.texts)?,
        Specials::Hidden,
    );
    let mut places = [Place::default(); NEEDS.places];
    let (sequence, work) = memory.work.split(model.config(), &mut places)?;
    let draws = Draws {
        logits: &mut memory.logits,
        recent: &mut [],
        sampler: SAMPLER,
        ends: &ENDS,
    };
    let engine = Only::<LAYOUTS, PARTS>;
    let mut generator = Generator::new(engine, &model, sequence, work, draws);
    generator.begin(&PROMPT, TOKENS);
    let mut digest = Digest::new();
    let mut taken = 0;
    let mut write = |token, told: &mut dyn FnMut(Told<'_>)| {
        for byte in decoder.next(token)? {
            told(Told::Text(&[byte]));
        }
        Ok::<(), TokenizerError>(())
    };
    let mut begun = false;
    loop {
        let mut event = Ok(Event::Over(End::Failed));
        piece(&mut || event = generator.poll());
        let event = event?;
        // Nothing is written for a model that does not fit the memory: the first piece of work would have reported it.
        if !begun {
            begun = true;
            for &token in &PROMPT {
                write(token, told)?;
            }
        }
        let len = generator.len();
        if len != taken {
            taken = len;
            told(Told::Taken(len));
        }
        match event {
            Event::Working => {}
            Event::Logits => digest.f32s(generator.logits()),
            // The token that ends a text is not part of it, as in `tercet generate`.
            Event::Token(token) if ENDS.contains(&token) => {}
            Event::Token(token) => write(token, told)?,
            Event::Over(_) => return Ok(digest.value()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::string::String;
    use std::vec::Vec;
    use tercet_core::gguf::Reader;
    use tercet_core::model::BuiltModel;

    fn written(file: &[u8]) -> (Result<u64, Error>, String) {
        let mut memory = Box::new(Memory::new());
        let mut text = Vec::new();
        let result = write_file(file, &mut memory, &mut |work| work(), &mut |told| {
            if let Told::Text(bytes) = told {
                text.extend(bytes);
            }
        });
        (result, String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_text_is_that_of_the_boards() {
        let (digest, text) = written(&FILE.0);
        let committed = include_str!("../snapshots/story.txt");
        assert!(committed.starts_with(&text), "{text}");
        let end = std::format!("\nlogits {:016x}\n", digest.unwrap());
        assert!(committed.ends_with(&end), "{end}");
    }

    #[test]
    fn a_file_that_is_no_such_model_is_refused_before_the_first_token() {
        let cut = &FILE.0[..FILE.0.len() - 1];
        let mut other = FILE.0;
        let name = b"bitnet";
        let place = other.windows(6).position(|bytes| bytes == name).unwrap();
        other[place] = b'g';
        let deep = concat!(env!("CARGO_MANIFEST_DIR"), "/../gpu/models/tiny.gguf");
        let deep = std::fs::read(deep).unwrap();
        let mut damaged = FILE.0;
        // The scale of a block, where this format has it; infinite.
        let weights = BUILT.layers[0].matrices[0].weights;
        damaged[weights.at + weights.len - 2..][..2].copy_from_slice(&[0, 0x7C]);
        const OTHER: &str = "the file is not the one that this program was built for";
        for (file, expected) in [
            (cut, OTHER),
            (&other, OTHER),
            (&deep, OTHER),
            (&damaged, "the file is no model that is run here"),
        ] {
            let (result, text) = written(file);
            assert_eq!((result.unwrap_err().text(), &text[..]), (expected, ""));
        }
    }

    mod wide {
        #![allow(dead_code, reason = "the test writes no text")]
        include!(concat!(env!("OUT_DIR"), "/wide.rs"));
    }

    #[test]
    fn what_was_built_is_what_the_file_says() {
        fn check(file: &[u8], built: &BuiltModel<'_>, words: &[u32; Vocabulary::WORDS]) {
            let reader = Reader::new(file).unwrap();
            let (count, pairs) = Model::lengths(&reader).unwrap();
            let mut steps = std::vec![0; pairs];
            let mut read = std::vec![DecoderLayer::EMPTY; count];
            let mut made = std::vec![DecoderLayer::EMPTY; count];
            let read = Model::new(&reader, &mut read, &mut steps).unwrap();
            let made = Model::built(file, built, &mut made).unwrap();
            assert_eq!(made.config(), read.config());
            assert_eq!(made.layers(), read.layers());
            assert_eq!(made.embedding(), read.embedding());
            assert_eq!(made.head(), read.head());
            assert_eq!(made.norm(), read.norm());
            assert_eq!(made.rope(), read.rope());
            assert_eq!(made.bytes(), read.bytes());
            let vocabulary = Vocabulary::new(&reader, file).unwrap();
            assert_eq!(Vocabulary::from_words(words), vocabulary);
            let too_few = Model::built(file, built, &mut []).unwrap_err();
            assert_eq!(
                too_few,
                ModelError::Layers {
                    found: count,
                    max: 0
                }
            );
        }
        let wide = include_bytes!(concat!(env!("OUT_DIR"), "/wide.gguf"));
        check(&FILE.0, &BUILT, &VOCABULARY);
        check(wide, &wide::BUILT, &wide::VOCABULARY);
    }

    #[test]
    fn the_memory_of_a_model_with_wide_keys_is_enough_for_all_its_context() {
        use tercet_core::model::CacheType;

        let file = include_bytes!(concat!(env!("OUT_DIR"), "/wide.gguf"));
        let mut memory = Box::new(wide::Memory::new());
        let mut layers = [DecoderLayer::EMPTY; wide::CONFIG.layers];
        let model = Model::built(file, &wide::BUILT, &mut layers).unwrap();
        assert_eq!(model.config().cache, CacheType::Int16Int8);
        let mut places = [Place::default(); wide::NEEDS.places];
        let (sequence, work) = memory.work.split(model.config(), &mut places).unwrap();
        let draws = Draws {
            logits: &mut memory.logits,
            recent: &mut [],
            sampler: SAMPLER,
            ends: &[],
        };
        let engine = Only::<{ wide::LAYOUTS }, { wide::PARTS }>;
        let mut generator = Generator::new(engine, &model, sequence, work, draws);
        generator.begin(&wide::PROMPT, u32::MAX);
        let end = loop {
            if let Event::Over(end) = generator.poll().unwrap() {
                break end;
            }
        };
        assert_eq!((end, generator.len()), (End::Context, wide::CONFIG.context));
    }
}
