// Graphs by capture: nothing runs while they are written, every launch runs all of it in an order that the edges allow.
#include "harness.h"

#include <set>

namespace {
using Words = std::vector<unsigned>;
constexpr unsigned N = 64;
const std::vector<std::string> SCALE_ADD = {"u64", "u32", "u32", "u32"};

struct Scene {
    CUfunction kernel = function_of("test_scale_add", SCALE_ADD);
    CUstream first, second;
    CUevent forked, joined;
    CUdeviceptr at = upload(Words(N, 1));
    Scene() {
        OK(cuStreamCreate(&first, 1));
        OK(cuStreamCreate(&second, 1));
        OK(cuEventCreate(&forked, 2));
        OK(cuEventCreate(&joined, 2));
    }
    CUresult step(CUstream stream, unsigned times, unsigned plus) { return launch(kernel, 1, 64, 0, stream, at, times, plus, N); }
    unsigned value() { return download<unsigned>(at, 1)[0]; }
    // Ends what has gone wrong.
    void end_broken(CUresult error) {
        CUgraph graph;
        GIVES(error, cuStreamEndCapture(first, &graph));
        CHECK(graph == nullptr);
    }
};

void a_chain_runs_at_each_launch() {
    Scene scene;
    CUgraph graph;
    CUgraphExec exec;
    int status = 9;
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(cuStreamIsCapturing(scene.first, &status));
    CHECK(status == 1);
    OK(scene.step(scene.first, 3, 0));
    OK(scene.step(scene.first, 1, 4));
    OK(cuStreamEndCapture(scene.first, &graph));
    CHECK(scene.value() == 1);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, scene.first));
    OK(cuGraphLaunch(exec, scene.first));
    OK(cuStreamSynchronize(scene.first));
    CHECK(scene.value() == (1 * 3 + 4) * 3 + 4);
    // Another graph of the same shape takes its place; one of another does not.
    CUgraph other;
    CUgraphExecUpdateResultInfo info;
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(scene.step(scene.first, 0, 2));
    OK(scene.step(scene.first, 5, 0));
    OK(cuStreamEndCapture(scene.first, &other));
    OK(cuGraphExecUpdate_v2(exec, other, &info));
    OK(cuGraphLaunch(exec, scene.first));
    OK(cuStreamSynchronize(scene.first));
    CHECK(scene.value() == 10);
    OK(cuGraphDestroy(other));
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(scene.step(scene.first, 0, 2));
    OK(cuStreamEndCapture(scene.first, &other));
    GIVES(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, other, &info));
    CHECK(info.result == 2);
    OK(cuGraphDestroy(graph));
    OK(cuGraphExecDestroy(exec));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(exec, scene.first));
}

