//! The macro that declares the crate's error enums.

/// Declares a small `Copy` error enum with `Display`, `core::error::Error` and, behind the
/// `defmt` feature, `defmt::Format`.
///
/// Each variant states its message once. The message refers to fields by name.
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
