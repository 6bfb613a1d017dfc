//! The linear layer in every layout, at 1 M and 16 M weights.

fn main() {
    tercet_benches::harness::run(
        [1 << 20, 16 << 20]
            .into_iter()
            .flat_map(tercet_benches::linear),
    );
}
