//! The linear layer in every layout.

fn main() {
    tercet_benches::harness::run("linear");
}
