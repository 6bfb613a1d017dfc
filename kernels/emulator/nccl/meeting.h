// Where the streams of several devices meet: what NCCL's kernels do together.
#pragma once

#include "../driver/stream.h"
#include "api.h"

namespace emulator {
// Work of several streams at once. It is done when all of them have come to it; until then each of them waits, as a kernel that
// spins.
struct Meeting {
    std::vector<Stream *> streams;
    std::vector<Context *> contexts;
    // What marks the end of each stream's part.
    std::vector<TicketPtr> ends;
    // Whose communicator was aborted: their streams go on.
    std::vector<bool> released;
    // An error that only NCCL's own watch has seen: nobody goes on.
    bool failed = false;
    bool done = false;
    Action work;
    // A rank's part touches its memory; false where another piece of work may at the same time.
    std::function<bool(size_t)> touch;

    // Whether a stream's part can end, when all have come.
    bool open(size_t rank) const;
    // Queues it on all streams.
    static void call(const std::shared_ptr<Meeting> &meeting);
};
using MeetingPtr = std::shared_ptr<Meeting>;

// The communicators that were made together.
struct Clique {
    std::vector<Communicator *> ranks;
    ncclResult_t error = ncclSuccess;
    std::vector<MeetingPtr> meetings;
};

struct Communicator {
    std::shared_ptr<Clique> clique;
    size_t rank;
    Context *context;
};

// A refusal of NCCL's, thrown to the end of a call; the sentence becomes the device's message.
struct Refusal {
    ncclResult_t code;
    std::string why;
};
[[noreturn]] inline void refuse(ncclResult_t code, const std::string &why) { throw Refusal{code, why}; }

// A call under the lock of the driver.
template <typename F> ncclResult_t nccl(F body) {
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    try {
        body();
        return ncclSuccess;
    } catch (const Refusal &refusal) {
        state().message = "NCCL: " + refusal.why;
        return refusal.code;
    } catch (const Error &) {
        return ncclUnhandledCudaError;
    }
}

// The communicator of a handle that was given out and not taken back.
Communicator &known(ncclComm_t handle);
} // namespace emulator
