// The switch between stacks: by a few instructions on x86-64 and aarch64, by ucontext elsewhere.
#include "fiber.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {
namespace {
// Red zones and checks take room on the stack.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t STACK = 256 << 10;
#else
constexpr size_t STACK = 64 << 10;
#endif
constexpr size_t GUARD = 4 << 10;

#if defined(__SANITIZE_ADDRESS__)
// The main stack's bounds as the sanitizer names them when it is left.
Fiber *main_fiber = nullptr;
const void *main_bottom = nullptr;
size_t main_size = 0;
bool left_main = false;
#endif
} // namespace

#if defined(__x86_64__)
// Registers that a call preserves, then the stack's place; the floating-point modes are the same in every fiber. It ends in a jump,
// since the processor predicts that a `ret` goes back to its own caller, and is wrong each time.
asm(R"(
.text
.type tercet_switch, @function
tercet_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
.size tercet_switch, .-tercet_switch
)");
extern "C" __attribute__((visibility("hidden"))) void tercet_switch(void **save, void *load);
#elif defined(__aarch64__)
asm(R"(
.text
.type tercet_switch, %function
tercet_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size tercet_switch, .-tercet_switch
)");
extern "C" __attribute__((visibility("hidden"))) void tercet_switch(void **save, void *load);
#endif

void prepare(Fiber &fiber, unsigned colour, void (*entry)()) {
    if (fiber.stack == nullptr) {
        void *map = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED || mprotect(map, GUARD, PROT_NONE) != 0) {
            abort();
        }
        fiber.stack = static_cast<char *>(map) + GUARD;
    }
#if defined(__SANITIZE_ADDRESS__)
    // What was left in mid-run left its red zones behind.
    __asan_unpoison_memory_region(fiber.stack, STACK);
#endif
    uintptr_t end = reinterpret_cast<uintptr_t>(fiber.stack) + STACK - colour % 61 * 64;
#if defined(__x86_64__)
    // Six registers, the address that the switch goes to, and one word more so that the entry finds the stack as after a call.
    auto *top = reinterpret_cast<uintptr_t *>(end) - 8;
    memset(top, 0, 8 * sizeof *top);
    top[6] = reinterpret_cast<uintptr_t>(entry);
    fiber.top = top;
#elif defined(__aarch64__)
    auto *top = reinterpret_cast<uintptr_t *>(end) - 20;
    memset(top, 0, 20 * sizeof *top);
    top[11] = reinterpret_cast<uintptr_t>(entry);
    fiber.top = top;
#else
    auto *context = static_cast<ucontext_t *>(fiber.top);
    context = context == nullptr ? new ucontext_t : context;
    getcontext(context);
    context->uc_stack.ss_sp = fiber.stack;
    context->uc_stack.ss_size = STACK;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    fiber.top = context;
    (void)end;
#endif
}

void switch_stack(Fiber &from, Fiber &to, bool leaving_for_good) {
#if defined(__SANITIZE_ADDRESS__)
    void *fake = nullptr;
    if (from.stack == nullptr) {
        main_fiber = &from;
        left_main = true;
    }
    bool to_main = &to == main_fiber;
    __sanitizer_start_switch_fiber(leaving_for_good ? nullptr : &fake, to_main ? main_bottom : to.stack,
                                   to_main ? main_size : STACK);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    tercet_switch(&from.top, to.top);
#else
    if (from.top == nullptr) {
        from.top = new ucontext_t;
    }
    swapcontext(static_cast<ucontext_t *>(from.top), static_cast<ucontext_t *>(to.top));
#endif
    (void)leaving_for_good;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void arrived() {
#if defined(__SANITIZE_ADDRESS__)
    const void *bottom = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
    // A new fiber is always reached from the main stack.
    if (left_main) {
        main_bottom = bottom;
        main_size = size;
        left_main = false;
    }
#endif
}

bool in_guard(const Fiber &fiber, const void *address) {
    auto *at = static_cast<const char *>(address);
    return fiber.stack != nullptr && at >= fiber.stack - GUARD && at < fiber.stack;
}
} // namespace emulator
