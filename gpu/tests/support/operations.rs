//! Every operation of an engine once, and all that it gives as numbers: what must be the same after a failure as
//! without one.

use tercet_core::block::Format;
use tercet_core::cluster::{Init, Points, Steps, Update, kmeans};
use tercet_core::engine::{
    BlockEngine, ClusterEngine, ClusterProblem, LinearEngine, PaletteEngine, QuantizeEngine,
    SearchBase, SearchEngine,
};
use tercet_core::linear::{I8Sym, Layer, Layout, Matrix, Table};
use tercet_core::palette::{self, Output, Palette, Width};
use tercet_core::quant::{self, Groups, Histogram, Method, Rule, SMALL_BITS, ScaleRule};
use tercet_core::scalar::Scalar;
use tercet_core::search::{Cosine, Hit, Int8Rows};
use tercet_gpu::engine::{CudaError, Cudas};

use super::cluster::{Cloud, NOTHING, options, points, with_scalar};
use super::quantize::{bins, quantized, values};
use super::search::told;

/// What an operation gave.
pub type Given = Vec<u64>;

/// An operation on several devices.
type LeastWork = fn(&mut Cudas) -> Result<Given, CudaError>;

/// An operation by name, and what the reference engine gives.
pub struct Operation {
    pub name: &'static str,
    pub on_cudas: LeastWork,
    pub expected: Given,
}

pub fn operations() -> Vec<Operation> {
    let reference = &mut Scalar;
    let clustered = || with_scalar(cloud(), 4, Update::Mean, |problem| clusters(problem)).ok();
    let all: [(_, LeastWork, _); 11] = [
        ("groups", groups, groups(reference).ok()),
        ("one group", one_group, one_group(reference).ok()),
        ("histogram", histogram, histogram(reference).ok()),
        ("blocks", blocks, blocks(reference).ok()),
        ("search", search, search(reference).ok()),
        ("layer", layer, layer(reference).ok()),
        ("resident layer", resident_layer, layer(reference).ok()),
        ("palette", palette, palette(reference).ok()),
        (
            "resident palette",
            resident_palette,
            palette(reference).ok(),
        ),
        ("clusters", brought, clustered()),
        ("resident clusters", resident, clustered()),
    ];
    let all = all.into_iter().map(|(name, on_cudas, expected)| Operation {
        name,
        on_cudas,
        expected: expected.expect(name),
    });
    all.collect()
}

fn tensor<E: QuantizeEngine>(engine: &mut E, groups: Groups) -> Result<Given, E::Error> {
    let values = values(1, 0, groups.count * groups.len);
    let method = Method::Ternary {
        rule: Rule::Twn,
        scale_rule: ScaleRule::LeastSquares,
    };
    let found = quantized(engine, &values, groups, false, |tensor| {
        quant::quantize(tensor, method, &mut bins())
    })?;
    let codes = found.codes.iter().map(|&code| u64::from(code as u8));
    Ok(codes
        .chain(found.scales.iter().map(|&bits| bits.into()))
        .collect())
}

fn groups<E: QuantizeEngine>(engine: &mut E) -> Result<Given, E::Error> {
    tensor(engine, Groups { count: 7, len: 64 })
}

fn one_group<E: QuantizeEngine>(engine: &mut E) -> Result<Given, E::Error> {
    tensor(engine, Groups { count: 1, len: 700 })
}

fn histogram<E: QuantizeEngine>(engine: &mut E) -> Result<Given, E::Error> {
    let mut buckets = vec![0; Histogram::<SMALL_BITS>::BUCKETS];
    let mut histogram = Histogram::<SMALL_BITS>::new(&mut buckets)?;
    engine.histogram(&values(1, 0, 700), &mut histogram)?;
    engine.histogram(&values(2, 5, 300), &mut histogram)?;
    let (low, high) = histogram.range().unwrap_or_default();
    let extremes = [low, high].map(|x| x.to_bits().into());
    Ok(extremes.into_iter().chain(buckets).collect())
}

