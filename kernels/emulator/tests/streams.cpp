// Streams run late and in any order that their events allow; copies read memory when they run, or at the call.
#include "harness.h"

#include <cstring>
#include <functional>
#include <set>

namespace {
using Words = std::vector<unsigned>;
constexpr unsigned N = 100;

struct Pinned {
    unsigned *words;
    explicit Pinned(unsigned value) {
        OK(cuMemHostAlloc(reinterpret_cast<void **>(&words), N * 4, 0));
        for (unsigned i = 0; i < N; i++) {
            words[i] = value;
        }
    }
    ~Pinned() { OK(cuMemFreeHost(words)); }
};

void seed(int value, const char *late) {
    CHECK(tercet_emulator_configure(("seed=" + std::to_string(value) + ",late=" + late).c_str()) == 0);
}

// What a copy of `from` without a wait shows to another stream, over seeds.
std::set<unsigned> seen(bool with_wait) {
    CUfunction kernel = function_of("test_scale_add", {"u64", "u32", "u32", "u32"});
    std::set<unsigned> values;
    for (int i = 1; i <= 20; i++) {
        seed(i, "drawn");
        CUstream writer, reader;
        CUevent written;
        OK(cuStreamCreate(&writer, 1));
        OK(cuStreamCreate(&reader, 1));
        OK(cuEventCreate(&written, 2));
        CUdeviceptr at = upload(Words(N, 1));
        Pinned out(0);
        OK(launch(kernel, 1, 128, 0, writer, at, 3u, 4u, N));
        OK(cuEventRecord(written, writer));
        if (with_wait) {
            OK(cuStreamWaitEvent(reader, written, 0));
        }
        OK(cuMemcpyDtoHAsync_v2(out.words, at, N * 4, reader));
        OK(cuStreamSynchronize(reader));
        values.insert(out.words[N - 1]);
        OK(cuStreamDestroy_v2(writer));
        OK(cuStreamDestroy_v2(reader));
        OK(cuEventDestroy_v2(written));
        OK(cuMemFree_v2(at));
    }
    return values;
}

void missing_wait_shows(bool checked) {
    if (!checked) {
        CHECK((seen(false) == std::set<unsigned>{1, 7}));
    }
    CHECK((seen(true) == std::set<unsigned>{7}));
}

// Where accesses are checked, two pieces of work that touch the same bytes need an order, whatever ran first.
void expect(bool right, int drawn, const std::function<void(CUstream, CUstream, CUdeviceptr)> &work) {
    seed(drawn, "drawn");
    CUstream one, other;
    CUcontext context;
    OK(cuStreamCreate(&one, 1));
    OK(cuStreamCreate(&other, 1));
    work(one, other, upload(Words(2 * N, 1)));
    GIVES(right ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    CHECK(right || strstr(tercet_emulator_message(), "nothing orders the two") != nullptr);
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

void work_without_an_order_is_an_error() {
    const auto scale = [](CUstream stream, CUdeviceptr at) {
        OK(launch(function_of("test_scale_add", {"u64", "u32", "u32", "u32"}), 1, 128, 0, stream, at, 3u, 4u, N));
    };
    const auto wait = [](CUstream before, CUstream after) {
        CUevent event;
        OK(cuEventCreate(&event, 2));
        OK(cuEventRecord(event, before));
        OK(cuStreamWaitEvent(after, event, 0));
    };
    // A node for each of two kernels, one after the other or not.
    const auto graph = [&](CUstream one, CUstream other, CUdeviceptr at, bool ordered) {
        CUevent begun, done;
        CUgraph made;
        CUgraphExec exec;
        OK(cuEventCreate(&begun, 2));
        OK(cuEventCreate(&done, 2));
        // 2: modules may be loaded meanwhile.
        OK(cuStreamBeginCapture_v2(one, 2));
        OK(cuEventRecord(begun, one));
        OK(cuStreamWaitEvent(other, begun, 0));
        scale(one, at);
        if (ordered) {
            wait(one, other);
        }
        scale(other, at);
        OK(cuEventRecord(done, other));
        OK(cuStreamWaitEvent(one, done, 0));
        OK(cuStreamEndCapture(one, &made));
        OK(cuGraphInstantiateWithFlags(&exec, made, 0));
        OK(cuGraphLaunch(exec, one));
        // The next launch comes after all of the first's nodes.
        OK(cuGraphLaunch(exec, one));
    };
    using Work = std::function<void(CUstream, CUstream, CUdeviceptr)>;
    const Work wrong[] = {
        [&](CUstream one, CUstream other, CUdeviceptr at) {
            scale(one, at);
            scale(other, at);
        },
        [&](CUstream one, CUstream other, CUdeviceptr at) {
            scale(one, at);
            OK(cuMemsetD8Async(at + 8, 0, 1, other));
        },
        [&](CUstream one, CUstream other, CUdeviceptr at) {
            scale(one, at);
            OK(cuMemcpyDtoDAsync_v2(at + 4 * N, at, 4, other));
        },
        [&](CUstream one, CUstream other, CUdeviceptr at) { graph(one, other, at, false); },
    };
    // By an event, by the host, by an edge of a graph; on bytes of their own; both only read.
    const Work right[] = {
        [&](CUstream one, CUstream other, CUdeviceptr at) {
            scale(one, at);
            wait(one, other);
            scale(other, at);
        },
        [&](CUstream one, CUstream other, CUdeviceptr at) {
            scale(one, at);
            OK(cuStreamSynchronize(one));
            scale(other, at);
        },
        [&](CUstream one, CUstream other, CUdeviceptr at) { graph(one, other, at, true); },
        [&](CUstream one, CUstream other, CUdeviceptr at) {
            scale(one, at);
            scale(other, at + 4 * N);
        },
        [&](CUstream one, CUstream other, CUdeviceptr at) {
            OK(cuMemcpyDtoDAsync_v2(at + 4, at, 4, one));
            OK(cuMemcpyDtoDAsync_v2(at + 8, at, 4, other));
        },
    };
    for (int i = 0; i < 5; i++) {
        for (const Work &work : wrong) {
            expect(false, i, work);
        }
        for (const Work &work : right) {
            expect(true, i, work);
        }
    }
}

void pinned_is_read_late() {
    seed(1, "most");
    CUstream stream;
    OK(cuStreamCreate(&stream, 1));
    CUdeviceptr at = upload(Words(N, 1));
    {
        Pinned in(5), out(9);
        OK(cuMemcpyHtoDAsync_v2(at, in.words, N * 4, stream));
        in.words[0] = 6;
        OK(cuMemcpyDtoHAsync_v2(out.words, at, N * 4, stream));
        CHECK(out.words[0] == 9);
        OK(cuStreamSynchronize(stream));
        CHECK(out.words[0] == 6 && out.words[1] == 5);
    }
    // Memory that is not pinned is staged at the call, and filled before it returns.
    Words in(N, 7), out(N, 9);
    OK(cuMemcpyHtoDAsync_v2(at, in.data(), N * 4, stream));
    in[0] = 8;
    OK(cuMemcpyDtoHAsync_v2(out.data(), at, N * 4, stream));
    CHECK(out[0] == 7);
    // Registered memory is pinned.
    OK(cuMemHostRegister_v2(in.data(), N * 4, 0));
    GIVES(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(in.data(), N * 4, 0));
    OK(cuMemcpyHtoDAsync_v2(at, in.data(), N * 4, stream));
    in[0] = 10;
    OK(cuStreamSynchronize(stream));
    CHECK(download<unsigned>(at, 1)[0] == 10);
    OK(cuMemHostUnregister(in.data()));
    GIVES(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(in.data()));
}

void null_stream_takes_turns() {
    for (int i = 1; i <= 10; i++) {
        seed(i, "drawn");
        CUfunction kernel = function_of("test_scale_add", {"u64", "u32", "u32", "u32"});
        CUstream blocking;
        OK(cuStreamCreate(&blocking, 0));
        CUdeviceptr at = upload(Words(N, 1));
        OK(launch(kernel, 1, 128, 0, blocking, at, 3u, 4u, N));
        OK(launch(kernel, 1, 128, 0, nullptr, at, 2u, 0u, N));
        OK(launch(kernel, 1, 128, 0, blocking, at, 1u, 1u, N));
        OK(cuStreamSynchronize(blocking));
        CHECK(download<unsigned>(at, 1)[0] == 15);
        OK(cuStreamDestroy_v2(blocking));
    }
}

void queries_and_times() {
    seed(1, "most");
    CUfunction kernel = function_of("test_scale_add", {"u64", "u32", "u32", "u32"});
    CUstream stream;
    CUevent before, after, untimed;
    OK(cuStreamCreate(&stream, 1));
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&after, 0));
    OK(cuEventCreate(&untimed, 2));
    float ms = -1;
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, before, after));
    CUdeviceptr at = upload(Words(N, 1));
    OK(cuEventRecord(before, stream));
    for (int i = 0; i < 100; i++) {
        OK(launch(kernel, 1, 128, 0, stream, at, 1u, 1u, N));
    }
    OK(cuEventRecord(after, stream));
    OK(cuEventRecord(untimed, stream));
    GIVES(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, before, after));
    GIVES(CUDA_ERROR_NOT_READY, cuEventQuery(after));
    GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    // Asking goes on with the work, so a loop ends.
    int asked = 0;
    while (cuEventQuery(after) == CUDA_ERROR_NOT_READY) {
        CHECK(asked++ < 10000);
    }
    OK(cuEventSynchronize(untimed));
    OK(cuEventElapsedTime(&ms, before, after));
    CHECK(ms > 0 && ms < 60000);
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, before, untimed));
    OK(cuEventDestroy_v2(after));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(after));
}

