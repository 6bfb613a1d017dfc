// Collective calls, which a group collects and checks against each other before any is queued.
#include "../check/check.h"
#include "../driver/memory.h"
#include "../driver/options.h"
#include "meeting.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace emulator {
namespace {
enum class Collective { ReduceScatter, AllGather };

// A rank's part of a collective. `count` is what a rank gets of a sum, or gives to the others.
struct Call {
    Collective kind;
    Communicator *communicator;
    uintptr_t from, to;
    size_t count;
    ncclDataType_t type;
    Stream *stream;

    size_t bytes() const;
    size_t from_bytes() const { return kind == Collective::ReduceScatter ? bytes() * ranks() : bytes(); }
    size_t to_bytes() const { return kind == Collective::AllGather ? bytes() * ranks() : bytes(); }
    size_t ranks() const { return communicator->clique->ranks.size(); }
};

struct Group {
    int depth = 0;
    std::vector<Call> calls;
    // The first that was refused in it; the end of the group says so again.
    ncclResult_t error = ncclSuccess;
};
thread_local Group group;

std::string name(size_t rank) { return "rank " + std::to_string(rank); }

size_t size_of(ncclDataType_t type) {
    switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclInt32:
    case ncclUint32: return 4;
    case ncclInt64:
    case ncclUint64: return 8;
    default: refuse(ncclInvalidArgument, "only integers are emulated: order would show in sums of floats");
    }
}

size_t Call::bytes() const { return count * size_of(type); }

