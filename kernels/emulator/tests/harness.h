// What the tests of the emulated device are written with: the driver, checks that name their line, launches by name.
#pragma once

#include "../driver/api.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" {
CUresult cuInit(unsigned);
CUresult cuDriverGetVersion(int *);
CUresult cuDeviceGetCount(int *);
CUresult cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuDeviceCanAccessPeer(int *, CUdevice, CUdevice);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *, CUdevice);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize();
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuFuncGetAttribute(int *, int, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void *);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, CUfunction, int, size_t);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemGetInfo_v2(size_t *, size_t *);
CUresult cuMemHostAlloc(void **, size_t, unsigned);
CUresult cuMemFreeHost(void *);
CUresult cuMemHostRegister_v2(void *, size_t, unsigned);
CUresult cuMemHostUnregister(void *);
CUresult cuMemPoolGetAttribute(CUmemoryPool, int, void *);
CUresult cuMemPoolSetAttribute(CUmemoryPool, int, void *);
CUresult cuMemPoolTrimTo(CUmemoryPool, size_t);
CUresult cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult cuStreamCreate(CUstream *, unsigned);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph *);
CUresult cuStreamIsCapturing(CUstream, int *);
CUresult cuEventCreate(CUevent *, unsigned);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime(float *, CUevent, CUevent);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
CUresult cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGetErrorName(int, const char **);
CUresult cuGetErrorString(int, const char **);
int tercet_emulator_configure(const char *);
unsigned long long tercet_emulator_count(const char *);
const char *tercet_emulator_message();
}

#define CHECK(condition)                                                                                                           \
    do {                                                                                                                           \
        if (!(condition)) {                                                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold; the device's last message: %s\n", __FILE__, __LINE__, #condition,            \
                    tercet_emulator_message());                                                                                    \
            exit(1);                                                                                                               \
        }                                                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == CUDA_SUCCESS)
#define GIVES(error, call) CHECK((call) == (error))

// The PTX that a compiler would give for a kernel: its parameters, each a type such as "u64".
inline std::string ptx_of(const std::string &name, const std::vector<std::string> &parameters, const std::string &shared = "") {
    std::string text = ".version 8.4\n.target sm_75\n.address_size 64\n" + shared + ".visible .entry " + name + "(";
    for (size_t i = 0; i < parameters.size(); i++) {
        text += (i == 0 ? "" : ",") + std::string("\n.param .") + parameters[i] + " " + name + "_param_" + std::to_string(i);
    }
    return text + ")\n{\nret;\n}\n";
}

inline CUfunction function_of(const std::string &name, const std::vector<std::string> &parameters) {
    CUmodule module;
    CUfunction function;
    OK(cuModuleLoadData(&module, ptx_of(name, parameters).c_str()));
    OK(cuModuleGetFunction(&function, module, name.c_str()));
    return function;
}

// One launch along x.
template <typename... P>
CUresult launch(CUfunction function, unsigned blocks, unsigned threads, unsigned shared, CUstream stream, P... parameters) {
    void *values[] = {&parameters..., nullptr};
    return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, values, nullptr);
}

inline CUdeviceptr device_memory(size_t bytes) {
    CUdeviceptr at;
    OK(cuMemAlloc_v2(&at, bytes));
    return at;
}
template <typename T> CUdeviceptr upload(const std::vector<T> &values) {
    CUdeviceptr at = device_memory(values.size() * sizeof(T));
    OK(cuMemcpyHtoD_v2(at, values.data(), values.size() * sizeof(T)));
    return at;
}
template <typename T> std::vector<T> download(CUdeviceptr at, size_t number) {
    std::vector<T> values(number);
    OK(cuMemcpyDtoH_v2(values.data(), at, number * sizeof(T)));
    return values;
}

// The primary context of the first device, current.
inline CUcontext start() {
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}
