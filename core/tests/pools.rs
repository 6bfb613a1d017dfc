//! Memory that core hands out, in one binary: what the sanitizer and valgrind look at.

mod pool_arena;
mod pool_block;
mod pool_lru;
mod pool_ring;
mod pool_shape;
mod pool_shared;
