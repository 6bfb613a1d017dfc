//! The loops, compiled for a set.

/// Defines a function for each loop, and the tables of them: `$set` is the set's value, `$features` the features that
/// the compiler may use.
macro_rules! kernels {
    ($set:ty, $features:literal) => {
        /// The kernels of quantizers, except those that widen.
        pub(in crate::simd) const LOOPS: crate::simd::quantize::Quantize =
            crate::simd::quantize::Quantize {
                f32: floats(),
                f16: floats(),
                bf16: floats(),
                stream,
                dequantize,
                dequantize_fp8,
                decode_row,
                decode_groups,
                has_three,
                norm_a8: norm_row,
                norm_a16: norm_row,
                ..crate::simd::quantize::SCALAR
            };

        const fn floats<T: crate::simd::quantize::lanes::Value>()
        -> crate::simd::quantize::Floats<T> {
            crate::simd::quantize::Floats {
                stats: stats::<T>,
                extremes: extremes::<T>,
                ternary: ternary::<T>,
                affine: affine::<T>,
                affine_and_next: affine_and_next::<T>,
                magnitudes: magnitudes::<T>,
                read_magnitudes: read_magnitudes::<T>,
                count: count::<T>,
                pack_rows: pack_rows::<T>,
                fp8: quantize_fp8::<T>,
            }
        }

        #[target_feature(enable = $features)]
        fn stats<T: crate::simd::quantize::lanes::Value>(
            values: &[T],
            ahead: crate::simd::Ahead,
        ) -> tercet_core::number::Stats {
            crate::simd::quantize::stats::stats::<$set, T, true>(<$set>::here(), values, ahead)
        }

        #[target_feature(enable = $features)]
        fn extremes<T: crate::simd::quantize::lanes::Value>(
            values: &[T],
            ahead: crate::simd::Ahead,
        ) -> tercet_core::number::Stats {
            crate::simd::quantize::stats::stats::<$set, T, false>(<$set>::here(), values, ahead)
        }

        #[target_feature(enable = $features)]
        fn ternary<T: crate::simd::quantize::lanes::Value>(
            values: &[T],
            threshold: u32,
            sum: bool,
            codes: &mut [i8],
            stores: crate::simd::Stores,
            ahead: crate::simd::Ahead,
        ) -> Result<tercet_core::quant::Applied, tercet_core::quant::QuantError> {
            use crate::simd::quantize::ternary::ternary;
            ternary::<$set, T>(<$set>::here(), values, threshold, sum, codes, stores, ahead)
        }

        #[target_feature(enable = $features)]
        fn affine<T: crate::simd::quantize::lanes::Value>(
            values: &[T],
            grid: &Grid,
            codes: &mut [i8],
            stores: crate::simd::Stores,
            ahead: crate::simd::Ahead,
        ) -> Result<tercet_core::quant::Applied, tercet_core::quant::QuantError> {
            use crate::simd::quantize::affine::affine;
            affine::<$set, T>(<$set>::here(), values, grid, codes, stores, ahead)
        }

        #[target_feature(enable = $features)]
        fn affine_and_next<T: crate::simd::quantize::lanes::Value>(
            values: &[T],
            grid: &Grid,
            codes: &mut [i8],
            next: &[T],
            ahead: crate::simd::Ahead,
        ) -> Option<(tercet_core::quant::Applied, tercet_core::number::Stats)> {
            use crate::simd::quantize::affine::affine_and_next;
            affine_and_next::<$set, T>(<$set>::here(), values, grid, codes, next, ahead)
        }

        #[target_feature(enable = $features)]
        fn magnitudes<T: crate::simd::quantize::lanes::Value>(
            values: &[T],
            span: tercet_core::engine::MagnitudeSpan,
            bins: &mut [tercet_core::engine::MagnitudeBin],
        ) {
            crate::simd::magnitudes::count(values, span, bins);
        }

        #[target_feature(enable = $features)]
        fn read_magnitudes<T: crate::simd::quantize::lanes::Value>(values: &[T], out: &mut [u32]) {
            crate::simd::magnitudes::read(values, out);
        }

        #[target_feature(enable = $features)]
        fn count<T: crate::simd::quantize::lanes::Value>(
            values: &[T],
            tables: &mut crate::simd::counts::Tables,
        ) {
            crate::simd::quantize::count::count::<$set, T>(<$set>::here(), values, tables)
        }

        #[target_feature(enable = $features)]
        fn pack_rows<T: crate::simd::quantize::lanes::Value>(
            rows: [&[T]; 4],
            threshold: u32,
            out: &mut [u8],
        ) {
            crate::simd::quantize::two_bits::pack_rows::<$set, T>(<$set>::here(), rows, threshold, out)
        }

        #[target_feature(enable = $features)]
        fn quantize_fp8<T: crate::simd::quantize::lanes::Value>(
            format: tercet_core::quant::fp8::Fp8,
            scale: f32,
            values: &[T],
            codes: &mut [u8],
            stores: crate::simd::Stores,
            ahead: crate::simd::Ahead,
        ) -> bool {
            use crate::simd::quantize::fp8::quantize;
            quantize::<$set, T>(<$set>::here(), format, scale, values, codes, stores, ahead)
        }

        #[target_feature(enable = $features)]
        fn dequantize_fp8(
            format: tercet_core::quant::fp8::Fp8,
            scale: f32,
            codes: &[u8],
            out: &mut [f32],
        ) {
            crate::simd::quantize::fp8::dequantize(format, scale, codes, out);
        }

        #[target_feature(enable = $features)]
        fn decode_row(bytes: &[u8], shift: u32, unit: f32, out: &mut [f32]) {
            crate::simd::quantize::two_bits::decode_row::<$set>(<$set>::here(), bytes, shift, unit, out)
        }

        #[target_feature(enable = $features)]
        fn decode_groups(
            lane: usize,
            bytes: &[u8],
            unit: f32,
            out: &mut [f32],
        ) {
            crate::simd::quantize::two_bits::decode_groups::<$set>(<$set>::here(), lane, bytes, unit, out)
        }

        #[target_feature(enable = $features)]
        fn has_three(bytes: &[u8], places: u8) -> bool {
            crate::simd::quantize::two_bits::has_three(bytes, places)
        }

        #[target_feature(enable = $features)]
        fn norm_row<C: tercet_core::quant::activations::Code>(
            x: &[f32],
            norm: Option<tercet_core::quant::activations::Norm<'_>>,
            codes: &mut [C],
        ) -> f32 {
            tercet_core::quant::activations::row(x, norm, codes)
        }

        #[target_feature(enable = $features)]
        fn stream(
            from: &[crate::simd::stores::Line],
            to: &mut [crate::simd::stores::Line],
        ) {
            crate::simd::quantize::stream::stream::<$set>(<$set>::here(), from, to)
        }

        #[target_feature(enable = $features)]
        fn dequantize(
            codes: &[i8],
            zero_point: i8,
            scale: f32,
            out: &mut [f32],
            stores: crate::simd::Stores,
        ) {
            use crate::simd::quantize::dequantize::dequantize;
            dequantize::<$set>(<$set>::here(), codes, zero_point, scale, out, stores)
        }
    };
}

pub(in crate::simd) use kernels;
