//! The choices of the options of `tercet bench`.

use std::str::FromStr;

use tercet_host::measure::Contender;
use tercet_host::simd::{Backend, Isa};

use super::device::OnDevice;
use crate::engine::CUDA;
use crate::failure::Failure;

/// A word of `--backend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backends {
    /// All backends of this machine, and its first CUDA device if there is one.
    All,
    /// The first CUDA device.
    Cuda,
    /// One of them.
    One(Backend),
}

impl FromStr for Backends {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("all") {
            return Ok(Self::All);
        }
        if text.eq_ignore_ascii_case(CUDA) {
            return Ok(Self::Cuda);
        }
        let names = || {
            let names: Vec<_> = Backend::all().map(|backend| backend.isa().name()).collect();
            names.join(", ")
        };
        let Some(isa) = Isa::from_name(text) else {
            return Err(format!(
                "not an instruction set; choose one of {}, or {CUDA}",
                names()
            ));
        };
        let backend = Backend::new(isa).map_err(|error| error.to_string());
        backend.map(Self::One)
    }
}

/// A word of `--size`: values, as digits or with K, M, G (powers of 1,000) or Ki, Mi, Gi (of 1,024).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(pub(super) usize);

/// Maximum number of values of an input: 16 GiB of f32.
const MOST: usize = 1 << 32;

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, usize); 6] = [
            ("Ki", 1 << 10),
            ("Mi", 1 << 20),
            ("Gi", 1 << 30),
            ("K", 1_000),
            ("M", 1_000_000),
            ("G", 1_000_000_000),
        ];
        let found = UNITS
            .iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
        let (digits, unit) = found.unwrap_or((text, 1));
        digits
            .parse::<usize>()
            .ok()
            .and_then(|count| count.checked_mul(unit))
            .filter(|values| (1..=MOST).contains(values))
            .map(Self)
            .ok_or_else(|| {
                "not a number of values from 1 to 4Gi, such as 100K, 1M or 16Mi".to_owned()
            })
    }
}

/// Returns the scalar engine, then each backend on each number of threads, both in rising order, so the fastest comes
/// last.
///
/// Without `--backend` the backend is the one that `TERCET_BACKEND` names, or the best here; without `--threads` the
/// numbers are one thread, and one per core.
pub(super) fn contenders(backends: &[Backends], threads: &[u16]) -> Vec<Contender> {
    let mut threads: Vec<usize> = match threads {
        [] => vec![1, rayon::current_num_threads()],
        threads => threads.iter().map(|&count| usize::from(count)).collect(),
    };
    threads.sort_unstable();
    threads.dedup();
    let wanted = |backend: &Backend| match backends {
        [] => *backend == Backend::default(),
        words => words.iter().any(|word| match word {
            Backends::All => true,
            Backends::Cuda => false,
            Backends::One(one) => one == backend,
        }),
    };
    let every = Backend::all().filter(wanted).flat_map(|backend| {
        threads
            .iter()
            .map(move |&threads| Contender::Threads { backend, threads })
    });
    std::iter::once(Contender::Scalar).chain(every).collect()
}

/// Returns the device to measure too: a requested device must exist.
pub(super) fn device(backends: &[Backends]) -> Result<Option<OnDevice>, Failure> {
    let asked = |word| backends.contains(&word);
    if !asked(Backends::Cuda) && !asked(Backends::All) {
        return Ok(None);
    }
    match OnDevice::first() {
        Ok(device) => Ok(Some(device)),
        Err(reason) if asked(Backends::Cuda) => {
            let line = format_args!("--backend {CUDA}: {reason}");
            Err(Failure::new(line))
        }
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let size = |text: &str| text.parse::<Size>().ok().map(|size| size.0);
        assert_eq!(size("4096"), Some(4096));
        assert_eq!(size("100K"), Some(100_000));
        assert_eq!(size("16Mi"), Some(16 << 20));
        for bad in [
            "",
            "0",
            "K",
            "1.5M",
            "-1",
            "5Gi",
            "99999999999999999999",
            "1k",
        ] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }

    #[test]
    fn contenders_rise_from_the_scalar_engine() {
        let all = contenders(&[Backends::All], &[2, 1, 2]);
        assert_eq!(all[0], Contender::Scalar);
        assert_eq!(all.len(), 1 + 2 * Backend::all().count());
        let best = Contender::Threads {
            backend: Backend::best(),
            threads: 2,
        };
        assert_eq!(all.last(), Some(&best));
        assert_eq!(contenders(&[Backends::Cuda], &[2]), [Contender::Scalar]);
    }
}
