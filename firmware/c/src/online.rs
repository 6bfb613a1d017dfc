//! Clusters that follow a stream, in memory that C provides.

use tercet_core::cluster::{OnlineHead, OnlineMut, OnlineRef};

use crate::Status;
use crate::assign::{Nearest, table};
use crate::buffer::{In, Out, apart};

/// `TKC1`: the first word of clusters that were initialised.
const TAG: u32 = u32::from_le_bytes(*b"TKC1");

/// k clusters of d coordinates that follow a stream, without storing its points, in `TERCET_ONLINE_WORDS(k, d)` words
/// of the caller's memory.
#[derive(Debug)]
pub struct Online {
    _private: (),
}

/// The part before the sums (k * d), the counts (k) and the centroids (k * d bytes).
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    tag: u32,
    k: u32,
    d: u32,
    head: OnlineHead,
}

/// Words of [`Head`].
const HEAD: usize = 5;
const _: () = assert!(size_of::<Head>() == 4 * HEAD && align_of::<Head>() == 4);

/// Returns the words of clusters: `TERCET_ONLINE_WORDS`.
fn words(k: usize, d: usize) -> Result<usize, Status> {
    let cells = table(k, d)?;
    let centroids = cells.div_ceil(4);
    let parts = [cells, k, centroids];
    let sum = parts
        .iter()
        .try_fold(HEAD, |sum, &part| sum.checked_add(part));
    sum.ok_or(Status::Limit)
}

/// The outcome of a point given to `tercet_online_observe`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// The cluster that it joined; the lowest one on ties.
    pub label: u32,
    /// Its squared distance to that cluster's centroid before it joined; 0 for a seed.
    pub distance: u32,
    /// True if it became the first point of its cluster.
    pub seed: bool,
}

/// Read access to clusters. The pointers point into the clusters' own memory and are valid until that is initialised
/// again. The values that they point to change with every observation.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OnlineView {
    /// Maximum number of clusters.
    pub k: usize,
    /// Number of coordinates per point.
    pub d: usize,
    /// Number of clusters that have a centroid.
    pub used: usize,
    /// The count at which a cluster's sum and count are halved.
    pub cap: u32,
    /// k * d values, row by row, of which the first `used` rows are valid: rounded means, halves away from zero.
    pub centroids: *const i8,
    /// k * d values: the sum of each cluster's points, as far as they are not forgotten.
    pub sums: *const i32,
    /// k values: the number of points in each sum.
    pub counts: *const u32,
}

/// The addresses of the parts of initialised clusters.
struct Parts {
    head: *mut Head,
    sums: Out<i32>,
    counts: Out<u32>,
    centroids: Out<i8>,
    d: usize,
}

impl Parts {
    /// Finds the parts.
    ///
    /// # Safety
    /// The memory must be there, and nobody may write it during the call.
    unsafe fn find(clusters: *const Online) -> Result<Self, Status> {
        let head = Out::one(clusters.cast_mut().cast::<Head>())?.pointer();
        // SAFETY: aligned and not null, integers only; the caller vouches that it is there.
        let Head { tag, k, d, .. } = unsafe { head.read() };
        if tag != TAG {
            return Err(Status::State);
        }
        let (k, d) = (k as usize, d as usize);
        let cells = table(k, d)?;
        let sums = head.cast::<i32>().wrapping_add(HEAD);
        let counts = sums.wrapping_add(cells);
        let centroids = counts.wrapping_add(k);
        Ok(Self {
            head,
            sums: Out::new(sums, cells)?,
            counts: Out::new(counts.cast(), k)?,
            centroids: Out::new(centroids.cast(), cells)?,
            d,
        })
    }

    /// Returns the addresses from the first byte to the last.
    fn span(&self) -> core::ops::Range<usize> {
        self.head.addr()..self.centroids.span().end
    }

