//! Tensors of f32 to codes and scales, and the exact mean.

fn main() {
    tercet_benches::harness::run("quantize");
}
