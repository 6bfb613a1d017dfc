// Shared memory of a block: the static variables of kernels and the dynamic bytes of a launch.
#pragma once

#include <cstddef>

namespace emulator {
// Dynamic shared memory of a launch, of exactly its size.
class DynamicShared {
  public:
    explicit DynamicShared(unsigned bytes);
    ~DynamicShared();
    void spoil(unsigned long long seed);

  private:
    size_t bytes;
};
// Where an address of the window lies, for 16 bytes of dynamic shared memory; null outside it.
const unsigned char *shared_at(unsigned address);
} // namespace emulator
