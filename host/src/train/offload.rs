//! Floats of a backward pass in a mapped file, so that the system may keep them there.

use std::io;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;

use crate::Error;
use crate::file::live::Temporary;

/// Floats in memory, or in a file of their own.
#[derive(Debug)]
pub(super) enum Floats {
    Memory(Vec<f32>),
    Mapped(Mapped),
}

/// A temporary file in a folder, which is removed with it.
#[derive(Debug)]
pub(super) struct Mapped {
    folder: PathBuf,
    /// `None` before the first use.
    map: Option<(MmapMut, Temporary)>,
}

impl Floats {
    pub(super) const fn in_folder(folder: PathBuf) -> Self {
        Self::Mapped(Mapped { folder, map: None })
    }

    /// Returns `len` floats with any content.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn of(&mut self, len: usize) -> Result<&mut [f32], Error> {
        match self {
            Self::Memory(floats) => {
                floats.resize(len, 0.0);
                Ok(floats)
            }
            Self::Mapped(mapped) => {
                let bytes = len.saturating_mul(size_of::<f32>());
                if mapped.map.as_ref().is_none_or(|(map, _)| map.len() < bytes) {
                    // First the old one's space.
                    mapped.map = None;
                    let made = map(&mapped.folder, bytes);
                    mapped.map = Some(made.map_err(Error::io(&mapped.folder, "write"))?);
                }
                let map = mapped.map.as_mut().map(|(map, _)| &mut map[..bytes]);
                Ok(floats(map.unwrap_or_default()))
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
    // process write to it, floats have other values, and every pattern of bits is a float; should it be cut short, an
    // access faults (SIGBUS), which ends the process.
    let map = unsafe { MmapMut::map_mut(&*file.file()) }?;
    Ok((map, file))
}

/// Returns mapped bytes as floats.
#[allow(unsafe_code)]
fn floats(bytes: &mut [u8]) -> &mut [f32] {
    // SAFETY: every pattern of bits is a float. A map begins at a page and its bytes are whole floats, so that the parts
    // before and after the floats are empty.
    let (_, floats, _) = unsafe { bytes.align_to_mut::<f32>() };
    floats
}
