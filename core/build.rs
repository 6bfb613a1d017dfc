//! Says which kernels the target's processor can run.
//!
//! Stable compilers never show `target_feature = "dsp"`, so the target's name decides: every Armv7E-M core has the DSP
//! extension, an Armv8-M Mainline core may have it, and vectors too, which the features `dsp`
//! and `mve` say for it. Armv6-M and Armv8-M Baseline run Thumb-1 code, which has eight registers.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(tercet_dsp, tercet_mve, tercet_thumb1)");
    let target = env::var("TARGET").unwrap_or_default();
    let mainline = target.starts_with("thumbv8m.main-");
    let asked = |feature| env::var_os(feature).is_some();
    if target.starts_with("thumbv7em-") || (mainline && asked("CARGO_FEATURE_DSP")) {
        println!("cargo:rustc-cfg=tercet_dsp");
    }
    if target.starts_with("thumbv6m-") || target.starts_with("thumbv8m.base-") {
        println!("cargo:rustc-cfg=tercet_thumb1");
    }
    if mainline && asked("CARGO_FEATURE_MVE") {
        println!("cargo:rustc-cfg=tercet_mve");
    }
}
