//! Every function of clustering, the linear layer, palettes, pools and search, linked and not called: that it links says that none can panic.

#![no_std]
#![no_main]

use core::hint::black_box;

use cortex_m_rt::entry;
use tercet_core::cluster::score::{Silhouette, davies_bouldin, silhouette};
use tercet_core::cluster::{
    self, Online, Points, Summary, float, kmeans, lloyd, mini_batch, normalize, normalize_floats,
    predict, seed, summarize, transform,
};
use tercet_core::engine::SearchBase;
use tercet_core::linear::{
    I8Sym, Layer, Layout, Matrix, Requantize, Rescale, Table, argmax, dense, matvec, pack, sums,
};
use tercet_core::pool::{
    Arena, Block, BlockPool, Buffer, Critical, CriticalBlockPool, CriticalShapePool, Lru, Ring,
    Scope, ShapePool, SharedArena, SharedBlockPool,
};
use tercet_core::scalar::{self, Base, Clusters};
use tercet_core::search::{
    Cosine, Dot, FloatRows, Int8Rows, IntegerCosine, Score, SquaredL2, TernaryRows, recall, rerank,
};
use tercet_core::{f16, palette};
use tercet_firmware::{exit, no_panic, report};

no_panic!();

#[entry]
fn main() -> ! {
    // The compiler must assume that each of these is called with anything.
    let functions = [
        Points::new as *const (),
        Points::weighted as *const (),
        Points::part as *const (),
        Clusters::<i32>::new as *const (),
        Clusters::<i64>::new as *const (),
        kmeans::<Clusters<'static, i32>> as *const (),
        kmeans::<Clusters<'static, i64>> as *const (),
        seed::<Clusters<'static, i32>> as *const (),
        lloyd::<Clusters<'static, i32>> as *const (),
        mini_batch::<Clusters<'static, i32>> as *const (),
        Online::<8, 6>::new as *const (),
        Online::<8, 6>::with_centroids as *const (),
        Online::<8, 6>::set_cap as *const (),
        Online::<8, 6>::observe as *const (),
        Online::<8, 6>::predict as *const (),
        Online::<8, 6>::save as *const (),
        Online::<8, 6>::load as *const (),
        Online::<1, 1>::observe as *const (),
        Online::<300, 7>::observe as *const (),
        normalize as *const (),
        normalize_floats::<f32> as *const (),
        normalize_floats::<f16> as *const (),
        cluster::means as *const (),
        cluster::nearest as *const (),
        cluster::inertia as *const (),
        predict as *const (),
        transform as *const (),
        summarize as *const (),
        Summary::merge as *const (),
        silhouette as *const (),
        Silhouette::new as *const (),
        Silhouette::part as *const (),
        Silhouette::finish as *const (),
        davies_bouldin as *const (),
        float::inertia::<f32> as *const (),
        I8Sym::new as *const (),
        Layout::bytes as *const (),
        Layout::group_bytes as *const (),
        Layout::scratch_len as *const (),
        Layout::fast_scratch_len as *const (),
        Layout::from_name as *const (),
        Table::len as *const (),
        Table::get as *const (),
        Table::get_f32 as *const (),
        Table::part as *const (),
        Matrix::new as *const (),
        Matrix::with_scale as *const (),
        Matrix::with_row_scales as *const (),
        Matrix::scale as *const (),
        Matrix::part as *const (),
        Layer::new as *const (),
        Layer::with_bias as *const (),
        Layer::bias as *const (),
        Layer::check as *const (),
        Layer::part as *const (),
        Requantize::new as *const (),
        Requantize::from_scale as *const (),
        Requantize::apply as *const (),
        Rescale::rows as *const (),
        Rescale::check as *const (),
        Rescale::part as *const (),
        Rescale::apply as *const (),
        sums as *const (),
        matvec as *const (),
        dense as *const (),
        argmax::<i64> as *const (),
        argmax::<f32> as *const (),
        pack::pack as *const (),
        pack::five_trits as *const (),
        pack::int4 as *const (),
        pack::int8_pairs as *const (),
        pack::ternary_lanes as *const (),
        plain_sums as *const (),
        BlockPool::<64, 8>::alloc::<[u32; 4]> as *const (),
        BlockPool::<64, 8>::alloc_uninit::<[u32; 4]> as *const (),
        BlockPool::<64, 8>::alloc_zeroed as *const (),
        BlockPool::<64, 8>::stats as *const (),
        drop::<Block<'static, [u32; 4], BlockPool<64, 8>>> as *const (),
        Block::<[u32; 4], BlockPool<64, 8>>::into_inner as *const (),
        CriticalBlockPool::<64, 8>::alloc::<[u32; 4]> as *const (),
        drop::<Block<'static, [u32; 4], CriticalBlockPool<64, 8>>> as *const (),
        SharedBlockPool::<64, 8>::alloc::<[u32; 4]> as *const (),
        SharedBlockPool::<64, 8>::stats as *const (),
        drop::<Block<'static, [u32; 4], SharedBlockPool<64, 8>>> as *const (),
        Arena::<256>::scope as *const (),
        Arena::<256>::stats as *const (),
        Scope::scope as *const (),
        Scope::alloc::<u64> as *const (),
        Scope::alloc_slice::<i16> as *const (),
        Scope::alloc_copy::<i16> as *const (),
        Scope::alloc_uninit::<i16> as *const (),
        Scope::alloc_bytes as *const (),
        SharedArena::<256>::reset as *const (),
        SharedArena::<256>::alloc_slice::<i16> as *const (),
        SharedArena::<256>::alloc_copy::<i16> as *const (),
        SharedArena::<256>::stats as *const (),
        Ring::<[i16; 6], 32>::push as *const (),
        Ring::<[i16; 6], 32>::advance as *const (),
        Ring::<[i16; 6], 32>::get as *const (),
        Ring::<[i16; 6], 32>::at as *const (),
        Ring::<[i16; 6], 32>::as_slices as *const (),
        Ring::<[i16; 6], 32>::as_mut_slices as *const (),
        Ring::<[i16; 6], 32>::as_flat_slices as *const (),
        Ring::<[i16; 6], 32>::window as *const (),
        Ring::<[i16; 6], 32>::copy_to as *const (),
        shape_take as *const (),
        shape_take_filled as *const (),
        ShapePool::<1024, 8>::reset as *const (),
        ShapePool::<1024, 8>::stats as *const (),
        drop::<Buffer<'static, i8>> as *const (),
        CriticalShapePool::<1024, 8>::reset as *const (),
        Lru::<u32, u8, 16, 8>::get as *const (),
        Lru::<u32, u8, 16, 8>::peek as *const (),
        Lru::<u32, u8, 16, 8>::insert as *const (),
        lru_insert_with as *const (),
        Lru::<u32, u8, 16, 8>::remove as *const (),
        Lru::<u32, u8, 16, 8>::evict as *const (),
        Lru::<u32, u8, 16, 8>::clear as *const (),
        palette::Width::new as *const (),
        palette::Layout::new as *const (),
        palette::optimal_1d as *const (),
        palette::encode::<f32> as *const (),
        palette::encode::<f16> as *const (),
        palette::decode as *const (),
        palette::decode_row as *const (),
        palette::dot as *const (),
        palette::matvec as *const (),
        Int8Rows::new as *const (),
        Int8Rows::write_norms as *const (),
        TernaryRows::new as *const (),
        TernaryRows::pack as *const (),
        FloatRows::<f32>::new as *const (),
        Base::<Int8Rows<'static>>::top_k::<Cosine> as *const (),
        Base::<Int8Rows<'static>>::top_k::<Dot> as *const (),
        Base::<Int8Rows<'static>>::top_k::<SquaredL2> as *const (),
        Base::<Int8Rows<'static>>::top_k_all::<Cosine> as *const (),
        Base::<Int8Rows<'static>>::range::<Cosine> as *const (),
        Base::<TernaryRows<'static>>::top_k::<Cosine> as *const (),
        Base::<TernaryRows<'static>>::range::<SquaredL2> as *const (),
        Base::<FloatRows<'static, f32>>::top_k::<Cosine> as *const (),
        Base::<FloatRows<'static, f16>>::top_k::<SquaredL2> as *const (),
        IntegerCosine::value as *const (),
        rerank::<Cosine, FloatRows<'static, f32>, IntegerCosine> as *const (),
        recall::<IntegerCosine, IntegerCosine> as *const (),
    ];
    black_box(functions);
    report::footprint(0, 0);
    exit::success()
}

/// The plain loops, which boards with kernels reach only here.
fn plain_sums(matrix: &Matrix<'_>, x: I8Sym<'_>) {
    scalar::linear::for_each_sum(matrix, x, |row, sum| {
        black_box((row, sum));
    });
}

fn shape_take(pool: &'static ShapePool<1024, 8>, shape: [usize; 4]) -> Option<Buffer<'static, i8>> {
    pool.take(shape).ok()
}

fn shape_take_filled(
    pool: &'static CriticalShapePool<1024, 8>,
    shape: [usize; 4],
) -> Option<Buffer<'static, i32, Critical>> {
    pool.take_filled(shape, 7).ok()
}

fn lru_insert_with(cache: &mut Lru<u32, u8, 16, 8>, key: u32, len: usize) -> bool {
    let filled = |at: usize, part: &mut [u8]| part.fill(at as u8);
    cache.insert_with(key, len, filled).is_ok()
}
