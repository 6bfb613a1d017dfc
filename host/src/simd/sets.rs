//! The instruction sets: the kernels of each, and whether this machine supports it.
//!
//! Kernels are in their operation's folder, with a file or a folder per set, so that all engines of an operation are
//! together. A set's file (`avx2.rs` …) names its own kernels, and the lesser set that serves if it has none. So a new
//! set consists of that file and those of its kernels, a module in `mod.rs`, a name in [`Isa`] and a line in [`of`],
//! without which it does not compile.

use super::Isa;
use super::blocks::Blocks;
use super::cluster::Cluster;
use super::compare::Rows;
use super::float_search::FloatSearch;
use super::linear::Linear;
use super::model::Steps;
use super::palette::Palettes;
use super::peak::Peak;
use super::quantize::Quantize;
use super::search::Search;
use super::stream::Stream;
use super::train::Steps as TrainSteps;

/// An instruction set with code for it.
#[derive(Debug)]
pub(crate) struct Set {
    /// Its name.
    pub(crate) isa: Isa,
    /// Returns true if this processor and its system support it.
    pub(crate) runs: fn() -> bool,
    /// Its kernels.
    pub(super) kernels: Kernels,
}

/// The kernels of a set, operation by operation; `None` if core's own loops are called instead.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) blocks: Option<&'static Blocks>,
    pub(super) cluster: &'static Cluster,
    pub(super) compare: Option<Rows>,
    pub(super) float_search: &'static FloatSearch,
    pub(super) linear: &'static Linear,
    pub(super) model: &'static Steps,
    pub(super) train: &'static TrainSteps,
    pub(super) palettes: Option<&'static Palettes>,
    pub(super) peak: &'static Peak,
    pub(super) quantize: &'static Quantize,
    pub(super) search: &'static Search,
    pub(super) stream: &'static Stream,
}

/// Returns a set, if this architecture has it.
pub(super) fn of(isa: Isa) -> Option<&'static Set> {
    /// Returns the set of a module that is compiled only for some targets, and with the feature `simd`.
    macro_rules! set {
        ($module:ident if $($target:tt)+) => {{
            #[cfg(all(feature = "simd", $($target)+))]
            let set = Some(&super::$module::SET);
            #[cfg(not(all(feature = "simd", $($target)+)))]
            let set = None;
            set
        }};
    }
    match isa {
        Isa::Scalar => Some(&super::scalar::SET),
        Isa::Sse41 => set!(sse41 if target_arch = "x86_64"),
        Isa::Avx2 => set!(avx2 if target_arch = "x86_64"),
        Isa::AvxVnni => set!(avx_vnni if target_arch = "x86_64"),
        Isa::Avx512 => set!(avx512 if target_arch = "x86_64"),
        Isa::Avx512Vnni => set!(avx512_vnni if target_arch = "x86_64"),
        Isa::Amx => set!(amx if target_arch = "x86_64"),
        Isa::Neon => set!(neon if all(target_arch = "aarch64", target_endian = "little")),
        Isa::DotProd => set!(dotprod if all(target_arch = "aarch64", target_endian = "little")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_bears_the_name_that_it_is_found_by() {
        for isa in Isa::ALL {
            assert!(of(isa).is_none_or(|set| set.isa == isa), "{isa}");
        }
    }
}
