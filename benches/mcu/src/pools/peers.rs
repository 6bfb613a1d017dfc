//! Pools and heaps of other libraries.

#![allow(
    unsafe_code,
    reason = "heaps are told where their memory is and who gives what back"
)]

use core::alloc::{GlobalAlloc, Layout};

use heapless::object_pool;
use heapless::pool::object::{Object, ObjectBlock, ObjectPoolImpl};
use talc::TalcCell;
use talc::source::Manual;

use super::{Allocator, BLOCK, BLOCKS};

/// No allocator: the cost of counting.
#[derive(Debug)]
pub struct Nothing;

impl Allocator for Nothing {
    const NAME: &'static str = "nothing";
    type Handle = *mut u8;

    fn alloc(&self, bytes: usize) -> Option<*mut u8> {
        Some(core::ptr::without_provenance_mut(bytes))
    }

    fn free(&self, _: *mut u8, _: usize) {}
}

/// heapless' lock-free pool. It is a pool of objects, since its boxes copy a value in.
#[derive(Debug)]
pub struct Heapless(());

type Data = [u8; BLOCK];

object_pool!(Objects: Data);

impl Heapless {
    /// Bytes of its blocks, and of the pointer to the first.
    pub const BYTES: usize =
        size_of::<[ObjectBlock<Data>; BLOCKS]>() + size_of::<ObjectPoolImpl<Data>>();

    /// Gives the pool its blocks.
    ///
    /// # Panics
    /// If called a second time.
    pub fn take() -> Self {
        let blocks = cortex_m::singleton!(
            : [ObjectBlock<Data>; BLOCKS] = [const { ObjectBlock::new([0; BLOCK]) }; BLOCKS]
        );
        for block in blocks.expect("made once") {
            Objects.manage(block);
        }
        Self(())
    }
}

impl Allocator for Heapless {
    const NAME: &'static str = "heapless";
    type Handle = Object<Objects>;

    fn alloc(&self, _: usize) -> Option<Object<Objects>> {
        Objects.request()
    }

    fn free(&self, handle: Object<Objects>, _: usize) {
        drop(handle);
    }
}

/// rlsf's two-level segregated fit as in embedded-alloc, in a critical section.
pub struct Tlsf(embedded_alloc::TlsfHeap);

impl Tlsf {
    /// Makes a heap in `memory`.
    pub fn new(memory: &'static mut [u8]) -> Self {
        let heap = embedded_alloc::TlsfHeap::empty();
        // SAFETY: The heap alone has the memory, for good.
        unsafe { heap.init(memory.as_mut_ptr().addr(), memory.len()) };
        Self(heap)
    }
}

/// talc without a lock.
pub struct Talc(TalcCell<Manual>);

impl Talc {
    /// Makes a heap in `memory`.
    ///
    /// # Panics
    /// If `memory` is too small.
    pub fn new(memory: &'static mut [u8]) -> Self {
        let heap = TalcCell::new(Manual);
        // SAFETY: The heap alone has the memory, for good.
        let end = unsafe { heap.claim(memory.as_mut_ptr(), memory.len()) };
        end.expect("enough memory");
        Self(heap)
    }
}

fn layout(bytes: usize) -> Layout {
    // SAFETY: 8 is a power of two, and `bytes` at most BLOCK.
    unsafe { Layout::from_size_align_unchecked(bytes, 8) }
}

/// A piece of a heap.
#[derive(Debug)]
pub struct Piece(*mut u8);

macro_rules! heap {
    ($heap:ty, $name:literal) => {
        impl Allocator for $heap {
            const NAME: &'static str = $name;
            type Handle = Piece;

            fn alloc(&self, bytes: usize) -> Option<Piece> {
                // SAFETY: No trace asks for 0 bytes.
                let place = unsafe { self.0.alloc(layout(bytes)) };
                (!place.is_null()).then_some(Piece(place))
            }

            fn free(&self, piece: Piece, bytes: usize) {
                // SAFETY: It came from `alloc`; traces give it back with the size they took it with.
                unsafe { self.0.dealloc(piece.0, layout(bytes)) };
            }
        }
    };
}

heap!(Tlsf, "tlsf");
heap!(Talc, "talc");

/// The global allocator that a program needs because talc's dependency links `alloc`; nothing calls it.
struct Refuse;

// SAFETY: It gives nothing out.
unsafe impl GlobalAlloc for Refuse {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static REFUSE: Refuse = Refuse;
