//! Loops for processors without vectors. Kernels for the target are reached through [`crate::linear`] and
//! [`crate::cluster`].

use tercet_core::arch::portable;
use tercet_core::linear::{I8Sym, Matrix};

use crate::given::Seen;

use crate::reach::reach;

reach! {
    portable::dot::<i8>,
    portable::dots::<i8>,
    portable::norm,
    portable::nearest,
    portable::int8::sums => fn(&'static Matrix<'static>, I8Sym<'static>, &'static mut Seen),
}
