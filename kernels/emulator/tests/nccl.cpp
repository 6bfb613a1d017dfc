// NCCL on emulated devices: sums and copies by definition, in the order of streams; what is refused; what can never end.
#include "../nccl/api.h"
#include "harness.h"

#include <cstring>
#include <dlfcn.h>

namespace {
constexpr int DEVICES = 3;
using Longs = std::vector<long long>;

CUcontext contexts[DEVICES];
CUstream streams[DEVICES];

void on(int device) { OK(cuCtxSetCurrent(contexts[device])); }

void begin() {
    CHECK(tercet_emulator_configure("devices=3") == 0);
    OK(cuInit(0));
    for (int i = 0; i < DEVICES; i++) {
        OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
        on(i);
        OK(cuStreamCreate(&streams[i], 1));
    }
}

struct Ranks {
    ncclComm_t ranks[DEVICES];
    Ranks() { CHECK(ncclCommInitAll(ranks, DEVICES, nullptr) == ncclSuccess); }
    void end() {
        for (ncclComm_t rank : ranks) {
            CHECK(ncclCommDestroy(rank) == ncclSuccess);
        }
    }
    void abort() {
        for (ncclComm_t rank : ranks) {
            CHECK(ncclCommAbort(rank) == ncclSuccess);
        }
    }
};

// A rank's memory: `own` numbers from `first` on.
CUdeviceptr numbers(int device, long long first, size_t own) {
    on(device);
    Longs values;
    for (size_t i = 0; i < own; i++) {
        values.push_back(first + (long long)i);
    }
    return upload(values);
}

void *at(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

bool said(const char *what) { return strstr(tercet_emulator_message(), what) != nullptr; }

// The library of NCCL's name has all functions, though they lie in the driver's.
void found_by_name() {
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    CHECK(library != nullptr);
    for (const char *name : {"ncclGetVersion", "ncclCommInitAll", "ncclCommDestroy", "ncclCommAbort", "ncclCommGetAsyncError",
                             "ncclGroupStart", "ncclGroupEnd", "ncclReduceScatter", "ncclAllGather", "ncclGetErrorString"}) {
        CHECK(dlsym(library, name) != nullptr);
    }
    int version = 0;
    CHECK(ncclGetVersion(&version) == ncclSuccess && version == 22205);
}

void refused_communicators() {
    ncclComm_t ranks[4];
    int twice[] = {0, 1, 0}, absent[] = {0, 3};
    CHECK(ncclCommInitAll(ranks, 3, twice) == ncclInvalidUsage && said("device 0 twice"));
    CHECK(ncclCommInitAll(ranks, 2, absent) == ncclInvalidArgument && said("no device 3"));
    CHECK(ncclCommInitAll(ranks, 0, nullptr) == ncclInvalidArgument);
    CHECK(tercet_emulator_configure("fail=nccl-init:1") == 0);
    CHECK(ncclCommInitAll(ranks, 2, nullptr) == ncclSystemError);
    int reversed[] = {2, 0};
    CHECK(ncclCommInitAll(ranks, 2, reversed) == ncclSuccess);
    CHECK(ncclCommDestroy(ranks[0]) == ncclSuccess && ncclCommAbort(ranks[1]) == ncclSuccess);
    CHECK(ncclCommDestroy(ranks[0]) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidUsage);
}

// Two numbers for each rank are summed and scattered, then all get all: late, and behind what their streams had before.
void sums_and_copies() {
    for (int seed = 1; seed <= 20; seed++) {
        tercet_emulator_configure(("seed=" + std::to_string(seed)).c_str());
        Ranks comm;
        CUdeviceptr from[DEVICES], sum[DEVICES], all[DEVICES];
        for (int i = 0; i < DEVICES; i++) {
            from[i] = numbers(i, 0, 2 * DEVICES);
            sum[i] = device_memory(16);
            all[i] = device_memory(16 * DEVICES);
            // Written by the stream itself, so that a collective that does not wait for it takes other numbers.
            Longs late(2 * DEVICES);
            for (size_t j = 0; j < late.size(); j++) {
                late[j] = -100 * i - (long long)j;
            }
            OK(cuMemcpyHtoDAsync_v2(from[i], late.data(), late.size() * 8, streams[i]));
        }
        CHECK(ncclGroupStart() == ncclSuccess);
        for (int i = 0; i < DEVICES; i++) {
            CHECK(ncclReduceScatter(at(from[i]), at(sum[i]), 2, ncclInt64, ncclSum, comm.ranks[i], streams[i]) == ncclSuccess);
        }
        for (int i = 0; i < DEVICES; i++) {
            CHECK(ncclAllGather(at(sum[i]), at(all[i]), 16, ncclInt8, comm.ranks[i], streams[i]) == ncclSuccess);
        }
        CHECK(ncclGroupEnd() == ncclSuccess);
        for (int i = DEVICES - 1; i >= 0; i--) {
            on(i);
            // It ends for one who only asks.
            int asked = 0;
            while (cuStreamQuery(streams[i]) == CUDA_ERROR_NOT_READY) {
                CHECK(asked++ < 10000);
            }
            CHECK((download<long long>(all[i], 6) == Longs{-300, -303, -306, -309, -312, -315}));
            OK(cuMemFree_v2(from[i]));
            OK(cuMemFree_v2(sum[i]));
            OK(cuMemFree_v2(all[i]));
        }
        comm.end();
    }
}

// What real ranks would wait for ever over, or read beyond, is refused with a sentence.
void misuse() {
    Ranks comm;
    CUdeviceptr of[DEVICES], to[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        of[i] = numbers(i, 0, 6);
        to[i] = device_memory(16);
    }
    auto reduce = [&](int rank, CUdeviceptr from, CUdeviceptr into, size_t count, ncclDataType_t type, CUstream stream) {
        return ncclReduceScatter(at(from), at(into), count, type, ncclSum, comm.ranks[rank], stream);
    };
    auto group = [&](auto body) {
        CHECK(ncclGroupStart() == ncclSuccess);
        body();
        return ncclGroupEnd();
    };
    // Alone, no other rank comes.
    CHECK(reduce(0, of[0], to[0], 2, ncclInt64, streams[0]) == ncclInvalidUsage && said("rank 1 of 3 takes no part"));
    auto each = [&](auto change) {
        return group([&] {
            for (int i = 0; i < DEVICES; i++) {
                change(i);
            }
        });
    };
    CHECK(each([&](int i) { reduce(i, of[i], to[i], i == 2 ? 1 : 2, ncclInt64, streams[i]); }) == ncclInvalidUsage);
    CHECK(said("rank 2 asks for another collective, count or type"));
    CHECK(each([&](int i) { reduce(i, of[i], to[i], 2, i == 1 ? ncclUint64 : ncclInt64, streams[i]); }) == ncclInvalidUsage);
    CHECK(each([&](int i) { reduce(i, of[i], to[i], 2, ncclFloat64, streams[i]); }) == ncclInvalidArgument);
    CHECK(each([&](int i) { reduce(i, of[i], to[i], 3, ncclInt64, streams[i]); }) == ncclInvalidArgument);
    CHECK(each([&](int i) { reduce(i, of[0], to[i], 2, ncclInt64, streams[i]); }) == ncclInvalidArgument);
    CHECK(each([&](int i) { reduce(i, of[i] + 4, to[i], 1, ncclInt64, streams[i]); }) == ncclInvalidArgument);
    CHECK(each([&](int i) { reduce(i, of[i], of[i] + 8, 2, ncclInt64, streams[i]); }) == ncclInvalidArgument);
    CHECK(each([&](int i) { reduce(i, of[i], to[i], 2, ncclInt64, streams[0]); }) == ncclInvalidUsage);
    CHECK(said("a group with a call"));
    // Faults of each call, and of the end.
    for (const char *fault : {"fail=nccl:2", "fail=nccl-end:1"}) {
        CHECK(tercet_emulator_configure(fault) == 0);
        CHECK(each([&](int i) { reduce(i, of[i], to[i], 2, ncclInt64, streams[i]); }) == ncclSystemError);
    }
    // Nothing of all that was queued; in place it works.
    CHECK(each([&](int i) { reduce(i, of[i], of[i] + 16 * CUdeviceptr(i), 2, ncclInt64, streams[i]); }) == ncclSuccess);
    on(1);
    OK(cuStreamSynchronize(streams[1]));
    CHECK((download<long long>(of[1], 6) == Longs{0, 1, 6, 9, 4, 5}));
    comm.end();
}

// An error that NCCL's own watch sees, and a device that is lost: the others wait until their communicators are aborted.
void never_ends() {
    auto all = [&](const Ranks &comm, CUdeviceptr *of) {
        CHECK(ncclGroupStart() == ncclSuccess);
        for (int i = 0; i < DEVICES; i++) {
            void *own = at(of[i] + 8 * CUdeviceptr(i));
            CHECK(ncclAllGather(own, at(of[i]), 1, ncclInt64, comm.ranks[i], streams[i]) == ncclSuccess);
        }
        CHECK(ncclGroupEnd() == ncclSuccess);
    };
    CUdeviceptr of[DEVICES];
    for (int i = 0; i < DEVICES; i++) {
        of[i] = numbers(i, 10 * i, DEVICES);
    }
    ncclResult_t seen;
    Ranks failed;
    CHECK(tercet_emulator_configure("fail=nccl-async:1:6") == 0);
    all(failed, of);
    CHECK(ncclCommGetAsyncError(failed.ranks[2], &seen) == ncclSuccess && seen == ncclRemoteError);
    on(2);
    for (int i = 0; i < 200; i++) {
        GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(streams[2]));
    }
    CHECK(tercet_emulator_count("hangs") == 0);
    GIVES(CUDA_ERROR_LAUNCH_TIMEOUT, cuStreamSynchronize(streams[2]));
    CHECK(tercet_emulator_count("hangs") == 1 && said("NCCL: waited for"));
    CHECK(ncclCommDestroy(failed.ranks[2]) == ncclUnhandledCudaError);
    failed.abort();
    for (int i = 0; i < DEVICES; i++) {
        on(i);
        OK(cuStreamSynchronize(streams[i]));
        CHECK(download<long long>(of[i], 1)[0] == 10 * i);
    }
    Ranks comm;
    CHECK(tercet_emulator_configure("fail=lost:1") == 0);
    on(1);
    CUfunction function = function_of("test_last_block", {"u64"});
    OK(launch(function, 1, 1, 0, streams[1], of[1]));
    all(comm, of);
    GIVES(CUDA_ERROR_LAUNCH_FAILED, cuStreamSynchronize(streams[1]));
    on(0);
    unsigned long long hangs = tercet_emulator_count("hangs");
    GIVES(CUDA_ERROR_LAUNCH_TIMEOUT, cuStreamSynchronize(streams[0]));
    CHECK(tercet_emulator_count("hangs") == hangs + 1);
    CHECK(ncclCommGetAsyncError(comm.ranks[0], &seen) == ncclSuccess && seen == ncclSuccess);
    comm.abort();
    OK(cuStreamSynchronize(streams[0]));
    ncclComm_t ranks[2];
    CHECK(ncclCommInitAll(ranks, 2, nullptr) == ncclUnhandledCudaError && said("device 1 is lost"));
    CHECK(strcmp(ncclGetErrorString(ncclRemoteError), "remote process exited or there was a network error") == 0);
}
} // namespace

int main() {
    begin();
    found_by_name();
    refused_communicators();
    sums_and_copies();
    misuse();
    never_ends();
}
