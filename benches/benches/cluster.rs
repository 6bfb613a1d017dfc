//! Steps of Lloyd's loop, and seeding.

fn main() {
    tercet_benches::harness::run("cluster");
}
