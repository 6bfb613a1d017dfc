//! What is counted: each hot operation over a small input, the same on every machine.

mod blocks;
mod cluster;
mod linear;
mod palette;
mod quantize;
mod search;

use tercet_core::number::Random;

/// One operation over one input.
pub(crate) struct Case {
    /// The operation, as engines name it; no spaces.
    pub(crate) what: &'static str,
    /// The method, layout or shape; no spaces.
    pub(crate) on: String,
    /// Values that it handles, or multiply-accumulates of products and distances.
    pub(crate) work: usize,
    /// Does it once.
    pub(crate) run: Box<dyn FnMut()>,
}

impl Case {
    fn new(
        what: &'static str,
        on: impl Into<String>,
        work: usize,
        run: impl FnMut() + 'static,
    ) -> Self {
        let (on, run) = (on.into(), Box::new(run));
        Self {
            what,
            on,
            work,
            run,
        }
    }
}

/// Makes the cases of one room.
type Build = fn() -> Vec<Case>;

/// Every case, room by room.
pub(crate) const ALL: [Build; 6] = [
    quantize::cases,
    blocks::cases,
    linear::cases,
    palette::cases,
    cluster::cases,
    search::cases,
];

/// Random values, nearly normal with mean 0 and variance 1.
fn normals(len: usize) -> Vec<f32> {
    let mut random = Random::new(7);
    (0..len).map(|_| random.normal()).collect()
}

/// Random codes of `low..=high`.
fn codes(len: usize, low: i8, high: i8) -> Vec<i8> {
    let mut random = Random::new(9);
    let count = (i32::from(high) - i32::from(low) + 1) as u64;
    (0..len)
        .map(|_| (random.below(count) as i32 + i32::from(low)) as i8)
        .collect()
}
