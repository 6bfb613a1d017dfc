//! Code that all programs of this package link: the first 256 bytes of flash, which the boot ROM runs to set up the
//! flash chip.

#![no_std]

// SAFETY: The linker script puts this section where the boot ROM looks for it, and nothing else there.
#[unsafe(link_section = ".boot2")]
#[used]
#[allow(unsafe_code, reason = "an attribute that places a static")]
static BOOT2: [u8; 256] = rp2040_boot2::BOOT_LOADER_W25Q080;
