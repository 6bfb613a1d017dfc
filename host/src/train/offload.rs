//! Memory of a backward pass in mapped files, so that the system may keep it there.

use std::io;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;

use crate::Error;
use crate::file::live::Temporary;

/// Floats or bytes in memory, or in a file of their own.
#[derive(Debug)]
pub(super) enum Offloaded<T> {
    Memory(Vec<T>),
    Mapped(Mapped),
}

/// A number for which every pattern of bits is a value, and whose alignment divides that of a page.
pub(super) trait Value: Copy + Default {}

impl Value for f32 {}
impl Value for u8 {}

/// A temporary file in a folder, which is removed with it.
#[derive(Debug)]
pub(super) struct Mapped {
    folder: PathBuf,
    /// `None` before the first use.
    map: Option<(MmapMut, Temporary)>,
}

impl<T: Value> Offloaded<T> {
    pub(super) const fn in_folder(folder: PathBuf) -> Self {
        Self::Mapped(Mapped { folder, map: None })
    }

    /// Returns `len` values with any content.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn of(&mut self, len: usize) -> Result<&mut [T], Error> {
        match self {
            Self::Memory(values) => {
                values.resize(len, T::default());
                Ok(values)
            }
            // There are no files without bytes.
            Self::Mapped(_) if len == 0 => Ok(&mut []),
            Self::Mapped(mapped) => {
                let bytes = len.saturating_mul(size_of::<T>());
                if mapped.map.as_ref().is_none_or(|(map, _)| map.len() < bytes) {
                    // First the old one's space.
                    mapped.map = None;
                    let made = map(&mapped.folder, bytes);
                    mapped.map = Some(made.map_err(Error::io(&mapped.folder, "write"))?);
                }
                let map = mapped.map.as_mut().map(|(map, _)| &mut map[..bytes]);
                Ok(values(map.unwrap_or_default()))
            }
        }
    }
}

/// Returns a new file of zeros, mapped. They are written now: a disk without space for them is an error here, and would
/// be a signal when they are used.
#[allow(unsafe_code)]
fn map(folder: &Path, bytes: usize) -> io::Result<(MmapMut, Temporary)> {
    let mut file = Temporary::create(folder)?;
    io::copy(
        &mut io::Read::take(io::repeat(0), bytes as u64),
        file.file(),
    )?;
    // SAFETY: the file is new, has a random name, and lives as long as the map, which alone uses it. Should another
    // process write to it, it has other values, and every pattern of bits is a value; should it be cut short, an
    // access faults (SIGBUS), which ends the process.
    let map = unsafe { MmapMut::map_mut(&*file.file()) }?;
    Ok((map, file))
}

/// Returns mapped bytes as values.
#[allow(unsafe_code)]
fn values<T: Value>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: every pattern of bits is a value. A map begins at a page and its bytes are whole values, so that the parts
    // before and after the values are empty.
    let (_, values, _) = unsafe { bytes.align_to_mut::<T>() };
    values
}
