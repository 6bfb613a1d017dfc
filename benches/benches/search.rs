//! The nearest of 100,000 int8 rows to a query.

fn main() {
    tercet_benches::harness::run(tercet_benches::search());
}
