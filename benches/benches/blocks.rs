//! GGUF blocks: encode, decode and multiply.

fn main() {
    tercet_benches::harness::run("block");
}
