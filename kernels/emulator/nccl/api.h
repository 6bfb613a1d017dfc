// NCCL's interface as far as the emulated devices have it: handles, numbers and functions, for its tests too.
//
// Numbers and signatures are those of NCCL 2.22.
#pragma once

#include "../driver/api.h"

namespace emulator {
struct Communicator;
}
using ncclComm_t = emulator::Communicator *;

enum ncclResult_t : int {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
};

enum ncclDataType_t : int {
    ncclInt8 = 0,
    ncclUint8,
    ncclInt32,
    ncclUint32,
    ncclInt64,
    ncclUint64,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
};
enum ncclRedOp_t : int { ncclSum = 0, ncclProd, ncclMax, ncclMin, ncclAvg };

#define TERCET_NCCL extern "C" __attribute__((visibility("default"))) ncclResult_t
TERCET_NCCL ncclGetVersion(int *);
TERCET_NCCL ncclCommInitAll(ncclComm_t *, int, const int *);
TERCET_NCCL ncclCommDestroy(ncclComm_t);
TERCET_NCCL ncclCommAbort(ncclComm_t);
TERCET_NCCL ncclCommGetAsyncError(ncclComm_t, ncclResult_t *);
TERCET_NCCL ncclGroupStart();
TERCET_NCCL ncclGroupEnd();
TERCET_NCCL ncclReduceScatter(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, CUstream);
TERCET_NCCL ncclAllGather(const void *, void *, size_t, ncclDataType_t, ncclComm_t, CUstream);
extern "C" __attribute__((visibility("default"))) const char *ncclGetErrorString(ncclResult_t);
