// Communicators: one for each device of a process, made together and ended one by one.
#include "../driver/options.h"
#include "meeting.h"

extern "C" {
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
}

namespace emulator {
Communicator &known(ncclComm_t handle) {
    if (handle == nullptr || state().handles.count(handle) == 0) {
        refuse(ncclInvalidArgument, "no such communicator, or one that has ended");
    }
    return *handle;
}

namespace {
void end(Communicator &communicator) {
    Clique &clique = *communicator.clique;
    clique.ranks[communicator.rank] = nullptr;
    take_back(&communicator);
    cuDevicePrimaryCtxRelease_v2(communicator.context->device->index);
    delete &communicator;
}

// What is queued for this rank must be done before its communicator ends.
void finish(Communicator &communicator) {
    for (const MeetingPtr &meeting : communicator.clique->meetings) {
        const TicketPtr &part = meeting->ends[communicator.rank];
        if (part->done) {
            continue;
        }
        try {
            wait_for(*communicator.context, part);
        } catch (const Error &) {
            refuse(ncclUnhandledCudaError, "a communicator ends whose work cannot");
        }
    }
}
} // namespace
} // namespace emulator

using namespace emulator;

TERCET_NCCL ncclGetVersion(int *out) {
    return nccl([&] {
        if (out == nullptr) {
            refuse(ncclInvalidArgument, "a version without a place");
        }
        *out = options().nccl;
    });
}

TERCET_NCCL ncclCommInitAll(ncclComm_t *out, int number, const int *devices) {
    return nccl([&] {
        if (CUresult error = due("nccl-init")) {
            refuse(ncclResult_t(error), "a fault that was asked for");
        }
        if (out == nullptr || number < 1) {
            refuse(ncclInvalidArgument, "communicators for no device");
        }
        std::set<int> seen;
        for (int i = 0; i < number; i++) {
            int device = devices == nullptr ? i : devices[i];
            if (device < 0 || size_t(device) >= state().devices.size()) {
                refuse(ncclInvalidArgument, "no device " + std::to_string(device));
            }
            if (!seen.insert(device).second) {
                refuse(ncclInvalidUsage, "device " + std::to_string(device) + " twice in one communicator");
            }
        }
        auto clique = std::make_shared<Clique>();
        for (int device : seen) {
            const Device &found = *state().devices[size_t(device)];
            if (found.primary != nullptr && found.primary->lost != CUDA_SUCCESS) {
                refuse(ncclUnhandledCudaError, "device " + std::to_string(device) + " is lost");
            }
        }
        for (int i = 0; i < number; i++) {
            CUcontext context = nullptr;
            cuDevicePrimaryCtxRetain(&context, devices == nullptr ? i : devices[i]);
            clique->ranks.push_back(new Communicator{clique, size_t(i), context});
            out[i] = give_out(clique->ranks.back());
        }
        count("NCCL communicators", unsigned(number));
    });
}

TERCET_NCCL ncclCommDestroy(ncclComm_t handle) {
    return nccl([&] {
        Communicator &communicator = known(handle);
        finish(communicator);
        end(communicator);
    });
}

TERCET_NCCL ncclCommAbort(ncclComm_t handle) {
    return nccl([&] {
        Communicator &communicator = known(handle);
        for (const MeetingPtr &meeting : communicator.clique->meetings) {
            meeting->released[communicator.rank] = true;
        }
        count("NCCL aborts");
        end(communicator);
    });
}

TERCET_NCCL ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *out) {
    return nccl([&] {
        Communicator &communicator = known(handle);
        if (out == nullptr) {
            refuse(ncclInvalidArgument, "an error without a place");
        }
        *out = communicator.clique->error;
    });
}

extern "C" __attribute__((visibility("default"))) const char *ncclGetErrorString(ncclResult_t code) {
    switch (code) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    }
    return "unknown result code";
}
