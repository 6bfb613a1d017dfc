//! The memory that is left, if the system reports it.

/// Returns the bytes that a process may still take; `None` if the system does not report them.
///
/// On Linux this is the least of three: the memory that the kernel can give to new work without swapping, the memory
/// left by the limits of the process's control groups, and the room left in its address space.
pub(super) fn available() -> Option<u64> {
    #[cfg(target_os = "linux")]
    let bytes = linux::available();
    #[cfg(not(target_os = "linux"))]
    let bytes = None;
    bytes
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::path::{Path, PathBuf};

    pub(super) fn available() -> Option<u64> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let kernel = kilobytes(&read("/proc/meminfo"), "MemAvailable:");
        let taken = kilobytes(&read("/proc/self/status"), "VmSize:");
        let space = number(&read("/proc/self/limits"), "Max address space");
        let space = space.map(|most| most.saturating_sub(taken.unwrap_or(0)));
        let groups = groups(&read("/proc/self/cgroup"));
        let groups = groups.iter().filter_map(|group| group.left());
        [kernel, space].into_iter().flatten().chain(groups).min()
    }

    /// Returns the number after a name at the beginning of a line.
    fn number(text: &str, name: &str) -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse().ok()
    }

    fn kilobytes(text: &str, name: &str) -> Option<u64> {
        number(text, name).map(|count| count.saturating_mul(1024))
    }

    /// A control group: its folder, its files of the limit and of the usage, and the field of the part of the usage
    /// that the kernel can free.
    #[derive(Debug, PartialEq)]
    struct Group {
        folder: PathBuf,
        limit: &'static str,
        taken: &'static str,
        cached: &'static str,
    }

    impl Group {
        /// Returns the memory left by its limit, if it has one.
        fn left(&self) -> Option<u64> {
            let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
            // Words mean no limit.
            let limit = number(&read(self.limit), "")?;
            let taken = number(&read(self.taken), "")?;
            let cached = number(&read("memory.stat"), self.cached).unwrap_or(0);
            Some(limit.saturating_sub(taken.saturating_sub(cached)))
        }
    }

    /// Returns the groups that limit the memory of a process, its own first, from the process's list.
    fn groups(text: &str) -> Vec<Group> {
        let mut found = Vec::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let (root, limit, taken, cached) = match controllers {
                "" => (
                    "/sys/fs/cgroup",
                    "memory.max",
                    "memory.current",
                    "inactive_file",
                ),
                several if several.split(',').any(|name| name == "memory") => (
                    "/sys/fs/cgroup/memory",
                    "memory.limit_in_bytes",
                    "memory.usage_in_bytes",
                    "total_inactive_file",
                ),
                _ => continue,
            };
            for ancestor in Path::new(path).ancestors() {
                let below = ancestor.strip_prefix("/").unwrap_or(ancestor);
                found.push(Group {
                    folder: Path::new(root).join(below),
                    limit,
                    taken,
                    cached,
                });
            }
        }
        found
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn numbers_are_found_by_their_names() {
            let memory = "MemTotal:  24000 kB\nMemFree: 1 kB\nMemAvailable:   20000 kB\n";
            assert_eq!(kilobytes(memory, "MemAvailable:"), Some(20_000 * 1024));
            assert_eq!(kilobytes(memory, "SwapFree:"), None);
            let limits = "Max stack size   8388608   unlimited   bytes\n\
                Max address space         unlimited            unlimited            bytes\n";
            assert_eq!(number(limits, "Max address space"), None);
            assert_eq!(number(limits, "Max stack size"), Some(8 << 20));
            assert_eq!(number("max\n", ""), None);
        }

        #[test]
        fn groups_are_those_of_the_process_and_above() {
            let folders = |text: &str| -> Vec<PathBuf> {
                groups(text).into_iter().map(|group| group.folder).collect()
            };
            let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
            assert_eq!(
                folders("0::/user/job\n"),
                paths(&[
                    "/sys/fs/cgroup/user/job",
                    "/sys/fs/cgroup/user",
                    "/sys/fs/cgroup/"
                ])
            );
            let first = "5:cpu,cpuacct:/a\n4:hugetlb,memory:/b\n1:name=systemd:/c\n";
            assert_eq!(
                folders(first),
                paths(&["/sys/fs/cgroup/memory/b", "/sys/fs/cgroup/memory/"])
            );
        }

        #[test]
        fn a_group_leaves_what_its_limit_does_and_what_can_be_given_up() {
            let folder = tempfile::tempdir().unwrap();
            let group = Group {
                folder: folder.path().to_path_buf(),
                limit: "memory.max",
                taken: "memory.current",
                cached: "inactive_file",
            };
            let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
            assert_eq!(group.left(), None);
            write("memory.max", "max\n");
            write("memory.current", "700\n");
            assert_eq!(group.left(), None);
            write("memory.max", "1000\n");
            assert_eq!(group.left(), Some(300));
            write("memory.stat", "anon 600\ninactive_file 80\n");
            assert_eq!(group.left(), Some(380));
            write("memory.current", "1300\n");
            assert_eq!(group.left(), Some(0));
        }

        #[test]
        fn this_machine_has_some() {
            assert!(available().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}
