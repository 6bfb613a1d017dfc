// Launches: what the real driver refuses at the call, what a device finds when it runs them.
#include "../device/block.h"
#include "launched.h"
#include "memory.h"
#include "module.h"
#include "options.h"
#include "stream.h"

#include <cstdio>

namespace emulator {
namespace {
// A launch with its parameters' values, copied at the call.
struct Queued {
    const Kernel *kernel;
    Context *context;
    dim3 grid, block;
    unsigned shared_bytes;
    Dice dice;
    std::vector<unsigned long long> words;

    CUresult run();
};

// A pointer to nothing a device knows would fault as soon as a thread follows it; here before.
std::string bad_pointer(const Queued &launch) {
    for (unsigned i = 0; i < launch.kernel->count; i++) {
        auto at = uintptr_t(launch.words[i]);
        if (!launch.kernel->parameters[i].pointer || at == 0) {
            continue;
        }
        const Allocation *found = holding(at);
        if (found == nullptr || !reachable(*launch.context, *found)) {
            const char *what = found == nullptr ? " points to no memory of a device"
                               : found->there   ? " points to memory of a device without peer access"
                                                : " points to memory of a graph that is not there now";
            return std::string(launch.kernel->name) + ": parameter " + std::to_string(i) + what;
        }
    }
    return {};
}

CUresult Queued::run() {
    if (CUresult lost = due("lost")) {
        state().message = "the device is lost, as was asked for";
        return lost;
    }
    std::string bad = bad_pointer(*this);
    if (!bad.empty()) {
        state().message = bad;
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    std::vector<void *> values;
    for (unsigned long long &word : words) {
        values.push_back(&word);
    }
    count("blocks", 1ull * grid.x * grid.y * grid.z);
    count("threads", 1ull * grid.x * grid.y * grid.z * block.x * block.y * block.z);
    launched(kernel->name);
    Outcome outcome = emulator::run({kernel, grid, block, shared_bytes, values.data(), dice.roll(), options().fragments});
    if (outcome.error == 0 && !check_launched(kernel->name)) {
        outcome = {CUDA_ERROR_LAUNCH_FAILED, state().message};
    }
    if (outcome.error != 0) {
        state().message = outcome.message;
        if (options().tell) {
            fprintf(stderr, "tercet emulator: %s\n", outcome.message.c_str());
        }
    }
    return CUresult(outcome.error);
}

void check_shape(dim3 grid, dim3 block, unsigned shared_bytes, const Function &function) {
    unsigned long long threads = 1ull * block.x * block.y * block.z;
    if (threads == 0 || 1ull * grid.x * grid.y == 0 || grid.z == 0) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
    if (block.x > 1024 || block.y > 1024 || block.z > 64 || threads > function.max_threads || grid.x > 0x7FFFFFFF || grid.y > 65535 ||
        grid.z > 65535) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
    if (shared_bytes > function.max_dynamic_shared || shared_bytes + function.shared_bytes > shared_most(*function.module->context->device)) {
        throw Error{CUDA_ERROR_INVALID_VALUE};
    }
}

void launch(Context &context, CUfunction handle, dim3 grid, dim3 block, unsigned shared_bytes, CUstream on, void **values) {
    Function &function = valid(handle);
    Stream &stream = stream_of(context, on);
    check_shape(grid, block, shared_bytes, function);
    reach("launch");
    if (function.kernel->count != 0) {
        given(values);
    }
    Queued queued = {function.kernel, stream.context, grid, block, shared_bytes, {dice().roll()}, {}};
    for (unsigned i = 0; i < function.kernel->count; i++) {
        unsigned long long word = 0;
        memcpy(&word, &given(static_cast<char *>(values[i])), function.kernel->parameters[i].bytes);
        queued.words.push_back(word);
    }
    submit(stream, "launches", [queued]() mutable { return queued.run(); });
}
} // namespace
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream on, void **values,
                                   void **extra) {
    return in_context([&](Context &context) {
        if (extra != nullptr) {
            throw Error{CUDA_ERROR_NOT_SUPPORTED};
        }
        launch(context, function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, on, values);
    });
}

// Blocks run one after another, so none can wait for all.
TERCET_API CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                                              void **) {
    return in_context([&](Context &) { throw Error{CUDA_ERROR_NOT_SUPPORTED}; });
}

namespace emulator {
namespace {
// Blocks that fit a multiprocessor by threads and shared memory; registers are not known here.
int blocks_that_fit(const Function &function, int threads, size_t shared_bytes) {
    if (threads <= 0 || threads > int(function.max_threads)) {
        return 0;
    }
    unsigned most = shared_most(*function.module->context->device);
    size_t shared = shared_bytes + function.shared_bytes;
    if (shared > most) {
        return 0;
    }
    size_t by_threads = size_t(options().major == 7 ? 1024 : 2048) / size_t((threads + 31) / 32 * 32);
    size_t by_shared = shared == 0 ? 32 : most / shared;
    size_t fit = by_threads < by_shared ? by_threads : by_shared;
    return int(fit < 32 ? fit : 32);
}
} // namespace
} // namespace emulator

TERCET_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction function, int threads,
                                                                         size_t shared_bytes, unsigned) {
    return in_context([&](Context &) { given(out) = blocks_that_fit(valid(function), threads, shared_bytes); });
}
TERCET_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction function, int threads, size_t shared_bytes) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, threads, shared_bytes, 0);
}
TERCET_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle, size_t (*shared_of)(int),
                                                              size_t shared_bytes, int limit, unsigned) {
    return in_context([&](Context &) {
        const Function &function = valid(handle);
        int best = 0, most = 0;
        int top = limit > 0 && limit < int(function.max_threads) ? limit : int(function.max_threads);
        for (int threads = 32; threads <= top; threads += 32) {
            int fit = blocks_that_fit(function, threads, shared_of != nullptr ? shared_of(threads) : shared_bytes);
            if (fit * threads >= most) {
                most = fit * threads;
                best = threads;
            }
        }
        given(block) = best;
        given(grid) = best == 0 ? 0 : most / best * options().multiprocessors;
    });
}
TERCET_API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle, size_t (*shared_of)(int),
                                                     size_t shared_bytes, int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, handle, shared_of, shared_bytes, limit, 0);
}
TERCET_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *out, CUfunction handle, int blocks, int) {
    return in_context([&](Context &context) {
        const Function &function = valid(handle);
        size_t part = shared_most(*context.device) / size_t(blocks > 0 ? blocks : 1);
        given(out) = part > function.shared_bytes ? part - function.shared_bytes : 0;
    });
}
