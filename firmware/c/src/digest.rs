//! The digest of Tercet's conformance table.

use tercet_core::conformance::Digest;

use crate::Status;
use crate::buffer::{In, Out, apart};

/// The digest of nothing: the initial value of a digest.
pub const TERCET_DIGEST: u64 = 0xCBF2_9CE4_8422_2325;

/// Adds bytes to a digest: 64-bit FNV-1a, which detects differences but does not resist attackers.
///
/// O(len). `bytes` may be null if `len` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_digest_bytes(
    digest: *mut u64,
    bytes: *const u8,
    len: usize,
) -> Status {
    Status::of(|| {
        let (digest, bytes) = (Out::one(digest)?, In::new(bytes, len)?);
        apart([digest.span()], [bytes.span()])?;
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (digest, bytes) = unsafe { (digest.slice(), bytes.slice()) };
        for value in digest {
            let mut running = Digest::resume(*value);
            running.bytes(bytes);
            *value = running.value();
        }
        Ok(())
    })
}

/// Adds an integer to a digest as its eight bytes, the lowest first, on machines of any byte order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_digest_u64(digest: *mut u64, value: u64) -> Status {
    let bytes = value.to_le_bytes();
    // SAFETY: the bytes are this function's own, and no output of C's can overlap them.
    unsafe { tercet_digest_bytes(digest, bytes.as_ptr(), bytes.len()) }
}
