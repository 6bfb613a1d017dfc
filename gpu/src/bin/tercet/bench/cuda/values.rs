//! Quantizing and dequantizing of tensors and blocks on the device.

use std::hash::Hash;

use tercet_core::block::Format;
use tercet_core::engine::MagnitudeBin;
use tercet_core::number::Element;
use tercet_core::palette::Palette;
use tercet_core::quant::activations::{Code, Norm};
use tercet_core::quant::fp8::Fp8;
use tercet_core::quant::{Codes, Groups, HOST_BITS, Histogram, Method, Rule, ScaleRule};
use tercet_gpu::engine::{Cuda, CudaError};
use tercet_host::measure::{Bits, Task};

use super::Clock;

pub(super) fn quantize<T: Element>(
    cuda: &mut Cuda,
    clock: &mut Clock,
    values: &[T],
    groups: Groups,
    method: Method,
) -> Result<u64, CudaError> {
    let values = cuda.upload(values)?;
    let mut out = cuda.codes(groups, true)?;
    let mut bins = vec![MagnitudeBin::EMPTY; Task::BINS];
    let mut work = |cuda: &mut Cuda| {
        cuda.quantize(&values, method, &mut bins, &mut out)
            .map(|_| ())
    };
    work(cuda)?;
    clock.time(|| work(cuda))?;
    let (mut codes, mut scales) = (vec![0; values.len()], vec![0.0; groups.count]);
    let mut zero_points = vec![0; groups.count];
    cuda.read(out.codes(), &mut codes)?;
    cuda.read(out.scales(), &mut scales)?;
    if let Some(points) = out.zero_points() {
        cuda.read(points, &mut zero_points)?;
    }
    let bits = Bits::default().with(&codes).with(&zero_points);
    Ok(bits.with_floats(&scales).finish())
}

pub(super) fn norm_quantize<C: Code + Default + Hash>(
    cuda: &mut Cuda,
    clock: &mut Clock,
    values: &[f32],
    norm: Norm<'_>,
) -> Result<u64, CudaError> {
    let rows = values.len() / norm.gains.len().max(1);
    let (values, gains) = (cuda.upload(values)?, cuda.upload(norm.gains)?);
    let (mut out, mut scales) = (cuda.zeros::<C>(values.len())?, cuda.zeros(rows)?);
    let norm = Some((&gains, norm.eps));
    cuda.norm_quantize_resident(&values, norm, &mut out, &mut scales)?;
    clock.time(|| cuda.norm_quantize_resident(&values, norm, &mut out, &mut scales))?;
    let (mut codes, mut factors) = (vec![C::default(); values.len()], vec![0.0; rows]);
    cuda.read(&out, &mut codes)?;
    cuda.read(&scales, &mut factors)?;
    Ok(Bits::default().with(&codes).with_floats(&factors).finish())
}

pub(super) fn dequantize(
    cuda: &mut Cuda,
    clock: &mut Clock,
    codes: &Codes<'_>,
) -> Result<u64, CudaError> {
    let there = cuda.upload_codes(codes)?;
    let count = codes.codes.len();
    let mut out = cuda.zeros::<f32>(count)?;
    cuda.dequantize(&there, &mut out)?;
    clock.time(|| cuda.dequantize(&there, &mut out))?;
    let mut values = vec![0.0; count];
    cuda.read(&out, &mut values)?;
    Ok(Bits::default().with_floats(&values).finish())
}

pub(super) fn encode(
    cuda: &mut Cuda,
    clock: &mut Clock,
    values: &[f32],
    format: Format,
    rule: Rule,
) -> Result<u64, CudaError> {
    let values = cuda.upload(values)?;
    let mut out = cuda.blocks(format, values.len())?;
    let mut work = |cuda: &mut Cuda| {
        let encoded = cuda.encode_resident(&values, rule, ScaleRule::Rule, &mut out);
        encoded.map(|_| ())
    };
    work(cuda)?;
    clock.time(|| work(cuda))?;
    let mut bytes = vec![0; out.bytes().len()];
    cuda.read(out.bytes(), &mut bytes)?;
    Ok(Bits::default().with(&bytes).finish())
}

pub(super) fn decode(
    cuda: &mut Cuda,
    clock: &mut Clock,
    bytes: &[u8],
    values: usize,
    format: Format,
) -> Result<u64, CudaError> {
    let mut blocks = cuda.blocks(format, values)?;
    cuda.write(bytes, blocks.bytes_mut())?;
    let mut out = cuda.zeros::<f32>(values)?;
    cuda.decode_resident(&blocks, &mut out)?;
    clock.time(|| cuda.decode_resident(&blocks, &mut out))?;
    let mut restored = vec![0.0; values];
    cuda.read(&out, &mut restored)?;
    Ok(Bits::default().with_floats(&restored).finish())
}