void host_functions_keep_their_place() {
    seed(1, "most");
    CUfunction kernel = function_of("test_scale_add", {"u64", "u32", "u32", "u32"});
    CUstream stream;
    OK(cuStreamCreate(&stream, 1));
    CUdeviceptr at = upload(Words(N, 1));
    static unsigned *watched;
    static unsigned seen;
    static unsigned plus = 100;
    Pinned out(0);
    watched = out.words;
    OK(launch(kernel, 1, 128, 0, stream, at, 3u, 4u, N));
    OK(cuMemcpyDtoHAsync_v2(out.words, at, N * 4, stream));
    auto look = [](void *more) { seen = watched[0] + *static_cast<unsigned *>(more); };
    OK(cuLaunchHostFunc(stream, look, &plus));
    OK(cuStreamSynchronize(stream));
    CHECK(seen == 107);
}

// Two devices: memory of one is out of reach of the other's kernels until access is given.
void two_devices() {
    CUcontext first, second;
    OK(cuDevicePrimaryCtxRetain(&first, 0));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    int can = 0;
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    CUdeviceptr here = upload(Words(N, 4));
    OK(cuCtxSetCurrent(second));
    CUdeviceptr there = device_memory(N * 4);
    CUstream stream;
    OK(cuStreamCreate(&stream, 1));
    OK(cuMemcpyPeerAsync(there, second, here, first, N * 4, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(download<unsigned>(there, N) == Words(N, 4));
    CUfunction kernel = function_of("test_scale_add", {"u64", "u32", "u32", "u32"});
    OK(cuCtxEnablePeerAccess(first, 0));
    GIVES(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(first, 0));
    OK(launch(kernel, 1, 128, 0, stream, here, 2u, 0u, N));
    OK(cuStreamSynchronize(stream));
    CHECK(download<unsigned>(here, 1)[0] == 8);
    OK(cuCtxSetCurrent(first));
    kernel = function_of("test_scale_add", {"u64", "u32", "u32", "u32"});
    OK(launch(kernel, 1, 128, 0, nullptr, there, 2u, 0u, N));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    // The other device goes on.
    OK(cuCtxSetCurrent(second));
    CHECK(download<unsigned>(there, 1)[0] == 4);
}
} // namespace

// Any argument says that loads and stores are checked.
int main(int count, char **) {
    tercet_emulator_configure("devices=2");
    start();
    missing_wait_shows(count > 1);
    if (count > 1) {
        work_without_an_order_is_an_error();
    }
    pinned_is_read_late();
    null_stream_takes_turns();
    queries_and_times();
    host_functions_keep_their_place();
    two_devices();
}
