// Bad accesses and endless loops of kernels, made into errors of the launch.
#include "signals.h"

#include "threads.h"

#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <sys/time.h>

// The sanitizer has handlers of its own, whose reports say more.
#if !defined(__SANITIZE_ADDRESS__)
namespace emulator {
namespace {
constexpr int CAUGHT[] = {SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM};
// Processor time after which a launch counts as endless.
constexpr int SECONDS = 120;

Fiber *back = nullptr;
pthread_t runner;
struct sigaction before[4];
// Handlers cannot run on the stack of a fiber that has overflowed.
alignas(16) char handler_stack[64 << 10];
stack_t stack_before;

void on_signal(int signal, siginfo_t *info, void *) {
    bool mine = pthread_equal(runner, pthread_self()) != 0;
    if (signal == SIGVTALRM && !mine) {
        // The system picks any thread for a timer.
        pthread_kill(runner, SIGVTALRM);
        return;
    }
    if (!inside() || !mine) {
        // Not a kernel's: what was there before gets it, when the instruction is run again.
        for (size_t i = 0; i < 4; i++) {
            sigaction(CAUGHT[i], &before[i], nullptr);
        }
        return;
    }
    char text[128];
    if (signal == SIGVTALRM) {
        snprintf(text, sizeof text, "a launch takes more than %d s: an endless loop?", SECONDS);
        record_failure(LAUNCH_TIMEOUT, text);
    } else if (in_guard(*current->fiber, info->si_addr)) {
        record_failure(LAUNCH_FAILED, "a thread's stack overflows");
    } else if (signal == SIGFPE) {
        record_failure(LAUNCH_FAILED, "an integer divided by zero");
    } else {
        snprintf(text, sizeof text, "an access at %p, where there is no memory", info->si_addr);
        record_failure(ILLEGAL_ADDRESS, text);
    }
    // The handler never returns, so its signal is let in again by hand.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    switch_stack(*current->fiber, *back, true);
}

void set_timer(int seconds) {
    itimerval timer = {{0, 0}, {seconds, 0}};
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}
} // namespace

Signals::Signals(Fiber &to) {
    back = &to;
    runner = pthread_self();
    stack_t stack = {};
    stack.ss_sp = handler_stack;
    stack.ss_size = sizeof handler_stack;
    sigaltstack(&stack, &stack_before);
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (size_t i = 0; i < 4; i++) {
        sigaction(CAUGHT[i], &action, &before[i]);
    }
    set_timer(SECONDS);
}

Signals::~Signals() {
    set_timer(0);
    for (size_t i = 0; i < 4; i++) {
        sigaction(CAUGHT[i], &before[i], nullptr);
    }
    sigaltstack(&stack_before, nullptr);
}
} // namespace emulator
#else
namespace emulator {
Signals::Signals(Fiber &) {}
Signals::~Signals() {}
} // namespace emulator
#endif
