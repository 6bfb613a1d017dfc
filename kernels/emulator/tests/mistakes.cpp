// Mistakes of kernels are seen: each ends its launch with an error and a sentence, or shows in the result.
#include "harness.h"

#include <cstring>
#include <set>

namespace {
// Each mistake loses the context, as on a device; the next begins with a new one.
CUcontext fresh() {
    CUcontext context;
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

// Launches, waits, and looks for the error and its sentence.
template <typename... P>
void caught(CUresult error, const char *sentence, const char *name, const std::vector<std::string> &types, unsigned threads,
            unsigned shared, P... parameters) {
    CUfunction kernel = function_of(name, types);
    OK(launch(kernel, 1, threads, shared, nullptr, parameters...));
    GIVES(error, cuCtxSynchronize());
    if (strstr(tercet_emulator_message(), sentence) == nullptr) {
        fprintf(stderr, "%s: the message is \"%s\", not of \"%s\"\n", name, tercet_emulator_message(), sentence);
        exit(1);
    }
    // And the context stays lost.
    CUdeviceptr at;
    GIVES(error, cuMemAlloc_v2(&at, 16));
    fresh();
}

// How many different results ten seeds give.
template <typename... P>
size_t results(const char *name, unsigned blocks, unsigned threads, size_t words) {
    std::set<std::vector<unsigned>> seen;
    CUfunction kernel = function_of(name, {"u64"});
    for (int seed = 1; seed <= 10; seed++) {
        CHECK(tercet_emulator_configure(("seed=" + std::to_string(seed)).c_str()) == 0);
        CUdeviceptr out = upload(std::vector<unsigned>(words, 0));
        OK(launch(kernel, blocks, threads, 0, nullptr, out));
        seen.insert(download<unsigned>(out, words));
    }
    return seen.size();
}

void repeats() {
    CUfunction kernel = function_of("test_racy", {"u64"});
    std::vector<unsigned> first;
    for (int round = 0; round < 3; round++) {
        tercet_emulator_configure("seed=77");
        CUdeviceptr out = device_memory(256);
        OK(launch(kernel, 1, 64, 0, nullptr, out));
        auto now = download<unsigned>(out, 64);
        CHECK(round == 0 || now == first);
        first = now;
    }
}

void hasty_copy() {
    CUfunction kernel = function_of("test_hasty_copy", {"u64", "u64", "u32"});
    std::vector<unsigned> in(128, 5);
    CUdeviceptr from = upload(in), to = device_memory(128);
    OK(launch(kernel, 1, 32, 0, nullptr, from, to, 1u));
    CHECK(download<unsigned>(to, 32) == std::vector<unsigned>(32, 5));
    OK(launch(kernel, 1, 32, 0, nullptr, from, to, 0u));
    CHECK(download<unsigned>(to, 32) != std::vector<unsigned>(32, 5));
}
} // namespace

int main(int, char **arguments) {
    start();
    // "asan": the sanitizer ends the process, so the script looks at how.
    if (arguments[1] != nullptr) {
        std::string which = arguments[1];
        CUfunction kernel = function_of(which, {"u64", "u32"});
        CUdeviceptr out = device_memory(100);
        unsigned at = which == "test_beyond" ? 25 : which == "test_beyond_shared" ? 40 : 16;
        OK(launch(kernel, 1, 1, 64, nullptr, out, at - unsigned(arguments[2] != nullptr)));
        OK(cuCtxSynchronize());
        return 0;
    }
    CHECK(results("test_racy", 1, 64, 64) > 5);
    CHECK(results("test_last_block", 16, 1, 1) > 3);
    CHECK(results("test_unwritten", 4, 1, 4) > 5);
    CHECK(results("test_unwritten_template", 4, 1, 4) > 5);
    repeats();
    hasty_copy();
    CUdeviceptr out = device_memory(4096);
    caught(CUDA_ERROR_LAUNCH_FAILED, "left the kernel", "test_early_leave", {"u64"}, 64, 0, out);
    out = device_memory(4096);
    caught(CUDA_ERROR_LAUNCH_FAILED, "two barriers", "test_two_barriers", {"u64"}, 64, 0, out);
    out = device_memory(4096);
    caught(CUDA_ERROR_LAUNCH_FAILED, "for ever", "test_deadlock", {"u64"}, 32, 0, out);
    out = device_memory(4096);
    caught(CUDA_ERROR_LAUNCH_FAILED, "lanes of a warp part", "test_parted", {"u64"}, 32, 0, out);
    out = device_memory(4096);
    caught(CUDA_ERROR_MISALIGNED_ADDRESS, "16 bytes", "test_misaligned", {"u64"}, 1, 0, out);
    out = device_memory(4096);
    caught(CUDA_ERROR_ILLEGAL_ADDRESS, "no memory", "test_beyond", {"u64", "u32"}, 1, 0, out, 1024u);
    int local = 0;
    caught(CUDA_ERROR_ILLEGAL_ADDRESS, "points to no memory", "test_beyond", {"u64", "u32"}, 1, 0, CUdeviceptr(uintptr_t(&local)), 0u);
    caught(CUDA_ERROR_ILLEGAL_ADDRESS, "no memory", "test_last_block", {"u64"}, 1, 0, CUdeviceptr(0));
    out = device_memory(4096);
    caught(CUDA_ERROR_LAUNCH_FAILED, "divided by zero", "test_divide", {"u64", "u32"}, 1, 0, out, 0u);
}
