//! The counted cases: the operations that `tercet bench` measures, with small inputs of their own.

use tercet_core::linear::Layout;
use tercet_host::measure::{Clock, Contender, Entry, entries};
use tercet_host::simd::Backend;

/// Values of a tensor: one tile of the engine, so that a pass is one kernel call.
const TENSOR: usize = 1 << 14;
/// Weights in blocks.
const BLOCKS: usize = 1 << 13;
/// Rows and columns of a layer, and number of vectors in a product with many.
const LAYER: (usize, usize, usize) = (32, 1024, 8);
/// Rows and columns of a matrix with a palette.
const PALETTE: (usize, usize) = (8, 1024);
/// Points, coordinates, clusters: with few clusters, with as many as a tile of centroids has, and with a number of
/// coordinates that is not a multiple of any register's lanes.
const POINTS: [[usize; 3]; 3] = [[512, 32, 16], [256, 64, 64], [256, 100, 10]];
/// Rows to search, values per row, and queries.
const ROWS: (usize, usize, usize) = (256, 384, 8);

/// Returns every case.
pub(crate) fn all() -> impl Iterator<Item = Entry> {
    let (rows, cols, vectors) = LAYER;
    let matmats = Layout::ALL.into_iter();
    entries::quantizers(TENSOR)
        .chain(entries::blocks(BLOCKS))
        .chain(entries::matvecs(rows, cols))
        .chain(matmats.map(move |layout| entries::matmat(layout, rows, cols, vectors)))
        .chain(entries::palettes(&[2, 4, 8], PALETTE.0, PALETTE.1))
        .chain(POINTS.into_iter().map(entries::step))
        .chain(POINTS.into_iter().map(entries::seed))
        .chain(POINTS.into_iter().map(entries::nearest))
        .chain(entries::searches(ROWS.0, ROWS.1))
        .chain(entries::int8_searches(ROWS.0, ROWS.1, ROWS.2))
}

/// Runs a case twice on this thread, the second time within `counted`. Returns its description: operation, size, and
/// its values or products.
pub(crate) fn run(entry: &Entry, counted: fn(&mut dyn FnMut())) -> String {
    let case = entry.build();
    let by = Contender::Threads {
        backend: Backend::default(),
        threads: 1,
    };
    case.run(by, &mut Twice { counted });
    let work = (case.work.values as u64).max(case.work.products) * u64::from(case.work.steps);
    let (what, on) = (
        entry.operation.replace(' ', "_"),
        entry.size.replace(' ', ""),
    );
    format!("{what} {on} {work}")
}

/// Excludes from a count what is done only once (detection, tables, a first allocation).
struct Twice {
    counted: fn(&mut dyn FnMut()),
}

impl Clock for Twice {
    fn time(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
        (self.counted)(&mut || work());
    }
}
