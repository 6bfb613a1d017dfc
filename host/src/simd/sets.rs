//! The instruction sets: which kernels each has, and whether this machine runs it.
//!
//! Kernels lie in their operation's folder, a file or a folder a set, so that all engines of an operation are side by side. A set's file
//! (`avx2.rs` …) says where its own are, and which lesser set's serve where it has none. So a new set is that file and those of its
//! kernels, a module in `mod.rs`, a name in [`Isa`] and a line in [`of`], which does not compile without it.

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

/// An instruction set, where there is code for it.
#[derive(Debug)]
pub(crate) struct Set {
    /// Its name.
    pub(crate) isa: Isa,
    /// Whether this processor and its system run it.
    pub(crate) runs: fn() -> bool,
    /// What it works with.
    pub(super) kernels: Kernels,
}

/// The kernels of a set, operation by operation; none where core's own loops are called instead.
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

/// A set, where this architecture has it.
pub(super) fn of(isa: Isa) -> Option<&'static Set> {
    /// The set of a module that is compiled for some targets only, and with the feature `simd`.
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
