//! A step of Lloyd's loop, on 100,000 and on 1,000,000 points.

fn main() {
    tercet_benches::harness::run(tercet_benches::cluster());
}
