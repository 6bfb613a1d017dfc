//! The machine, and the day.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::Processor;
use crate::simd::Backend;

/// The machine of the results.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name from the system, or its architecture if that is unknown.
    pub processor: String,
    /// Threads of the rayon pool.
    pub threads: usize,
    /// The operating system.
    pub system: &'static str,
    /// The architecture.
    pub architecture: &'static str,
    /// Its backends, the best last.
    pub backends: Vec<&'static str>,
}

impl Machine {
    /// Returns this machine.
    pub fn here() -> Self {
        Self {
            processor: Processor::here().name,
            threads: rayon::current_num_threads(),
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            backends: Backend::all().map(|backend| backend.isa().name()).collect(),
        }
    }

    /// Returns a sentence: processor, threads, system.
    pub fn describe(&self) -> String {
        let plural = if self.threads == 1 { "" } else { "s" };
        format!(
            "{}, {} thread{plural}, {} on {}",
            self.processor, self.threads, self.system, self.architecture
        )
    }

    /// Returns processor and threads as part of a file name, without trademark signs and words that name no model:
    /// `intel-xeon-2`.
    pub fn slug(&self) -> String {
        slug(&format!("{} {}", self.processor, self.threads))
    }
}

/// Returns a product's name as part of a file name, as [`Machine::slug`]: `nvidia-h200`.
pub fn slug(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !matches!(*word, "" | "r" | "tm" | "cpu" | "processor"));
    words.collect::<Vec<_>>().join("-")
}

/// Returns today's date, UTC, as `2026-01-31`.
pub fn date() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    date_of(now.as_secs() / 86_400)
}

/// Returns the date `days` after 1970-01-01, with Howard Hinnant's `civil_from_days`: years start in March, so that a
/// leap day is the last day of a year.
fn date_of(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let (month, next) = if march < 10 {
        (march + 3, 0)
    } else {
        (march - 9, 1)
    };
    format!(
        "{}-{month:02}-{:02}",
        400 * era + year + next,
        day - (153 * march + 2) / 5 + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_count_leap_days() {
        let dates = [
            (0, "1970-01-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (11_322, "2000-12-31"),
            (20_593, "2026-05-20"),
        ];
        for (days, date) in dates {
            assert_eq!(date_of(days), date);
        }
    }

    #[test]
    fn a_slug_is_plain() {
        let slugs = [
            ("AMD EPYC (R) 9B45", "amd-epyc-9b45-4"),
            ("Intel(R) Xeon(R) Processor", "intel-xeon-4"),
            (
                "Intel(R) Core(TM) i7-1185G7 CPU @ 3.00GHz",
                "intel-core-i7-1185g7-3-00ghz-4",
            ),
        ];
        for (processor, slug) in slugs {
            let mut machine = Machine::here();
            (machine.processor, machine.threads) = (processor.into(), 4);
            assert_eq!(machine.slug(), slug);
        }
    }
}
