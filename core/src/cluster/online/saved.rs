//! Clusters as bytes, which survive a reset in flash or go to another machine.
//!
//! Little-endian words of 32 bits: `TKM1`, K, D, the cap, the number of clusters in use, K counts, K·D sums; then K·D
//! centroids of one byte each. There is no checksum: if a write to flash can be interrupted, add one.

use core::num::NonZeroU32;

use super::view::expect;
use super::{ClusterError, MAX_CAP, Online, OnlineMut, OnlineRef, round};

/// `TKM1`.
const MAGIC: u32 = u32::from_le_bytes(*b"TKM1");
/// Words before the counts.
const HEAD: usize = 5;

impl<const K: usize, const D: usize> Online<K, D> {
    /// Number of bytes of saved clusters: 20 + K·(5·D + 4).
    pub const SAVED: usize = 4 * HEAD + K * (5 * D + 4);

    /// Writes the state to `out`, which has [`Online::SAVED`] bytes.
    ///
    /// # Errors
    /// [`ClusterError::Length`].
    ///
    /// ```
    /// use tercet_core::cluster::Online;
    ///
    /// let mut clusters = Online::<8, 6>::new();
    /// clusters.observe(&[1, 2, 3, 4, 5, 6]);
    /// let mut flash = [0; Online::<8, 6>::SAVED];
    /// clusters.save(&mut flash)?;
    ///
    /// let mut woken = Online::<8, 6>::new();
    /// woken.load(&flash)?;
    /// assert_eq!(woken, clusters);
    /// # Ok::<(), tercet_core::cluster::ClusterError>(())
    /// ```
    pub fn save(&self, out: &mut [u8]) -> Result<(), ClusterError> {
        self.view().save(out)
    }

    /// Restores the state that [`Online::save`] wrote. On an error nothing changes.
    ///
    /// The bytes may be arbitrary: no accepted state lets a later sum wrap.
    ///
    /// # Errors
    /// [`ClusterError::Length`]; [`ClusterError::State`] with the offset of a value that no clusters of this shape
    /// can have.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), ClusterError> {
        self.slices().load(bytes)
    }
}

impl OnlineRef<'_> {
    /// Returns the number of bytes that [`OnlineRef::save`] writes: 20 + k·(5·d + 4).
    pub fn saved_len(&self) -> usize {
        Saved::new(self, &[]).len()
    }

    /// Like [`Online::save`], for [`OnlineRef::saved_len`] bytes.
    ///
    /// # Errors
    /// [`ClusterError::Length`].
    pub fn save(&self, out: &mut [u8]) -> Result<(), ClusterError> {
        expect(self.saved_len(), out.len())?;
        let (k, d) = (self.counts.len() as u32, self.dims as u32);
        let head = [MAGIC, k, d, self.cap(), self.head.used];
        let sums = self.sums.iter().map(|&sum| sum as u32);
        let words = head
            .into_iter()
            .chain(self.counts.iter().copied())
            .chain(sums);
        let mut bytes = out.iter_mut();
        // `bytes` second: if the first iterator of a zip ends, the zip takes no more from its second.
        for (byte, to) in words.flat_map(u32::to_le_bytes).zip(bytes.by_ref()) {
            *to = byte;
        }
        for (to, &c) in bytes.zip(self.centroids) {
            *to = c as u8;
        }
        Ok(())
    }
}

impl OnlineMut<'_> {
    /// Like [`Online::load`].
    ///
    /// # Errors
    /// Those of [`Online::load`].
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), ClusterError> {
        let saved = Saved::new(&self.view(), bytes);
        expect(saved.len(), bytes.len())?;
        let (cap, used) = saved.check()?;
        self.head.cap = NonZeroU32::new(cap).filter(|cap| cap.get() < MAX_CAP);
        self.head.used = used;
        for (label, count) in self.counts.iter_mut().enumerate() {
            *count = saved.count(label);
        }
        let table = self.sums.iter_mut().zip(self.centroids.iter_mut());
        for (index, (sum, c)) in table.enumerate() {
            *sum = saved.sum(index);
            *c = saved.coordinate(index);
        }
        Ok(())
    }
}

/// Bytes that may be saved clusters of one shape.
struct Saved<'a> {
    bytes: &'a [u8],
    clusters: usize,
    dims: usize,
}

impl<'a> Saved<'a> {
    const fn new(shape: &OnlineRef<'_>, bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            clusters: shape.counts.len(),
            dims: shape.dims,
        }
    }

    /// Returns k · d, the length of a slice.
    const fn table(&self) -> usize {
        self.clusters.wrapping_mul(self.dims)
    }

    /// Returns the required number of bytes; more than any slice has if it does not fit `usize`.
    const fn len(&self) -> usize {
        let words = self
            .table()
            .saturating_add(self.clusters)
            .saturating_add(HEAD);
        words.saturating_mul(4).saturating_add(self.table())
    }

    /// Checks that all values are possible. Returns the cap and the number of clusters in use.
    fn check(&self) -> Result<(u32, u32), ClusterError> {
        let must = |possible: bool, word: usize| match possible {
            true => Ok(()),
            false => Err(ClusterError::State { offset: 4 * word }),
        };
        let (k, d) = (self.clusters, self.dims);
        let (cap, used) = (self.word(3), self.word(4));
        must(self.word(0) == MAGIC, 0)?;
        must(self.word(1) == k as u32, 1)?;
        must(self.word(2) == d as u32, 2)?;
        must((2..=MAX_CAP).contains(&cap), 3)?;
        must(used as usize <= k, 4)?;
        for label in 0..k {
            let (count, in_use) = (self.count(label), label < used as usize);
            must(count < cap && (in_use || count == 0), HEAD + label)?;
            for index in label * d..(label + 1) * d {
                let (sum, c) = (i64::from(self.sum(index)), self.coordinate(index));
                let members = i64::from(count);
                must(
                    (-128 * members..=127 * members).contains(&sum),
                    HEAD + k + index,
                )?;
                let possible = match (in_use, count) {
                    (false, _) => c == 0,
                    // A given centroid that got no point yet.
                    (true, 0) => true,
                    (true, _) => c == round::rounded_mean(sum, count.into()),
                };
                if !possible {
                    let offset = 4 * (HEAD + k + self.table()) + index;
                    return Err(ClusterError::State { offset });
                }
            }
        }
        Ok((cap, used))
    }

    fn word(&self, index: usize) -> u32 {
        let rest = self.bytes.get(4 * index..).unwrap_or_default();
        rest.first_chunk()
            .map_or(0, |&word| u32::from_le_bytes(word))
    }

    fn count(&self, label: usize) -> u32 {
        self.word(HEAD + label)
    }

    fn sum(&self, index: usize) -> i32 {
        self.word(HEAD + self.clusters + index) as i32
    }

    fn coordinate(&self, index: usize) -> i8 {
        let byte = self
            .bytes
            .get(4 * (HEAD + self.clusters + self.table()) + index);
        byte.map_or(0, |&byte| byte as i8)
    }
}
