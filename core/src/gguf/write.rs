//! The writer.

use super::encode::{Counted, nests_within_depth};
use super::sink::Sink;
use super::value::Value;
use super::{
    ALIGNMENT_KEY, DEFAULT_ALIGNMENT, LayoutError, MAGIC, MAX_KEY, MAX_NAME, Refusal, Shape,
    TensorType, VERSION, align,
};

/// A tensor to be written, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec<'a> {
    /// Name of the tensor, at most [`MAX_NAME`] bytes.
    pub name: &'a str,
    /// Dimensions, row first.
    pub shape: Shape,
    /// Storage type of its elements.
    pub kind: TensorType,
}

impl<'a> TensorSpec<'a> {
    /// Creates a tensor of dimensions `dims`, row first.
    ///
    /// # Errors
    /// Those of [`Shape::new`] and [`TensorType::byte_len`].
    pub fn new(name: &'a str, dims: &[u64], kind: TensorType) -> Result<Self, LayoutError> {
        let shape = Shape::new(dims)?;
        kind.byte_len(&shape)?;
        Ok(Self { name, shape, kind })
    }

    /// Returns the number of bytes of its data.
    ///
    /// # Errors
    /// Those of [`TensorType::byte_len`].
    pub fn byte_len(&self) -> Result<u64, LayoutError> {
        self.kind.byte_len(&self.shape)
    }
}

/// Reason why a file could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum WriteError<E> {
    /// The sink failed; the file is unusable.
    Sink(E),
    /// The arguments are invalid. The call wrote nothing, and the writer can continue.
    Refused(Refusal),
}

impl<E> From<Refusal> for WriteError<E> {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl<E: core::fmt::Display> core::fmt::Display for WriteError<E> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Sink(error) => error.fmt(f),
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for WriteError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Sink(error) => Some(error),
            Self::Refused(refusal) => Some(refusal),
        }
    }
}

/// Writes a file's header and metadata; [`Writer::into_data`] continues with the tensors.
///
/// The file goes to the sink from front to back, so the number of entries and all tensors must be announced first. To
/// copy metadata from another file, pass the items of [`super::Reader::metadata`] to [`Writer::entry`]: the bytes
/// stay the same, and arrays are copied whole. Keys and names are not compared with each other. See [`super`] for an
/// example.
#[derive(Debug)]
pub struct Writer<'a, S> {
    out: Counted<S>,
    tensors: &'a [TensorSpec<'a>],
    announced: u64,
    left: u64,
    alignment: Option<u32>,
}

impl<'a, S: Sink> Writer<'a, S> {
    /// Checks the tensors, then writes the header of a file of `entries` metadata entries and these tensors.
    ///
    /// # Errors
    /// [`Refusal::NameLength`] or [`Refusal::Layout`] for a tensor; those of the sink.
    pub fn new(
        sink: S,
        entries: u64,
        tensors: &'a [TensorSpec<'a>],
    ) -> Result<Self, WriteError<S::Error>> {
        for (tensor, spec) in (0..).zip(tensors) {
            let len = spec.name.len();
            if len > MAX_NAME {
                return Err(Refusal::NameLength { tensor, len }.into());
            }
            spec.byte_len()
                .map_err(|error| Refusal::Layout { tensor, error })?;
        }
        let mut out = Counted { sink, len: 0 };
        out.write(&MAGIC).map_err(WriteError::Sink)?;
        out.u32(VERSION).map_err(WriteError::Sink)?;
        out.u64(tensors.len() as u64).map_err(WriteError::Sink)?;
        out.u64(entries).map_err(WriteError::Sink)?;
        Ok(Self {
            out,
            tensors,
            announced: entries,
            left: entries,
            alignment: None,
        })
    }

    /// Writes a metadata entry. The key [`ALIGNMENT_KEY`] sets the file's alignment.
    ///
    /// # Errors
    /// [`Refusal::EntryCount`] if all announced entries are written; [`Refusal::KeyLength`]; [`Refusal::Depth`];
    /// [`Refusal::AlignmentType`]; [`Refusal::Alignment`]; those of the sink.
    pub fn entry<'v>(
        &mut self,
        key: &str,
        value: impl Into<Value<'v>>,
    ) -> Result<(), WriteError<S::Error>> {
        let value = value.into();
        let announced = self.announced;
        let left = self.left.checked_sub(1);
        let left = left.ok_or(Refusal::EntryCount { announced })?;
        if !(1..=MAX_KEY).contains(&key.len()) {
            return Err(Refusal::KeyLength { len: key.len() }.into());
        }
        if !nests_within_depth(&value) {
            return Err(Refusal::Depth.into());
        }
        if key == ALIGNMENT_KEY && self.alignment.is_none() {
            self.alignment = Some(alignment(&value)?);
        }
        self.left = left;
        self.write_entry(key, &value).map_err(WriteError::Sink)
    }

    fn write_entry(&mut self, key: &str, value: &Value<'_>) -> Result<(), S::Error> {
        self.out.string(key)?;
        self.out.u32(value.kind().id())?;
        self.out.value(value)
    }

    /// Writes the descriptions of the tensors and continues with their data.
    ///
    /// # Errors
    /// [`Refusal::EntryCount`] if announced entries are missing; [`Refusal::Layout`] with [`LayoutError::Bytes`] if
    /// the file would exceed 2⁶⁴ bytes; those of the sink.
    pub fn into_data(mut self) -> Result<DataWriter<'a, S>, WriteError<S::Error>> {
        if self.left > 0 {
            let announced = self.announced;
            return Err(Refusal::EntryCount { announced }.into());
        }
        let alignment = self.alignment.unwrap_or(DEFAULT_ALIGNMENT);
        let mut offset = 0;
        for (tensor, spec) in (0..).zip(self.tensors) {
            let layout = |error| Refusal::Layout { tensor, error };
            let len = spec.byte_len().map_err(layout)?;
            self.describe(spec, offset).map_err(WriteError::Sink)?;
            offset = len
                .checked_add(offset)
                .map(|end| align(end, alignment))
                .filter(|&end| end < u64::MAX)
                .ok_or(layout(LayoutError::Bytes))?;
        }
        self.out.pad(alignment).map_err(WriteError::Sink)?;
        Ok(DataWriter {
            out: self.out,
            tensors: self.tensors,
            alignment,
            begun: 0,
            left: 0,
        })
    }

    fn describe(&mut self, spec: &TensorSpec<'_>, offset: u64) -> Result<(), S::Error> {
        let dims = spec.shape.dims();
        self.out.string(spec.name)?;
        self.out.u32(dims.len() as u32)?;
        dims.iter().try_for_each(|&dim| self.out.u64(dim))?;
        self.out.u32(spec.kind.0)?;
        self.out.u64(offset)
    }
}

