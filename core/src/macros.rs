//! One way to declare an error enum.

/// Declares a small `Copy` error enum with `Display`, `core::error::Error` and, behind the
/// `defmt` feature, `defmt::Format`.
///
/// Each variant carries its message once; fields appear in it by name.
macro_rules! error_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $(
                $(#[$vmeta:meta])*
                $variant:ident $({ $($(#[$fmeta:meta])* $field:ident : $ty:ty),+ $(,)? })? => $message:literal
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vmeta])* $variant $({ $($(#[$fmeta])* $field: $ty),+ })?),+
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {
                    $(Self::$variant $({ $($field),+ })? => write!(f, $message)),+
                }
            }
        }

        impl core::error::Error for $name {}
    };
}
