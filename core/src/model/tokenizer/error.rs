//! What tokenizers refuse.

error_enum! {
    /// Why a vocabulary was refused, or a text could not be encoded. `key` is the metadata entry at fault.
    pub enum TokenizerError {
        /// The file lacks an entry.
        Missing {
            /// The entry.
            key: &'static str,
        } => "the file has no {key}",
        /// An entry has another type than tokenizers give it.
        Type {
            /// The entry.
            key: &'static str,
        } => "{key} has a type that no tokenizer gives it",
        /// A tokenizer of another kind.
        Model => "tokenizer.ggml.model names a tokenizer that is not supported; llama and gpt2 are",
        /// A pre-tokenizer that is not known. To guess one would give other tokens than the model was trained with.
        Pre => "tokenizer.ggml.pre names a pre-tokenizer that is not known",
        /// No token, or more than 24 bits count.
        Count {
            /// The entry.
            key: &'static str,
            /// How many elements it has.
            count: usize,
        } => "{key} has {count} elements; 1 to 16777214 can be indexed",
        /// An array with more bytes than 32 bits count.
        Size {
            /// The entry.
            key: &'static str,
        } => "{key} is longer than 4 GiB",
        /// An array with another length than the list of tokens.
        Length {
            /// The entry.
            key: &'static str,
            /// The number of tokens.
            expected: usize,
            /// The array's length.
            found: usize,
        } => "{key} has {found} elements for {expected} tokens",
        /// An id that no token has.
        Id {
            /// The entry.
            key: &'static str,
            /// The id.
            id: u64,
            /// The number of tokens.
            tokens: usize,
        } => "{key} is {id}; the vocabulary has {tokens} tokens",
        /// A type other than 0 to 6.
        TokenType {
            /// The token.
            id: u32,
            /// Its type.
            kind: i32,
        } => "tokenizer.ggml.token_type: token {id} has type {kind}; types are 0 to 6",
        /// A score that is not a number: it has no place in the order of merges.
        Score {
            /// The token.
            id: u32,
        } => "tokenizer.ggml.scores: the score of token {id} is not a number",
        /// A token of type 6 whose text is not `<0x00>` to `<0xFF>`.
        ByteText {
            /// The token.
            id: u32,
        } => "tokenizer.ggml.tokens: token {id} stands for a byte, and its text is none of <0x00> to <0xFF>",
        /// A special token that is too long to be looked for at every place of a text.
        SpecialLength {
            /// The token.
            id: u32,
            /// Bytes of its text.
            len: usize,
        } => "tokenizer.ggml.tokens: special token {id} has {len} bytes; special tokens have at most 512",
        /// Two tokens with one text.
        Repeated {
            /// The later token.
            id: u32,
            /// The earlier one.
            first: u32,
        } => "tokenizer.ggml.tokens: token {id} has the text of token {first}",
        /// A merge that is not two tokens whose texts together are a third's.
        Merge {
            /// Its rank.
            rank: u32,
        } => "tokenizer.ggml.merges: merge {rank} does not join two tokens to a third",
        /// Elements made to fall into one place of the index.
        Collisions {
            /// The entry.
            key: &'static str,
        } => "{key} is made so that its elements collide",
        /// The memory for the index does not fit the vocabulary.
        Index {
            /// The length that the vocabulary asks for.
            expected: usize,
            /// The length given.
            found: usize,
        } => "the index has {found} elements where {expected} are needed",
        /// The bytes are not those of the file that the vocabulary was read from.
        File => "these are not the bytes of the file that the vocabulary was read from",
        /// A piece of the text needs more scratch.
        Scratch {
            /// The length that it asks for.
            needed: usize,
            /// The length given.
            found: usize,
        } => "scratch holds {found} elements where a piece of the text needs {needed}",
        /// A text longer than positions of 32 bits can tell.
        Text {
            /// Its bytes.
            len: usize,
        } => "a text of {len} bytes; positions of 32 bits end at 4294967293",
        /// An id that no token has, given to be decoded.
        Token {
            /// The id.
            id: u32,
            /// The number of tokens.
            tokens: u32,
        } => "there is no token {id}; the vocabulary has {tokens}",
        /// A byte that no token stands for.
        Byte {
            /// The byte.
            byte: u8,
        } => "the vocabulary has no token for the byte {byte}",
    }
}
