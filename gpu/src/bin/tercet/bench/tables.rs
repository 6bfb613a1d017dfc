//! Shows the results of `tercet bench` to people.

use std::collections::BTreeMap;

use tercet_host::measure::{Bandwidth, Entry, Measured, Traffic};

use super::device::Described;
use super::results::Results;
use crate::format;
use crate::gpus::Gpu;
use crate::table::Align::{Left, Right};
use crate::table::Table;

/// Lists operations and their sizes.
pub(super) fn list(entries: &[Entry]) -> String {
    let mut table = Table::new(&[("operation", Left), ("sizes", Left)]);
    let mut rows: Vec<(&str, String)> = Vec::new();
    for entry in entries {
        match rows.iter_mut().find(|row| row.0 == entry.operation) {
            Some((_, sizes)) => {
                sizes.push_str("; ");
                sizes.push_str(&entry.size);
            }
            None => rows.push((&entry.operation, entry.size.clone())),
        }
    }
    for (operation, sizes) in rows {
        table.row([operation.to_owned(), sizes]);
    }
    table.render()
}

/// Formats `41 operations, 123 times`.
pub(super) fn counted(results: &Results) -> String {
    let mut cases: Vec<_> = results
        .results
        .iter()
        .map(|found| (&found.operation, &found.size))
        .collect();
    cases.dedup();
    format!(
        "{}, {} contenders timed",
        format::counted(cases.len() as u64, "case"),
        results.results.len()
    )
}

/// Formats machine, ceilings and results.
pub(super) fn people(results: &Results) -> String {
    let written: String = results
        .files
        .iter()
        .map(|path| format!("wrote {}\n", path.display()))
        .collect();
    let left_out: String = results
        .left_out
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    format!(
        "{}, {}\n\n{}\n{}\n{}{}\n{}\n{left_out}{}, {} s\n{written}",
        results.machine.describe(),
        results.date,
        memory(results),
        arithmetic(results),
        results.device.as_ref().map_or_else(String::new, copies),
        cases(results),
        fastest(&results.results),
        counted(results),
        format::significant(results.seconds),
    )
}

/// Formats the bandwidth at the smallest and the largest working set and between: one row each.
fn memory(results: &Results) -> String {
    let mut columns = vec![("working set", Right), ("threads", Right)];
    let heads: Vec<String> = Traffic::ALL
        .iter()
        .map(|traffic| format!("{} GB/s", traffic.name()))
        .collect();
    columns.extend(heads.iter().map(|head| (head.as_str(), Right)));
    let mut table = Table::new(&columns);
    for measured in shown(&results.bandwidth) {
        let rates = Traffic::ALL.map(|traffic| format!("{:.1}", measured.of(traffic).best() / 1e9));
        let words = [
            format::bytes(measured.bytes as u64),
            measured.threads.to_string(),
        ];
        table.row(words.into_iter().chain(rates));
    }
    table.render()
}

/// Iterates over every third set of each number of threads, and always the last one.
fn shown(all: &[Bandwidth]) -> impl Iterator<Item = &Bandwidth> {
    let mut by_threads: BTreeMap<usize, Vec<&Bandwidth>> = BTreeMap::new();
    for measured in all {
        by_threads
            .entry(measured.threads)
            .or_default()
            .push(measured);
    }
    by_threads.into_values().flat_map(|sets| {
        let every = if sets.len() > 6 { 3 } else { 1 };
        let last = sets.len().saturating_sub(1);
        let kept = move |place: usize| (last - place).is_multiple_of(every);
        sets.into_iter()
            .enumerate()
            .filter(move |(place, _)| kept(*place))
            .map(|(_, measured)| measured)
    })
}

/// Describes the device in a line, with its fastest copy.
pub(super) fn describe(device: &Described) -> String {
    let Gpu {
        name,
        memory,
        capability,
        multiprocessors,
        driver,
        ..
    } = &device.gpu;
    let rates = device.copies.iter().map(|copy| copy.bytes_per_second);
    format!(
        "{name}, {}, capability {capability}, {multiprocessors} multiprocessors, driver {driver}; copies up to {:.1} GB/s",
        format::bytes(*memory),
        rates.fold(0.0, f64::max) / 1e9,
    )
}

