//! The board's memory that a program takes, from the symbols of its linker script.

#[allow(
    unsafe_code,
    reason = "symbols of the linker scripts of cortex-m-rt and riscv-rt, of which only addresses are taken"
)]
mod symbols {
    unsafe extern "C" {
        #[cfg_attr(target_arch = "arm", link_name = "__vector_table")]
        #[cfg_attr(target_arch = "riscv32", link_name = "__stext")]
        pub(super) static FIRST: u8;
        pub(super) static __sidata: u8;
        pub(super) static __sdata: u8;
        pub(super) static __edata: u8;
        pub(super) static __sheap: u8;
    }
}

fn address(symbol: *const u8) -> u32 {
    symbol as usize as u32
}

/// Returns the bytes of flash: vectors, code, constants, and the initial values of statics.
pub fn flash() -> u32 {
    address(&raw const symbols::__sidata) - address(&raw const symbols::FIRST) + data()
}

/// Returns the bytes of RAM that statics take.
pub fn statics() -> u32 {
    address(&raw const symbols::__sheap) - address(&raw const symbols::__sdata)
}

fn data() -> u32 {
    address(&raw const symbols::__edata) - address(&raw const symbols::__sdata)
}