    /// Borrows the parts to change them.
    ///
    /// # Safety
    /// The memory must be there, and nobody else may use it, while `'a` lasts.
    unsafe fn change<'a>(self) -> Result<OnlineMut<'a>, Status> {
        // SAFETY: the parts lie one behind the other in memory that `tercet_online_init` took, as `words` counts it;
        // the caller vouches for the rest.
        let (head, sums, counts, centroids) = unsafe {
            let head = &mut (*self.head).head;
            (
                head,
                self.sums.slice(),
                self.counts.slice(),
                self.centroids.slice(),
            )
        };
        Ok(OnlineMut::new(self.d, head, sums, counts, centroids)?)
    }

    /// Borrows the parts to read them.
    ///
    /// # Safety
    /// The memory must be there, and nobody may write it, while `'a` lasts.
    unsafe fn look<'a>(self) -> Result<OnlineRef<'a>, Status> {
        let counts = In::new(self.counts.pointer(), self.counts.len())?;
        let sums = In::new(self.sums.pointer(), self.sums.len())?;
        let centroids = In::new(self.centroids.pointer(), self.centroids.len())?;
        // SAFETY: as in `change`; here nobody writes.
        let (head, sums, counts, centroids) = unsafe {
            let head = (*self.head).head;
            (head, sums.slice(), counts.slice(), centroids.slice())
        };
        Ok(OnlineRef::new(self.d, head, sums, counts, centroids)?)
    }
}

/// Makes `k` clusters of `d` coordinates (1 to 43,690) in `memory`, at least `TERCET_ONLINE_WORDS(k, d)` words. They
/// have no centroids yet; the first k distinct points found them.
///
/// `clusters` gets the address that the other calls take. The memory belongs to the clusters until the caller stops
/// using them. They have no other memory, so there is nothing to free. O(k * d).
///
/// Returns TERCET_STATUS_SCRATCH if there are too few words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_init(
    memory: *mut u32,
    len: usize,
    k: usize,
    d: usize,
    clusters: *mut *mut Online,
) -> Status {
    Status::of(|| {
        let needed = words(k, d)?;
        if len < needed {
            return Err(Status::Scratch);
        }
        let (memory, out) = (Out::new(memory, needed)?, Out::one(clusters)?);
        apart([memory.span(), out.span()], [])?;
        let start = memory.pointer();
        let head = Head {
            tag: TAG,
            k: u32::try_from(k).map_err(|_| Status::Limit)?,
            d: u32::try_from(d).map_err(|_| Status::Limit)?,
            head: OnlineHead::new(),
        };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe {
            memory.slice().fill(0);
            start.cast::<Head>().write(head);
            // If the size is refused, later calls do not take the memory for clusters.
            if let Err(status) = Parts::find(start.cast()).and_then(|parts| parts.look()) {
                start.write(0);
                return Err(status);
            }
            out.set(start.cast());
        }
        Ok(())
    })
}

/// Restarts from given centroids, k * d values in `len`. Each counts as `weight` points, fewer than the cap (else
/// TERCET_STATUS_ARGUMENT). With weight 0 the first point of a cluster replaces its centroid. O(k * d).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_restart(
    clusters: *mut Online,
    centroids: *const i8,
    len: usize,
    weight: u32,
) -> Status {
    Status::of(|| {
        let centroids = In::new(centroids, len)?;
        // SAFETY: C vouches that the clusters are there and not in use.
        let parts = unsafe { Parts::find(clusters)? };
        apart([parts.span()], [centroids.span()])?;
        // SAFETY: as above, and for the centroids too.
        unsafe { Ok(parts.change()?.restart(centroids.slice(), weight)?) }
    })
}

/// Sets the count at which a cluster's sum and count are halved, 2 to 2^24; the initial value is 2^24. A smaller count
/// forgets the past sooner. O(k * d). Returns TERCET_STATUS_ARGUMENT outside that range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_set_cap(clusters: *mut Online, cap: u32) -> Status {
    // SAFETY: C vouches that the clusters are there and not in use.
    Status::of(|| unsafe { Ok(Parts::find(clusters)?.change()?.set_cap(cap)?) })
}

