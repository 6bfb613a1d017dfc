//! Dense networks from a file: what they compute, what they borrow, what they refuse.

use proptest::prelude::*;
use tercet_core::block::{self, Format};
use tercet_core::engine::LinearEngine;
use tercet_core::gguf::{SliceSink, TensorSpec, TensorType, Value, Writer};
use tercet_core::linear::network::{Buffers, LayerSize, Network, NetworkError};
use tercet_core::linear::{self, I8Sym, Layer, Layout, LinearError, Rescale, pack};
use tercet_core::number::Random;
use tercet_core::quant::{Rule, ScaleRule};
use tercet_core::scalar::Scalar;

/// A file before it is written, so that tests can spoil it.
#[derive(Clone, Default)]
struct Draft {
    entries: Vec<(String, Value<'static>)>,
    tensors: Vec<(String, Vec<u64>, TensorType, Vec<u8>)>,
}

impl Draft {
    fn write(&self) -> Vec<u8> {
        let specs: Vec<TensorSpec<'_>> = self
            .tensors
            .iter()
            .map(|(name, dims, kind, _)| TensorSpec::new(name, dims, *kind).unwrap())
            .collect();
        let mut buffer = vec![0; 1 << 18];
        let sink = SliceSink::new(&mut buffer);
        let mut writer = Writer::new(sink, self.entries.len() as u64, &specs).unwrap();
        for (key, value) in &self.entries {
            writer.entry(key, *value).unwrap();
        }
        let mut data = writer.into_data().unwrap();
        for (name, _, _, bytes) in &self.tensors {
            data.begin(name).unwrap();
            data.write(bytes).unwrap();
        }
        let len = data.finish().unwrap().len();
        buffer.truncate(len);
        buffer
    }

    fn set(&mut self, key: &str, value: impl Into<Value<'static>>) {
        let value = value.into();
        match self.entries.iter_mut().find(|(found, _)| found == key) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key.into(), value)),
        }
    }

    fn drop_key(&mut self, key: &str) {
        self.entries.retain(|(found, _)| found != key);
    }

    fn tensor(&mut self, name: &str, dims: &[u64], kind: TensorType, bytes: Vec<u8>) {
        let tensor = (name.to_owned(), dims.to_vec(), kind, bytes);
        match self.tensors.iter_mut().find(|(found, ..)| found == name) {
            Some(found) => *found = tensor,
            None => self.tensors.push(tensor),
        }
    }

    fn drop_tensor(&mut self, name: &str) {
        self.tensors.retain(|(found, ..)| found != name);
    }
}

/// A layer in plain numbers: what the network must compute.
#[derive(Clone, Debug)]
struct Plain {
    layout: Layout,
    rows: usize,
    cols: usize,
    /// Weight · 2²⁴ · scale for blocks, weight else.
    weights: Vec<i64>,
    scales: Vec<f32>,
    bias: Vec<i32>,
    bias_shift: u8,
    /// Multipliers and shifts, one or one a row; none of the last layer.
    rescale: Vec<(i32, u8)>,
    relu: bool,
    output_scale: f32,
}

impl Plain {
    fn sums(&self, x: &[i8]) -> Vec<i64> {
        let rows = self.weights.chunks(self.cols).enumerate();
        rows.map(|(row, weights)| {
            let bias = self
                .bias
                .get(row)
                .map_or(0, |&b| i64::from(b) << self.bias_shift);
            let products = weights.iter().zip(x).map(|(&w, &x)| w * i64::from(x));
            products.sum::<i64>() + bias
        })
        .collect()
    }

    fn outputs(&self, x: &[i8]) -> Vec<i8> {
        let sums = self.sums(x).into_iter().enumerate();
        sums.map(|(row, sum)| {
            let (multiplier, shift) = self.rescale[row % self.rescale.len()];
            let product = i128::from(sum) * i128::from(multiplier);
            let rounded = (product + (1i128 << (shift - 1))) >> shift;
            rounded.clamp(if self.relu { 0 } else { -127 }, 127) as i8
        })
        .collect()
    }

