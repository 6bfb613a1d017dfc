//! The nearest rows to a query.

fn main() {
    tercet_benches::harness::run("search");
}
