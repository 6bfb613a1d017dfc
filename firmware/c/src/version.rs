//! The version of this library.

/// The major version; a different one may break callers.
pub const TERCET_VERSION_MAJOR: u32 = 0;
/// The minor version; while the major version is 0, a different one may break callers too.
pub const TERCET_VERSION_MINOR: u32 = 1;
/// The patch version.
pub const TERCET_VERSION_PATCH: u32 = 0;

/// Returns the version of the linked library, `major << 16 | minor << 8 | patch`. It equals `TERCET_VERSION` of the
/// header that belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn tercet_version() -> u32 {
    TERCET_VERSION_MAJOR << 16 | TERCET_VERSION_MINOR << 8 | TERCET_VERSION_PATCH
}
