/* Text and exit through semihosting: QEMU or any debugger answers. */
#include "board.h"
#include "../platform.h"

#include <stdint.h>

enum { SYS_WRITE0 = 0x04, SYS_EXIT = 0x18 };
enum { STOPPED_RUN_TIME_ERROR = 0x20023, STOPPED_APPLICATION_EXIT = 0x20026 };

static void semihost(uint32_t operation, uintptr_t argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void platform_write(const char *text) {
    semihost(SYS_WRITE0, (uintptr_t)text);
}

void board_exit(int status) {
    semihost(SYS_EXIT, status == 0 ? STOPPED_APPLICATION_EXIT : STOPPED_RUN_TIME_ERROR);
    for (;;) {
    }
}
