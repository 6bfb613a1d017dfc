//! What a reader and a writer refuse.

error_enum! {
    /// Why a shape and a tensor type do not give a number of bytes.
    pub enum LayoutError {
        /// More dimensions than [`super::MAX_DIMS`].
        Dimensions {
            /// How many there are.
            count: u64,
        } => "{count} dimensions where at most 4 are allowed",
        /// The product of the dimensions other than 0 exceeds 2⁶³ − 1.
        Elements => "the number of elements exceeds 2^63 - 1",
        /// No known type has this number.
        UnknownType {
            /// The number.
            id: u32,
        } => "tensor type {id} is unknown",
        /// A row is not a whole number of blocks.
        PartialRow {
            /// Elements in a row.
            row: u64,
            /// Elements in a block.
            block: u32,
        } => "a row of {row} elements is not a multiple of the block of {block}",
        /// The number of bytes exceeds 2⁶⁴ − 1.
        Bytes => "the number of bytes exceeds 2^64 - 1",
    }
}

error_enum! {
    /// Why bytes are not a GGUF file that [`super::Reader`] takes.
    ///
    /// `offset` counts bytes from the start of the file; `tensor` counts tensors from 0.
    pub enum GgufError {
        /// The first four bytes are not `GGUF`.
        Magic => "the first four bytes are not GGUF",
        /// The version is byte-swapped: the file is made for big-endian machines.
        BigEndian => "a big-endian file",
        /// Version 1, whose lengths have 32 bits.
        VersionOne => "GGUF version 1 is not read; convert the file to version 3",
        /// A version other than 1, 2 and 3.
        Version {
            /// The version.
            version: u32,
        } => "GGUF version {version} is unknown",
        /// The file ends inside a field.
        Truncated {
            /// Where the field begins.
            offset: usize,
            /// Bytes of the field.
            needed: u64,
        } => "the file ends inside the {needed} bytes at offset {offset}",
        /// More metadata entries than the file has room for.
        EntryCount {
            /// The count that the header gives.
            count: u64,
        } => "{count} metadata entries do not fit into the file",
        /// More tensors than the file has room for.
        TensorCount {
            /// The count that the header gives.
            count: u64,
        } => "{count} tensors do not fit into the file",
        /// A string longer than the rest of the file.
        StringLength {
            /// Where its length stands.
            offset: usize,
            /// The length.
            len: u64,
        } => "the string at offset {offset} claims {len} bytes, more than the file has",
        /// An array longer than the rest of the file.
        ArrayLength {
            /// Where its length stands.
            offset: usize,
            /// The length in elements.
            len: u64,
        } => "the array at offset {offset} claims {len} elements, more than the file has",
        /// A metadata type other than 0 to 12.
        ValueType {
            /// Where it stands.
            offset: usize,
            /// The number found.
            id: u32,
        } => "metadata type {id} at offset {offset} is unknown",
        /// Arrays nested deeper than [`super::MAX_DEPTH`].
        Depth {
            /// Where the array that lies too deep begins.
            offset: usize,
        } => "the array at offset {offset} is nested too deep",
        /// A boolean other than 0 and 1.
        Bool {
            /// Where it stands.
            offset: usize,
            /// The byte found.
            value: u8,
        } => "the boolean at offset {offset} is {value}, neither 0 nor 1",
        /// Text that is not UTF-8.
        Utf8 {
            /// The first byte that is not.
            offset: usize,
        } => "the text is not UTF-8 at offset {offset}",
        /// A key that is empty or longer than [`super::MAX_KEY`].
        KeyLength {
            /// Where the key's length stands.
            offset: usize,
            /// The length.
            len: u64,
        } => "the key at offset {offset} has {len} bytes; 1 to 65535 are allowed",
        /// `general.alignment` is not a `u32`.
        AlignmentType => "general.alignment is not a u32",
        /// `general.alignment` is 0 or not a power of two.
        Alignment {
            /// Its value.
            value: u32,
        } => "general.alignment is {value}, not a power of two",
        /// A tensor's shape and type give no size.
        Layout {
            /// Which tensor.
            tensor: u64,
            /// Why.
            error: LayoutError,
        } => "tensor {tensor}: {error}",
        /// A tensor's data is not aligned.
        OffsetAlignment {
            /// Which tensor.
            tensor: u64,
            /// Its offset in the data section.
            offset: u64,
        } => "the offset {offset} of tensor {tensor} is not aligned",
        /// A tensor's data begins before that of the tensor listed before it.
        OffsetOrder {
            /// Which tensor.
            tensor: u64,
            /// Its offset in the data section.
            offset: u64,
        } => "the offset {offset} of tensor {tensor} is below the one before",
        /// A tensor's data begins or ends past the end of the file.
        PastEnd {
            /// Which tensor.
            tensor: u64,
            /// Bytes that its shape and type need.
            needed: u64,
            /// Bytes from its offset to the end of the file.
            stored: u64,
        } => "tensor {tensor} needs {needed} bytes where the file has {stored}",
        /// A tensor's data runs into the next tensor's.
        Overlap {
            /// Which tensor.
            tensor: u64,
            /// Bytes that its shape and type need.
            needed: u64,
            /// Bytes from its offset to the next.
            stored: u64,
        } => "tensor {tensor} needs {needed} bytes where the next tensor begins after {stored}",
        /// Bytes that belong to no tensor: more than padding before the first tensor (`needed` is 0), after a
        /// tensor, or in a file without tensors (`tensor` is 0).
        Gap {
            /// The tensor before the gap.
            tensor: u64,
            /// Bytes that its shape and type need.
            needed: u64,
            /// Bytes from its offset to the next tensor or the end of the file.
            stored: u64,
        } => "tensor {tensor} needs {needed} bytes where {stored} are stored",
        /// Two metadata entries share a key.
        DuplicateKey {
            /// Where the second begins.
            offset: usize,
        } => "the metadata entry at offset {offset} repeats a key",
        /// Two tensors share a name.
        DuplicateTensor {
            /// Where the second's description begins.
            offset: usize,
        } => "the tensor described at offset {offset} repeats a name",
        /// Scratch is too small.
        Scratch {
            /// Elements needed.
            needed: usize,
        } => "scratch of {needed} elements is needed",
        /// The descriptions are so long that a `u32` cannot hold an offset into them.
        HeaderLength => "metadata and tensor descriptions exceed 4 GiB",
    }
}

