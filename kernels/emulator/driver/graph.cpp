// Graphs, written by capturing streams: nodes run in any order that their edges allow.
#include "../device/block.h"
#include "memory.h"
#include "options.h"
#include "stream.h"

namespace emulator {
struct GraphExec {
    Context *context;
    std::shared_ptr<const Graph> graph;
    Dice dice;
    // The number of its first node, and its launches.
    unsigned number, launches = 0;
};

namespace {
bool is_before(const Graph &graph, size_t node, const std::vector<size_t> &frontier) {
    for (size_t at : frontier) {
        if (at == node || is_before(graph, node, graph.nodes[at].after)) {
            return true;
        }
    }
    return false;
}

void release_streams(Capture &capture) {
    for (Stream *stream : capture.streams) {
        stream->capture = nullptr;
        stream->frontier.clear();
    }
    capture.streams.clear();
}

// Its nodes have numbers from `number` on, and come after what `clock` knows.
CUresult run_graph(const Graph &graph, Dice &dice, unsigned number, unsigned launch, const Clock &clock) {
    std::vector<Clock> clocks(CHECKED ? graph.nodes.size() : 0, clock);
    std::vector<size_t> waits(graph.nodes.size()), ready;
    std::vector<std::vector<size_t>> next(graph.nodes.size());
    for (size_t i = 0; i < graph.nodes.size(); i++) {
        waits[i] = graph.nodes[i].after.size();
        for (size_t before : graph.nodes[i].after) {
            next[before].push_back(i);
        }
        if (waits[i] == 0) {
            ready.push_back(i);
        }
    }
    while (!ready.empty()) {
        size_t pick = dice.below(unsigned(ready.size())), node = ready[pick];
        ready[pick] = ready.back();
        ready.pop_back();
        if (CHECKED) {
            for (size_t before : graph.nodes[node].after) {
                clocks[node].learn(clocks[before]);
            }
            clocks[node].set(number + unsigned(node), launch);
            begin_piece(number + unsigned(node), clocks[node]);
        }
        if (CUresult error = graph.nodes[node].run()) {
            return error;
        }
        for (size_t after : next[node]) {
            if (--waits[after] == 0) {
                ready.push_back(after);
            }
        }
    }
    return CUDA_SUCCESS;
}
} // namespace

void break_capture(Stream &stream, CUresult error) {
    stream.capture->broken = true;
    throw Error{error};
}

void refuse_in_capture(const Context &context) {
    for (Stream *stream : context.streams) {
        const CapturePtr &capture = stream->capture;
        if (capture == nullptr || capture->mode == 2) {
            continue;
        }
        if (capture->mode == 0 || capture->thread == std::this_thread::get_id()) {
            break_capture(*stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
}
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
    return in_context([&](Context &context) {
        reach("capture");
        Stream &stream = stream_of(context, handle);
        if (&stream == context.null_stream) {
            throw Error{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
        }
        if (stream.capture != nullptr || mode < 0 || mode > 2) {
            throw Error{stream.capture != nullptr ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE};
        }
        stream.capture = std::make_shared<Capture>();
        stream.capture->graph = std::make_unique<Graph>();
        stream.capture->origin = &stream;
        stream.capture->mode = mode;
        stream.capture->thread = std::this_thread::get_id();
        stream.capture->streams.insert(&stream);
        stream.frontier.clear();
    });
}

TERCET_API CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
    return in_context([&](Context &context) {
        Stream &stream = stream_of(context, handle);
        given(out) = nullptr;
        CapturePtr capture = stream.capture;
        if (capture == nullptr) {
            throw Error{CUDA_ERROR_ILLEGAL_STATE};
        }
        if (capture->origin != &stream) {
            break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        }
        if (capture->mode != 2 && capture->thread != std::this_thread::get_id()) {
            throw Error{CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD};
        }
        bool joined = true;
        for (Stream *other : capture->streams) {
            for (size_t node : other->frontier) {
                joined &= is_before(*capture->graph, node, stream.frontier);
            }
        }
        release_streams(*capture);
        if (capture->broken || !joined) {
            throw Error{capture->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNJOINED};
        }
        *out = give_out(capture->graph.release());
    });
}

TERCET_API CUresult cuStreamIsCapturing(CUstream handle, int *out) {
    return in_context([&](Context &context) {
        const CapturePtr &capture = stream_of(context, handle).capture;
        given(out) = capture == nullptr ? 0 : capture->broken ? 2 : 1;
    });
}

TERCET_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    return in_context([&](Context &context) {
        reach("instantiate");
        const Graph &graph = valid(handle);
        if ((flags & ~15ull) != 0 || (flags & 5) == 5) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        given(out) = give_out(new GraphExec{&context, std::make_shared<Graph>(graph), {dice().roll()}, take_numbers(graph.nodes.size())});
    });
}

TERCET_API CUresult cuGraphGetNodes(CUgraph handle, void **nodes, size_t *number) {
    return in_context([&](Context &) {
        if (nodes != nullptr) {
            throw Error{CUDA_ERROR_NOT_SUPPORTED};
        }
        given(number) = valid(handle).nodes.size();
    });
}

TERCET_API CUresult cuGraphUpload(CUgraphExec handle, CUstream on) {
    return in_context([&](Context &context) {
        valid(handle);
        stream_of(context, on);
    });
}

TERCET_API CUresult cuGraphLaunch(CUgraphExec handle, CUstream on) {
    return in_context([&](Context &context) {
        reach("graph");
        GraphExec &exec = valid(handle);
        Dice dice = {exec.dice.roll()};
        std::shared_ptr<const Graph> graph = exec.graph;
        leave_allocated(*graph);
        Stream &stream = stream_of(context, on);
        const unsigned number = exec.number, launch = ++exec.launches;
        auto clock = std::make_shared<Clock>();
        TicketPtr ticket = submit(stream, "graphs", [=]() mutable { return run_graph(*graph, dice, number, launch, *clock); });
        if (CHECKED && ticket != nullptr) {
            *clock = ticket->clock;
            // All of its nodes are done when it is.
            for (size_t i = 0; i < graph->nodes.size(); i++) {
                ticket->clock.set(number + unsigned(i), launch);
            }
            stream.known = ticket->clock;
        }
    });
}

TERCET_API CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph from, CUgraphExecUpdateResultInfo *info) {
    return in_context([&](Context &) {
        GraphExec &exec = valid(handle);
        const Graph &graph = valid(from);
        bool same = graph.nodes.size() == exec.graph->nodes.size();
        for (size_t i = 0; same && i < graph.nodes.size(); i++) {
            same = graph.nodes[i].after == exec.graph->nodes[i].after && graph.nodes[i].kind == exec.graph->nodes[i].kind;
        }
        given(info) = {same ? 0 : 2, nullptr, nullptr};
        if (!same) {
            throw Error{CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE};
        }
        exec.graph = std::make_shared<Graph>(graph);
    });
}

TERCET_API CUresult cuGraphExecDestroy(CUgraphExec handle) {
    return initialized([&] {
        valid(handle);
        take_back(handle);
        delete handle;
    });
}

TERCET_API CUresult cuGraphDestroy(CUgraph handle) {
    return initialized([&] {
        valid(handle);
        take_back(handle);
        delete handle;
    });
}