fn alignment(value: &Value<'_>) -> Result<u32, Refusal> {
    match *value {
        Value::U32(value) if value.is_power_of_two() && value >= 8 => Ok(value),
        Value::U32(value) => Err(Refusal::Alignment { value }),
        _ => Err(Refusal::AlignmentType),
    }
}

/// Writes the tensors' data in the announced order, each in any number of pieces.
#[derive(Debug)]
pub struct DataWriter<'a, S> {
    out: Counted<S>,
    tensors: &'a [TensorSpec<'a>],
    alignment: u32,
    /// Number of tensors begun; the last of them lacks `left` bytes.
    begun: usize,
    left: u64,
}

impl<S: Sink> DataWriter<'_, S> {
    /// Begins the data of the next tensor, which must have this name.
    ///
    /// # Errors
    /// [`Refusal::TooShort`] if the previous tensor is not complete; [`Refusal::Order`] if another tensor, or none,
    /// is next.
    pub fn begin(&mut self, name: &str) -> Result<(), Refusal> {
        self.complete()?;
        let tensor = self.begun as u64;
        let next = self
            .tensors
            .get(self.begun)
            .filter(|spec| spec.name == name);
        let spec = next.ok_or(Refusal::Order { tensor })?;
        self.left = spec
            .byte_len()
            .map_err(|error| Refusal::Layout { tensor, error })?;
        self.begun = self.begun.saturating_add(1);
        Ok(())
    }

    /// Writes the next bytes of the current tensor, and its padding after its last byte.
    ///
    /// # Errors
    /// [`Refusal::Order`] if none is begun; [`Refusal::TooLong`]; those of the sink.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError<S::Error>> {
        let open = self.begun.checked_sub(1);
        let index = open.ok_or(Refusal::Order { tensor: 0 })?;
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            let spec = self.tensors.get(index);
            let needed = spec.and_then(|spec| spec.byte_len().ok());
            return Err(Refusal::TooLong {
                tensor: index as u64,
                needed: needed.unwrap_or_default(),
            }
            .into());
        };
        self.out.write(bytes).map_err(WriteError::Sink)?;
        self.left = left;
        if left == 0 {
            self.out.pad(self.alignment).map_err(WriteError::Sink)?;
        }
        Ok(())
    }

    /// Returns the number of bytes that the current tensor lacks.
    pub const fn missing(&self) -> u64 {
        self.left
    }

    /// Returns the number of bytes of the file written so far.
    pub const fn file_len(&self) -> u64 {
        self.out.len
    }

    /// Checks that every tensor is complete and returns the sink.
    ///
    /// # Errors
    /// [`Refusal::TooShort`]; [`Refusal::Order`] with the first tensor that was not begun.
    pub fn finish(self) -> Result<S, Refusal> {
        self.complete()?;
        if self.begun < self.tensors.len() {
            let tensor = self.begun as u64;
            return Err(Refusal::Order { tensor });
        }
        Ok(self.out.sink)
    }

    fn complete(&self) -> Result<(), Refusal> {
        match self.left {
            0 => Ok(()),
            missing => Err(Refusal::TooShort {
                tensor: (self.begun as u64).saturating_sub(1),
                missing,
            }),
        }
    }
}
