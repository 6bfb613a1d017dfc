//! The processor: its name, cores and caches, as reported by the system.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// The processor of this machine. Facts that the system does not report are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Processor {
    /// Its name from the system, or its architecture if that is unknown.
    pub name: String,
    /// Cores, of all sockets.
    pub cores: Option<usize>,
    /// Threads that this process may run on at once: two per core if cores have two, fewer if the system allows fewer.
    pub threads: Option<usize>,
    /// The caches of the first core, as listed by Linux; cores of other kinds may have others.
    pub caches: Vec<Cache>,
}

/// A cache, as the first core sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u32,
    /// Its content: `data`, `instruction` or `unified`.
    pub holds: String,
    /// Its size.
    pub bytes: u64,
    /// Threads that share it.
    pub threads: usize,
}

impl Processor {
    /// Returns the processor of this machine.
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Self {
            name: name(&info).unwrap_or(std::env::consts::ARCH).to_owned(),
            cores: cores(&info),
            threads: std::thread::available_parallelism().ok().map(Into::into),
            caches: caches(Path::new("/sys/devices/system/cpu/cpu0/cache")),
        }
    }
}

/// Returns the values of a field of `/proc/cpuinfo`, one for each thread.
fn field<'a>(info: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    let named = fields.filter(move |(field, _)| field.trim() == name);
    named.map(|(_, value)| value.trim())
}

fn name(info: &str) -> Option<&str> {
    field(info, "model name").find(|name| !name.is_empty())
}

/// Counts pairs of socket and core; architectures other than x86 do not number them here.
fn cores(info: &str) -> Option<usize> {
    let (sockets, cores) = (field(info, "physical id"), field(info, "core id"));
    let mut pairs = Vec::new();
    for pair in sockets.zip(cores) {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    Some(pairs.len()).filter(|&count| count > 0)
}

/// Returns the caches in a folder of Linux's `sysfs`, by level; empty if there is no such folder.
fn caches(folder: &Path) -> Vec<Cache> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut caches = Vec::new();
    for cache in entries.filter_map(|entry| cache(&entry.path())) {
        crate::order::insert(&mut caches, cache, |a: &Cache, b: &Cache| {
            (a.level, &a.holds).cmp(&(b.level, &b.holds))
        });
    }
    caches
}

fn cache(folder: &Path) -> Option<Cache> {
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
    Some(Cache {
        level: read("level")?.trim().parse().ok()?,
        holds: read("type")?.trim().to_lowercase(),
        bytes: bytes(read("size")?.trim())?,
        threads: counted(read("shared_cpu_list")?.trim())?,
    })
}

/// Parses a size: `48K` is 49,152.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) => (number, text.chars().last()),
        None => (text, None),
    };
    let shift = match unit {
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        _ => 0,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Counts the numbers of a list such as `0-3,8`.
fn counted(list: &str) -> Option<usize> {
    list.split(',').try_fold(0, |count: usize, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        count.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_core_count_once() {
        let info = "processor\t: 0\nmodel name\t: A B\nphysical id\t: 0\ncore id\t\t: 0\n\n\
                    processor\t: 1\nmodel name\t: A B\nphysical id\t: 0\ncore id\t\t: 0\n\n\
                    processor\t: 2\nmodel name\t: A B\nphysical id\t: 1\ncore id\t\t: 0\n";
        assert_eq!((name(info), cores(info)), (Some("A B"), Some(2)));
        assert_eq!(
            (name("BogoMIPS\t: 50.00\n"), cores("BogoMIPS\t: 50.00\n")),
            (None, None)
        );
    }

    #[test]
    fn sizes_and_lists_are_read_or_left_out() {
        let sizes = ["48K", "2M", "1G", "77", "K", "-1K", ""].map(bytes);
        let read = [
            Some(49_152),
            Some(2 << 20),
            Some(1 << 30),
            Some(77),
            None,
            None,
            None,
        ];
        assert_eq!(sizes, read);
        let lists = ["0", "0-1", "0-3,8,10-11", "", "3-1", "a"].map(counted);
        assert_eq!(lists, [Some(1), Some(2), Some(7), None, None, None]);
    }

    #[test]
    fn a_folder_of_caches_is_read_by_level_and_what_is_broken_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |index: &str, files: [&str; 4]| {
            let cache = folder.path().join(index);
            fs::create_dir(&cache).unwrap();
            let names = ["level", "type", "size", "shared_cpu_list"];
            for (name, text) in names.into_iter().zip(files) {
                fs::write(cache.join(name), format!("{text}\n")).unwrap();
            }
        };
        write("index0", ["3", "Unified", "32M", "0-7"]);
        write("index1", ["1", "Data", "32K", "0,4"]);
        write("index2", ["two", "Unified", "1M", "0"]);
        fs::write(folder.path().join("uevent"), "").unwrap();
        let cache = |level, holds: &str, bytes, threads| Cache {
            level,
            holds: holds.into(),
            bytes,
            threads,
        };
        let expected = [
            cache(1, "data", 32 << 10, 2),
            cache(3, "unified", 32 << 20, 8),
        ];
        assert_eq!(caches(folder.path()), expected);
        assert_eq!(caches(&folder.path().join("absent")), []);
    }
}
