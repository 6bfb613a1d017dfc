//! Errors of tokenizers.

error_enum! {
    /// Reason why a vocabulary was refused, or a text could not be encoded. `key` is the metadata entry in error.
    pub enum TokenizerError {
        /// The file does not have an entry.
        Missing {
            /// The entry.
            key: &'static str,
        } => "the file has no {key}",
        /// An entry does not have its type.
        Type {
            /// The entry.
            key: &'static str,
        } => "{key} has a type that no tokenizer gives it",
        /// The tokenizer is of another kind.
        Model => "tokenizer.ggml.model names a tokenizer that is not supported; llama and gpt2 are",
        /// The pre-tokenizer is unknown. A guess would produce other tokens than those of the model's training.
        Pre => "tokenizer.ggml.pre names a pre-tokenizer that is not known",
        /// There are no tokens, or more than 24 bits can count.
        Count {
            /// The entry.
            key: &'static str,
            /// Number of its elements.
            count: usize,
        } => "{key} has {count} elements; 1 to 16777214 can be indexed",
        /// An array has more bytes than 32 bits can count.
        Size {
            /// The entry.
            key: &'static str,
        } => "{key} is longer than 4 GiB",
        /// An array does not have the length of the list of tokens.
        Length {
            /// The entry.
            key: &'static str,
            /// Number of tokens.
            expected: usize,
            /// The array's length.
            found: usize,
        } => "{key} has {found} elements for {expected} tokens",
        /// No token has this id.
        Id {
            /// The entry.
            key: &'static str,
            /// The id.
            id: u64,
            /// Number of tokens.
            tokens: usize,
        } => "{key} is {id}; the vocabulary has {tokens} tokens",
        /// A type is not one of 0 to 6.
        TokenType {
            /// The token.
            id: u32,
            /// Its type.
            kind: i32,
        } => "tokenizer.ggml.token_type: token {id} has type {kind}; types are 0 to 6",
        /// A score is not a number, so it has no place in the order of merges.
        Score {
            /// The token.
            id: u32,
        } => "tokenizer.ggml.scores: the score of token {id} is not a number",
        /// A token of type 6 has a text that is not `<0x00>` to `<0xFF>`.
        ByteText {
            /// The token.
            id: u32,
        } => "tokenizer.ggml.tokens: token {id} stands for a byte, and its text is none of <0x00> to <0xFF>",
        /// A special token is too long to be searched for at every place of a text.
        SpecialLength {
            /// The token.
            id: u32,
            /// Number of bytes of its text.
            len: usize,
        } => "tokenizer.ggml.tokens: special token {id} has {len} bytes; special tokens have at most 512",
        /// Two tokens have the same text.
        Repeated {
            /// The later token.
            id: u32,
            /// The earlier one.
            first: u32,
        } => "tokenizer.ggml.tokens: token {id} has the text of token {first}",
        /// A merge does not consist of two tokens whose joined text is that of a third.
        Merge {
            /// Its rank.
            rank: u32,
        } => "tokenizer.ggml.merges: merge {rank} does not join two tokens to a third",
        /// The elements were constructed to collide in the index.
        Collisions {
            /// The entry.
            key: &'static str,
        } => "{key} is made so that its elements collide",
        /// The memory for the index does not have the length that the vocabulary needs.
        Index {
            /// The required length.
            expected: usize,
            /// The length given.
            found: usize,
        } => "the index has {found} elements where {expected} are needed",
        /// The bytes are not those of the vocabulary's file.
        File => "these are not the bytes of the file that the vocabulary was read from",
        /// A piece of the text needs more scratch.
        Scratch {
            /// The required length.
            needed: usize,
            /// The length given.
            found: usize,
        } => "scratch holds {found} elements where a piece of the text needs {needed}",
        /// The text is too long for 32-bit positions.
        Text {
            /// Number of its bytes.
            len: usize,
        } => "a text of {len} bytes; positions of 32 bits end at 4294967293",
        /// An id to decode is not that of a token.
        Token {
            /// The id.
            id: u32,
            /// Number of tokens.
            tokens: u32,
        } => "there is no token {id}; the vocabulary has {tokens}",
        /// No token represents this byte.
        Byte {
            /// The byte.
            byte: u8,
        } => "the vocabulary has no token for the byte {byte}",
    }
}