pub(super) fn dot(
    cuda: &mut Cuda,
    clock: &mut Clock,
    (bytes, format): (&[u8], Format),
    x: &[i8],
    x_scale: f32,
) -> Result<u64, CudaError> {
    let mut blocks = cuda.blocks(format, x.len())?;
    cuda.write(bytes, blocks.bytes_mut())?;
    let x = cuda.upload(x)?;
    let product = cuda.dot_resident(&blocks, &x, x_scale)?;
    clock.time(|| cuda.dot_resident(&blocks, &x, x_scale).map(|_| ()))?;
    Ok(Bits::default().with_floats(&[product]).finish())
}

pub(super) fn mean(cuda: &mut Cuda, clock: &mut Clock, values: &[f32]) -> Result<u64, CudaError> {
    let values = cuda.upload(values)?;
    let mean = cuda.stats(&values)?.abs_mean();
    clock.time(|| cuda.stats(&values).map(|_| ()))?;
    Ok(Bits::default().with_floats(mean.as_slice()).finish())
}

pub(super) fn histogram(
    cuda: &mut Cuda,
    clock: &mut Clock,
    values: &[f32],
) -> Result<u64, CudaError> {
    let values = cuda.upload(values)?;
    let mut buckets = vec![0; Histogram::<HOST_BITS>::BUCKETS];
    let mut work = |cuda: &mut Cuda| {
        let mut histogram = Histogram::<HOST_BITS>::new(&mut buckets)?;
        cuda.histogram_of(&values, &mut histogram)
    };
    work(cuda)?;
    clock.time(|| work(cuda))?;
    Ok(Bits::default().with(&buckets).finish())
}

pub(super) fn quantize_fp8(
    cuda: &mut Cuda,
    clock: &mut Clock,
    values: &[f32],
    (format, scale): (Fp8, f32),
) -> Result<u64, CudaError> {
    let values = cuda.upload(values)?;
    let mut out = cuda.zeros::<u8>(values.len())?;
    cuda.quantize_resident_fp8(format, scale, &values, &mut out)?;
    clock.time(|| cuda.quantize_resident_fp8(format, scale, &values, &mut out))?;
    let mut codes = vec![0; values.len()];
    cuda.read(&out, &mut codes)?;
    Ok(Bits::default().with(&codes).finish())
}

pub(super) fn dequantize_fp8(
    cuda: &mut Cuda,
    clock: &mut Clock,
    codes: &[u8],
    (format, scale): (Fp8, f32),
) -> Result<u64, CudaError> {
    let codes = cuda.upload(codes)?;
    let mut out = cuda.zeros::<f32>(codes.len())?;
    cuda.dequantize_resident_fp8(format, scale, &codes, &mut out)?;
    clock.time(|| cuda.dequantize_resident_fp8(format, scale, &codes, &mut out))?;
    let mut values = vec![0.0; codes.len()];
    cuda.read(&out, &mut values)?;
    Ok(Bits::default().with_floats(&values).finish())
}

pub(super) fn palette_decode(
    cuda: &mut Cuda,
    clock: &mut Clock,
    palette: &Palette<'_>,
) -> Result<u64, CudaError> {
    let there = cuda.palette(palette)?;
    let mut values = vec![0.0; palette.layout.rows() * palette.layout.cols()];
    let mut out = cuda.zeros::<f32>(values.len())?;
    cuda.decode_resident_palette(&there, &mut out)?;
    clock.time(|| cuda.decode_resident_palette(&there, &mut out))?;
    cuda.read(&out, &mut values)?;
    Ok(Bits::default().with_floats(&values).finish())
}

pub(super) fn palette_matvec(
    cuda: &mut Cuda,
    clock: &mut Clock,
    palette: &Palette<'_>,
    (x, x_scale): (&[i8], f32),
) -> Result<u64, CudaError> {
    let there = cuda.palette(palette)?;
    let x = cuda.palette_activations(x)?;
    let mut y = vec![0.0; palette.layout.rows()];
    let mut out = cuda.zeros::<f32>(y.len())?;
    cuda.multiply_resident_palette(&there, &x, x_scale, &mut out)?;
    clock.time(|| cuda.multiply_resident_palette(&there, &x, x_scale, &mut out))?;
    cuda.read(&out, &mut y)?;
    Ok(Bits::default().with_floats(&y).finish())
}
