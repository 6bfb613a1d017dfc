//! The CSV reader: any bytes end in an error or in points that are finite, whole and fit an int8 grid.

#![no_main]

use std::cell::RefCell;
use std::io::{Seek, SeekFrom, Write};

use libfuzzer_sys::fuzz_target;
use tempfile::NamedTempFile;
use tercet_core::quant::calibrate::{RangeRule, Scheme};
use tercet_host::points::{Points, ReadOptions};

thread_local! {
    static FILE: RefCell<NamedTempFile> =
        RefCell::new(tempfile::Builder::new().suffix(".csv").tempfile().expect("a temporary file"));
}

fuzz_target!(|bytes: &[u8]| {
    FILE.with_borrow_mut(|file| {
        file.as_file_mut().set_len(0).expect("the file shrinks");
        file.seek(SeekFrom::Start(0)).expect("the file rewinds");
        file.write_all(bytes).expect("the file is written");
        let spec = file.path().to_str().expect("a plain name").to_owned();
        let Ok(points) = Points::open(&spec, &ReadOptions::default()) else {
            return;
        };
        let values = points.to_f32();
        assert_eq!(values.len(), points.rows() * points.dims());
        assert!(values.iter().all(|value| value.is_finite()));
        let codes = points
            .to_codes(RangeRule::MinMax, Scheme::Affine)
            .expect("finite values have a grid");
        assert_eq!(codes.codes.len(), values.len());
    });
});
