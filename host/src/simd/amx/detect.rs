//! Detects whether tiles may be used.

use std::arch::x86_64::{__cpuid, __cpuid_count, __get_cpuid_max, _xgetbv};
use std::sync::OnceLock;

/// True if the processor has int8 tiles that multiply correctly, the system saves them for each thread, and this
/// process may use them.
///
/// The first call requests them from the system for all threads of the process, including later ones; so it must come
/// before any use of tiles.
pub(in crate::simd) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        // SAFETY: the system has just permitted them.
        has_tiles() && is_kept() && is_permitted() && unsafe { super::check::multiplies() }
    })
}

/// Checks CPUID for AMX-TILE and AMX-INT8, with eight tiles of 16 rows of 64 bytes.
fn has_tiles() -> bool {
    // SAFETY: x86-64 has CPUID; the leaves are there.
    #[allow(unused_unsafe, reason = "later compilers know that CPUID is safe")]
    unsafe {
        if __get_cpuid_max(0).0 < 0x1D {
            return false;
        }
        let features = __cpuid_count(7, 0).edx;
        let palette = __cpuid_count(0x1D, 1);
        features & (0b11 << 24) == 0b11 << 24
            && (palette.eax >> 16, palette.ebx, palette.ecx & 0xFFFF) == (1024, 8 << 16 | 64, 16)
    }
}

/// Checks XCR0: the system saves and restores the tiles and their configuration.
fn is_kept() -> bool {
    #[target_feature(enable = "xsave")]
    fn enabled() -> u64 {
        // SAFETY: the caller found that XGETBV may be used.
        unsafe { _xgetbv(0) }
    }
    #[allow(unused_unsafe, reason = "as above")]
    // SAFETY: x86-64 has CPUID, and bit 27, OSXSAVE, says that the system lets programs use XGETBV.
    unsafe {
        let os_xsave = __cpuid(1).ecx & 1 << 27 != 0;
        os_xsave && enabled() & (0b11 << 17) == 0b11 << 17
    }
}

/// Linux gives a process the 8 KiB per thread for tiles only on request; a process that uses tiles without it is
/// killed.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XFEATURE_XTILEDATA: u64 = 18;
    let status: i64;
    // SAFETY: the call reads and writes no memory of ours; it gives 0, or an error below it (kernels before 5.16).
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => status,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    status == 0
}

/// Other systems have not been tried.
#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}
