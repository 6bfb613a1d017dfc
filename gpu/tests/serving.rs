//! What serves many requests, in one binary, and needs no device: the queue, the cache, and what is recorded of them.

mod batch;
mod cache;
mod observe;
