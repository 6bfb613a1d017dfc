//! How much of the board a program takes, by the symbols of its linker script.

#[allow(
    unsafe_code,
    reason = "symbols of cortex-m-rt's linker script, of which only addresses are taken"
)]
mod symbols {
    unsafe extern "C" {
        pub(super) static __sidata: u8;
        pub(super) static __sdata: u8;
        pub(super) static __edata: u8;
        pub(super) static __sheap: u8;
    }
}

fn address(symbol: *const u8) -> u32 {
    symbol as usize as u32
}

/// Bytes of flash: vectors, code, constants, and what statics start as. Flash begins at address 0.
pub fn flash() -> u32 {
    address(&raw const symbols::__sidata) + data()
}

/// Bytes of RAM that statics take.
pub fn statics() -> u32 {
    address(&raw const symbols::__sheap) - address(&raw const symbols::__sdata)
}

fn data() -> u32 {
    address(&raw const symbols::__edata) - address(&raw const symbols::__sdata)
}
