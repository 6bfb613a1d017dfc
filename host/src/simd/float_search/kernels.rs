//! The loops, compiled for a set.

/// Defines a function for each loop, and the table of them: `$set` is the set's value, `$features` the features that
/// the compiler may use. The sums of `$rows` rows fit the registers side by side, with all lanes in `$parts` vectors;
/// for products in f64, those of `$wide_rows` rows with `$wide` vectors in each of `$passes`; with norms, of one row.
macro_rules! float_kernels {
    (
        $set:ty, $features:literal,
        sums: $parts:literal of $rows:literal,
        products: $wide:literal x $passes:literal of $wide_rows:literal,
        norms: $norms:literal x $norm_passes:literal
    ) => {
        use $crate::simd::float_search::lanes::Row;
        use $crate::simd::float_search::{FloatSearch, Kernels, Sums, sums, wide};

        /// The kernels of float search.
        pub(in crate::simd) const KERNELS: FloatSearch = FloatSearch {
            f32: kernels(),
            f16: kernels(),
            bf16: kernels(),
        };

        /// Returns the kernels for rows of a type.
        const fn kernels<T: Row>() -> Kernels<T> {
            Kernels {
                dots: dots::<T>,
                distances: distances::<T>,
                products: products::<T>,
                products_and_norms: products_and_norms::<T>,
            }
        }

        #[target_feature(enable = $features)]
        fn dots<T: Row>(query: &[f32], rows: &[T], out: &mut Sums) {
            sums::sums::<$set, T, $parts, $rows, false>(<$set>::here(), query, rows, out)
        }

        #[target_feature(enable = $features)]
        fn distances<T: Row>(query: &[f32], rows: &[T], out: &mut Sums) {
            sums::sums::<$set, T, $parts, $rows, true>(<$set>::here(), query, rows, out)
        }

        #[target_feature(enable = $features)]
        fn products<T: Row>(query: &[f32], rows: &[T], out: &mut Sums) {
            wide::products::<$set, T, $wide, $passes, $wide_rows>(<$set>::here(), query, rows, out)
        }

        #[target_feature(enable = $features)]
        fn products_and_norms<T: Row>(query: &[f32], rows: &[T], out: &mut Sums, norms: &mut Sums) {
            wide::products_and_norms::<$set, T, $norms, $norm_passes>(
                <$set>::here(),
                query,
                rows,
                out,
                norms,
            )
        }
    };
}
pub(in crate::simd) use float_kernels;
