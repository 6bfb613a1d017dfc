//! Tokenizers.

use tercet_core::model::tokenizer::{
    Decoder, Encoding, Piece, Pieces, Scanner, Tokenizer, Tokens, Vocabulary,
};

use crate::reach::reach;

reach! {
    <Encoding as Default>::default,
    <Tokens<'_, '_> as Iterator>::next,
    <Piece<'_> as Iterator>::next,
    Tokenizer::attach,
    Tokenizer::encode,
    Tokenizer::new,
    Tokenizer::pieces,
    Tokenizer::token,
    Encoding::scratch_len,
    Decoder::new,
    Decoder::next,
    Pieces::is_end,
    Pieces::kind,
    Pieces::new,
    Pieces::piece,
    Pieces::score,
    Pieces::text,
    Pieces::vocabulary,
    Scanner::pieces => fn(Scanner, &'static [u8]) -> _,
    each_piece,
    Vocabulary::adds_bos,
    Vocabulary::adds_eos,
    Vocabulary::adds_space_prefix,
    Vocabulary::bos,
    Vocabulary::eom,
    Vocabulary::eos,
    Vocabulary::eot,
    Vocabulary::from_words,
    Vocabulary::index_len,
    Vocabulary::merges,
    Vocabulary::method,
    Vocabulary::new,
    Vocabulary::padding,
    Vocabulary::pieces_index_len,
    Vocabulary::scanner,
    Vocabulary::tokens,
    Vocabulary::unknown,
    Vocabulary::with_pre,
    Vocabulary::words,
}

fn each_piece(scanner: Scanner, text: &[u8]) {
    scanner.pieces(text).for_each(|piece| {
        core::hint::black_box(piece);
    });
}
