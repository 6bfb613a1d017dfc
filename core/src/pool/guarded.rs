//! A pool with one owner behind critical sections.

use core::cell::RefCell;
use core::fmt;

use critical_section::Mutex;

/// A pool with one owner, such as a [`Ring`](super::Ring) or an [`Lru`](super::Lru), shared by threads and
/// interrupts. Each use is one critical section.
///
/// Needs the feature `critical-section` and, in the program, an implementation of that crate's sections. Interrupts
/// wait for the duration of a use.
///
/// ```
/// use tercet_core::pool::{Guarded, Ring};
///
/// static WINDOW: Guarded<Ring<i16, 16>> = Guarded::new(Ring::new(0));
///
/// // In the interrupt, one push:
/// WINDOW.with(|window| window.push(7));
/// // In the program, one copy:
/// let mut samples = [0; 16];
/// let held = WINDOW.with(|window| window.copy_to(&mut samples));
/// assert_eq!(held.map(|held| &samples[..held]), Some(&[7][..]));
/// // A use within a use is refused, not a panic.
/// assert_eq!(WINDOW.with(|_| WINDOW.with(|window| window.len())), Some(None));
/// ```
pub struct Guarded<P>(Mutex<RefCell<P>>);

impl<P> Guarded<P> {
    /// Creates a guard around a pool.
    pub const fn new(pool: P) -> Self {
        Self(Mutex::new(RefCell::new(pool)))
    }

    /// Runs `f` on the pool in a critical section. Inside another `with` of the same pool it returns `None` without
    /// running it.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut P) -> R) -> Option<R> {
        critical_section::with(|section| {
            let mut pool = self.0.borrow(section).try_borrow_mut().ok()?;
            Some(f(&mut pool))
        })
    }

    /// Returns the pool itself, while nobody else can use it.
    pub fn get_mut(&mut self) -> &mut P {
        self.0.get_mut().get_mut()
    }

    /// Returns the pool itself, without the guard.
    pub fn into_inner(self) -> P {
        self.0.into_inner().into_inner()
    }
}

impl<P> fmt::Debug for Guarded<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}
