//! A device that counts its bytes, and does as told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tercet_gpu::cache::{Cache, CacheOptions, Computed, Tiers};

/// Bytes in use, and the most that were.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Meter {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, SeqCst) + bytes;
        self.most.fetch_max(now, SeqCst);
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(SeqCst)
    }

    pub(crate) fn most(&self) -> usize {
        self.most.load(SeqCst)
    }
}

/// A value in one place; what it says of itself is its key.
#[derive(Debug)]
pub(crate) struct Metered {
    pub(crate) key: u64,
    bytes: usize,
    meter: Arc<Meter>,
}

impl Metered {
    fn new(key: u64, bytes: usize, meter: &Arc<Meter>) -> Self {
        meter.add(bytes);
        Self {
            key,
            bytes,
            meter: Arc::clone(meter),
        }
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        self.meter.now.fetch_sub(self.bytes, SeqCst);
    }
}

/// Two places, and what is to fail.
#[derive(Default)]
pub(crate) struct Tested {
    pub(crate) device: Arc<Meter>,
    pub(crate) host: Arc<Meter>,
    pub(crate) uploads: AtomicUsize,
    pub(crate) downloads: AtomicUsize,
    pub(crate) no_upload: AtomicBool,
    pub(crate) no_download: AtomicBool,
    pub(crate) panics: AtomicBool,
    /// Held, it holds up downloads.
    pub(crate) gate: Mutex<()>,
    /// Bytes that the device really has; 0 is any number.
    pub(crate) memory: AtomicUsize,
}

impl Tested {
    /// A value computed on the host.
    pub(crate) fn here(&self, key: u64, bytes: usize) -> Computed<Metered, Metered> {
        Computed::Host(Metered::new(key, bytes, &self.host))
    }

    /// One computed on the device.
    pub(crate) fn there(&self, key: u64, bytes: usize) -> Computed<Metered, Metered> {
        Computed::Device(Metered::new(key, bytes, &self.device))
    }
}

impl Tiers for Tested {
    type Device = Metered;
    type Host = Metered;
    type Error = &'static str;

    fn upload(&self, host: &Metered) -> Result<Metered, &'static str> {
        if self.no_upload.load(SeqCst) {
            assert!(!self.panics.load(SeqCst), "in mid-upload");
            return Err("no upload");
        }
        let memory = self.memory.load(SeqCst);
        if memory > 0 && self.device.now() + host.bytes > memory {
            return Err("full");
        }
        self.uploads.fetch_add(1, SeqCst);
        Ok(Metered::new(host.key, host.bytes, &self.device))
    }

    fn download(&self, device: &Metered) -> Result<Metered, &'static str> {
        drop(self.gate.lock().unwrap());
        if self.no_download.load(SeqCst) {
            assert!(!self.panics.load(SeqCst), "in mid-download");
            return Err("no download");
        }
        self.downloads.fetch_add(1, SeqCst);
        Ok(Metered::new(device.key, device.bytes, &self.host))
    }

    fn device_bytes(&self, device: &Metered) -> usize {
        device.bytes
    }

    fn host_bytes(&self, host: &Metered) -> usize {
        host.bytes
    }

    fn uploaded_bytes(&self, host: &Metered) -> usize {
        host.bytes
    }

    fn is_full(&self, error: &&'static str) -> bool {
        *error == "full"
    }
}

pub(crate) fn cache(device_bytes: usize, host_bytes: usize) -> Cache<u64, Tested> {
    let options = CacheOptions {
        device_bytes,
        host_bytes,
        time_to_live: None,
        name: "test",
    };
    Cache::new(options, Tested::default())
}

/// Asks for a key, whose value takes so many bytes and is computed on the host.
pub(crate) fn ask(cache: &Cache<u64, Tested>, key: u64, bytes: usize) {
    let value = cache.get_or_compute(&key, || Ok::<_, ()>(cache.tiers().here(key, bytes)));
    assert_eq!(value.unwrap().key, key);
}
