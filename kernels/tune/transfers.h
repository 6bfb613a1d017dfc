// What is not a kernel's: copies on the device and over the bus, and the way to the device and back.
#pragma once

#include "measure.h"

// The shortest of several times that `work` takes on the processor's clock, in microseconds.
template <class Work>
double shortest(u32 turns, Work work) {
    double least = 0;
    for (u32 i = 0; i < turns; i++) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
        least = i == 0 ? taken.count() : std::min(least, taken.count());
    }
    return least;
}

// What all else is compared with: a copy of random words, of 4 bytes a value.
inline void copied(const Device &device, u64 size, Result &result) {
    const Bytes words = bells(size, 30).bytes;
    const Sets sets(device, {{words}, {unwritten(size * 4)}}, false);
    auto copy = [&](size_t i) { CALL(cuMemcpyDtoDAsync_v2, sets.at(i)[1], sets.at(i)[0], size * 4, device.stream); };
    copy(0);
    result.right = sets.read(device, 1) == words ? "yes" : "WRONG: not what was copied";
    result.microseconds = replayed(device, std::max<size_t>(LAUNCHES, sets.sets.size()), copy);
    result.bytes = 8.0 * (double)size;
}

// Pinned memory to the device or back, in as many pieces as streams.
inline void transferred(u64 size, bool back, u32 count, Result &result) {
    const Bytes words = bells(size, 31).bytes;
    const PinnedMemory pinned(words.size());
    const DeviceMemory memory(words.size());
    u8 *const host = static_cast<u8 *>(pinned.at);
    std::vector<void *> streams(count);
    for (void *&stream : streams) CALL(cuStreamCreate, &stream, 1);
    auto move = [&](bool to_host) {
        const size_t piece = words.size() / count;
        for (u32 i = 0; i < count; i++) {
            if (to_host) {
                CALL(cuMemcpyDtoHAsync_v2, host + i * piece, memory.at + i * piece, piece, streams[i]);
            } else {
                CALL(cuMemcpyHtoDAsync_v2, memory.at + i * piece, host + i * piece, piece, streams[i]);
            }
        }
        for (void *stream : streams) CALL(cuStreamSynchronize, stream);
    };
    memcpy(host, words.data(), words.size());
    move(false);
    memset(host, 0, words.size());
    move(true);
    result.right = memcmp(host, words.data(), words.size()) == 0 ? "yes" : "WRONG: not what was copied";
    result.microseconds = shortest(5, [&] { move(back); });
    result.bytes = (double)words.size();
    for (void *stream : streams) CALL(cuStreamDestroy_v2, stream);
}

// A launch that adds four numbers to four others, and the 32 bytes of their sums: what a step costs that the processor waits for.
inline void there_and_back(const Device &device, const std::string &ptx, Result &result) {
    const Kernel kernel(ptx, "reduce_sum", 0);
    const std::vector<u64> own = {1, 2, 3, 4}, others = {50, 60, 70, 80}, sums = {51, 62, 73, 84};
    const Sets sets(device, {{bytes_of(own)}, {bytes_of(others)}, {unwritten(32)}}, true);
    const PinnedMemory pinned(32);
    const std::vector<u64> at = sets.at(0);
    const Launch launch = {1, 1, {at[0], at[1], u32(1), u64(4), u32(0), at[2]}};
    check_parameters(ptx, "reduce_sum", launch);
    result.registers = kernel.registers;
    result.local = kernel.local;
    result.microseconds = shortest(200, [&] {
        kernel.launch(device, launch);
        CALL(cuMemcpyDtoHAsync_v2, pinned.at, at[2], 32, device.stream);
        device.wait();
    });
    result.right = memcmp(pinned.at, sums.data(), 32) == 0 ? "yes" : "WRONG: not the sums";
}
