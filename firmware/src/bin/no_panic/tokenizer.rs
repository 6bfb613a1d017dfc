//! Tokenizers.

use tercet_core::model::tokenizer::{
    Decoder, Encoding, Piece, Pieces, Tokenizer, Tokens, Vocabulary,
};

use crate::reach::reach;

reach! {
    <Encoding as Default>::default,
    Encoding::scratch_len,
    Decoder::new,
    Decoder::next,
    <Piece as Iterator>::next,
    Pieces::new,
    Pieces::vocabulary,
    Pieces::text,
    Pieces::kind,
    Pieces::score,
    Pieces::is_end,
    Pieces::piece,
    Tokenizer::new,
    Tokenizer::attach,
    Tokenizer::pieces,
    Tokenizer::token,
    Tokenizer::encode,
    <Tokens as Iterator>::next,
    Vocabulary::new,
    Vocabulary::with_pre,
    Vocabulary::method,
    Vocabulary::scanner,
    Vocabulary::tokens,
    Vocabulary::merges,
    Vocabulary::bos,
    Vocabulary::eos,
    Vocabulary::eot,
    Vocabulary::eom,
    Vocabulary::unknown,
    Vocabulary::padding,
    Vocabulary::adds_bos,
    Vocabulary::adds_eos,
    Vocabulary::adds_space_prefix,
    Vocabulary::pieces_index_len,
    Vocabulary::index_len,
}
