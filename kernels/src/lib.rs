#![no_std]
#![doc = include_str!("../README.md")]

mod modules;

use modules::MODULES;

/// A compute capability: major and minor, as the driver reports them.
pub type Capability = (u32, u32);

/// The architecture that PTX was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Architecture {
    /// Compute capability 7.5 (Turing) and every later one: `dp4a`.
    Sm75,
    /// 8.0 (Ampere) and every later one: int8 matrix instructions of 16 × 8 × 32.
    Sm80,
    /// 9.0 (Hopper) only: its features "a" exist on no other.
    Sm90a,
}

impl Architecture {
    /// Returns the compute capability of its name.
    pub const fn capability(self) -> Capability {
        match self {
            Self::Sm75 => (7, 5),
            Self::Sm80 => (8, 0),
            Self::Sm90a => (9, 0),
        }
    }

    /// Returns its name in PTX's `.target`.
    pub const fn target(self) -> &'static str {
        match self {
            Self::Sm75 => "sm_75",
            Self::Sm80 => "sm_80",
            Self::Sm90a => "sm_90a",
        }
    }

    /// Returns the PTX version of its modules, and the CUDA version from which on drivers read it.
    pub const fn versions(self) -> [(u32, u32); 2] {
        match self {
            Self::Sm75 | Self::Sm80 => [(7, 4), (11, 4)],
            Self::Sm90a => [(8, 0), (12, 0)],
        }
    }

    /// Returns true if a device takes PTX for this architecture.
    pub fn runs_on(self, device: Capability) -> bool {
        match self {
            Self::Sm90a => device == self.capability(),
            _ => device >= self.capability(),
        }
    }
}

/// One source file of `cuda/`, compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// The name of the source file, such as `quantize_f32`.
    pub name: &'static str,
    /// The architecture that it was compiled for.
    pub architecture: Architecture,
    /// The text that a driver compiles for its device.
    pub ptx: &'static str,
    /// The names of its kernels.
    pub kernels: &'static [&'static str],
}

/// Returns every shipped module, by architecture, then by name.
pub const fn modules() -> &'static [Module] {
    MODULES
}

/// Returns the newest PTX of a source file that a device takes; `None` if there is none.
///
/// Files whose names end with `_mma` and `_wgmma` contain faster kernels for newer devices. A caller that launches
/// kernels asks for those first.
///
/// ```
/// let module = tercet_kernels::module("quantize_f32", (8, 9)).unwrap();
/// assert!(module.kernels.contains(&"quantize_symmetric_f32"));
/// assert!(tercet_kernels::module("quantize_f32", (7, 0)).is_none());
/// ```
pub fn module(name: &str, device: Capability) -> Option<&'static Module> {
    (MODULES.iter())
        .filter(|module| module.name == name && module.architecture.runs_on(device))
        .max_by_key(|module| module.architecture)
}
