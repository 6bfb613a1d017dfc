//! A file's way to the disk while more of it is made.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Bytes after which what was written is sent on its way. Systems otherwise let gigabytes wait until the file is finished, and then
/// all of it is waited for.
const EVERY: usize = 32 << 20;

/// Has a thread flush a file now and then; of a small file, none is started.
#[derive(Debug, Default)]
pub(super) struct Flusher {
    written: usize,
    thread: Option<(SyncSender<()>, JoinHandle<io::Result<()>>)>,
}

impl Flusher {
    /// Counts bytes that were written to `file`, always the same one.
    pub(super) fn wrote(&mut self, bytes: usize, file: &File) {
        self.written += bytes;
        if self.written < EVERY {
            return;
        }
        self.written = 0;
        if self.thread.is_none() {
            // Without a thread all is flushed at the end.
            self.thread = start(file).ok();
        }
        if let Some((wake, _)) = &self.thread {
            // A thread that is at it already sees to these bytes the next time, or the end does.
            let _ = wake.try_send(());
        }
    }

    /// Waits for the thread. The first error of the disk is told here, and only here: the system tells it once.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        let Some((wake, thread)) = self.thread.take() else {
            return Ok(());
        };
        drop(wake);
        thread.join().expect("a flush does not panic")
    }
}

/// A file that is given up is let go of before it is removed.
impl Drop for Flusher {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn start(file: &File) -> io::Result<(SyncSender<()>, JoinHandle<io::Result<()>>)> {
    let file = file.try_clone()?;
    let (wake, woken) = sync_channel(1);
    let thread = thread::Builder::new().name("tercet-flush".into());
    let thread = thread.spawn(move || woken.iter().try_for_each(|()| file.sync_data()))?;
    Ok((wake, thread))
}
