// Which kernels ran: for whoever asks what the tests reach.
#pragma once

namespace emulator {
// Adds a kernel's name to the file that TERCET_EMULATOR_LAUNCHED names, once in a process. Under the driver's lock.
void launched(const char *kernel);
} // namespace emulator
