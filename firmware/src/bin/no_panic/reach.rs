//! Lists of functions. Taking their addresses links them; their names show if one is missing from the list.

use core::any;

/// A function with the arguments and the result of the function pointer `P`. A path whose generic parameters cannot be
/// written out, as those of `impl Trait`, is inferred from it.
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

/// Returns the path at which a function is defined, with its generic arguments.
pub fn name<P, F: Signature<P>>(_: F) -> &'static str {
    any::type_name::<F>()
}

/// Makes two functions: `link` keeps the listed functions in the image, and `names` passes on their names.
///
/// The compiler must assume that a function whose address is known elsewhere is called with any arguments.
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
