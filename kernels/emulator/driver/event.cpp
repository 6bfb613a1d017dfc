// Events: marks in a stream that others wait for, and the time between them.
#include "options.h"
#include "stream.h"

#include <algorithm>

using namespace emulator;

TERCET_API CUresult cuEventCreate(CUevent *out, unsigned flags) {
    return in_context([&](Context &context) {
        reach("event");
        if (flags > 7) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        given(out) = give_out(new Event{&context, (flags & 2) == 0, nullptr, nullptr, {}});
    });
}

TERCET_API CUresult cuEventDestroy_v2(CUevent handle) {
    return initialized([&] {
        valid(handle);
        take_back(handle);
        delete handle;
    });
}

TERCET_API CUresult cuEventRecord(CUevent handle, CUstream on) {
    return in_context([&](Context &context) {
        Event &event = valid(handle);
        Stream &stream = stream_of(context, on);
        if (event.context != stream.context) {
            throw Error{CUDA_ERROR_INVALID_HANDLE};
        }
        if (stream.capture != nullptr) {
            event.capture = stream.capture;
            event.nodes = stream.frontier;
            return;
        }
        event.capture = nullptr;
        event.ticket = submit(stream, "events", [] { return CUDA_SUCCESS; });
    });
}

TERCET_API CUresult cuStreamWaitEvent(CUstream on, CUevent handle, unsigned) {
    return in_context([&](Context &context) {
        Event &event = valid(handle);
        Stream &stream = stream_of(context, on);
        if (event.capture != nullptr) {
            if (stream.capture == nullptr) {
                stream.capture = event.capture;
                stream.frontier = event.nodes;
                event.capture->streams.insert(&stream);
                return;
            }
            if (stream.capture != event.capture) {
                break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
            }
            for (size_t node : event.nodes) {
                if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end()) {
                    stream.frontier.push_back(node);
                }
            }
            return;
        }
        if (stream.capture != nullptr) {
            break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
        }
        if (event.ticket != nullptr) {
            stream.known.learn(event.ticket->clock);
        }
        // Never recorded, or done: nothing to wait for.
        if (event.ticket == nullptr || event.ticket->done) {
            return;
        }
        TicketPtr ticket = event.ticket;
        submit(stream, "waits", [] { return CUDA_SUCCESS; });
        stream.queue.back().after.push_back(ticket);
    });
}

TERCET_API CUresult cuEventSynchronize(CUevent handle) {
    return in_context([&](Context &context) {
        reach("sync");
        Event &event = valid(handle);
        if (event.capture != nullptr) {
            throw Error{CUDA_ERROR_CAPTURED_EVENT};
        }
        wait_for(context, event.ticket);
    });
}

TERCET_API CUresult cuEventQuery(CUevent handle) {
    return in_context([&](Context &context) {
        Event &event = valid(handle);
        if (event.capture != nullptr) {
            throw Error{CUDA_ERROR_CAPTURED_EVENT};
        }
        if (event.ticket != nullptr && !event.ticket->done) {
            run_some();
        }
        if (event.ticket != nullptr && !event.ticket->done) {
            throw Error{CUDA_ERROR_NOT_READY};
        }
        wait_for(context, event.ticket);
    });
}

TERCET_API CUresult cuEventElapsedTime(float *out, CUevent first, CUevent second) {
    return in_context([&](Context &) {
        const Event &from = valid(first), &to = valid(second);
        if (!from.timing || !to.timing || from.ticket == nullptr || to.ticket == nullptr) {
            throw Error{CUDA_ERROR_INVALID_HANDLE};
        }
        if (!from.ticket->done || !to.ticket->done) {
            throw Error{CUDA_ERROR_NOT_READY};
        }
        given(out) = float((to.ticket->seconds - from.ticket->seconds) * 1e3);
    });
}
TERCET_API CUresult cuEventElapsedTime_v2(float *out, CUevent first, CUevent second) {
    return cuEventElapsedTime(out, first, second);
}