fn blocks<E: BlockEngine>(engine: &mut E) -> Result<Given, E::Error> {
    let weights = values(4, 0, 6 * 256);
    let format = Format::Tq2_0;
    let (rule, scale) = (Rule::AbsMax, ScaleRule::Rule);
    let mut bytes = vec![0; format.encoded_len(weights.len()).unwrap()];
    engine.encode_blocks(format, rule, scale, &weights, &mut bytes)?;
    let mut back = vec![0.0; weights.len()];
    engine.decode_blocks(format, &bytes, &mut back)?;
    let x: Vec<i8> = (0..weights.len())
        .map(|i| (i * 37 % 255) as u8 as i8)
        .collect();
    let dot = engine.dot_blocks(format, &bytes, &x, 0.25)?;
    let bytes = bytes.into_iter().map(u64::from);
    let floats = back.iter().chain([&dot]).map(|x| x.to_bits().into());
    Ok(bytes.chain(floats).collect())
}

fn search<E: SearchEngine>(engine: &mut E) -> Result<Given, E::Error> {
    let (rows, queries) = (
        points(Cloud::Ties, 100, 33, 9),
        points(Cloud::Even, 3, 33, 8),
    );
    let mut base = engine.base(Int8Rows::new(&rows, 33).unwrap())?;
    let mut hits = vec![Hit::default(); 3 * 5];
    base.top_k_all::<Cosine>(&queries, 5, &mut hits)?;
    let mut within = vec![Hit::default(); 100];
    let count = base.range::<Cosine>(&queries[..33], 0.1, &mut within)?;
    let all = told(&hits).into_iter().chain(told(&within[..count]));
    Ok(all
        .flat_map(|(index, bits)| [index as u64, bits.into()])
        .collect())
}

/// 8-row groups of weights over the devices, the last of 5, and three rows of activations.
fn with_layer<R>(work: impl FnOnce(&Layer<'_>, I8Sym<'_>) -> R) -> R {
    let bytes: Vec<u8> = (0..45 * 33).map(|i| (i * 91 % 251) as u8).collect();
    let x: Vec<i8> = (0..99).map(|i| (i * 37 % 255 - 127) as i8).collect();
    let bias: Vec<i32> = (0..45).map(|i| i * 1000 - 20_000).collect();
    let layer = Layer::new(Matrix::new(Layout::Int8, 45, 33, &bytes).unwrap());
    let layer = layer.with_bias(Table::Words(&bias), 2).unwrap();
    let x = I8Sym::new(&x).unwrap_or_else(|_| panic!("-128 among them"));
    work(&layer, x)
}

const SCALES: [f32; 3] = [0.5, 0.001, -3.0];

fn layer<E: LinearEngine>(engine: &mut E) -> Result<Given, E::Error> {
    with_layer(|layer, x| {
        let (mut sums, mut floats) = (vec![0; 45 * 3], vec![0.0; 45 * 3]);
        let mut scratch = vec![0; Layout::Int8.scratch_len(45, 33)];
        engine.sums_many(layer, x, &mut sums, &mut scratch)?;
        for ((x, scale), out) in x.rows(33).zip(SCALES).zip(floats.chunks_mut(45)) {
            engine.matvec(layer, x, scale, out, &mut scratch)?;
        }
        Ok(products(&sums, &floats))
    })
}

fn resident_layer(cudas: &mut Cudas) -> Result<Given, CudaError> {
    with_layer(|layer, x| {
        let there = cudas.layer(layer)?;
        let (mut sums, mut floats) = (vec![0; 45 * 3], vec![0.0; 45 * 3]);
        cudas.row_sums(&there, x, &mut sums)?;
        cudas.multiply(&there, x, &SCALES, &mut floats)?;
        Ok(products(&sums, &floats))
    })
}

