//! Recordings of the content of the sensor's registers, which boards in an emulator replay.

use super::{AXES, Activity, Sample};

/// Bytes per sample.
const SAMPLE: usize = 2 * AXES;

/// Samples per recording of a file.
const LENGTH: usize = 100;

/// One recording: bytes of an npy file, two per value, little-endian.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recording<'a> {
    bytes: &'a [u8],
}

impl<'a> Recording<'a> {
    /// Makes a recording from consecutive samples of 12 bytes each.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the number of samples.
    pub const fn len(&self) -> usize {
        self.bytes.len() / SAMPLE
    }

    /// Returns true if there is no sample.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a sample.
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

/// Recordings of [`Recordings::LENGTH`] samples, and their activities.
#[derive(Clone, Copy, Debug)]
pub struct Recordings<'a> {
    samples: &'a [u8],
    labels: &'a [u8],
}

impl<'a> Recordings<'a> {
    /// Samples per recording.
    pub const LENGTH: usize = LENGTH;

    /// Reads two npy files: i16 of shape (recordings, 100, 6), u8 of shape (recordings). `count` is the number of
    /// recordings in them. In an npy file the data comes last.
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

    /// Returns the number of recordings.
    pub const fn len(&self) -> usize {
        self.labels.len()
    }

    /// Returns true if there are no recordings.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a recording and its activity.
    pub fn get(&self, number: usize) -> Option<(Recording<'a>, Activity)> {
        let bytes = self.samples.get(number * LENGTH * SAMPLE..)?;
        let bytes = bytes.get(..LENGTH * SAMPLE)?;
        let label = usize::from(*self.labels.get(number)?);
        Some((Recording::new(bytes), *Activity::ALL.get(label)?))
    }
}
