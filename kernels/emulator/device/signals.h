// What the system tells of a kernel's mistakes: a bad address, and a launch that never ends.
#pragma once

#include "fiber.h"

namespace emulator {
// While it lives, a bad access on a thread's stack ends the launch instead of the process.
class Signals {
  public:
    explicit Signals(Fiber &scheduler);
    ~Signals();
};
} // namespace emulator
