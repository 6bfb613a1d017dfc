//! The instruction sets: the kernels of each, and whether this machine supports it.
//!
//! Kernels are in their operation's folder, with a file or a folder per set, so that all engines of an operation are
//! together. A set's file (`avx2.rs` …) names its own kernels, and the lesser set that serves if it has none. So a new
//! set consists of that file and those of its kernels, a module in `mod.rs`, a name in [`Isa`] and a line in [`of_set`],
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

/// The kernels of a set, operation by operation; `None` if core's own loops are called instead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernels {
    /// Its name.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "a test compares it with the name that the set is found by"
        )
    )]
    pub(super) isa: Isa,
    /// Returns true if this processor and its system support it.
    pub(super) runs: fn() -> bool,
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

/// Returns a field of the [`Kernels`] of a module that is compiled only for some targets, and with the feature `simd`.
macro_rules! of_module {
    ($module:ident.$field:ident if $($target:tt)+) => {{
        // A constant of its own: the rest of the set is not a part of a program for it.
        #[cfg(all(feature = "simd", $($target)+))]
        let found = Some(const { super::$module::KERNELS.$field });
        #[cfg(not(all(feature = "simd", $($target)+)))]
        let found = None;
        found
    }};
}

/// Returns a field of a set's [`Kernels`], `None` if this build has no such set.
macro_rules! of_set {
    ($isa:expr, $field:ident) => {
        match $isa {
            Isa::Scalar => Some(const { super::scalar::KERNELS.$field }),
            Isa::Sse41 => of_module!(sse41.$field if target_arch = "x86_64"),
            Isa::Avx2 => of_module!(avx2.$field if target_arch = "x86_64"),
            Isa::AvxVnni => of_module!(avx_vnni.$field if target_arch = "x86_64"),
            Isa::Avx512 => of_module!(avx512.$field if target_arch = "x86_64"),
            Isa::Avx512Vnni => of_module!(avx512_vnni.$field if target_arch = "x86_64"),
            Isa::Amx => of_module!(amx.$field if target_arch = "x86_64"),
            Isa::Neon => of_module!(neon.$field if all(target_arch = "aarch64", target_endian = "little")),
            Isa::DotProd => of_module!(dotprod.$field if all(target_arch = "aarch64", target_endian = "little")),
        }
    };
}

/// True if this build has a set, and this processor and its system support it.
pub(super) fn runs(isa: Isa) -> bool {
    of_set!(isa, runs).is_some_and(|runs| runs())
}

/// The kernels of a set that runs here. A program contains those of the operations that it uses.
pub(super) struct Running(pub(super) Isa);

macro_rules! operations {
    ($($operation:ident: $kernels:ty),* $(,)?) => {
        impl Running {$(
            /// Returns the kernels of an operation. Never inlined: where generic kernels are named, they are compiled,
            /// and that is to be this crate alone.
            #[inline(never)]
            pub(super) fn $operation(self) -> $kernels {
                let found = of_set!(self.0, $operation);
                // A backend's set is one of this build's.
                found.unwrap_or(const { super::scalar::KERNELS.$operation })
            }
        )*}
    };
}
operations! {
    blocks: Option<&'static Blocks>,
    cluster: &'static Cluster,
    compare: Option<Rows>,
    float_search: &'static FloatSearch,
    linear: &'static Linear,
    model: &'static Steps,
    train: &'static TrainSteps,
    palettes: Option<&'static Palettes>,
    peak: &'static Peak,
    quantize: &'static Quantize,
    search: &'static Search,
    stream: &'static Stream,
}

#[cfg(test)]
fn name(isa: Isa) -> Option<Isa> {
    of_set!(isa, isa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_bears_the_name_that_it_is_found_by() {
        for isa in Isa::ALL {
            assert!(name(isa).is_none_or(|name| name == isa), "{isa}");
        }
    }
}
