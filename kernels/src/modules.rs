//! What is shipped. Written by compile.py.

use super::{Architecture, Module};

pub(super) const MODULES: &[Module] = &[
    Module {
        name: "block_decode",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/block_decode.ptx"),
        kernels: &[
            "block_decode_tq1_0_f32",
            "block_decode_tq1_0_f16",
            "block_decode_tq1_0_bf16",
            "block_decode_tq2_0_f32",
            "block_decode_tq2_0_f16",
            "block_decode_tq2_0_bf16",
            "block_decode_q2_0_f32",
            "block_decode_q2_0_f16",
            "block_decode_q2_0_bf16",
            "block_decode_q8_0_f32",
            "block_decode_q8_0_f16",
            "block_decode_q8_0_bf16",
            "block_decode_q4_0_f32",
            "block_decode_q4_0_f16",
            "block_decode_q4_0_bf16",
        ],
    },
    Module {
        name: "block_dot",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/block_dot.ptx"),
        kernels: &[
            "block_dot_tq1_0",
            "block_dot_tq2_0",
            "block_dot_q2_0",
            "block_dot_q8_0",
            "block_dot_q4_0",
        ],
    },
    Module {
        name: "block_encode",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/block_encode.ptx"),
        kernels: &[
            "block_encode_tq1_0",
            "block_encode_tq2_0",
            "block_encode_q2_0",
            "block_encode_q8_0",
            "block_encode_q4_0",
        ],
    },
    Module {
        name: "dequantize",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/dequantize.ptx"),
        kernels: &[
            "dequantize_f32",
            "dequantize_f16",
            "dequantize_bf16",
            "codes_outside",
        ],
    },
    Module {
        name: "histogram",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/histogram.ptx"),
        kernels: &["magnitudes_f32", "magnitudes_f16", "magnitudes_bf16"],
    },
    Module {
        name: "quantize",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/quantize.ptx"),
        kernels: &["quantize_plan", "quantize_finish"],
    },
    Module {
        name: "quantize_bf16",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/quantize_bf16.ptx"),
        kernels: &[
            "quantize_bf16",
            "quantize_short_bf16",
            "quantize_apply_bf16",
        ],
    },
    Module {
        name: "quantize_f16",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/quantize_f16.ptx"),
        kernels: &["quantize_f16", "quantize_short_f16", "quantize_apply_f16"],
    },
    Module {
        name: "quantize_f32",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/quantize_f32.ptx"),
        kernels: &["quantize_f32", "quantize_short_f32", "quantize_apply_f32"],
    },
    Module {
        name: "quantize_optimal",
        architecture: Architecture::Sm75,
        ptx: include_str!("../ptx/75/quantize_optimal.ptx"),
        kernels: &[
            "quantize_optimal_f32",
            "quantize_optimal_f16",
            "quantize_optimal_bf16",
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
