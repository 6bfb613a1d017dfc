//! Counts the values to restore.

use std::ops::{Add, AddAssign};

use super::{Kind, Source, is_sidecar};
use crate::{Error, TensorFile};

/// Numbers of values that [`crate::dequantize`], [`crate::compare`] and [`crate::inspect`] restore or read as floats,
/// by the way of restoring. They follow from names, types and shapes, without reading a value: O(tensors).
///
/// ```
/// use tercet_core::block::Format;
/// use tercet_host::convert::Target;
/// use tercet_host::parallel::Threads;
/// use tercet_host::{Amounts, TensorFile, QuantizeOptions, quantize};
///
/// # let folder = tempfile::tempdir()?;
/// # let (input, output) = (folder.path().join("in.npy"), folder.path().join("out.gguf"));
/// # let header = format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 256), }");
/// # let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
/// # npy.extend_from_slice(header.as_bytes());
/// # npy.extend([0; 4096]);
/// # std::fs::write(&input, npy)?;
/// let model = TensorFile::open(&input)?;
/// assert_eq!(Amounts::of(&model)?.on_engines().values, 0);
/// quantize(&mut Threads::default(), &model, &QuantizeOptions::new(Target::Blocks(Format::Tq2_0)), &output, &())?;
/// let amounts = Amounts::of(&TensorFile::open(&output)?)?;
/// assert_eq!((amounts.blocks.values, amounts.blocks.bytes, amounts.longest), (1024, 4 * 66, 256));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amounts {
    /// GGUF blocks; each is a group.
    pub blocks: Amount,
    /// int8 and ternary codes, one byte each.
    pub codes: Amount,
    /// Indices into codebooks.
    pub palettes: Amount,
    /// Two-bit codes of Hugging Face BitNet and I2_S, which only the processor restores.
    pub packed: Amount,
    /// Floats, and integers that are read as such; one group per tensor.
    pub plain: Amount,
    /// Minimum number of values that are restored together: those of the longest block; 0 if nothing is restored.
    pub longest: usize,
}

/// Values, and their storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// Number of values.
    pub values: u64,
    /// Bytes of their codes, or of the values themselves; without scales in separate tensors.
    pub bytes: u64,
    /// Groups that share a scale.
    pub groups: u64,
}

impl Amounts {
    /// Counts a model's values without scales, zero points and codebooks in separate tensors: those that
    /// [`crate::dequantize`] and [`crate::compare`] read.
    ///
    /// # Errors
    /// [`Error::Tensor`] for scales and codebooks that do not fit their codes.
    pub fn of(model: &TensorFile) -> Result<Self, Error> {
        Self::among(model, |name| !is_sidecar(model, name))
    }

    /// Counts the values that [`crate::inspect`] reads: every tensor as it is, or only the named one.
    ///
    /// # Errors
    /// Those of [`Amounts::of`].
    pub fn listed(model: &TensorFile, only: Option<&str>) -> Result<Self, Error> {
        Self::among(model, |name| only.is_none_or(|only| only == name))
    }

    fn among(model: &TensorFile, chosen: impl Fn(&str) -> bool) -> Result<Self, Error> {
        let mut all = Self::default();
        for tensor in model.tensors().filter(|tensor| chosen(tensor.name)) {
            all += Self::of_source(&Source::new(model, tensor)?);
        }
        Ok(all)
    }

    fn of_source(source: &Source<'_>) -> Self {
        let values = source.values();
        let mut found = Self::default();
        let (kind, groups, longest) = match source.kind {
            _ if values == 0 => return found,
            Kind::Blocks(format) => (&mut found.blocks, values / format.len(), format.len()),
            Kind::Codes { group, .. } => (&mut found.codes, values / group, 1),
            Kind::Palette { stored, .. } => (&mut found.palettes, stored.layout.groups(), 1),
            Kind::Packed { .. } => (&mut found.packed, 1, 1),
            Kind::I2s(layout) => (&mut found.packed, 1, layout.group()),
            Kind::Plain => (&mut found.plain, 1, 0),
            Kind::Opaque => return found,
        };
        *kind = Amount {
            values: values as u64,
            bytes: source.tensor.bytes.len() as u64,
            groups: groups as u64,
        };
        found.longest = longest;
        found
    }

    /// Returns the amount that engines restore, and not only the processor.
    pub fn on_engines(&self) -> Amount {
        self.blocks + self.codes + self.palettes
    }

    /// Returns the total of all values.
    pub fn all(&self) -> Amount {
        self.on_engines() + self.packed + self.plain
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, more: Self) {
        *self = Self {
            blocks: self.blocks + more.blocks,
            codes: self.codes + more.codes,
            palettes: self.palettes + more.palettes,
            packed: self.packed + more.packed,
            plain: self.plain + more.plain,
            longest: self.longest.max(more.longest),
        };
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            values: self.values.saturating_add(more.values),
            bytes: self.bytes.saturating_add(more.bytes),
            groups: self.groups.saturating_add(more.groups),
        }
    }
}
