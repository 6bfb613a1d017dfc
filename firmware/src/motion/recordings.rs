//! Recordings as the sensor's registers held them: what boards in an emulator replay.

use super::{AXES, Activity, Sample};

/// Bytes of a sample.
const SAMPLE: usize = 2 * AXES;

/// Samples in each recording of a file.
const LENGTH: usize = 100;

/// One recording: bytes of an npy file, two a value, little-endian.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recording<'a> {
    bytes: &'a [u8],
}

impl<'a> Recording<'a> {
    /// Samples in a row, 12 bytes each.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Samples.
    pub const fn len(&self) -> usize {
        self.bytes.len() / SAMPLE
    }

    /// Whether there is no sample.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A sample.
    pub fn get(&self, index: usize) -> Option<Sample> {
        let start = index.checked_mul(SAMPLE)?;
        let bytes = self.bytes.get(start..)?.first_chunk::<SAMPLE>()?;
        let (values, _) = bytes.as_chunks::<2>();
        let mut sample = [0; AXES];
        for (value, &bytes) in sample.iter_mut().zip(values) {
            *value = i16::from_le_bytes(bytes);
        }
        Some(sample)
    }
}

/// Recordings of [`Recordings::LENGTH`] samples and what they are of.
#[derive(Clone, Copy, Debug)]
pub struct Recordings<'a> {
    samples: &'a [u8],
    labels: &'a [u8],
}

impl<'a> Recordings<'a> {
    /// Samples in each recording.
    pub const LENGTH: usize = LENGTH;

    /// Two npy files: i16 of shape (recordings, 100, 6), u8 of shape (recordings). `count` is how many recordings they have; an
    /// npy file ends in its data.
    pub fn new(samples: &'a [u8], labels: &'a [u8], count: usize) -> Self {
        let tail = |bytes: &'a [u8], len: usize| {
            let start = bytes.len().saturating_sub(len);
            bytes.get(start..).unwrap_or_default()
        };
        Self {
            samples: tail(samples, count * LENGTH * SAMPLE),
            labels: tail(labels, count),
        }
    }

    /// Recordings.
    pub const fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A recording and what was done while it was made.
    pub fn get(&self, number: usize) -> Option<(Recording<'a>, Activity)> {
        let bytes = self.samples.get(number * LENGTH * SAMPLE..)?;
        let bytes = bytes.get(..LENGTH * SAMPLE)?;
        let label = usize::from(*self.labels.get(number)?);
        Some((Recording::new(bytes), *Activity::ALL.get(label)?))
    }
}
