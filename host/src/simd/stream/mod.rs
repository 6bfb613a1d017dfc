//! Loops that measure memory.

/// A line of the nearest caches, aligned as non-temporal stores require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// Lines of the wide side of [`Stream::narrow`] and [`Stream::widen`] per line of the narrow side: f32 and int8.
pub(crate) const WIDE: usize = 4;

/// Loops over lines, each with plain loads and stores and then with software prefetch and non-temporal stores, for one
/// instruction set.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(in crate::simd) read: [Read; 2],
    pub(in crate::simd) write: [Write; 2],
    pub(in crate::simd) copy: [Move; 2],
    pub(in crate::simd) narrow: [Move; 2],
    pub(in crate::simd) widen: [Move; 2],
}

pub(in crate::simd) type Read = unsafe fn(&[Line]) -> u64;
pub(in crate::simd) type Write = unsafe fn(&mut [Line]);
pub(in crate::simd) type Move = unsafe fn(&[Line], &mut [Line]);

/// Stable Rust has neither prefetch nor non-temporal stores for every machine.
pub(in crate::simd) const SCALAR: Stream = Stream {
    read: [read; 2],
    write: [write; 2],
    copy: [copy; 2],
    narrow: [narrow; 2],
    widen: [widen; 2],
};

impl Stream {
    /// Reads lines; returns the exclusive or of all their words. With `hint`, it prefetches lines.
    pub(crate) fn read(&self, lines: &[Line], hint: bool) -> u64 {
        // SAFETY: a table is only reached through a `Backend` that was found to run its set.
        unsafe { (self.read[usize::from(hint)])(lines) }
    }

    /// Writes ones to lines; with `hint`, bypassing the caches.
    pub(crate) fn write(&self, lines: &mut [Line], hint: bool) {
        // SAFETY: as in `read`.
        unsafe { (self.write[usize::from(hint)])(lines) }
    }

    /// Copies as many lines as both have; with `hint`, prefetches and writes around the caches.
    pub(crate) fn copy(&self, from: &[Line], to: &mut [Line], hint: bool) {
        // SAFETY: as in `read`.
        unsafe { (self.copy[usize::from(hint)])(from, to) }
    }

    /// Writes one line, their exclusive or, for every [`WIDE`] lines read.
    pub(crate) fn narrow(&self, from: &[Line], to: &mut [Line], hint: bool) {
        // SAFETY: as in `read`.
        unsafe { (self.narrow[usize::from(hint)])(from, to) }
    }

    /// Writes each line read [`WIDE`] times.
    pub(crate) fn widen(&self, from: &[Line], to: &mut [Line], hint: bool) {
        // SAFETY: as in `read`.
        unsafe { (self.widen[usize::from(hint)])(from, to) }
    }
}

fn read(lines: &[Line]) -> u64 {
    let mut lanes = [0; 16];
    let (pairs, rest) = lines.as_chunks::<2>();
    for [a, b] in pairs {
        for (lane, word) in lanes.iter_mut().zip(a.0.iter().chain(&b.0)) {
            *lane ^= word;
        }
    }
    for line in rest {
        for (lane, word) in lanes.iter_mut().zip(&line.0) {
            *lane ^= word;
        }
    }
    lanes.iter().fold(0, |all, lane| all ^ lane)
}

fn write(lines: &mut [Line]) {
    lines.fill(Line([u64::MAX; 8]));
}

fn copy(from: &[Line], to: &mut [Line]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

fn narrow(from: &[Line], to: &mut [Line]) {
    for (to, from) in to.iter_mut().zip(from.as_chunks::<WIDE>().0) {
        *to = Line(std::array::from_fn(|word| {
            from.iter().fold(0, |all, line| all ^ line.0[word])
        }));
    }
}

fn widen(from: &[Line], to: &mut [Line]) {
    for (to, from) in to.as_chunks_mut::<WIDE>().0.iter_mut().zip(from) {
        *to = [*from; WIDE];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Backend;
    use tercet_core::number::Random;

    #[test]
    fn every_backend_moves_every_line() {
        let mut random = Random::new(3);
        let mut words = || Line([(); 8].map(|()| random.next_u64()));
        for lines in [0, 1, 3, 4, 17, 256] {
            let from: Vec<Line> = (0..lines).map(|_| words()).collect();
            let wide: Vec<Line> = from.iter().flat_map(|&line| [line; WIDE]).collect();
            let all = from.iter().flat_map(|line| line.0).fold(0, |a, b| a ^ b);
            for stream in Backend::all().map(Backend::stream) {
                for hint in [false, true] {
                    assert_eq!(stream.read(&from, hint), all);
                    let mut out = vec![Line::default(); lines];
                    stream.copy(&from, &mut out, hint);
                    assert_eq!(out, from);
                    stream.write(&mut out, hint);
                    assert!(out.iter().all(|line| line.0 == [u64::MAX; 8]));
                    // Four equal lines cancel.
                    stream.narrow(&wide, &mut out, hint);
                    assert!(out.iter().all(|line| line.0 == [0; 8]));
                    let mut out = vec![Line::default(); lines * WIDE];
                    stream.widen(&from, &mut out, hint);
                    assert_eq!(out, wide);
                }
            }
        }
    }
}