fn products(sums: &[i64], floats: &[f32]) -> Given {
    let sums = sums.iter().map(|sum| sum.cast_unsigned());
    sums.chain(floats.iter().map(|x| x.to_bits().into()))
        .collect()
}

fn palette_layout() -> palette::IndexMatrix {
    palette::IndexMatrix::new(Width::new(3).unwrap(), 24, 32, 5).unwrap()
}

/// Encodes 24 rows of 32 in groups of 5; what `work` gives of the palette follows its indices.
fn encoded<E: PaletteEngine>(
    engine: &mut E,
    work: impl FnOnce(&mut E, &Palette<'_>, &mut [f32], &mut [f32]) -> Result<(), E::Error>,
) -> Result<Given, E::Error> {
    let layout = palette_layout();
    let values = values(7, 0, layout.values());
    let (mut indices, mut codebooks, mut scales) = (
        vec![0; layout.index_bytes()],
        vec![0; layout.codebook_len()],
        vec![0.0; layout.groups()],
    );
    let out = Output {
        indices: &mut indices,
        codebooks: &mut codebooks,
        scales: &mut scales,
    };
    let scratch = &mut vec![0; layout.scratch_len()];
    engine.encode_palette(&layout, &values, &[], out, scratch)?;
    let palette = Palette {
        layout,
        indices: &indices,
        codebooks: &codebooks,
        scales: &scales,
    };
    let (mut back, mut product) = (vec![0.0; layout.values()], vec![0.0; layout.rows()]);
    work(engine, &palette, &mut back, &mut product)?;
    let floats = back.iter().chain(&product).map(|x| x.to_bits().into());
    let indices = indices.iter().copied().map(u64::from);
    Ok(indices.chain(floats).collect())
}

fn palette_activations() -> Vec<i8> {
    (-16..16).map(|i| i * 7).collect()
}

fn palette<E: PaletteEngine>(engine: &mut E) -> Result<Given, E::Error> {
    encoded(engine, |engine, palette, back, product| {
        engine.decode_palette(palette, back)?;
        engine.multiply_palette(palette, &palette_activations(), 0.5, product)
    })
}

fn resident_palette(cudas: &mut Cudas) -> Result<Given, CudaError> {
    encoded(cudas, |cudas, palette, back, product| {
        let there = cudas.palette(palette)?;
        cudas.decode_resident_palette(&there, back)?;
        cudas.multiply_resident_palette(&there, &palette_activations(), 0.5, product)
    })
}

/// Points with weights.
fn cloud() -> Points<'static> {
    let values = points(Cloud::Groups, 60, 5, 1).leak();
    let weights: Vec<u32> = (0..60).map(|i| [2, 0, 1][i % 3]).collect();
    Points::weighted(values, 5, weights.leak()).unwrap()
}

fn clusters<P: ClusterProblem>(problem: &mut P) -> Result<Given, P::Error> {
    let options = options(Init::Greedy, 2);
    kmeans(problem, &options, &mut Steps::Full, &mut |_, _, _| ())?;
    let (mut labels, mut centroids) = (vec![0; 60], vec![0; 20]);
    let (mut sums, mut counts) = (vec![0; 20], vec![0; 4]);
    problem.read_labels(&mut labels)?;
    problem.read_centroids(&mut centroids)?;
    problem.read_sums(&mut sums, &mut counts)?;
    let small = labels.into_iter().map(u64::from);
    let small = small.chain(centroids.into_iter().map(|x| u64::from(x as u8)));
    Ok(small
        .chain(sums.into_iter().map(i64::cast_unsigned))
        .chain(counts)
        .collect())
}

fn brought(cudas: &mut Cudas) -> Result<Given, CudaError> {
    clusters(&mut cudas.clusters(cloud(), 4, Update::Mean, NOTHING())?)
}

fn resident(cudas: &mut Cudas) -> Result<Given, CudaError> {
    let there = cudas.points(&cloud())?;
    clusters(&mut cudas.clusters_of(&there, 4, Update::Mean)?)
}
