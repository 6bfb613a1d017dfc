//! Says which kernels the target's processor can run.
//!
//! Stable compilers never show `target_feature = "dsp"`, so the target's name decides: every Armv7E-M core has the DSP
//! extension, an Armv8-M Mainline core may have it, which the feature `dsp` says for it.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(tercet_dsp)");
    let target = env::var("TARGET").unwrap_or_default();
    let asked = env::var_os("CARGO_FEATURE_DSP").is_some();
    if target.starts_with("thumbv7em-") || (asked && target.starts_with("thumbv8m.main-")) {
        println!("cargo:rustc-cfg=tercet_dsp");
    }
}
