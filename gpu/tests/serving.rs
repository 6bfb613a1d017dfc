//! What serves many requests, in one binary, and needs no device: the queue, and what is recorded of it.

mod batch;
mod observe;
