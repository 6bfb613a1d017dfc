//! How fast Tercet is, as ratios: against peers that do the same work on the same data in the same run, and
//! against what the machine's memory allows.
//!
//! A [`Case`] is one operation over one input, with everyone who can do it. Criterion benches
//! (`benches/*.rs`) and the `roofline` command run the same cases; a [`Row`] is its line of the table.
//! [`peers::contest`] times Tercet beside Python's peers.

mod blocks;
mod cluster;
pub mod harness;
mod linear;
pub mod machine;
mod palette;
pub mod peers;
mod quantize;
mod report;
mod search;

pub use blocks::blocks;
pub use cluster::cluster;
pub use linear::linear;
pub use palette::palette;
pub use quantize::quantize;
pub use report::{HEAD, Row, command, save, write};
pub use search::search;

use std::fmt;
use std::rc::Rc;
use tercet_core::number::Random;

/// Who does the work of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// `tercet_core`'s reference engine, one thread.
    Scalar,
    /// `tercet_host::parallel`, every thread of the rayon pool.
    Threads,
    /// A plain Rust loop of [`peers::naive`], one thread.
    Naive,
    /// ggml's compiled reference quantizers, one thread.
    Ggml,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Scalar => "scalar",
            Self::Threads => "threads",
            Self::Naive => "naive",
            Self::Ggml => "ggml",
        })
    }
}

/// Which ceiling of [`tercet_host::measure::Bandwidth`] holds for a case.
#[derive(Clone, Copy, Debug)]
pub enum Traffic {
    /// Reads only.
    Read,
    /// Reads wide values, writes narrow ones.
    Narrow,
    /// Reads narrow values, writes wide ones.
    Widen,
}

/// One operation over one input.
pub struct Case {
    /// The operation, such as `encode tq2_0`.
    pub name: String,
    /// Values in the input.
    pub values: usize,
    /// Bytes that any implementation must move: the input once and the output once.
    pub bytes: usize,
    /// What kind of bytes.
    pub traffic: Traffic,
    /// Who can do it here.
    pub contenders: Vec<(Who, Box<dyn FnMut()>)>,
}

impl Case {
    fn new(name: impl Into<String>, values: usize, bytes: usize, traffic: Traffic) -> Self {
        let (name, contenders) = (name.into(), Vec::new());
        Self {
            name,
            values,
            bytes,
            traffic,
            contenders,
        }
    }

    /// Adds a contender that takes `input` and writes to `out`.
    fn with<I: ?Sized + 'static, O: 'static>(
        mut self,
        who: Who,
        input: &Rc<I>,
        mut out: O,
        mut run: impl FnMut(&I, &mut O) + 'static,
    ) -> Self {
        let input = input.clone();
        self.contenders
            .push((who, Box::new(move || run(&input, &mut out))));
        self
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} values", self.name, self.values)
    }
}

/// Random values, nearly normal with mean 0 and variance 1; the same ones on every machine.
pub fn normals(len: usize) -> Rc<[f32]> {
    let mut random = Random::new(7);
    (0..len).map(|_| random.normal()).collect()
}

/// Random int8 codes, all but −128 alike; the same ones on every machine.
fn codes(len: usize) -> Vec<i8> {
    let mut random = Random::new(9);
    (0..len)
        .map(|_| (random.below(255) as i32 - 127) as i8)
        .collect()
}

/// A count as people say it: `100K`, `1M`, or its digits.
fn short(count: usize) -> String {
    match count {
        1_000_000.. if count.is_multiple_of(1_000_000) => format!("{}M", count / 1_000_000),
        1_000.. if count.is_multiple_of(1_000) => format!("{}K", count / 1_000),
        _ => count.to_string(),
    }
}
