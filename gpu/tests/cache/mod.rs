//! The cache with threads: what is computed once, what fails, what is held, and that its bytes are bounded.

mod faults;
mod flood;
mod meter;
mod single;