    /// Adds the layer to a file.
    fn put(&self, index: usize, bytes: Vec<u8>, last: bool, draft: &mut Draft) {
        let key = |key: &str| format!("tercet.network.{index}.{key}");
        let name = |part: &str| format!("network.{index}.{part}");
        draft.set(&key("layout"), self.layout.name());
        draft.set(&key("rows"), self.rows as u32);
        draft.set(&key("cols"), self.cols as u32);
        if self.bias_shift > 0 {
            draft.set(&key("bias_shift"), u32::from(self.bias_shift));
        }
        let (kind, dims) = match self.layout {
            Layout::Block(format) => (
                TensorType(format.gguf_type()),
                vec![self.cols as u64, self.rows as u64],
            ),
            Layout::Int8 => (TensorType::I8, vec![self.cols as u64, self.rows as u64]),
            _ => (TensorType::I8, vec![bytes.len() as u64]),
        };
        draft.tensor(&name("weight"), &dims, kind, bytes);
        let le = |values: &[i32]| values.iter().flat_map(|v| v.to_le_bytes()).collect();
        if !self.scales.is_empty() {
            let bytes = self.scales.iter().flat_map(|s| s.to_le_bytes()).collect();
            let dims = [self.scales.len() as u64];
            draft.tensor(&name("scale"), &dims, TensorType::F32, bytes);
        }
        if !self.bias.is_empty() {
            draft.tensor(
                &name("bias"),
                &[self.rows as u64],
                TensorType::I32,
                le(&self.bias),
            );
        }
        if !last {
            draft.set(&key("activation"), if self.relu { "relu" } else { "none" });
            draft.set(&key("output_scale"), self.output_scale);
            let (multipliers, shifts): (Vec<i32>, Vec<u8>) = self.rescale.iter().copied().unzip();
            let dims = [multipliers.len() as u64];
            draft.tensor(
                &name("multiplier"),
                &dims,
                TensorType::I32,
                le(&multipliers),
            );
            draft.tensor(&name("shift"), &dims, TensorType::I8, shifts);
        }
    }
}

/// A layer of random weights in a layout, and its bytes.
fn layer(layout: Layout, rows: usize, cols: usize, random: &mut Random) -> (Plain, Vec<u8>) {
    let mut draw = |below: u64| random.below(below) as i64;
    let mut bytes = vec![0; layout.bytes(rows, cols).unwrap()];
    let mut codes = vec![0i8; rows * cols];
    let mut scales = Vec::new();
    let weights = match layout {
        Layout::Block(format) => {
            let values: Vec<f32> = (0..rows * cols)
                .map(|_| draw(2001) as f32 / 1e3 - 1.0)
                .collect();
            block::encode(format, Rule::AbsMax, ScaleRule::Rule, &values, &mut bytes).unwrap();
            block::codes(format, &bytes, &mut codes).unwrap();
            let mut steps = vec![0.0; codes.len() / format.len()];
            block::scales(format, &bytes, &mut steps).unwrap();
            let step = |at: usize| (steps[at / format.len()] * 16_777_216.0) as i64;
            codes
                .iter()
                .enumerate()
                .map(|(at, &code)| step(at) * i64::from(code))
                .collect()
        }
        Layout::TernaryLanes | Layout::FiveTrits => {
            codes.fill_with(|| (draw(3) - 1) as i8);
            pack::pack(layout, rows, cols, &codes, &mut bytes).unwrap();
            codes.iter().map(|&code| i64::from(code)).collect()
        }
        _ => {
            codes.fill_with(|| (draw(256) - 128) as i8);
            bytes = codes.iter().map(|&code| code as u8).collect();
            codes
                .iter()
                .map(|&code| i64::from(code))
                .collect::<Vec<i64>>()
        }
    };
    let many = draw(2) == 0;
    let count = if many { rows } else { 1 };
    if !matches!(layout, Layout::Block(_)) {
        scales = (0..count)
            .map(|_| (draw(1000) + 1) as f32 / 512.0)
            .collect();
    }
    // A typical sum comes to about 50.
    let typical = weights
        .iter()
        .map(|w| w.unsigned_abs())
        .max()
        .unwrap_or(0)
        .max(1) as f64
        * 60.0
        * (cols as f64).sqrt();
    let bits = typical.log2() as u8;
    let bias = match draw(3) {
        0 => Vec::new(),
        _ => (0..rows).map(|_| draw(2001) as i32 - 1000).collect(),
    };
    let plain = Plain {
        layout,
        rows,
        cols,
        weights,
        scales,
        bias,
        bias_shift: bits.saturating_sub(9).min(30),
        rescale: (0..count)
            .map(|_| {
                (
                    (1 << 30) + draw(1 << 30) as i32,
                    30 + bits - 6 + draw(2) as u8,
                )
            })
            .collect(),
        relu: draw(2) == 0,
        output_scale: (draw(1000) + 1) as f32 / 256.0,
    };
    (plain, bytes)
}