/// Adds a point of `len` = d coordinates to a cluster and reports the cluster in `seen`, which may be null. O(k * d),
/// with d divisions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_observe(
    clusters: *mut Online,
    point: *const i8,
    len: usize,
    seen: *mut Observation,
) -> Status {
    Status::of(|| {
        let (point, out) = (In::new(point, len)?, Out::optional(seen)?);
        // SAFETY: C vouches that the clusters are there and not in use.
        let parts = unsafe { Parts::find(clusters)? };
        apart([parts.span(), out.span()], [point.span()])?;
        // SAFETY: as above, and for the point too.
        let seen = unsafe { parts.change()?.observe(point.slice())? };
        let seen = Observation {
            label: seen.label,
            distance: seen.distance,
            seed: seen.seed,
        };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { out.set(seen) };
        Ok(())
    })
}

/// Finds the nearest centroid to a point of `len` = d coordinates without any change. O(k * d). Returns
/// TERCET_STATUS_NO_CLUSTERS before the first observation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_predict(
    clusters: *const Online,
    point: *const i8,
    len: usize,
    found: *mut Nearest,
) -> Status {
    Status::of(|| {
        let (point, out) = (In::new(point, len)?, Out::one(found)?);
        // SAFETY: C vouches that the clusters are there and that nobody writes them.
        let parts = unsafe { Parts::find(clusters)? };
        apart([out.span()], [parts.span(), point.span()])?;
        // SAFETY: as above, and for the point too.
        let found = unsafe { parts.look()?.predict(point.slice())? };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { out.set(found.ok_or(Status::NoClusters)?.into()) };
        Ok(())
    })
}

/// Gives read access to centroids, sums and counts in place. O(1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_view(
    clusters: *const Online,
    view: *mut OnlineView,
) -> Status {
    Status::of(|| {
        let out = Out::one(view)?;
        // SAFETY: C vouches that the clusters are there and that nobody writes them.
        let parts = unsafe { Parts::find(clusters)? };
        apart([out.span()], [parts.span()])?;
        let (centroids, sums, counts) = (
            parts.centroids.pointer(),
            parts.sums.pointer(),
            parts.counts.pointer(),
        );
        // SAFETY: as above.
        let shown = unsafe { parts.look()? };
        let shown = OnlineView {
            k: shown.counts().len(),
            d: shown.dims(),
            used: shown.used(),
            cap: shown.cap(),
            centroids,
            sums,
            counts,
        };
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { out.set(shown) };
        Ok(())
    })
}

/// Writes the clusters into `len` = `TERCET_ONLINE_SAVED(k, d)` bytes, the same on every machine, for flash or for
/// another computer. O(k * d).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_save(
    clusters: *const Online,
    bytes: *mut u8,
    len: usize,
) -> Status {
    Status::of(|| {
        let out = Out::new(bytes, len)?;
        // SAFETY: C vouches that the clusters are there and that nobody writes them.
        let parts = unsafe { Parts::find(clusters)? };
        apart([out.span()], [parts.span()])?;
        // SAFETY: checked; C vouches that the memory is there and not in use.
        unsafe { Ok(parts.look()?.save(out.slice())?) }
    })
}

/// Reads clusters that `tercet_online_save` wrote for the same k and d. The bytes may be arbitrary; if they are
/// refused (TERCET_STATUS_SAVED), nothing changes. There is no checksum: add one for flash whose writes can be
/// interrupted. O(k * d).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tercet_online_load(
    clusters: *mut Online,
    bytes: *const u8,
    len: usize,
) -> Status {
    Status::of(|| {
        let bytes = In::new(bytes, len)?;
        // SAFETY: C vouches that the clusters are there and not in use.
        let parts = unsafe { Parts::find(clusters)? };
        apart([parts.span()], [bytes.span()])?;
        // SAFETY: as above, and for the bytes too.
        unsafe { Ok(parts.change()?.load(bytes.slice())?) }
    })
}
