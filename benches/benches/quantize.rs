//! Tensors of f32 to codes and scales, and their exact mean.

fn main() {
    tercet_benches::harness::run("quantize");
}
