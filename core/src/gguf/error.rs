//! Errors of the reader and the writer.

error_enum! {
    /// Reason why a shape and a tensor type do not define a number of bytes.
    pub enum LayoutError {
        /// There are more dimensions than [`super::MAX_DIMS`].
        Dimensions {
            /// Number of dimensions.
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
            /// Elements per row.
            row: u64,
            /// Elements per block.
            block: u32,
        } => "a row of {row} elements is not a multiple of the block of {block}",
        /// The number of bytes exceeds 2⁶⁴ − 1.
        Bytes => "the number of bytes exceeds 2^64 - 1",
    }
}

error_enum! {
    /// Reason why bytes are not a GGUF file that [`super::Reader`] supports.
    ///
    /// `offset` counts bytes from the start of the file; `tensor` counts tensors from 0.
    pub enum GgufError {
        /// The first four bytes are not `GGUF`.
        Magic => "the first four bytes are not GGUF",
        /// The version is byte-swapped: the file is for big-endian machines.
        BigEndian => "a big-endian file",
        /// The version is 1, whose lengths have 32 bits.
        VersionOne => "GGUF version 1 is not read; convert the file to version 3",
        /// The version is not 1, 2 or 3.
        Version {
            /// The version.
            version: u32,
        } => "GGUF version {version} is unknown",
        /// The file ends inside a field.
        Truncated {
            /// Start of the field.
            offset: usize,
            /// Number of bytes of the field.
            needed: u64,
        } => "the file ends inside the {needed} bytes at offset {offset}",
        /// There are more metadata entries than the file can hold.
        EntryCount {
            /// The count in the header.
            count: u64,
        } => "{count} metadata entries do not fit into the file",
        /// There are more tensors than the file can hold.
        TensorCount {
            /// The count in the header.
            count: u64,
        } => "{count} tensors do not fit into the file",
        /// A string is longer than the rest of the file.
        StringLength {
            /// Offset of its length.
            offset: usize,
            /// The length.
            len: u64,
        } => "the string at offset {offset} claims {len} bytes, more than the file has",
        /// An array is longer than the rest of the file.
        ArrayLength {
            /// Offset of its length.
            offset: usize,
            /// The length in elements.
            len: u64,
        } => "the array at offset {offset} claims {len} elements, more than the file has",
        /// A metadata type is not one of 0 to 12.
        ValueType {
            /// Offset of the type.
            offset: usize,
            /// The number in the file.
            id: u32,
        } => "metadata type {id} at offset {offset} is unknown",
        /// Arrays are nested deeper than [`super::MAX_DEPTH`].
        Depth {
            /// Start of the array that is too deep.
            offset: usize,
        } => "the array at offset {offset} is nested too deep",
        /// A boolean is not 0 or 1.
        Bool {
            /// Offset of the boolean.
            offset: usize,
            /// The byte in the file.
            value: u8,
        } => "the boolean at offset {offset} is {value}, neither 0 nor 1",
        /// Text is not UTF-8.
        Utf8 {
            /// Offset of the first invalid byte.
            offset: usize,
        } => "the text is not UTF-8 at offset {offset}",
        /// A key is empty or longer than [`super::MAX_KEY`].
        KeyLength {
            /// Offset of the key's length.
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
        /// A tensor's shape and type do not define a size.
        Layout {
            /// Number of the tensor.
            tensor: u64,
            /// The reason.
            error: LayoutError,
        } => "tensor {tensor}: {error}",
        /// A tensor's data is not aligned.
        OffsetAlignment {
            /// Number of the tensor.
            tensor: u64,
            /// Offset in the data section.
            offset: u64,
        } => "the offset {offset} of tensor {tensor} is not aligned",
        /// A tensor's data begins before that of the previous tensor.
        OffsetOrder {
            /// Number of the tensor.
            tensor: u64,
            /// Offset in the data section.
            offset: u64,
        } => "the offset {offset} of tensor {tensor} is below the one before",
        /// A tensor's data begins or ends after the end of the file.
        PastEnd {
            /// Number of the tensor.
            tensor: u64,
            /// Bytes that its shape and type need.
            needed: u64,
            /// Bytes from its offset to the end of the file.
            stored: u64,
        } => "tensor {tensor} needs {needed} bytes where the file has {stored}",
        /// A tensor's data overlaps the next tensor's.
        Overlap {
            /// Number of the tensor.
            tensor: u64,
            /// Bytes that its shape and type need.
            needed: u64,
            /// Bytes from its offset to the next tensor.
            stored: u64,
        } => "tensor {tensor} needs {needed} bytes where the next tensor begins after {stored}",
        /// Bytes belong to no tensor: more than padding before the first tensor (`needed` is 0), after a tensor, or
        /// in a file without tensors (`tensor` is 0).
        Gap {
            /// The tensor before the gap.
            tensor: u64,
            /// Bytes that its shape and type need.
            needed: u64,
            /// Bytes from its offset to the next tensor or the end of the file.
            stored: u64,
        } => "tensor {tensor} needs {needed} bytes where {stored} are stored",
        /// Two metadata entries have the same key.
        DuplicateKey {
            /// Start of the second one.
            offset: usize,
        } => "the metadata entry at offset {offset} repeats a key",
        /// Two tensors have the same name.
        DuplicateTensor {
            /// Start of the second one's description.
            offset: usize,
        } => "the tensor described at offset {offset} repeats a name",
        /// Scratch is too small.
        Scratch {
            /// Required number of elements.
            needed: usize,
        } => "scratch of {needed} elements is needed",
        /// The descriptions are too long for 32-bit offsets.
        HeaderLength => "metadata and tensor descriptions exceed 4 GiB",
    }
}

impl GgufError {
    /// Returns the number of the tensor, from 0, for errors that have one: see [`super::Reader::described`].
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
    /// Errors of [`super::Writer`] and [`super::DataWriter`]. `tensor` counts tensors from 0.
    pub enum Refusal {
        /// A key is empty or longer than [`super::MAX_KEY`].
        KeyLength {
            /// Its length in bytes.
            len: usize,
        } => "a key of {len} bytes; 1 to 65535 are allowed",
        /// Arrays are nested deeper than [`super::MAX_DEPTH`].
        Depth => "an array is nested too deep",
        /// `general.alignment` is not a `u32`.
        AlignmentType => "general.alignment is not a u32",
        /// `general.alignment` is not a power of two of at least 8.
        Alignment {
            /// Its value.
            value: u32,
        } => "general.alignment is {value}, not a power of two from 8 on",
        /// There are more or fewer entries than announced.
        EntryCount {
            /// The announced number.
            announced: u64,
        } => "{announced} metadata entries were announced; others were given",
        /// A tensor's name is longer than [`super::MAX_NAME`].
        NameLength {
            /// Number of the tensor.
            tensor: u64,
            /// Its length in bytes.
            len: usize,
        } => "the name of tensor {tensor} has {len} bytes; at most 64 are allowed",
        /// A tensor's shape and type do not define a size.
        Layout {
            /// Number of the tensor.
            tensor: u64,
            /// The reason.
            error: LayoutError,
        } => "tensor {tensor}: {error}",
        /// The data is not that of the next tensor, or its tensor was not announced.
        Order {
            /// The tensor that must be next; the number of tensors if all are written.
            tensor: u64,
        } => "it is the turn of tensor {tensor}",
        /// There are more bytes than the tensor has.
        TooLong {
            /// Number of the tensor.
            tensor: u64,
            /// Bytes that its shape and type need.
            needed: u64,
        } => "more than the {needed} bytes of tensor {tensor} were given",
        /// The tensor is not complete.
        TooShort {
            /// Number of the tensor.
            tensor: u64,
            /// Number of missing bytes.
            missing: u64,
        } => "{missing} bytes of tensor {tensor} are missing",
    }
}
