//! Integer networks, run in place from a GGUF file.

use core::mem::align_of;
use core::slice;

use tercet_core::block::Format;
use tercet_core::linear::network::{Buffers, Network as CoreNetwork};
use tercet_core::linear::{I8Sym, Layout};
use tercet_core::scalar::Only;

use crate::Status;
use crate::buffer::{In, Out, apart};

/// Maximum number of layers of a network.
pub const TERCET_NETWORK_LAYERS: usize = 8;

/// `TKN1`: the first word of an open network.
const TAG: usize = u32::from_le_bytes(*b"TKN1") as usize;

/// A network, borrowed from its file. The fields are private to the library.
#[repr(C)]
#[derive(Debug)]
pub struct Network {
    opaque: [usize; 192],
}

/// The content of [`Network`].
#[repr(C)]
struct Inner {
    tag: usize,
    network: CoreNetwork<'static, TERCET_NETWORK_LAYERS>,
}

const _: () = assert!(
    size_of::<Inner>() <= size_of::<Network>() && align_of::<Inner>() <= align_of::<Network>()
);

/// The sizes of a network.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetworkSizes {
    /// Number of layers.
    pub layers: usize,
    /// Number of inputs of the first layer.
    pub inputs: usize,
    /// Number of outputs of the last layer.
    pub outputs: usize,
    /// Words of scratch that a run needs.
    pub words: usize,
    /// Words of scratch above which a run gets no faster.
    pub fast_words: usize,
    /// The value of 1 in the input.
    pub input_scale: f32,
}

/// The layouts that this build can multiply with.
const LAYOUTS: u32 = {
    const fn only(wanted: bool, layouts: &[Layout]) -> u32 {
        if wanted { Layout::set(layouts) } else { 0 }
    }
    const BLOCKS: [Layout; Format::ALL.len()] = {
        let mut blocks = [Layout::Int8; Format::ALL.len()];
        let mut at = 0;
        while at < blocks.len() {
            blocks[at] = Layout::Block(Format::ALL[at]);
            at += 1;
        }
        blocks
    };
    only(cfg!(feature = "int8"), &[Layout::Int8])
        | only(cfg!(feature = "int8-pairs"), &[Layout::Int8Pairs])
        | only(cfg!(feature = "int4"), &[Layout::Int4])
        | only(cfg!(feature = "ternary-lanes"), &[Layout::TernaryLanes])
        | only(cfg!(feature = "five-trits"), &[Layout::FiveTrits])
        | only(cfg!(feature = "blocks"), &BLOCKS)
};

/// Opens the network in `file`, a whole GGUF file of `len` bytes at any address, in flash or in memory. `tercet
/// network build` makes such files.
///
/// Nothing is copied: the file must stay where it is, unchanged, for as long as the network is used. One pass checks
/// the whole file, so a damaged or hostile file is refused and never read out of bounds. O(layers * (keys + tensors) +
/// weights).
///
/// Returns TERCET_STATUS_FILE, TERCET_STATUS_NETWORK or TERCET_STATUS_LAYERS for a faulty file; `tercet network`
/// reports the fault.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_network_open(
    network: *mut Network,
    file: *const u8,
    len: usize,
) -> Status {
    Status::of(|| {
        let out = Out::one(network)?;
        let file = In::new(file, len)?;
        apart([out.span()], [file.span()])?;
        let inner = Out::one(out.pointer().cast::<Inner>())?;
        // SAFETY: checked, and `Inner` begins with its tag; C vouches that the memory is there and not in use. If the
        // file is refused below, later calls do not take the memory for a network.
        unsafe { (&raw mut (*inner.pointer()).tag).write(0) };
        // SAFETY: checked; C vouches that the file stays as it is while the network is used.
        let network = CoreNetwork::new(unsafe { file.slice() })?;
        // SAFETY: as above.
        unsafe { inner.set(Inner { tag: TAG, network }) };
        Ok(())
    })
}

/// Borrows an open network.
///
/// # Safety
/// The memory must be there, and nobody may write it, while `'a` lasts.
unsafe fn open<'a>(
    network: *const Network,
) -> Result<&'a CoreNetwork<'static, TERCET_NETWORK_LAYERS>, Status> {
    let network = In::one(network.cast::<Inner>())?;
    // SAFETY: the tag is an integer, aligned; the caller vouches that it is there.
    if unsafe { (&raw const (*network.pointer()).tag).read() } != TAG {
        return Err(Status::State);
    }
    // SAFETY: `tercet_network_open` wrote it, since its tag is there; the caller vouches for the rest.
    Ok(unsafe { &network.value().network })
}

/// Returns the words of scratch for the activations.
fn activation_words(network: &CoreNetwork<'_, TERCET_NETWORK_LAYERS>) -> usize {
    network.activations_len().div_ceil(size_of::<u32>())
}

/// Reports a network's sizes and the needs of its runs. O(layers).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_network_sizes(
    network: *const Network,
    sizes: *mut NetworkSizes,
) -> Status {
    Status::of(|| {
        let (object, out) = (In::one(network)?, Out::one(sizes)?);
        apart([out.span()], [object.span()])?;
        // SAFETY: C vouches that the network is there and that nobody writes it.
        let network = unsafe { open(network)? };
        let activations = activation_words(network);
        let sizes = NetworkSizes {
            layers: network.layers().len(),
            inputs: network.inputs(),
            outputs: network.outputs(),
            words: activations.saturating_add(network.scratch_len()),
            fast_words: activations.saturating_add(network.fast_scratch_len()),
            input_scale: network.input_scale(),
        };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { out.set(sizes) };
        Ok(())
    })
}

