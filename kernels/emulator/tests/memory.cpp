// Memory is limited, spoiled and counted; pools hold what they may.
#include "harness.h"

#include <cstring>

namespace {
constexpr size_t MIB = 1 << 20;

size_t free_bytes() {
    size_t free, total;
    OK(cuMemGetInfo_v2(&free, &total));
    CHECK(total == 64 * MIB);
    return free;
}

unsigned long long of(CUmemoryPool pool, int attribute) {
    unsigned long long value;
    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}
enum { THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };

void plain_memory() {
    CHECK(free_bytes() == 64 * MIB);
    CUdeviceptr first = device_memory(40 * MIB), second;
    CHECK(first % 256 == 0);
    CHECK(free_bytes() == 24 * MIB);
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&second, 25 * MIB));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&second, 0));
    OK(cuMemAlloc_v2(&second, 24 * MIB));
    OK(cuMemFree_v2(first));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(first));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(second + 256));
    OK(cuMemFree_v2(second));
    OK(cuMemFree_v2(0));
    CHECK(free_bytes() == 64 * MIB);
}

void nothing_is_zero_by_luck() {
    CUdeviceptr at = device_memory(4096);
    std::vector<unsigned char> bytes = download<unsigned char>(at, 4096);
    int zeros = 0;
    for (unsigned char byte : bytes) {
        zeros += byte == 0;
    }
    CHECK(zeros < 4096);
    OK(cuMemsetD8Async(at, 0, 4096, nullptr));
    CHECK(download<unsigned char>(at, 4096) == std::vector<unsigned char>(4096, 0));
    OK(cuMemsetD32Async(at, 0x01020304, 1024, nullptr));
    CHECK(download<unsigned>(at, 1024) == std::vector<unsigned>(1024, 0x01020304));
    OK(cuMemFree_v2(at));
}

void copies_stay_inside() {
    CUdeviceptr at = device_memory(1000);
    std::vector<char> host(2000);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(at, host.data(), 1001));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(at + 1, host.data(), 1000));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(host.data(), CUdeviceptr(uintptr_t(host.data())), 10));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(at, 0, 1001, nullptr));
    OK(cuMemcpyHtoD_v2(at + 1000, host.data(), 0));
    OK(cuMemFree_v2(at));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(at, host.data(), 1));
}

void pools() {
    CUmemoryPool pool;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    CUstream stream;
    OK(cuStreamCreate(&stream, 1));
    CUdeviceptr a, b;
    OK(cuMemAllocAsync(&a, 10 * MIB, stream));
    OK(cuMemAllocAsync(&b, 20 * MIB, stream));
    CHECK(of(pool, USED) == 30 * MIB && of(pool, RESERVED) == 30 * MIB);
    OK(cuMemFreeAsync(b, stream));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(b, stream));
    OK(cuStreamSynchronize(stream));
    // Without a threshold a synchronization gives everything back.
    CHECK(of(pool, USED) == 10 * MIB && of(pool, RESERVED) == 10 * MIB && of(pool, USED_HIGH) == 30 * MIB);
    CHECK(free_bytes() == 54 * MIB);
    unsigned long long threshold = ~0ull, zero = 0;
    OK(cuMemPoolSetAttribute(pool, THRESHOLD, &threshold));
    OK(cuMemAllocAsync(&b, 20 * MIB, stream));
    OK(cuMemFreeAsync(b, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(of(pool, USED) == 10 * MIB && of(pool, RESERVED) == 30 * MIB);
    CHECK(free_bytes() == 34 * MIB);
    // What the pool holds serves the next.
    OK(cuMemAllocAsync(&b, 50 * MIB, stream));
    CHECK(of(pool, RESERVED) == 60 * MIB);
    CUdeviceptr c;
    GIVES(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&c, 5 * MIB, stream));
    // A free that the stream has not come to still makes room.
    OK(cuMemFreeAsync(b, stream));
    OK(cuMemAllocAsync(&c, 50 * MIB, stream));
    OK(cuMemFreeAsync(c, stream));
    OK(cuMemFreeAsync(a, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemPoolTrimTo(pool, 5 * MIB));
    CHECK(of(pool, USED) == 0 && of(pool, RESERVED) == 5 * MIB);
    OK(cuMemPoolSetAttribute(pool, USED_HIGH, &zero));
    CHECK(of(pool, USED_HIGH) == 0);
    OK(cuMemPoolTrimTo(pool, 0));
    CHECK(free_bytes() == 64 * MIB);
    zero = 0;
    OK(cuMemPoolSetAttribute(pool, THRESHOLD, &zero));
}

// Memory that a stream frees is gone for another that did not wait.
void use_after_free_shows() {
    CHECK(tercet_emulator_configure("seed=1,late=least") == 0);
    CUstream owner, user;
    OK(cuStreamCreate(&owner, 1));
    OK(cuStreamCreate(&user, 1));
    CUfunction kernel = function_of("test_scale_add", {"u64", "u32", "u32", "u32"});
    CUdeviceptr at;
    OK(cuMemAllocAsync(&at, 400, owner));
    OK(cuMemsetD8Async(at, 0, 400, owner));
    OK(cuStreamSynchronize(owner));
    OK(launch(kernel, 1, 128, 0, user, at, 1u, 1u, 100u));
    OK(cuStreamSynchronize(user));
    OK(cuMemFreeAsync(at, owner));
    OK(cuStreamSynchronize(owner));
    OK(cuMemAllocAsync(&at, 400, owner));
    OK(cuMemFreeAsync(at, owner));
    OK(cuStreamSynchronize(owner));
    OK(launch(kernel, 1, 128, 0, user, at, 1u, 1u, 100u));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(user));
    CHECK(strstr(tercet_emulator_message(), "points to no memory") != nullptr);
}
} // namespace

int main() {
    tercet_emulator_configure("memory=64M");
    start();
    plain_memory();
    nothing_is_zero_by_luck();
    copies_stay_inside();
    pools();
    use_after_free_shows();
}
