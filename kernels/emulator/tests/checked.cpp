// What the `check` variant alone sees: races, and memory that nobody wrote; and right programs it lets pass.
#include "harness.h"

#include <cstring>

namespace {
void fresh() {
    CUcontext context;
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

// The sentence that ends a launch, or none for a right one. For each of a few seeds, since what runs first is drawn.
template <typename... P>
void expect(const char *sentence, const char *name, const std::vector<std::string> &types, unsigned blocks, unsigned threads,
            unsigned shared, size_t words, size_t written, P... parameters) {
    for (int seed = 1; seed <= 5; seed++) {
        tercet_emulator_configure(("seed=" + std::to_string(seed)).c_str());
        CUfunction kernel = function_of(name, types);
        CUdeviceptr at = device_memory(words * 4);
        OK(cuMemsetD8Async(at, 0, written * 4, nullptr));
        OK(launch(kernel, blocks, threads, shared, nullptr, at, parameters...));
        CUresult error = cuCtxSynchronize();
        if ((error == CUDA_SUCCESS) != (sentence == nullptr) ||
            (sentence != nullptr && strstr(tercet_emulator_message(), sentence) == nullptr)) {
            fprintf(stderr, "%s, seed %d: error %d, \"%s\", expected \"%s\"\n", name, seed, error, tercet_emulator_message(),
                    sentence == nullptr ? "nothing" : sentence);
            exit(1);
        }
        fresh();
    }
}
} // namespace

int main() {
    start();
    // Whichever thread comes first: it reads before the write, or after it.
    expect("shared memory", "test_racy", {"u64"}, 1, 64, 0, 64, 64);
    expect("a race in global memory", "test_last_block", {"u64"}, 4, 1, 0, 1, 1);
    // It reads before the write, after it, or what nobody wrote.
    expect("shared memory", "test_warp_order", {"u64", "u32"}, 1, 32, 0, 32, 32, 0u);
    expect(nullptr, "test_warp_order", {"u64", "u32"}, 1, 32, 0, 32, 32, 1u);
    expect(nullptr, "test_own_shared", {"u64"}, 4, 32, 0, 1, 1);
    expect("a race in global memory", "test_block_order", {"u64", "u32"}, 8, 1, 0, 1, 1, 0u);
    expect(nullptr, "test_block_order", {"u64", "u32"}, 8, 32, 0, 1, 1, 1u);
    // In the order of mistakes.cu; the first is none.
    for (unsigned how = 0; how < 6; how++) {
        for (int seed = 1; seed <= 3; seed++) {
            tercet_emulator_configure(("seed=" + std::to_string(seed)).c_str());
            CUdeviceptr done = upload(std::vector<unsigned>(18, 0)), parts = upload(std::vector<unsigned>(16 * 64, 0));
            CUfunction kernel = function_of("test_last_sums", {"u64", "u64", "u32"});
            OK(launch(kernel, 16, 64, 0, nullptr, parts, done, how));
            GIVES(how == 0 ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
            CHECK(how == 0 ? download<unsigned>(done, 1)[0] == 1024 : strstr(tercet_emulator_message(), "a race in global memory") != nullptr);
            fresh();
        }
    }
    expect(nullptr, "test_partly_written", {"u64", "u32"}, 1, 32, 4, 32, 32, 4u);
    expect("shared memory that nobody wrote", "test_partly_written", {"u64", "u32"}, 1, 32, 4, 32, 32, 3u);
    CUdeviceptr done = 0;
    done = device_memory(4);
    // 16 words of 17 written; thread 16 reads the last.
    {
        CUfunction kernel = function_of("test_reads_unwritten", {"u64", "u64"});
        CUdeviceptr in = device_memory(68);
        OK(cuMemsetD8Async(in, 1, 64, nullptr));
        OK(launch(kernel, 1, 1, 0, nullptr, in + 60, done));
        OK(cuCtxSynchronize());
        OK(launch(kernel, 1, 1, 0, nullptr, in + 64, done));
        GIVES(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
        CHECK(strstr(tercet_emulator_message(), "nobody wrote") != nullptr);
        // A line of the source, or of its PTX.
        CHECK(strstr(tercet_emulator_message(), "mistakes.") != nullptr);
        fresh();
    }
    expect("shared memory that nobody wrote", "test_unwritten", {"u64"}, 1, 32, 0, 1, 1);
    expect("shared memory that nobody wrote", "test_unwritten_template", {"u64"}, 1, 32, 0, 1, 1);
    // To the byte.
    expect(nullptr, "test_beyond", {"u64", "u32"}, 1, 1, 0, 25, 25, 24u);
    expect("4 bytes at 100 of 100 bytes", "test_beyond", {"u64", "u32"}, 1, 1, 0, 25, 25, 25u);
    expect(nullptr, "test_beyond_dynamic", {"u64", "u32"}, 1, 1, 64, 1, 1, 15u);
    expect("no memory of the device", "test_beyond_dynamic", {"u64", "u32"}, 1, 1, 64, 1, 1, 16u);
    // Copies of no bytes read none, also where nothing is: at null, and behind the word that there is.
    for (unsigned long long step : {0ull, 4ull}) {
        expect(nullptr, "test_copies_nothing", {"u64", "u64", "u32"}, 1, 1, 0, 1, 1, step, 0u);
        expect("a thread reads 16 bytes", "test_copies_nothing", {"u64", "u64", "u32"}, 1, 1, 0, 1, 1, step, 16u);
    }
    // Right ones.
    expect(nullptr, "test_own_places", {"u64"}, 4, 32, 0, 128, 128);
    expect(nullptr, "test_places", {"u64"}, 4, 64, 0, 256, 256);
}
