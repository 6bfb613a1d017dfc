//! Palettes of 2 and 4 bits: encode, decode and multiply, at 1 M and 16 M values.

fn main() {
    tercet_benches::harness::run(
        [1 << 20, 16 << 20]
            .into_iter()
            .flat_map(tercet_benches::palette),
    );
}
