//! Which machine and which day a table is of.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The processor as the system names it, or its architecture where that is not told.
pub fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(
        || std::env::consts::ARCH.into(),
        |(_, name)| name.trim().into(),
    )
}

/// A sentence for the head of a table: processor, threads, system.
pub fn describe() -> String {
    let threads = rayon::current_num_threads();
    let (system, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{}, {threads} threads, {system} on {arch}", processor())
}

/// Processor and threads as part of a file name.
pub fn slug() -> String {
    let name = format!("{} {}", processor(), rayon::current_num_threads()).to_lowercase();
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// Today's date, UTC, as `2026-01-31`.
pub fn date() -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    date_of(now.as_secs() / 86_400)
}

/// The date `days` after 1970-01-01, by Howard Hinnant's `civil_from_days`: years start in March, so that a leap
/// day is the last day of one.
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
    use super::date_of;

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
}