impl GgufError {
    /// The tensor at fault, counted from 0, where the error counts tensors: see [`super::Reader::described`].
    pub const fn tensor(&self) -> Option<u64> {
        match *self {
            Self::Layout { tensor, .. }
            | Self::OffsetAlignment { tensor, .. }
            | Self::OffsetOrder { tensor, .. }
            | Self::PastEnd { tensor, .. }
            | Self::Overlap { tensor, .. }
            | Self::Gap { tensor, .. } => Some(tensor),
            _ => None,
        }
    }
}

error_enum! {
    /// What [`super::Writer`] and [`super::DataWriter`] refuse. `tensor` counts tensors from 0.
    pub enum Refusal {
        /// A key that is empty or longer than [`super::MAX_KEY`].
        KeyLength {
            /// Its length in bytes.
            len: usize,
        } => "a key of {len} bytes; 1 to 65535 are allowed",
        /// Arrays nested deeper than [`super::MAX_DEPTH`].
        Depth => "an array is nested too deep",
        /// `general.alignment` is not a `u32`.
        AlignmentType => "general.alignment is not a u32",
        /// `general.alignment` is not a power of two from 8 on.
        Alignment {
            /// Its value.
            value: u32,
        } => "general.alignment is {value}, not a power of two from 8 on",
        /// More or fewer entries than announced.
        EntryCount {
            /// How many were announced.
            announced: u64,
        } => "{announced} metadata entries were announced; others were given",
        /// A tensor's name is longer than [`super::MAX_NAME`].
        NameLength {
            /// Which tensor.
            tensor: u64,
            /// Its length in bytes.
            len: usize,
        } => "the name of tensor {tensor} has {len} bytes; at most 64 are allowed",
        /// A tensor's shape and type give no size.
        Layout {
            /// Which tensor.
            tensor: u64,
            /// Why.
            error: LayoutError,
        } => "tensor {tensor}: {error}",
        /// Data of a tensor out of turn, or of one that was not announced.
        Order {
            /// The tensor whose turn it is; the number of tensors when all are written.
            tensor: u64,
        } => "it is the turn of tensor {tensor}",
        /// More bytes than the tensor has.
        TooLong {
            /// Which tensor.
            tensor: u64,
            /// Bytes that its shape and type give.
            needed: u64,
        } => "more than the {needed} bytes of tensor {tensor} were given",
        /// The tensor is not complete.
        TooShort {
            /// Which tensor.
            tensor: u64,
            /// Bytes still missing.
            missing: u64,
        } => "{missing} bytes of tensor {tensor} are missing",
    }
}
