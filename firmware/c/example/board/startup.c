/* From reset to main, on any Cortex-M. */
#include "board.h"
#include "../platform.h"

#include <stdint.h>
#include <stddef.h>
#include <string.h>

int main(void);

/* link.ld */
extern uint8_t data_start[], data_end[], bss_start[], bss_end[];
extern const uint8_t data_load[];
extern uint32_t stack_top[];

void reset(void) __attribute__((noreturn));

void reset(void) {
#ifdef __ARM_FP
    /* Full access to the floating-point unit (CPACR), before any code uses it. */
    *(volatile uint32_t *)0xE000ED88u |= 0xFu << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
    memcpy(data_start, data_load, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    board_exit(main());
}

static void fault(void) {
    platform_write("# fault\n");
    board_exit(1);
}

/* Initial stack, reset, NMI, hard fault: nothing here turns another exception on. */
__attribute__((section(".vectors"), used)) static const uintptr_t VECTORS[] = {
    (uintptr_t)stack_top,
    (uintptr_t)reset,
    (uintptr_t)fault,
    (uintptr_t)fault,
};