/// Formats the device and its copies: one row each, and an empty line after them.
fn copies(device: &Described) -> String {
    let mut table = Table::new(&[("device copy", Right), ("GB/s", Right)]);
    for copy in &device.copies {
        let rate = format!("{:.1}", copy.bytes_per_second / 1e9);
        table.row([format::bytes(copy.bytes as u64), rate]);
    }
    if let Some(transfers) = &device.transfers {
        let [to, from] = [
            transfers.to_device_bytes_per_second,
            transfers.from_device_bytes_per_second,
        ]
        .map(|rate| format!("{:.1}", rate / 1e9));
        let bytes = format::bytes(transfers.bytes as u64);
        table.row([format!("{bytes} to the device"), to]);
        table.row([format!("{bytes} back"), from]);
    }
    format!("{}\n{}\n", describe(device), table.render())
}

fn arithmetic(results: &Results) -> String {
    let mut table = Table::new(&[
        ("multiply-adds", Left),
        ("threads", Right),
        ("f32 G/s", Right),
        ("int8 G/s", Right),
        ("ternary G/s", Right),
    ]);
    for named in &results.peaks {
        let rate = |rate: f64| format!("{:.1}", rate / 1e9);
        table.row([
            named.backend.to_owned(),
            named.threads.to_string(),
            rate(named.peak.f32),
            rate(named.peak.int8),
            rate(named.peak.ternary),
        ]);
    }
    table.render()
}

fn cases(results: &Results) -> String {
    let mut table = Table::new(&[
        ("operation", Left),
        ("size", Left),
        ("engine", Left),
        ("time", Right),
        ("G values/s", Right),
        ("GB/s", Right),
        ("speed-up", Right),
        ("roofline", Right),
        ("bound by", Left),
        ("peak memory", Right),
    ]);
    for found in &results.results {
        let peak = found
            .peak_memory
            .map_or_else(|| "-".to_owned(), format::bytes);
        table.row([
            found.operation.clone(),
            found.size.clone(),
            found.contender(),
            duration(found.seconds),
            format!("{:.3}", found.values_per_second / 1e9),
            format!("{:.2}", found.bytes_per_second / 1e9),
            format!("{:.2}", found.speedup),
            format!("{:.1} %", found.roofline * 100.0),
            found.bound.name().to_owned(),
            peak,
        ]);
    }
    table.render()
}

/// Ratio of times from which one contender counts as faster than another; below, other load may decide.
const AHEAD: f64 = 1.05;

/// Names the fastest contender of each operation and size, a line each, and how far the next one is behind.
fn fastest(results: &[Measured]) -> String {
    let mut lines = String::new();
    for case in results.chunk_by(|a, b| (&a.operation, &a.size) == (&b.operation, &b.size)) {
        let mut order: Vec<&Measured> = case.iter().collect();
        order.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let [first, next, ..] = order[..] else {
            continue;
        };
        let (by, ratio) = (next.contender(), next.seconds / first.seconds);
        let ahead = match ratio < AHEAD {
            true => format!("; {by} is within 5 %"),
            false => format!(", {ratio:.2} times as fast as {by}"),
        };
        let (operation, size) = (&first.operation, &first.size);
        lines += &format!(
            "{operation}, {size}: fastest: {}{ahead}\n",
            first.contender()
        );
    }
    lines
}

/// Formats a time with four digits: `12.34 µs`.
fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        ..1e-6 => (seconds * 1e9, "ns"),
        ..1e-3 => (seconds * 1e6, "µs"),
        ..1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    format!("{} {unit}", format::significant(value))
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn times_have_their_unit() {
        for (seconds, text) in [
            (1.5e-8, "15.00 ns"),
            (1.2346e-5, "12.35 µs"),
            (0.5, "500.0 ms"),
            (2.0, "2.000 s"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
