//! What is shipped. Written by compile.py.

use super::{Architecture, Module};

pub(super) const MODULES: &[Module] = &[
    Module {
        name: "quantize",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/quantize.ptx"),
        kernels: &[
            "quantize_f32",
            "quantize_f16",
            "quantize_bf16",
            "quantize_short_f32",
            "quantize_short_f16",
            "quantize_short_bf16",
            "plan",
            "apply_f32",
            "apply_f16",
            "apply_bf16",
            "finish",
        ],
    },
    Module {
        name: "stats",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/stats.ptx"),
        kernels: &[
            "stats_f32",
            "stats_f16",
            "stats_bf16",
            "stats_short_f32",
            "stats_short_f16",
            "stats_short_bf16",
        ],
    },
];