/// A network of these layouts and widths; the first width is that of the inputs.
fn network(layouts: &[Layout], widths: &[usize], seed: u64) -> (Vec<Plain>, Draft) {
    let mut random = Random::new(seed);
    let mut draft = Draft::default();
    draft.set("general.architecture", "tercet");
    draft.set("tercet.network.version", 1u32);
    draft.set("tercet.network.layers", layouts.len() as u32);
    draft.set("tercet.network.input_scale", 0.5f32);
    let mut layers = Vec::new();
    for (index, &layout) in layouts.iter().enumerate() {
        let (plain, bytes) = layer(layout, widths[index + 1], widths[index], &mut random);
        plain.put(index, bytes, index + 1 == layouts.len(), &mut draft);
        layers.push(plain);
    }
    (layers, draft)
}

fn run<const N: usize>(network: &Network<'_, N>, x: &[i8]) -> Vec<i64> {
    let mut sums = vec![0; network.outputs()];
    // What is there before must not show.
    let mut buffers = Buffers {
        activations: &mut vec![77; network.activations_len()],
        scratch: &mut vec![0xDEAD_BEEF; network.scratch_len()],
    };
    network
        .run(&mut Scalar, I8Sym::new(x).unwrap(), &mut buffers, &mut sums)
        .unwrap();
    sums
}