bool overlap(uintptr_t a, size_t a_bytes, uintptr_t b, size_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

void check_buffer(const Communicator &communicator, uintptr_t at, size_t bytes, size_t element) {
    const Allocation *found = holding(at);
    std::string who = name(communicator.rank) + ": ";
    if (found == nullptr || !holds(at, bytes)) {
        refuse(ncclInvalidArgument, who + "a buffer that is no memory of a device, or too short");
    }
    if (found->kind != Kind::Device || found->device != communicator.context->device->index) {
        refuse(ncclInvalidArgument, who + "a buffer that is not its device's");
    }
    if (at % element != 0) {
        refuse(ncclInvalidArgument, who + "a buffer at a crooked address");
    }
}

void check(const Call &call) {
    const Communicator &communicator = *call.communicator;
    if (call.stream->context != communicator.context) {
        refuse(ncclInvalidUsage, name(communicator.rank) + ": a stream of another device");
    }
    if (call.stream->capture != nullptr) {
        refuse(ncclInvalidUsage, "in a capture, which is not emulated");
    }
    if (call.count == 0) {
        return;
    }
    check_buffer(communicator, call.from, call.from_bytes(), size_of(call.type));
    check_buffer(communicator, call.to, call.to_bytes(), size_of(call.type));
    // In place is where a rank's own part lies.
    bool sum = call.kind == Collective::ReduceScatter;
    uintptr_t part = (sum ? call.from : call.to) + communicator.rank * call.bytes(), other = sum ? call.to : call.from;
    if (part != other && overlap(call.from, call.from_bytes(), call.to, call.to_bytes())) {
        refuse(ncclInvalidArgument, name(communicator.rank) + ": buffers that overlap");
    }
}

// Sums modulo the width, so signed numbers as well. All are taken before any is written: a buffer may be its own target.
template <typename T> CUresult add_up(const std::vector<Call> &calls) {
    std::vector<std::vector<T>> sums;
    for (size_t to = 0; to < calls.size(); to++) {
        std::vector<T> sum(calls[to].count, 0);
        for (const Call &call : calls) {
            if (CHECKED && !is_written(*holding(call.from), call.from, call.from_bytes())) {
                state().message = "NCCL: a sum of memory that nobody wrote";
                return CUDA_ERROR_ILLEGAL_ADDRESS;
            }
            const T *from = reinterpret_cast<const T *>(call.from) + to * call.count;
            for (size_t i = 0; i < call.count; i++) {
                sum[i] = T(sum[i] + from[i]);
            }
        }
        sums.push_back(std::move(sum));
    }
    for (size_t to = 0; to < calls.size(); to++) {
        memcpy(reinterpret_cast<void *>(calls[to].to), sums[to].data(), calls[to].bytes());
        mark_written(*holding(calls[to].to), calls[to].to, calls[to].bytes());
    }
    return CUDA_SUCCESS;
}

CUresult gather(const std::vector<Call> &calls) {
    for (const Call &from : calls) {
        for (const Call &to : calls) {
            uintptr_t place = to.to + from.communicator->rank * from.bytes();
            if (place != from.from) {
                copy_written(place, from.from, from.bytes());
                memmove(reinterpret_cast<void *>(place), reinterpret_cast<const void *>(from.from), from.bytes());
            }
        }
    }
    return CUDA_SUCCESS;
}

CUresult perform(const std::vector<Call> &calls) {
    if (calls[0].count == 0) {
        return CUDA_SUCCESS;
    }
    for (const Call &call : calls) {
        if (!holds(call.from, call.from_bytes()) || !holds(call.to, call.to_bytes())) {
            state().message = "NCCL: memory that has been freed";
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        count("bytes through NCCL", call.to_bytes());
    }
    if (calls[0].kind == Collective::AllGather) {
        return gather(calls);
    }
    switch (size_of(calls[0].type)) {
    case 1: return add_up<uint8_t>(calls);
    case 4: return add_up<uint32_t>(calls);
    default: return add_up<uint64_t>(calls);
    }
}

// One collective: a call of every rank, alike.
void queue(const std::shared_ptr<Clique> &clique, std::vector<Call> calls) {
    auto meeting = std::make_shared<Meeting>();
    for (const Call &call : calls) {
        meeting->streams.push_back(call.stream);
        meeting->contexts.push_back(call.communicator->context);
    }
    meeting->released.resize(calls.size());
    if (CUresult error = due("nccl-async")) {
        meeting->failed = true;
        clique->error = ncclResult_t(error);
    }
    meeting->work = [calls] { return perform(calls); };
    // Each rank's memory, in the order of its own stream.
    meeting->touch = [calls](size_t rank) {
        const Call &call = calls[rank];
        return call.count == 0 || (touch_in_order(call.from, call.from_bytes(), Use::Read, "NCCL") &&
                                   touch_in_order(call.to, call.to_bytes(), Use::Write, "NCCL"));
    };
    Meeting::call(meeting);
    // Those that are over are forgotten.
    auto &all = clique->meetings;
    all.erase(std::remove_if(all.begin(), all.end(), [](const MeetingPtr &old) { return old->done; }), all.end());
    all.push_back(meeting);
    count("NCCL collectives");
}

// The calls of one clique: as many of every rank, and the n-th of each alike. Real ranks that differ wait for each other for
// ever.
void match(const std::shared_ptr<Clique> &clique, const std::vector<Call> &calls) {
    size_t ranks = clique->ranks.size(), number = 0;
    std::vector<std::vector<Call>> of(ranks);
    for (const Call &call : calls) {
        if (call.communicator->clique == clique) {
            of[call.communicator->rank].push_back(call);
            number = std::max(number, of[call.communicator->rank].size());
        }
    }
    for (size_t i = 0; i < number; i++) {
        std::vector<Call> together;
        for (size_t rank = 0; rank < ranks; rank++) {
            if (of[rank].size() != number) {
                refuse(ncclInvalidUsage, name(rank) + " of " + std::to_string(ranks) + " takes no part in a group");
            }
            together.push_back(of[rank][i]);
            const Call &first = together[0], &call = of[rank][i];
            if (call.kind != first.kind || call.count != first.count || call.type != first.type) {
                refuse(ncclInvalidUsage, name(rank) + " asks for another collective, count or type than rank 0");
            }
        }
        queue(clique, together);
    }
}

void end_group() {
    Group ended = std::exchange(group, Group());
    if (ended.error != ncclSuccess) {
        refuse(ended.error, "a group with a call that was refused");
    }
    if (CUresult error = due("nccl-end")) {
        refuse(ncclResult_t(error), "a fault that was asked for");
    }
    std::vector<std::shared_ptr<Clique>> cliques;
    for (const Call &call : ended.calls) {
        // It may have been aborted since.
        known(call.communicator);
        if (std::find(cliques.begin(), cliques.end(), call.communicator->clique) == cliques.end()) {
            cliques.push_back(call.communicator->clique);
        }
    }
    for (const auto &clique : cliques) {
        match(clique, ended.calls);
    }
}

ncclResult_t take(const Call &call, CUstream stream, ncclRedOp_t op) {
    ncclResult_t result = nccl([&] {
        if (CUresult error = due("nccl")) {
            refuse(ncclResult_t(error), "a fault that was asked for");
        }
        Call checked = call;
        checked.communicator = &known(call.communicator);
        if (checked.communicator->clique->error != ncclSuccess) {
            refuse(checked.communicator->clique->error, "a communicator that has failed");
        }
        if (op != ncclSum) {
            refuse(ncclInvalidArgument, "only sums are emulated");
        }
        checked.stream = &stream_of(*checked.communicator->context, stream);
        check(checked);
        group.calls.push_back(checked);
    });
    if (group.depth == 0) {
        // A group of its own.
        if (result != ncclSuccess) {
            group = Group();
            return result;
        }
        return nccl(end_group);
    }
    if (result != ncclSuccess && group.error == ncclSuccess) {
        group.error = result;
    }
    return result;
}
} // namespace
} // namespace emulator

using namespace emulator;

TERCET_NCCL ncclGroupStart() {
    group.depth++;
    return ncclSuccess;
}

TERCET_NCCL ncclGroupEnd() {
    return nccl([&] {
        if (group.depth == 0) {
            refuse(ncclInvalidUsage, "the end of a group that did not begin");
        }
        if (--group.depth == 0) {
            end_group();
        }
    });
}

TERCET_NCCL ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                              ncclComm_t communicator, CUstream stream) {
    return take({Collective::ReduceScatter, communicator, uintptr_t(from), uintptr_t(to), count, type, nullptr}, stream, op);
}

TERCET_NCCL ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t communicator,
                          CUstream stream) {
    return take({Collective::AllGather, communicator, uintptr_t(from), uintptr_t(to), count, type, nullptr}, stream, ncclSum);
}
