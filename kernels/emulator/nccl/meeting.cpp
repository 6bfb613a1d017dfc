#include "meeting.h"

namespace emulator {
bool Meeting::open(size_t rank) const {
    if (done || released[rank]) {
        return true;
    }
    if (failed) {
        return false;
    }
    for (size_t other = 0; other < contexts.size(); other++) {
        // Who is gone takes no part, and the others' kernels wait for it.
        if (released[other] || contexts[other]->lost != CUDA_SUCCESS) {
            return false;
        }
    }
    return true;
}

void Meeting::call(const MeetingPtr &meeting) {
    std::vector<TicketPtr> arrivals;
    for (Stream *stream : meeting->streams) {
        arrivals.push_back(submit(*stream, "arrivals at NCCL", [] { return CUDA_SUCCESS; }));
    }
    for (size_t rank = 0; rank < meeting->streams.size(); rank++) {
        Stream &stream = *meeting->streams[rank];
        TicketPtr end = submit(stream, "NCCL", [meeting, rank] {
            if (meeting->released[rank]) {
                return CUDA_SUCCESS;
            }
            if (!meeting->touch(rank)) {
                return CUDA_ERROR_LAUNCH_FAILED;
            }
            if (meeting->done) {
                return CUDA_SUCCESS;
            }
            // The first that comes here does it for all.
            meeting->done = true;
            return meeting->work();
        });
        Work &queued = stream.queue.back();
        queued.after.insert(queued.after.end(), arrivals.begin(), arrivals.end());
        for (const TicketPtr &arrival : arrivals) {
            stream.known.learn(arrival->clock);
        }
        end->clock = stream.known;
        queued.ready = [meeting, rank] { return meeting->open(rank); };
        meeting->ends.push_back(end);
    }
}
} // namespace emulator