fn layouts() -> impl Strategy<Value = (Vec<Layout>, Vec<usize>)> {
    let layout = prop::sample::select(vec![
        Layout::Int8,
        Layout::TernaryLanes,
        Layout::FiveTrits,
        Layout::Block(Format::Q8_0),
        Layout::Block(Format::Q4_0),
        Layout::Block(Format::Q2_0),
    ]);
    let one = (layout, 1usize..70);
    (prop::collection::vec(one, 1..6), 1usize..70).prop_map(|(layers, inputs)| {
        let (layouts, outputs): (Vec<Layout>, Vec<usize>) = layers.into_iter().unzip();
        let mut widths = vec![inputs];
        widths.extend(outputs);
        // Blocks want whole blocks of inputs.
        for (width, layout) in widths.iter_mut().zip(&layouts) {
            if let Layout::Block(format) = layout {
                *width = width.next_multiple_of(format.len());
            }
        }
        (layouts, widths)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_network_is_the_chain_of_its_layers((layouts, widths) in layouts(), seed in any::<u64>()) {
        let (layers, draft) = network(&layouts, &widths, seed);
        let file = draft.write();
        let network = Network::<5>::new(&file).unwrap();
        let mut random = Random::new(seed ^ 1);
        for _ in 0..3 {
            let x: Vec<i8> = (0..widths[0]).map(|_| (random.below(255) as i64 - 127) as i8).collect();
            let (last, hidden) = layers.split_last().unwrap();
            let inputs = hidden.iter().fold(x.clone(), |x, layer| layer.outputs(&x));
            let sums = run(&network, &x);
            prop_assert_eq!(&sums, &last.sums(&inputs));

            // As f32 they are what the linear layer gives.
            let head = network.layers().last().unwrap();
            let mut logits = vec![0.0; sums.len()];
            let mut scratch = vec![0; network.scratch_len()];
            let x = I8Sym::new(&inputs).unwrap();
            linear::matvec(head, x, network.last_scale(), &mut logits, &mut scratch).unwrap();
            for (row, (&sum, &logit)) in sums.iter().zip(&logits).enumerate() {
                prop_assert_eq!(network.logit(row, sum).to_bits(), logit.to_bits());
            }
            prop_assert_eq!(network.class(&sums), linear::argmax(&logits));
        }
    }

    #[test]
    fn a_batch_gives_what_its_points_give((layouts, widths) in layouts(), points in 0usize..9, seed in any::<u64>()) {
        let (_, draft) = network(&layouts, &widths, seed);
        let file = draft.write();
        let network = Network::<5>::new(&file).unwrap();
        let mut random = Random::new(seed ^ 2);
        let x: Vec<i8> = (0..points * widths[0]).map(|_| (random.below(255) as i64 - 127) as i8).collect();
        let expected: Vec<i64> = x.chunks(widths[0]).flat_map(|x| run(&network, x)).collect();
        let mut sums = vec![-1; points * network.outputs()];
        // More room than is asked for, and what is there before, must not show.
        for more in [0, 3] {
            let mut buffers = Buffers {
                activations: &mut vec![77; network.activations_len_many(points) + more],
                scratch: &mut vec![0xDEAD_BEEF; network.scratch_len() + more],
            };
            network.run_many(&mut Scalar, I8Sym::new(&x).unwrap(), &mut buffers, &mut sums).unwrap();
            prop_assert_eq!(&sums, &expected);
        }
    }

    #[test]
    fn sizes_known_before_are_those_of_the_file((layouts, widths) in layouts(), seed in any::<u64>()) {
        let (layers, draft) = network(&layouts, &widths, seed);
        let sizes: Vec<LayerSize> = layers.iter().map(|l| LayerSize::new(l.layout, l.rows, l.cols)).collect();
        let file = draft.write();
        let network = Network::<5>::new(&file).unwrap();
        prop_assert_eq!(network.activations_len(), LayerSize::activations_len(&sizes));
        for points in [0, 1, 7, usize::MAX] {
            let many = LayerSize::activations_len_many(&sizes, points);
            prop_assert_eq!(network.activations_len_many(points), many);
            prop_assert_eq!(many, network.activations_len().saturating_mul(points));
        }
        prop_assert_eq!(network.scratch_len(), LayerSize::scratch_len(&sizes));
        prop_assert_eq!(network.fast_scratch_len(), LayerSize::fast_scratch_len(&sizes));
        prop_assert!(network.fast_scratch_len() >= network.scratch_len());
        prop_assert_eq!((network.inputs(), network.outputs()), (widths[0], *widths.last().unwrap()));
    }

    #[test]
    fn damaged_files_are_refused_or_run(seed in any::<u64>(), at in any::<prop::sample::Index>(), bits in 1u8..=255) {
        let (_, draft) = network(&[Layout::TernaryLanes, Layout::Int8], &[16, 9, 3], seed);
        let mut file = draft.write();
        *at.get_mut(&mut file) ^= bits;
        if let Ok(network) = Network::<3>::new(&file) {
            run(&network, &vec![1; network.inputs()]);
        }
        let _ = Network::<3>::new(&file[..at.index(file.len())]);
    }
}

#[test]
fn weights_are_borrowed_from_the_file() {
    let (_, draft) = network(&[Layout::TernaryLanes, Layout::Int8], &[64, 16, 4], 3);
    let file = draft.write();
    let network = Network::<2>::new(&file).unwrap();
    let within = file.as_ptr_range();
    for layer in network.layers() {
        let bytes = layer.weights().bytes().as_ptr_range();
        assert!(within.contains(&bytes.start) && bytes.end <= within.end);
    }
}

#[test]
fn too_little_memory_is_refused_with_what_is_needed() {
    let (_, draft) = network(
        &[Layout::Int8, Layout::TernaryLanes, Layout::Int8],
        &[8, 7, 5, 3],
        4,
    );
    let file = draft.write();
    let network = Network::<3>::new(&file).unwrap();
    assert_eq!((network.activations_len(), network.scratch_len()), (12, 33));
    let x = [1; 8];
    let refused = |activations: usize, scratch: usize, inputs: usize, outputs: usize| {
        let mut buffers = Buffers {
            activations: &mut vec![0; activations],
            scratch: &mut vec![0; scratch],
        };
        let x = I8Sym::new(&x[..inputs]).unwrap();
        network.run(&mut Scalar, x, &mut buffers, &mut vec![0; outputs])
    };
    let length = |expected, found| Err(LinearError::Length { expected, found });
    assert_eq!(refused(12, 33, 8, 3), Ok(()));
    assert_eq!(refused(11, 33, 8, 3), length(12, 11));
    assert_eq!(
        refused(12, 32, 8, 3),
        Err(LinearError::Scratch {
            needed: 33,
            found: 32
        })
    );
    assert_eq!(refused(12, 33, 7, 3), length(8, 7));
    assert_eq!(refused(12, 33, 8, 4), length(3, 4));
}

/// An engine that counts its layers, so that it shows where a refusal came before the first.
#[derive(Default)]
struct Counted(usize);

impl LinearEngine for Counted {
    type Error = LinearError;

    fn sums(
        &mut self,
        layer: &Layer<'_>,
        x: I8Sym<'_>,
        out: &mut [i64],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        self.0 += 1;
        Scalar.sums(layer, x, out, scratch)
    }

    fn matvec(
        &mut self,
        _: &Layer<'_>,
        _: I8Sym<'_>,
        _: f32,
        _: &mut [f32],
        _: &mut [u32],
    ) -> Result<(), LinearError> {
        unreachable!("networks have no products in f32")
    }

    fn dense(
        &mut self,
        layer: &Layer<'_>,
        rescale: &Rescale<'_>,
        x: I8Sym<'_>,
        out: &mut [i8],
        scratch: &mut [u32],
    ) -> Result<(), LinearError> {
        self.0 += 1;
        Scalar.dense(layer, rescale, x, out, scratch)
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_before_the_first_layer() {
    let (_, draft) = network(
        &[Layout::Int8, Layout::TernaryLanes, Layout::Int8],
        &[8, 7, 5, 3],
        4,
    );
    let file = draft.write();
    let network = Network::<3>::new(&file).unwrap();
    let x = [1; 32];
    let run = |activations: usize, scratch: usize, inputs: usize, outputs: usize| {
        let mut buffers = Buffers {
            activations: &mut vec![0; activations],
            scratch: &mut vec![0; scratch],
        };
        let x = I8Sym::new(&x[..inputs]).unwrap();
        let mut engine = Counted::default();
        let done = network.run_many(&mut engine, x, &mut buffers, &mut vec![0; outputs]);
        (done, engine.0)
    };
    let length = |expected, found| (Err(LinearError::Length { expected, found }), 0);
    // Three layers of three points, and of none.
    assert_eq!(run(36, 33, 24, 9), (Ok(()), 9));
    assert_eq!(run(0, 33, 0, 0), (Ok(()), 0));
    assert_eq!(run(35, 33, 24, 9), length(36, 35));
    assert_eq!(run(36, 33, 23, 9), length(24, 23));
    assert_eq!(run(36, 33, 25, 9), length(32, 25));
    assert_eq!(run(36, 33, 24, 10), length(9, 10));
    assert_eq!(run(36, 33, 24, 8), length(9, 8));
    let (needed, found) = (33, 32);
    let short = LinearError::Scratch { needed, found };
    assert_eq!(run(36, 32, 24, 9), (Err(short), 0));
    assert_eq!(run(0, 32, 0, 0), (Err(short), 0));
}

#[test]
fn inputs_round_half_to_even_and_saturate() {
    let (_, draft) = network(&[Layout::Int8], &[6, 1], 5);
    let file = draft.write();
    let network = Network::<1>::new(&file).unwrap();
    let mut codes = [0; 6];
    // The scale is 0.5.
    let x = network.quantize(&[0.25, 0.75, -0.25, 1e30, -1e30, -64.0], &mut codes);
    assert_eq!(x.unwrap().get(), [0, 2, 0, 127, -127, -127]);
    let values = [0.0, f32::NAN, 0.0, f32::INFINITY, 0.0, 0.0];
    assert_eq!(
        network.quantize(&values, &mut codes),
        Err(NetworkError::NotFinite { index: 1 })
    );
    let short = NetworkError::Input {
        expected: 6,
        found: 5,
    };
    assert_eq!(network.quantize(&values[..5], &mut codes), Err(short));
    assert_eq!(network.quantize(&values, &mut codes[..5]), Err(short));
}

#[test]
fn equal_logits_give_the_lowest_row() {
    let (_, mut draft) = network(&[Layout::Int8], &[1, 3], 6);
    draft.tensor("network.0.weight", &[1, 3], TensorType::I8, vec![1, 2, 1]);
    draft.tensor(
        "network.0.scale",
        &[3],
        TensorType::F32,
        [2f32, 1.0, 1.0].map(f32::to_le_bytes).concat(),
    );
    draft.drop_tensor("network.0.bias");
    let file = draft.write();
    let network = Network::<1>::new(&file).unwrap();
    let sums = run(&network, &[10]);
    // The sums differ, what they stand for does not.
    assert_eq!(sums, [10, 20, 10]);
    assert_eq!(network.class(&sums), 0);
}

/// What each damage is refused with, in words.
#[test]
fn every_damage_is_named_with_its_layer() {
    let (_, good) = network(
        &[
            Layout::TernaryLanes,
            Layout::Int8,
            Layout::Block(Format::Q8_0),
        ],
        &[16, 9, 32, 3],
        7,
    );
    assert!(Network::<3>::new(&good.write()).is_ok());
    type Damage = fn(&mut Draft);
    let cases: [(Damage, &str); 33] = [
        (
            |d| d.drop_key("tercet.network.version"),
            "tercet.network.version is missing or not the u32 1",
        ),
        (
            |d| d.set("tercet.network.version", 2u32),
            "tercet.network.version is missing or not the u32 1",
        ),
        (
            |d| d.drop_key("tercet.network.layers"),
            "tercet.network.layers is missing or not a u32",
        ),
        (
            |d| d.set("tercet.network.layers", 0u32),
            "the file has 0 layers; 1 to 3 fit",
        ),
        (
            |d| d.set("tercet.network.layers", u32::MAX),
            "the file has 4294967295 layers; 1 to 3 fit",
        ),
        (
            |d| d.set("tercet.network.input_scale", 0f32),
            "tercet.network.input_scale is missing or not a positive finite f32",
        ),
        (
            |d| d.set("tercet.network.input_scale", f32::NAN),
            "tercet.network.input_scale is missing or not a positive finite f32",
        ),
        (
            |d| d.set("tercet.network.input_scale", 1u32),
            "tercet.network.input_scale is missing or not a positive finite f32",
        ),
        (
            |d| d.drop_key("tercet.network.0.layout"),
            "tercet.network.0.layout is missing or not the name of a layout",
        ),
        (
            |d| d.set("tercet.network.1.layout", "int9"),
            "tercet.network.1.layout is missing or not the name of a layout",
        ),
        (
            |d| d.set("tercet.network.1.rows", 0u32),
            "tercet.network.1.rows is missing or not a u32 of at least 1",
        ),
        (
            |d| d.set("tercet.network.1.cols", 8u64),
            "tercet.network.1.cols is missing or not a u32 of at least 1",
        ),
        (
            |d| d.set("tercet.network.0.bias_shift", 31u32),
            "layer 0: a bias shifted by 31 bits could leave 64; at most 30 are taken",
        ),
        (
            |d| d.set("tercet.network.0.bias_shift", 300u32),
            "tercet.network.0.bias_shift is missing or not a u32 of at most 30",
        ),
        (
            |d| d.set("tercet.network.0.activation", "gelu"),
            "tercet.network.0.activation is missing or not `none` or `relu`",
        ),
        (
            |d| d.set("tercet.network.1.output_scale", -1f32),
            "tercet.network.1.output_scale is missing or not a positive finite f32",
        ),
        (
            |d| d.drop_tensor("network.0.weight"),
            "tensor network.0.weight is missing or not I8, the layout's bytes",
        ),
        (
            |d| d.tensor("network.0.weight", &[128], TensorType::I8, vec![0x11; 128]),
            "layer 0: buffer holds 128 elements where 256 are needed",
        ),
        (
            |d| {
                d.tensor(
                    "network.0.weight",
                    &[16, 16],
                    TensorType::I8,
                    vec![0x11; 256],
                )
            },
            "tensor network.0.weight is missing or not I8, the layout's bytes",
        ),
        (
            |d| d.tensor("network.0.weight", &[256], TensorType::I8, vec![0xFF; 256]),
            "layer 0: row 0, column 0 is no code of the layout",
        ),
        (
            |d| d.tensor("network.1.weight", &[32, 9], TensorType::I8, vec![0; 288]),
            "tensor network.1.weight is missing or not I8, rows by cols",
        ),
        (
            |d| d.tensor("network.1.weight", &[9, 32], TensorType::F16, vec![0; 576]),
            "tensor network.1.weight is missing or not I8, rows by cols",
        ),
        (
            |d| d.tensor("network.2.weight", &[32, 3], TensorType::Q4_0, vec![0; 54]),
            "tensor network.2.weight is missing or not of the layout's type, rows by cols",
        ),
        (
            |d| {
                d.tensor(
                    "network.2.weight",
                    &[32, 3],
                    TensorType::Q8_0,
                    vec![0xFF; 102],
                )
            },
            "layer 2: row 0 has a scale that is not finite",
        ),
        (
            |d| d.drop_tensor("network.1.scale"),
            "tensor network.1.scale is missing or not F32, one for all rows or one a row",
        ),
        (
            |d| d.tensor("network.1.scale", &[2], TensorType::F32, vec![0; 8]),
            "tensor network.1.scale is missing or not F32, one for all rows or one a row",
        ),
        (
            |d| d.tensor("network.1.scale", &[1], TensorType::F32, vec![0xFF; 4]),
            "layer 1: row 0 has a scale that is not finite",
        ),
        (
            |d| d.tensor("network.2.scale", &[1], TensorType::F32, vec![0; 4]),
            "tensor network.2.scale has no place in this layer",
        ),
        (
            |d| d.tensor("network.0.bias", &[8], TensorType::I32, vec![0; 32]),
            "tensor network.0.bias is missing or not I32, one a row",
        ),
        (
            |d| d.tensor("network.0.bias", &[9], TensorType::F32, vec![0; 36]),
            "tensor network.0.bias is missing or not I32, one a row",
        ),
        (
            |d| d.drop_tensor("network.1.multiplier"),
            "tensor network.1.multiplier is missing or not I32, one for all rows or one a row",
        ),
        (
            |d| d.drop_tensor("network.0.shift"),
            "tensor network.0.shift is missing or not I8, one for all rows or one a row",
        ),
        (
            |d| d.tensor("network.2.shift", &[1], TensorType::I8, vec![40]),
            "tensor network.2.shift has no place in this layer",
        ),
    ];
    for (damage, message) in cases {
        let mut draft = good.clone();
        damage(&mut draft);
        let file = draft.write();
        let error = Network::<3>::new(&file).map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let file = good.write();
    assert_eq!(
        Network::<2>::new(&file).map(|_| ()),
        Err(NetworkError::Layers { found: 3, max: 2 })
    );
    assert!(matches!(
        Network::<3>::new(&file[..100]),
        Err(NetworkError::File { .. })
    ));
}

#[test]
fn multipliers_and_shifts_out_of_range_are_named_with_their_row() {
    let (_, good) = network(&[Layout::Int8, Layout::Int8], &[4, 3, 2], 8);
    let one = 1i32 << 30;
    let cases = [
        (
            [one, one, one - 1],
            [31, 31, 31],
            LinearError::Multiplier { row: 2 },
        ),
        (
            [one, -one, one],
            [31, 31, 31],
            LinearError::Multiplier { row: 1 },
        ),
        ([one; 3], [31, 0, 31], LinearError::Shift { row: 1 }),
        ([one; 3], [95, 31, 31], LinearError::Shift { row: 0 }),
        ([one; 3], [31, 31, 0xFF], LinearError::Shift { row: 2 }),
    ];
    for (multipliers, shifts, error) in cases {
        let mut draft = good.clone();
        let bytes = multipliers.iter().flat_map(|m| m.to_le_bytes()).collect();
        draft.tensor("network.0.multiplier", &[3], TensorType::I32, bytes);
        draft.tensor("network.0.shift", &[3], TensorType::I8, shifts.to_vec());
        let found = Network::<2>::new(&draft.write()).map(|_| ());
        assert_eq!(found, Err(NetworkError::Layer { layer: 0, error }));
    }
}

#[test]
fn widths_that_do_not_meet_are_named() {
    let (_, mut draft) = network(&[Layout::Int8, Layout::Int8], &[4, 3, 2], 9);
    draft.tensor("network.1.weight", &[5, 2], TensorType::I8, vec![0; 10]);
    draft.set("tercet.network.1.cols", 5u32);
    let file = draft.write();
    let error = NetworkError::Width {
        layer: 1,
        expected: 3,
        found: 5,
    };
    assert_eq!(Network::<2>::new(&file).map(|_| ()), Err(error));
    assert_eq!(
        error.to_string(),
        "layer 1 takes 5 inputs; the layer before gives 3"
    );
}
