// The queues of streams and the order in which their work runs.
#include "stream.h"

#include "memory.h"
#include "options.h"

#include <chrono>

namespace emulator {
namespace {
double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<Stream *> &every_stream() {
    static auto *all = new std::vector<Stream *>;
    return *all;
}

const Ticket *missing(const Work &work) {
    for (const TicketPtr &ticket : work.after) {
        if (!ticket->done) {
            return ticket.get();
        }
    }
    return nullptr;
}

// Whether the next of a stream's work can run, once nothing is missing. Where the context has failed it does nothing, and so can.
bool can_run(const Stream &stream) {
    const Work &work = stream.queue.front();
    return !work.ready || stream.context->lost != CUDA_SUCCESS || work.ready();
}

void forget_if_idle(Stream *stream) {
    if (stream->destroyed && stream->queue.empty()) {
        stream->context->gone.learn(stream->known);
        stream->context->streams.erase(stream);
        auto &all = every_stream();
        for (size_t i = 0; i < all.size(); i++) {
            if (all[i] == stream) {
                all.erase(all.begin() + long(i));
                break;
            }
        }
        delete stream;
    }
}

void run_head(Stream &stream) {
    Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    // A context that has failed runs nothing more.
    if (stream.context->lost == CUDA_SUCCESS) {
        begin_piece(stream.number, work.ticket->clock);
        if (CUresult error = work.run()) {
            stream.context->lost = error;
        }
    }
    work.ticket->seconds = now();
    work.ticket->done = true;
    work.ticket->stream = nullptr;
    forget_if_idle(&stream);
}

std::vector<Stream *> runnable(const Stream *except) {
    std::vector<Stream *> found;
    for (Stream *stream : every_stream()) {
        if (stream != except && !stream->queue.empty() && missing(stream->queue.front()) == nullptr &&
            can_run(*stream)) {
            found.push_back(stream);
        }
    }
    return found;
}

bool run_any(const Stream *except) {
    std::vector<Stream *> found = runnable(except);
    if (found.empty()) {
        return false;
    }
    run_head(*found[dice().below(unsigned(found.size()))]);
    return true;
}

// The next thing that a ticket needs.
void run_needed(const Ticket &ticket) {
    Stream *stream = ticket.stream;
    while (const Ticket *first = missing(stream->queue.front())) {
        stream = first->stream;
    }
    if (!can_run(*stream)) {
        // A real driver would wait for ever.
        count("hangs");
        state().message = std::string(stream->queue.front().kind) + ": waited for, and can never be done";
        throw Error{CUDA_ERROR_LAUNCH_TIMEOUT};
    }
    run_head(*stream);
}
} // namespace

Stream *make_stream(Context &context, bool blocking, int priority) {
    auto *stream = new Stream{&context, blocking, priority, false, {}, nullptr, nullptr, {}, take_numbers(1), 0, {}};
    context.streams.insert(stream);
    every_stream().push_back(stream);
    return give_out(stream);
}

Stream &stream_of(Context &context, CUstream handle) {
    auto number = reinterpret_cast<uintptr_t>(handle);
    if (number <= 1) {
        return *context.null_stream;
    }
    if (number == 2) {
        return *context.thread_stream;
    }
    return valid(handle);
}

TicketPtr submit(Stream &stream, const char *kind, Action run) {
    count(kind);
    if (stream.capture != nullptr) {
        if (stream.capture->broken) {
            throw Error{CUDA_ERROR_STREAM_CAPTURE_INVALIDATED};
        }
        auto &nodes = stream.capture->graph->nodes;
        nodes.push_back({kind, std::move(run), stream.frontier});
        stream.frontier = {nodes.size() - 1};
        return nullptr;
    }
    Context &context = *stream.context;
    auto ticket = std::make_shared<Ticket>();
    ticket->stream = &stream;
    Work work = {kind, std::move(run), {}, ticket};
    if (&stream == context.null_stream) {
        for (Stream *other : context.streams) {
            if (!other->blocking || other == &stream) {
                continue;
            }
            if (other->capture != nullptr) {
                break_capture(*other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
            }
            if (other->last != nullptr) {
                work.after.push_back(other->last);
            }
        }
    } else if (stream.blocking && context.null_stream->last != nullptr) {
        work.after.push_back(context.null_stream->last);
    }
    stream.known.learn(host_clock());
    if (&stream == context.null_stream) {
        stream.known.learn(context.gone);
    }
    for (const TicketPtr &before : work.after) {
        stream.known.learn(before->clock);
    }
    stream.known.set(stream.number, ++stream.submitted);
    ticket->clock = stream.known;
    stream.queue.push_back(std::move(work));
    stream.last = ticket;
    return ticket;
}

void wait_for(Context &context, const TicketPtr &ticket) {
    if (ticket != nullptr && !ticket->done) {
        int mode = options().lateness == 2 ? int(dice().below(3)) : options().lateness;
        if (mode == 1) {
            // All that can run before what is waited for.
            while (!ticket->done && run_any(ticket->stream)) {
            }
        }
        while (!ticket->done) {
            // Either the least that serves, or whatever comes.
            if (mode != 2 || dice().below(2) == 0 || !run_any(nullptr)) {
                run_needed(*ticket);
            }
        }
    }
    if (ticket != nullptr) {
        host_clock().learn(ticket->clock);
    }
    trim_pools();
    if (context.lost != CUDA_SUCCESS) {
        throw Error{context.lost};
    }
}

void synchronize(Stream &stream) {
    if (stream.capture != nullptr) {
        break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    wait_for(*stream.context, stream.last);
}

void synchronize(Context &context) {
    for (Stream *stream : context.streams) {
        if (stream->capture != nullptr) {
            break_capture(*stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
    }
    // The streams that are waited for may go away once they are idle.
    std::vector<TicketPtr> last;
    for (Stream *stream : context.streams) {
        if (stream->last != nullptr) {
            last.push_back(stream->last);
        }
    }
    for (const TicketPtr &ticket : last) {
        wait_for(context, ticket);
    }
    host_clock().learn(context.gone);
    wait_for(context, nullptr);
}

void run_all() {
    while (run_any(nullptr)) {
    }
    trim_pools();
}

void run_some() {
    if (dice().below(2) == 0) {
        run_any(nullptr);
    }
}
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
    return in_context([&](Context &context) {
        reach("stream");
        if (flags > 1) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        given(out) = make_stream(context, flags == 0, priority < -5 ? -5 : priority > 0 ? 0 : priority);
    });
}

TERCET_API CUresult cuStreamCreate(CUstream *out, unsigned flags) { return cuStreamCreateWithPriority(out, flags, 0); }

TERCET_API CUresult cuStreamDestroy_v2(CUstream handle) {
    return in_context([&](Context &context) {
        Stream &stream = valid(handle);
        if (&stream == context.null_stream || &stream == context.thread_stream) {
            throw Error{CUDA_ERROR_INVALID_HANDLE};
        }
        if (stream.capture != nullptr) {
            stream.capture->broken = true;
            stream.capture->streams.erase(&stream);
            stream.capture = nullptr;
        }
        take_back(handle);
        // What is queued still runs, when something waits for it.
        stream.destroyed = true;
        forget_if_idle(&stream);
    });
}

TERCET_API CUresult cuStreamSynchronize(CUstream handle) {
    return in_context([&](Context &context) {
        reach("sync");
        synchronize(stream_of(context, handle));
    });
}

TERCET_API CUresult cuStreamQuery(CUstream handle) {
    return in_context([&](Context &context) {
        reach("sync");
        Stream &stream = stream_of(context, handle);
        if (stream.capture != nullptr) {
            break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
        if (stream.last != nullptr && !stream.last->done) {
            run_some();
        }
        if (stream.last != nullptr && !stream.last->done) {
            throw Error{CUDA_ERROR_NOT_READY};
        }
        wait_for(context, stream.last);
    });
}

TERCET_API CUresult cuStreamGetPriority(CUstream handle, int *out) {
    return in_context([&](Context &context) { given(out) = stream_of(context, handle).priority; });
}

TERCET_API CUresult cuStreamGetCtx(CUstream handle, CUcontext *out) {
    return in_context([&](Context &context) { given(out) = stream_of(context, handle).context; });
}

TERCET_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    return in_context([&](Context &) {
        given(least) = 0;
        given(greatest) = -5;
    });
}

TERCET_API CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument) {
    return in_context([&](Context &context) {
        if (function == nullptr) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        submit(stream_of(context, handle), "host functions", [=] {
            function(argument);
            // It may tell any thread of the host.
            host_clock().learn(running_clock());
            return CUDA_SUCCESS;
        });
    });
}

TERCET_API CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr, size_t, unsigned) {
    return in_context([&](Context &context) { stream_of(context, handle); });
}
