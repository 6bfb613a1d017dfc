//! Shared parts of commands that restore models: the amount of work, and its engine.

use std::path::Path;

use tercet_gpu::dispatch::{Job, Location, Operation};
use tercet_host::{Amounts, Error};

use crate::engine::{CUDA, CommandEngine};
use crate::failure::Failure;

/// Returns the job of restoring models; if a device could restore nothing, the job of reading them on the processor.
pub(crate) fn job(amounts: Amounts) -> Job {
    let (there, place) = match amounts.on_engines() {
        restored if restored.values > 0 => (restored, Location::Host),
        _ => (amounts.all(), Location::Processor),
    };
    let bytes_out = there.values.saturating_mul(4);
    let job = if amounts.codes.values > amounts.blocks.values + amounts.palettes.values {
        // Scales are stored beside codes.
        let scales = amounts.codes.groups.saturating_mul(4);
        let bytes_in = there.bytes.saturating_add(scales);
        let groups = usize::try_from(amounts.codes.groups).unwrap_or(usize::MAX);
        Job::each(Operation::Dequantize, there.values, bytes_in, bytes_out).with_items(groups)
    } else {
        Job::each(Operation::Decode, there.values, there.bytes, bytes_out)
    };
    job.at(place)
}

/// Returns the amounts of each model, or zero for a model that cannot be read: its reader reports the reason.
///
/// If the device was requested, refuses models without anything that a device restores.
pub(crate) fn amounts<const N: usize>(
    engine: &CommandEngine,
    models: [(&Path, Result<Amounts, Error>); N],
) -> Result<Option<[Amounts; N]>, Failure> {
    let mut all = [Amounts::default(); N];
    let mut paths = Vec::new();
    for (all, (path, amounts)) in all.iter_mut().zip(models) {
        let Ok(amounts) = amounts else {
            return Ok(None);
        };
        *all = amounts;
        paths.push(path.display().to_string());
    }
    if engine.is_device() && all.iter().all(|amounts| amounts.on_engines().values == 0) {
        let there = match N {
            1 => "holds",
            _ => "hold",
        };
        return Err(Failure::usage(format_args!(
            "--backend {CUDA}: {} {there} nothing that a device restores; \
             leave out --backend, or name an instruction set",
            paths.join(" and ")
        )));
    }
    Ok(Some(all))
}

/// Returns a line with the reason why the engine did not restore everything.
pub(crate) fn note(note: Option<&str>) -> String {
    note.map_or_else(String::new, |note| {
        format!("the processor did part of the work: {note}\n")
    })
}
