//! Lists of functions: their addresses, so that they are linked, and their names, so that none can be forgotten.

use core::any;

/// A function of arguments and result as the function pointer `P` has them. A path whose generic parameters cannot be written
/// out, as those of `impl Trait`, is inferred from it.
pub trait Signature<P>: Sized {}

macro_rules! signatures {
    ($($argument:ident)*) => {
        impl<F: Fn($($argument),*) -> R, R, $($argument),*> Signature<fn($($argument),*) -> R> for F {}
    };
}
signatures!(A);
signatures!(A B);
signatures!(A B C);
signatures!(A B C D);

/// The path at which a function is defined, with its generic arguments.
pub fn name<P, F: Signature<P>>(_: F) -> &'static str {
    any::type_name::<F>()
}

/// Two functions: `link` keeps the listed ones in the image, `names` passes on what they are called.
///
/// The compiler must assume of a function whose address is known elsewhere that it is called with anything.
macro_rules! reach {
    ($($path:expr $(=> $signature:ty)?),* $(,)?) => {
        pub fn link() {
            core::hint::black_box([$({
                reach!(@pointer $path $(=> $signature)?)
            }),*]);
        }

        pub fn names(each: &mut dyn FnMut(&str)) {
            for name in [$(reach!(@name $path $(=> $signature)?)),*] {
                each(name);
            }
        }
    };
    (@pointer $path:expr) => { $path as *const () };
    (@pointer $path:expr => $signature:ty) => {{ let function: $signature = $path; function as *const () }};
    (@name $path:expr) => { core::any::type_name_of_val(&$path) };
    (@name $path:expr => $signature:ty) => { crate::reach::name::<$signature, _>($path) };
}
pub(crate) use reach;
