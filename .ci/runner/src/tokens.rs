//! One pot of tokens for the compilers of all steps, as `make` has for its children: two steps that each start a
//! compiler a core take a sixth more of the processor than they take one after the other, by what they push out of
//! each other's caches.
//!
//! The pot is a named pipe with a byte for each token, as GNU make documents it (section "POSIX Jobserver"); cargo
//! takes part.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;
use std::{env, process};

/// The pot. A step's cargo has a token of its own, and takes from the pot for every compiler more.
pub struct Tokens {
    path: PathBuf,
    pipe: File,
    cores: usize,
    /// Those in the pot, and those that steps have taken from it.
    given: usize,
}

impl Tokens {
    /// An empty pot; `name` tells those of one process apart.
    ///
    /// # Errors
    /// There is no `mkfifo`, or it cannot make one where temporary files lie.
    pub fn new(name: &str) -> io::Result<Self> {
        let path = env::temp_dir().join(format!("tercet-ci-{}-{name}", process::id()));
        // Of a process of that number that was killed.
        fs::remove_file(&path).ok();
        if !Command::new("mkfifo").arg(&path).status()?.success() {
            return Err(io::Error::other(format!("no mkfifo {}", path.display())));
        }
        Ok(Self {
            pipe: opened(&path)?,
            path,
            cores: available_parallelism().map_or(1, usize::from),
            given: 0,
        })
    }

    /// What a step is told of it, by the name of an environment variable.
    pub fn environment(&self) -> (&'static str, String) {
        let flags = format!("-j --jobserver-auth=fifo:{}", self.path.display());
        ("CARGO_MAKEFLAGS", flags)
    }

    /// Takes the pot's name away; where that fails, an empty pipe stays and harms nobody.
    pub fn remove(&self) {
        fs::remove_file(&self.path).ok();
    }

    /// Gives the cores that `running` steps leave over, or takes them back; of those that are in use, the next call.
    ///
    /// # Errors
    /// The pipe cannot be read or written.
    pub fn leave(&mut self, running: usize) -> io::Result<()> {
        let over = self.cores.saturating_sub(running);
        while self.given < over {
            self.pipe.write_all(b"+")?;
            self.given += 1;
        }
        while self.given > over {
            match self.pipe.read_exact(&mut [0]) {
                Ok(()) => self.given -= 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A pipe that is read without waiting for a byte.
fn opened(path: &std::path::Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many are in the pot.
    fn left(tokens: &Tokens) -> usize {
        let mut all = [0; 9];
        let count = (&tokens.pipe).read(&mut all).unwrap_or(0);
        (&tokens.pipe).write_all(&all[..count]).expect("a pipe");
        count
    }

    #[test]
    fn steps_and_the_pot_have_as_many_as_there_are_cores() {
        let mut tokens = Tokens::new("cores").expect("a pipe");
        tokens.cores = 3;
        for (running, over) in [(1, 2), (2, 1), (3, 0), (5, 0), (1, 2)] {
            tokens.leave(running).expect("a pipe");
            assert_eq!(left(&tokens), over);
        }
    }

    #[test]
    fn what_is_in_use_is_taken_back_later() {
        let mut tokens = Tokens::new("later").expect("a pipe");
        tokens.cores = 2;
        tokens.leave(1).expect("a pipe");
        let mut used = [0];
        (&tokens.pipe).read_exact(&mut used).expect("a token");
        tokens.leave(2).expect("a pipe");
        assert_eq!(tokens.given, 1);
        (&tokens.pipe).write_all(&used).expect("a pipe");
        tokens.leave(2).expect("a pipe");
        assert_eq!((tokens.given, left(&tokens)), (0, 0));
    }
}
