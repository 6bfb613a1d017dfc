//! Tensors of f32 to codes and scales, at 1 M and 16 M values.

fn main() {
    tercet_benches::harness::run(
        [1 << 20, 16 << 20]
            .into_iter()
            .flat_map(tercet_benches::quantize),
    );
}
