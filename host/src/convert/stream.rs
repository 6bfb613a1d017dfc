//! The loop that converts a tensor of any size in bounded memory.
//!
//! While one chunk is written, the threads page in, encode and measure the next
//! ([`Source::view`](crate::source::Source)), and the system reads ahead of them. Two chunks are in memory at a time,
//! for any size of tensor. An [`Encoder`] converts a chunk.

use tracing::trace_span;

use crate::parallel::each::both;
use crate::source::Source;
use crate::{Error, Progress};

/// Maximum number of tensors that are written chunk by chunk: codes, scales and zero points.
const PARTS: usize = 3;

/// A converted chunk: bytes for each of these tensors.
#[derive(Debug, Default)]
pub(crate) struct Parts([Vec<u8>; PARTS]);

impl Parts {
    /// Returns room for `len` bytes of a part, with arbitrary content.
    pub(crate) fn room(&mut self, part: usize, len: usize) -> &mut [u8] {
        let bytes = &mut self.0[part];
        bytes.resize(len, 0);
        bytes
    }

    /// Appends bytes to a part.
    pub(crate) fn extend(&mut self, part: usize, bytes: impl IntoIterator<Item = u8>) {
        self.0[part].extend(bytes);
    }

    fn clear(&mut self) {
        // The first part is overwritten, so its content need not be cleared.
        self.0[1..].iter_mut().for_each(Vec::clear);
    }

    fn write(&self, sink: &mut Sink<'_>) -> Result<(), Error> {
        let parts = self.0.iter().enumerate();
        let mut parts = parts.filter(|(_, bytes)| !bytes.is_empty());
        parts.try_for_each(|(part, bytes)| sink(part, bytes))
    }
}

/// Receives the bytes of each part in order.
pub(crate) type Sink<'a> = dyn FnMut(usize, &[u8]) -> Result<(), Error> + Send + 'a;

/// Converts a tensor to bytes, chunk after chunk.
pub(crate) trait Encoder: Send {
    /// Returns the end of the last chunk: the number of values, unless chunks are counted otherwise.
    fn end(&self) -> usize;

    /// Converts the chunk that begins at `first` to bytes, the first part through [`Parts::room`]; returns the start of
    /// the next one. A chunk has [`CHUNK`](crate::source::CHUNK) values, or slightly fewer.
    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error>;
}

/// Converts a tensor with an encoder, whose bytes go to `sink`; progress is counted in bytes of the input.
pub(crate) fn stream(
    source: &Source<'_>,
    encoder: &mut dyn Encoder,
    progress: &dyn Progress,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let all = encoder.end();
    if all == 0 {
        return Ok(());
    }
    let bytes = source.tensor.bytes.len() as u128;
    let done = |at: usize| (bytes * at as u128 / all as u128) as u64;
    let tensor = source.tensor.name;
    let mut chunk = |first: usize, out: &mut Parts| {
        let _span = trace_span!("chunk", tensor, first).entered();
        encoder.chunk(first, out)
    };
    let (mut now, mut next) = (Parts::default(), Parts::default());
    let (mut first, mut end) = (0, chunk(0, &mut now)?);
    while first < all {
        let (coded, written) = both(
            || {
                next.clear();
                match end < all {
                    true => chunk(end, &mut next),
                    false => Ok(all),
                }
            },
            || trace_span!("write", tensor, first).in_scope(|| now.write(sink)),
        );
        written?;
        progress.advance(done(end) - done(first));
        (first, end) = (end, coded?);
        std::mem::swap(&mut now, &mut next);
    }
    Ok(())
}

/// The unchanged bytes of a tensor.
pub(crate) struct Copied<'a, 's>(pub(crate) &'a Source<'s>);

/// Bytes per chunk of such a tensor.
const COPIED: usize = 4 << 20;

impl Encoder for Copied<'_, '_> {
    fn end(&self) -> usize {
        self.0.tensor.bytes.len()
    }

    fn chunk(&mut self, first: usize, out: &mut Parts) -> Result<usize, Error> {
        let end = self.end().min(first + COPIED);
        self.0.page_in_bytes(first..end);
        out.room(0, end - first)
            .copy_from_slice(&self.0.tensor.bytes[first..end]);
        Ok(end)
    }
}
