//! One pot of tokens for the compilers of all steps, as `make` has for its children: two steps that each start a compiler a core take a
//! sixth more of the processor than they take one after the other, by what they push out of each other's caches.

use std::io;
use std::process::Command;
use std::thread::available_parallelism;

use jobserver::Client;

/// The pot. A step's cargo has a token of its own, and takes from the pot for every compiler more.
pub struct Tokens {
    client: Client,
    cores: usize,
    /// Those in the pot, and those that steps have taken from it.
    given: usize,
}

impl Tokens {
    /// An empty pot.
    ///
    /// # Errors
    /// The system has no pipe for it.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            client: Client::new(0)?,
            cores: available_parallelism().map_or(1, usize::from),
            given: 0,
        })
    }

    /// Lets what a command starts reach the pot.
    pub fn configure(&self, command: &mut Command) {
        self.client.configure(command);
    }

    /// Gives the cores that `running` steps leave over, or takes them back; of those that are in use, the next call.
    ///
    /// # Errors
    /// The pipe cannot be read or written.
    pub fn leave(&mut self, running: usize) -> io::Result<()> {
        let over = self.cores.saturating_sub(running);
        while self.given < over {
            self.client.release_raw()?;
            self.given += 1;
        }
        while self.given > over
            && let Some(token) = self.client.try_acquire()?
        {
            token.drop_without_releasing();
            self.given -= 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_the_pot_have_as_many_as_there_are_cores() {
        let mut tokens = Tokens {
            cores: 3,
            ..Tokens::new().expect("a pipe")
        };
        for (running, over) in [(1, 2), (2, 1), (3, 0), (5, 0), (1, 2)] {
            tokens.leave(running).expect("a pipe");
            assert_eq!(tokens.client.available().expect("a pipe"), over);
        }
    }

    #[test]
    fn what_is_in_use_is_taken_back_later() {
        let mut tokens = Tokens {
            cores: 2,
            ..Tokens::new().expect("a pipe")
        };
        tokens.leave(1).expect("a pipe");
        let used = tokens.client.acquire().expect("a pipe");
        tokens.leave(2).expect("a pipe");
        assert_eq!(tokens.given, 1);
        drop(used);
        tokens.leave(2).expect("a pipe");
        assert_eq!(tokens.given, 0);
        assert_eq!(tokens.client.available().expect("a pipe"), 0);
    }
}