/// Rounds `len` floats, one per input, to the codes that `tercet_network_run` takes: x / input_scale, half to even,
/// within -127 to 127.
///
/// Returns TERCET_STATUS_NOT_FINITE for a NaN or an infinity; the codes are then meaningless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_network_quantize(
    network: *const Network,
    values: *const f32,
    codes: *mut i8,
    len: usize,
) -> Status {
    Status::of(|| {
        let (object, values) = (In::one(network)?, In::new(values, len)?);
        let codes = Out::new(codes, len)?;
        apart([codes.span()], [object.span(), values.span()])?;
        // SAFETY: C vouches that the network is there and that nobody writes it.
        let network = unsafe { open(network)? };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (values, codes) = unsafe { (values.slice(), codes.slice()) };
        network.quantize(values, codes)?;
        Ok(())
    })
}

/// Runs the network on `inputs` activations of -127 to 127. Writes `outputs` exact sums, the same on every machine.
///
/// `scratch` holds at least `words` of `tercet_network_sizes` words with any content. O(weights).
///
/// Returns TERCET_STATUS_LENGTH unless both lengths are the network's, TERCET_STATUS_SCRATCH,
/// TERCET_STATUS_NOT_SYMMETRIC or TERCET_STATUS_LAYOUT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_network_run(
    network: *const Network,
    x: *const i8,
    inputs: usize,
    scratch: *mut u32,
    scratch_len: usize,
    sums: *mut i64,
    outputs: usize,
) -> Status {
    Status::of(|| {
        let (object, x) = (In::one(network)?, In::new(x, inputs)?);
        let (scratch, sums) = (Out::new(scratch, scratch_len)?, Out::new(sums, outputs)?);
        apart([scratch.span(), sums.span()], [object.span(), x.span()])?;
        // SAFETY: C vouches that the network is there and that nobody writes it.
        let network = unsafe { open(network)? };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (x, scratch, sums) = unsafe { (x.slice(), scratch.slice(), sums.slice()) };
        let words = activation_words(network);
        let (activations, scratch) = scratch.split_at_mut_checked(words).ok_or(Status::Scratch)?;
        let mut buffers = Buffers {
            activations: bytes_of(activations),
            scratch,
        };
        network.run(&mut Only::<LAYOUTS>, I8Sym::new(x)?, &mut buffers, sums)?;
        Ok(())
    })
}

fn bytes_of(words: &mut [u32]) -> &mut [i8] {
    let len = size_of_val(words);
    // SAFETY: as many bytes of the same borrow, and every pattern is a value of either type.
    unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }
}

/// Finds the class: the row of the largest logit, the lowest one on ties. `sums` are those of a run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_network_class(
    network: *const Network,
    sums: *const i64,
    outputs: usize,
    label: *mut usize,
) -> Status {
    Status::of(|| {
        let (object, sums) = (In::one(network)?, In::new(sums, outputs)?);
        let label = Out::one(label)?;
        apart([label.span()], [object.span(), sums.span()])?;
        // SAFETY: C vouches that the network is there and that nobody writes it.
        let network = unsafe { open(network)? };
        if outputs != network.outputs() {
            return Err(Status::Length);
        }
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { label.set(network.class(sums.slice())) };
        Ok(())
    })
}

/// Writes the logits as floats. `sums` are those of a run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_network_logits(
    network: *const Network,
    sums: *const i64,
    logits: *mut f32,
    outputs: usize,
) -> Status {
    Status::of(|| {
        let (object, sums) = (In::one(network)?, In::new(sums, outputs)?);
        let logits = Out::new(logits, outputs)?;
        apart([logits.span()], [object.span(), sums.span()])?;
        // SAFETY: C vouches that the network is there and that nobody writes it.
        let network = unsafe { open(network)? };
        if outputs != network.outputs() {
            return Err(Status::Length);
        }
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (sums, logits) = unsafe { (sums.slice(), logits.slice()) };
        for (row, (logit, &sum)) in logits.iter_mut().zip(sums).enumerate() {
            *logit = network.logit(row, sum);
        }
        Ok(())
    })
}

/// Adds sums to a digest, in order. From `TERCET_DIGEST` on, this is the digest of an input that `tercet network run
/// --digest` prints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_network_digest(
    digest: *mut u64,
    sums: *const i64,
    outputs: usize,
) -> Status {
    Status::of(|| {
        let (digest, sums) = (Out::one(digest)?, In::new(sums, outputs)?);
        apart([digest.span()], [sums.span()])?;
        // SAFETY: checked; C vouches that the memory is there and not in use.
        let (digest, sums) = unsafe { (digest.slice(), sums.slice()) };
        for value in digest {
            let mut running = tercet_core::conformance::Digest::resume(*value);
            for &sum in sums {
                running.u64(sum as u64);
            }
            *value = running.value();
        }
        Ok(())
    })
}