// Two branches that do not commute: without an edge between them every launch may end otherwise.
std::set<unsigned> branches(bool with_edge) {
    std::set<unsigned> seen;
    Scene scene;
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(scene.step(scene.first, 0, 1));
    OK(cuEventRecord(scene.forked, scene.first));
    if (with_edge) {
        OK(scene.step(scene.first, 3, 0));
        OK(cuEventRecord(scene.forked, scene.first));
        OK(cuStreamWaitEvent(scene.second, scene.forked, 0));
    } else {
        OK(cuStreamWaitEvent(scene.second, scene.forked, 0));
        OK(scene.step(scene.first, 3, 0));
    }
    OK(scene.step(scene.second, 1, 4));
    OK(cuEventRecord(scene.joined, scene.second));
    OK(cuStreamWaitEvent(scene.first, scene.joined, 0));
    OK(cuStreamEndCapture(scene.first, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 20; i++) {
        OK(cuGraphLaunch(exec, scene.first));
        OK(cuStreamSynchronize(scene.first));
        seen.insert(scene.value());
    }
    return seen;
}

void refusals() {
    Scene scene;
    CUgraph graph;
    CUdeviceptr at;
    Words out(N);
    // Waiting for what is only written down.
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(scene.first));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, scene.step(scene.first, 1, 1));
    scene.end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // Allocating out of the stream's order, and freeing what is not the graph's.
    OK(cuStreamBeginCapture_v2(scene.first, 0));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&at, 64));
    scene.end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuMemAllocAsync(&at, 64, scene.first));
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(at, scene.first));
    scene.end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuMemFreeAsync(at, scene.first));
    // Memory of a graph that never comes to be.
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(cuMemAllocAsync(&at, 64, scene.first));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(scene.first));
    scene.end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // A copy that waits.
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemcpyDtoH_v2(out.data(), scene.at, N * 4));
    scene.end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // An event from outside.
    OK(cuEventRecord(scene.forked, scene.second));
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    GIVES(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(scene.first, scene.forked, 0));
    scene.end_broken(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // A branch that never comes back.
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(scene.step(scene.first, 1, 1));
    OK(cuEventRecord(scene.forked, scene.first));
    OK(cuStreamWaitEvent(scene.second, scene.forked, 0));
    OK(scene.step(scene.second, 1, 1));
    scene.end_broken(CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    // The event of a capture is nobody else's to wait for.
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(cuEventRecord(scene.joined, scene.first));
    GIVES(CUDA_ERROR_CAPTURED_EVENT, cuEventSynchronize(scene.joined));
    OK(cuStreamEndCapture(scene.first, &graph));
    GIVES(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(scene.first, &graph));
    // And the stream is as good as before.
    OK(scene.step(scene.first, 0, 3));
    OK(cuStreamSynchronize(scene.first));
    CHECK(scene.value() == 3);
}

// Allocations of a capture are the graph's: of an address that stays, and with bytes from their node until they are freed.
void graphs_own_what_they_allocate() {
    Scene scene;
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr kept, passing;
    unsigned long long held = tercet_emulator_count("allocations") - tercet_emulator_count("frees");
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(cuMemAllocAsync(&kept, N * 4, scene.first));
    OK(cuMemAllocAsync(&passing, N * 4, scene.first));
    OK(cuMemsetD32Async(passing, 7, N, scene.first));
    OK(cuMemcpyDtoDAsync_v2(kept, passing, N * 4, scene.first));
    OK(cuMemFreeAsync(passing, scene.first));
    OK(launch(scene.kernel, 1, 64, 0, scene.first, kept, 2u, 1u, N));
    OK(cuStreamEndCapture(scene.first, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    // Nothing to free yet.
    GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(kept, scene.first));
    for (int i = 0; i < 2; i++) {
        OK(cuGraphLaunch(exec, scene.first));
        OK(cuStreamSynchronize(scene.first));
        CHECK(download<unsigned>(kept, 1)[0] == 15);
        // What one launch has left the next cannot allocate.
        GIVES(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, scene.first));
        OK(cuMemFreeAsync(kept, scene.first));
        GIVES(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(kept, scene.first));
    }
    OK(cuGraphLaunch(exec, scene.first));
    OK(cuGraphExecDestroy(exec));
    OK(cuStreamSynchronize(scene.first));
    // It outlives the graph.
    CHECK(download<unsigned>(kept, 1)[0] == 15);
    OK(cuMemFreeAsync(kept, scene.first));
    OK(cuStreamSynchronize(scene.first));
    CHECK(tercet_emulator_count("allocations") - tercet_emulator_count("frees") == held);
}

// A graph's memory that is not there ends the context. Last, therefore.
void outside_its_graph_it_is_no_memory() {
    Scene scene;
    CUgraph graph;
    CUdeviceptr at;
    OK(cuStreamBeginCapture_v2(scene.first, 1));
    OK(cuMemAllocAsync(&at, N * 4, scene.first));
    OK(cuStreamEndCapture(scene.first, &graph));
    OK(cuMemsetD32Async(at, 7, N, scene.first));
    GIVES(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(scene.first));
}
} // namespace

// Any argument says that loads and stores are checked.
int main(int count, char **) {
    start();
    a_chain_runs_at_each_launch();
    if (count == 1) {
        CHECK((branches(false) == std::set<unsigned>{7, 15}));
    }
    CHECK((branches(true) == std::set<unsigned>{7}));
    refusals();
    graphs_own_what_they_allocate();
    outside_its_graph_it_is_no_memory();
}
