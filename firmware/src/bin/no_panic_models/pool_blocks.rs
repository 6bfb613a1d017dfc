//! Pools of blocks and of shapes.

use core::borrow::{Borrow, BorrowMut};
use core::hash::{Hash, Hasher};
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::ops::{Deref, DerefMut};

use tercet_core::pool::{
    Block, BlockPool, Buffer, Critical, CriticalBlockPool, CriticalShapePool, Local, ShapeError,
    ShapePool, SharedBlockPool,
};

use crate::reach::reach;

reach! {
    BlockPool::<64, 8>::new,
    BlockPool::<64, 8>::alloc::<[u32; 4]>,
    BlockPool::<64, 8>::alloc_uninit::<[u32; 4]>,
    BlockPool::<64, 8>::alloc_zeroed,
    BlockPool::<64, 8>::stats,
    drop::<Block<'static, [u32; 4], BlockPool<64, 8>>>,
    SharedBlockPool::<64, 8>::new,
    SharedBlockPool::<64, 8>::alloc::<[u32; 4]>,
    SharedBlockPool::<64, 8>::alloc_uninit::<[u32; 4]>,
    SharedBlockPool::<64, 8>::alloc_zeroed,
    SharedBlockPool::<64, 8>::stats,
    drop::<Block<'static, [u32; 4], SharedBlockPool<64, 8>>>,
    CriticalBlockPool::<64, 8>::new,
    CriticalBlockPool::<64, 8>::alloc::<[u32; 4]>,
    CriticalBlockPool::<64, 8>::alloc_uninit::<[u32; 4]>,
    CriticalBlockPool::<64, 8>::alloc_zeroed,
    CriticalBlockPool::<64, 8>::stats,
    drop::<Block<'static, [u32; 4], CriticalBlockPool<64, 8>>>,
    Block::<[u32; 4], BlockPool<64, 8>>::into_inner,
    Block::<[u32; 4], BlockPool<64, 8>>::leak,
    Block::<MaybeUninit<[u32; 4]>, BlockPool<64, 8>>::write,
    Block::<MaybeUninit<[u32; 4]>, BlockPool<64, 8>>::assume_init,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as Deref>::deref,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as DerefMut>::deref_mut,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as AsRef<[u32; 4]>>::as_ref,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as AsMut<[u32; 4]>>::as_mut,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as Borrow<[u32; 4]>>::borrow,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as BorrowMut<[u32; 4]>>::borrow_mut,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as PartialEq>::eq,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as PartialOrd>::partial_cmp,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as Ord>::cmp,
    <Block<'static, [u32; 4], BlockPool<64, 8>> as Hash>::hash::<Mix>,
    ShapePool::<1024, 8>::new,
    ShapePool::<1024, 8>::take => fn(&'static ShapePool<1024, 8>, [usize; 4]) -> Result<Buffer<'static, i8, Local>, ShapeError>,
    ShapePool::<1024, 8>::take_filled => fn(&'static ShapePool<1024, 8>, [usize; 4], i32) -> _,
    ShapePool::<1024, 8>::reset,
    ShapePool::<1024, 8>::stats,
    drop::<Buffer<'static, i8, Local>>,
    CriticalShapePool::<1024, 8>::new,
    CriticalShapePool::<1024, 8>::take => fn(&'static CriticalShapePool<1024, 8>, [usize; 4]) -> Result<Buffer<'static, i8, Critical>, ShapeError>,
    CriticalShapePool::<1024, 8>::take_filled => fn(&'static CriticalShapePool<1024, 8>, [usize; 4], i32) -> _,
    CriticalShapePool::<1024, 8>::reset,
    CriticalShapePool::<1024, 8>::stats,
    drop::<Buffer<'static, i8, Critical>>,
    Buffer::<i8, Local>::shape,
    Buffer::<i8, Critical>::shape,
    <Buffer<'static, i8, Critical> as Deref>::deref,
    <Buffer<'static, i8, Critical> as DerefMut>::deref_mut,
    <Buffer<'static, i8, Local> as Deref>::deref,
    <Buffer<'static, i8, Local> as DerefMut>::deref_mut,
}

/// Takes bytes to hash.
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        black_box(bytes);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
