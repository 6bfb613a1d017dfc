//! A step's process: in a group of its own, so that what it started ends with it, and measured to its end.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How a step ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// The exit status; 128 and more if a signal ended it.
    pub status: i32,
    /// Time of the processor that it and all that it waited for took, user and system; `None` if the system does not
    /// say.
    pub processor: Option<Duration>,
}

/// Starts a script with bash in `root`, without input, all output to `log`.
///
/// # Errors
/// The log cannot be written, or there is no bash.
pub fn start(
    root: &Path,
    script: &Path,
    argument: &str,
    environment: &[(&str, &OsStr)],
    name: &str,
    log: &Path,
) -> io::Result<Child> {
    let log = File::create(log)?;
    let mut command = Command::new("bash");
    command
        .arg(script)
        .arg(argument)
        .current_dir(root)
        .env("TERCET_STEP", name)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stderr(log.try_clone()?)
        .stdout(log);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Waits for the end of a child.
///
/// # Errors
/// As [`Child::wait`].
#[cfg(unix)]
pub fn wait(child: &mut Child) -> io::Result<Ended> {
    let mut status = 0;
    // SAFETY: a structure of integers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let id = child.id() as libc::pid_t;
    loop {
        // SAFETY: both pointers are to values that live here, and the child is ours and was not waited for: nobody
        // else does, and `std` only asks on `wait`, which is not called.
        let found = unsafe { libc::wait4(id, &mut status, 0, &mut usage) };
        if found == id {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec as u64, 0) + Duration::from_micros(time.tv_usec as u64)
    };
    Ok(Ended {
        status: if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            128 + libc::WTERMSIG(status)
        },
        processor: Some(time(usage.ru_utime) + time(usage.ru_stime)),
    })
}

/// Waits for the end of a child.
///
/// # Errors
/// As [`Child::wait`].
#[cfg(not(unix))]
pub fn wait(child: &mut Child) -> io::Result<Ended> {
    let status = child.wait()?.code().unwrap_or(128);
    Ok(Ended {
        status,
        processor: None,
    })
}

/// Ends the process group that a child leads.
#[cfg(unix)]
pub fn end_group(id: u32) {
    // SAFETY: a call without memory; of a group that is gone it says so, which nobody needs.
    unsafe {
        libc::kill(-(id as libc::pid_t), libc::SIGTERM);
    }
}

/// Ends the process group that a child leads: here the console's, which gets the interrupt itself.
#[cfg(not(unix))]
pub fn end_group(_: u32) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;

    fn ended(script: &str) -> (Ended, String) {
        let folder =
            std::env::temp_dir().join(format!("tercet-ci-{}-{}", std::process::id(), script.len()));
        fs::create_dir_all(&folder).expect("a folder");
        let (file, log) = (folder.join("script.sh"), folder.join("log"));
        fs::write(&file, script).expect("a script");
        let mut child = start(&folder, &file, "word", &[], "a:word", &log).expect("a child");
        let ended = wait(&mut child).expect("an end");
        let printed = fs::read_to_string(&log).expect("a log");
        fs::remove_dir_all(&folder).expect("nothing left");
        (ended, printed)
    }

    #[test]
    fn a_step_gets_its_argument_and_its_name_and_its_output_is_kept() {
        let (ended, printed) = ended("echo $1 $TERCET_STEP; echo error >&2; exit 77");
        assert_eq!(ended.status, 77);
        assert_eq!(printed, "word a:word\nerror\n");
    }

    #[test]
    fn a_signal_shows_in_the_status_as_in_shells() {
        assert_eq!(ended("kill -TERM $$").0.status, 128 + 15);
    }

    #[test]
    fn what_a_child_s_children_took_counts() {
        let (ended, _) = ended("(for ((i = 0; i < 200000; i++)); do :; done)");
        assert!(
            ended
                .processor
                .is_some_and(|time| time > Duration::from_millis(20)),
            "{ended:?}"
        );
    }
}
