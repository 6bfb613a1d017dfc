//! Writes arrays to files that NumPy reads.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A NumPy type.
pub trait Value: Copy {
    /// Its name in NumPy files, such as `<f4`.
    const DESCR: &'static str;
    /// Writes the value, little-endian.
    fn write(self, out: &mut impl Write) -> io::Result<()>;
}

macro_rules! values {
    ($($type:ty, $descr:literal;)*) => {$(
        impl Value for $type {
            const DESCR: &'static str = $descr;
            fn write(self, out: &mut impl Write) -> io::Result<()> {
                out.write_all(&self.to_le_bytes())
            }
        }
    )*};
}

values! {
    f32, "<f4";
    i8, "|i1";
    u32, "<u4";
}

/// Writes an array, row-major, in version 1.0 of the format.
///
/// # Errors
/// The file cannot be written.
///
/// # Panics
/// If the shape's size is not the number of values.
pub fn write<T: Value>(path: &Path, values: &[T], shape: &[usize]) -> io::Result<()> {
    assert_eq!(shape.iter().product::<usize>(), values.len());
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    out.write_all(&header(T::DESCR, shape))?;
    for value in values {
        value.write(&mut out)?;
    }
    out.flush()
}

/// Returns magic, version, and a dictionary padded with spaces to a multiple of 64 bytes in total.
fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let shape: String = shape.iter().map(|len| format!("{len}, ")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let prefix = 10;
    let len = (prefix + text.len() + 1).next_multiple_of(64) - prefix;
    text += &" ".repeat(len - text.len() - 1);
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((len as u16).to_le_bytes());
    header.extend(text.into_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use tercet_host::points::{Points, ReadOptions};

    #[test]
    fn the_host_s_reader_reads_what_was_written() {
        let path = std::env::temp_dir().join(format!("tercet-npy-{}.npy", std::process::id()));
        let values: Vec<f32> = (0..12).map(|x| x as f32 / 4.0).collect();
        write(&path, &values, &[4, 3]).unwrap();
        let points = Points::open(&path.to_string_lossy(), &ReadOptions::default());
        std::fs::remove_file(&path).unwrap();
        let points = points.unwrap();
        assert_eq!((points.rows(), points.dims()), (4, 3));
        assert_eq!(points.to_f32()[..], values[..]);
    }
}
