//! Tercet's speed as ratios: to peers that do the same work on the same data in the same run, and to the limits of the
//! machine's memory and arithmetic.
//!
//! The operations are those of [`tercet_host::measure`], whose [`Runner`](tercet_host::measure::Runner) times them for
//! the `roofline` command as for `tercet bench`. This crate adds the peers. Criterion benches (`benches/*.rs`) run the
//! same cases. [`peers::contest`] times whole jobs beside Python's peers.

mod blocks;
mod cluster;
pub mod harness;
mod linear;
mod palette;
pub mod peers;
mod quantize;
mod report;
mod search;

pub use report::{command, save, save_as, table, write};

use tercet_host::measure::{Contender, Entry, Guest};
use tercet_host::simd::Backend;

/// Returns the peers that do an entry's work on the same input: plain Rust loops, and ggml if `TERCET_GGML` names its
/// library.
///
/// # Panics
/// If ggml returns different bytes or floats, because then the two do not do the same work.
pub fn guests(entry: &Entry) -> Vec<Guest> {
    let (operation, shape) = (entry.operation.as_str(), &entry.shape[..]);
    match (entry.area, shape) {
        ("quantize", &[values]) => quantize::guests(operation, values),
        ("block", &[values]) => blocks::guests(operation, values),
        ("linear", &[rows, cols]) => linear::guests(rows, cols),
        ("palette", &[rows, cols]) => palette::guests(operation, rows, cols),
        ("cluster", &[points, dims, k]) => cluster::guests(operation, points, dims, k),
        ("search", &[rows, dim]) => search::guests(operation, rows, dim),
        _ => Vec::new(),
    }
}

/// Returns a guest that works on its own copy of the input.
fn guest(name: &'static str, run: impl FnMut() + Send + 'static) -> Guest {
    let run = Box::new(run);
    Guest { name, run }
}

/// Returns the scalar engine, and the backend that `TERCET_BACKEND` names, or the best one here, on one thread and on
/// all.
pub fn contenders() -> Vec<Contender> {
    let backend = Backend::default();
    let mut all = vec![Contender::Scalar];
    for threads in [1, rayon::current_num_threads()] {
        let one = Contender::Threads { backend, threads };
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}
