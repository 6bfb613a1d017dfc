// Products of a warpgroup against loops that say what they mean, and every mistake with its sentence.
#include "harness.h"

#include <cstring>

namespace {
unsigned state = 77;
signed char draw() {
    state = state * 1664525 + 1013904223;
    return static_cast<signed char>(state >> 23);
}

void products() {
    CUfunction kernel = function_of("test_wgmma", {"u64", "u64", "u64", "u64", "u32", "u32"});
    OK(cuFuncSetAttribute(kernel, 8, 64 << 10));
    for (unsigned round = 0; round < 16; round++) {
        const unsigned swizzle = round % 4;
        // 32 bytes of rows of 16 (two of them), 128, 64, 32.
        const unsigned width = swizzle == 0 ? 32 : 256 >> swizzle, column = round / 4 * 32 % width;
        std::vector<signed char> a(64 * 32), b(128 * 32);
        for (auto &value : a) {
            value = round == 0 ? -128 : draw();
        }
        for (auto &value : b) {
            value = round == 0 ? -128 : draw();
        }
        std::vector<int> d(64 * 128), want(64 * 128);
        const bool add = round % 3 != 0;
        for (int i = 0; i < 64 * 128; i++) {
            d[i] = draw() * 65536;
            int product = 0;
            for (int k = 0; k < 32; k++) {
                product += a[i / 128 * 32 + k] * b[i % 128 * 32 + k];
            }
            want[i] = (add ? d[i] : 0) + 2 * product;
        }
        CUdeviceptr pa = upload(a), pb = upload(b), pd = upload(d), out = device_memory(4 * 64 * 128);
        OK(launch(kernel, 1, 128, 25 << 10, nullptr, pa, pb, add ? pd : 0, out, swizzle, column));
        CHECK(download<int>(out, 64 * 128) == want);
        // As a device would whose sums lay otherwise.
        CHECK(tercet_emulator_configure("fragments=0") == 0);
        OK(launch(kernel, 1, 128, 25 << 10, nullptr, pa, pb, add ? pd : 0, out, swizzle, column));
        CHECK((download<int>(out, 64 * 128) == want) == (round == 0));
        CHECK(tercet_emulator_configure("fragments=1") == 0);
    }
}

// What a mistake ends with; null for a right result.
void expect(const char *message, unsigned mistake, unsigned threads = 128, CUresult error = CUDA_ERROR_LAUNCH_FAILED) {
    CUfunction kernel = function_of("test_wgmma_mistake", {"u64", "u32"});
    CUdeviceptr out = device_memory(4 * 128);
    OK(launch(kernel, 1, threads, 20 << 10, nullptr, out, mistake));
    if (message == nullptr) {
        OK(cuCtxSynchronize());
        std::vector<int> found = download<int>(out, 128);
        CHECK((found == std::vector<int>(128, 32)) == (mistake == 0));
        return;
    }
    GIVES(error, cuCtxSynchronize());
    if (strstr(tercet_emulator_message(), message) == nullptr) {
        fprintf(stderr, "mistake %u: \"%s\" is not in \"%s\"\n", mistake, message, tercet_emulator_message());
        exit(1);
    }
    // The failure stays with the context, as on a device; the next begins with a new one.
    CUcontext context;
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

// In the order of warpgroup.cu.
enum {
    NOTHING,
    NO_FENCE,
    NO_FENCE_AGAIN,
    NO_PROXY_FENCE,
    NO_WAIT,
    NO_COMMIT,
    WAIT_FOR_FEW,
    OUTSIDE,
    MIDDLE_OF_PATTERN,
    OVER_THE_ROW,
    BASE_OFFSET,
    NO_MEANING,
    OTHER_DESCRIPTOR,
    OTHER_CALL,
    FEWER_CALLS,
    MEMORY_WRITTEN,
    SUMS_WRITTEN,
    STATIC_MEMORY,
};

void mistakes(bool checked) {
    expect(nullptr, NOTHING);
    expect("without wgmma.fence", NO_FENCE);
    expect("without wgmma.fence", NO_FENCE_AGAIN);
    if (checked) {
        expect("wrote without fence.proxy.async", NO_PROXY_FENCE);
    }
    expect("never waited for", NO_WAIT);
    expect("never waited for", NO_COMMIT);
    expect(nullptr, WAIT_FOR_FEW);
    expect("reaches out of dynamic shared memory", OUTSIDE, 128, CUDA_ERROR_ILLEGAL_ADDRESS);
    expect("does not begin in the first row", MIDDLE_OF_PATTERN, 128, CUDA_ERROR_MISALIGNED_ADDRESS);
    expect("leave the row", OVER_THE_ROW, 128, CUDA_ERROR_MISALIGNED_ADDRESS);
    expect("has a base offset", BASE_OFFSET);
    expect("bits set that mean nothing", NO_MEANING);
    expect("or with other values", OTHER_DESCRIPTOR);
    expect("warps of a warpgroup part", OTHER_CALL);
    expect("never", FEWER_CALLS);
    expect(checked ? "shared memory" : "shared memory was written while", MEMORY_WRITTEN);
    expect("accumulators were written", SUMS_WRITTEN);
    // Where the address is asked for, or where products read.
    expect("dynamic", STATIC_MEMORY, 128, CUDA_ERROR_ILLEGAL_ADDRESS);
    expect("without four warps of 32 threads", NOTHING, 96);
    expect("without four warps of 32 threads", NOTHING, 120);
}
} // namespace

int main(int count, char **) {
    start();
    products();
    // Any argument says that loads and stores are checked.
    mistakes(count > 1);
}
