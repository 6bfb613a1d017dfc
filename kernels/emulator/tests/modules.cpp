// Modules, launches and what is refused of them; faults on demand.
#include "harness.h"

#include <cstring>
#include <set>

namespace {
using Types = std::vector<std::string>;

void modules() {
    CUmodule module;
    CUfunction function;
    auto load = [&](const std::string &text) { return cuModuleLoadData(&module, text.c_str()); };
    GIVES(CUDA_ERROR_INVALID_IMAGE, load("no module at all"));
    GIVES(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, load(".version 8.5\n.target sm_75\n"));
    GIVES(CUDA_ERROR_INVALID_PTX, load(".version 8.4\n.target sm_100\n"));
    // The PTX and the source must have the same parameters.
    OK(load(ptx_of("test_add", {"u64", "u64", "u64", "u32"})));
    GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "test_ad"));
    OK(cuModuleGetFunction(&function, module, "test_add"));
    OK(cuModuleUnload(module));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    GIVES(CUDA_ERROR_INVALID_PTX, load(ptx_of("test_add", {"u64", "u64", "u64"})));
    GIVES(CUDA_ERROR_INVALID_PTX, load(ptx_of("test_add", {"u64", "u64", "u64", "u64"})));
    CHECK(strstr(tercet_emulator_message(), "8 8 8 8 bytes, its source of 8 8 8 4") != nullptr);
    GIVES(CUDA_ERROR_INVALID_PTX, load(ptx_of("test_missing", {})));
    // sm_90a is for 9.0 alone.
    OK(load(".version 8.4\n.target sm_90a\n"));
    CHECK(tercet_emulator_configure("capability=10.0") == 0);
    GIVES(CUDA_ERROR_INVALID_PTX, load(".version 8.4\n.target sm_90a\n"));
    CHECK(tercet_emulator_configure("capability=7.5,driver=12000") == 0);
    GIVES(CUDA_ERROR_INVALID_PTX, load(".version 8.0\n.target sm_80\n"));
    GIVES(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, load(".version 8.1\n.target sm_70\n"));
    CHECK(tercet_emulator_configure("capability=9.0,driver=12040") == 0);
}

void launches() {
    CUmodule module;
    CUfunction function;
    // 8 KiB of static shared memory in the module, named by the entry; at most 256 threads.
    std::string text = ".version 8.4\n.target sm_75\n.shared .align 4 .b8 table[8192];\n.visible .entry test_dynamic(\n"
                       "\t.param .u64 a, // the sum\n\t.param .u32 b\n)\n.maxntid 256, 1, 1\n{\n mov.u64 %rd1, table;\n mov.u64 %rd2, table;\n}\n";
    OK(cuModuleLoadData(&module, text.c_str()));
    OK(cuModuleGetFunction(&function, module, "test_dynamic"));
    int value = 0;
    OK(cuFuncGetAttribute(&value, 1, function));
    CHECK(value == 8192);
    OK(cuFuncGetAttribute(&value, 0, function));
    CHECK(value == 256);
    CUdeviceptr out = upload(std::vector<unsigned>{0});
    unsigned words = 10000;
    GIVES(CUDA_ERROR_INVALID_VALUE, launch(function, 1, 257, 64, nullptr, out, words));
    GIVES(CUDA_ERROR_INVALID_VALUE, launch(function, 0, 32, 64, nullptr, out, words));
    GIVES(CUDA_ERROR_INVALID_VALUE, launch(function, 1, 0, 64, nullptr, out, words));
    // 40 KiB are left of 48 without leave.
    GIVES(CUDA_ERROR_INVALID_VALUE, launch(function, 1, 64, 40 * 1024 + 1, nullptr, out, words));
    OK(launch(function, 1, 64, 40 * 1024, nullptr, out, words));
    OK(cuFuncSetAttribute(function, 8, 219 * 1024));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(function, 8, 220 * 1024));
    words = 219 * 256;
    OK(launch(function, 1, 64, 219 * 1024, nullptr, out, words));
    CHECK(download<unsigned>(out, 1)[0] == 9999u * 5000 + words / 2 * (words - 1));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 256, 0));
    CHECK(value == 8);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 256, 100 * 1024));
    CHECK(value == 2);
}

void places() {
    CUfunction function = function_of("test_places", {"u64"});
    CUdeviceptr out = upload(std::vector<unsigned>(4 * 3 * 2 * 5 * 2 * 3, 0));
    void *values[] = {&out};
    OK(cuLaunchKernel(function, 4, 3, 2, 5, 2, 3, 0, nullptr, values, nullptr));
    CHECK(download<unsigned>(out, 720) == std::vector<unsigned>(720, 1));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 65536, 1, 1, 1, 1, 0, nullptr, values, nullptr));
    GIVES(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(function, 1, 1, 1, 1, 1, 65, 0, nullptr, values, nullptr));
}

// The n-th call of a kind fails, once or for ever.
void faults() {
    CUdeviceptr at;
    char byte = 0;
    CHECK(tercet_emulator_configure("fail=alloc:3") == 0);
    for (int i = 1; i <= 5; i++) {
        GIVES(i == 3 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, cuMemAlloc_v2(&at, 16));
    }
    CHECK(tercet_emulator_configure("fail=copy:2+:46") == 0);
    for (int i = 1; i <= 4; i++) {
        GIVES(i >= 2 ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS, cuMemcpyHtoD_v2(at, &byte, 1));
    }
    CHECK(tercet_emulator_configure("fail=none,fail=launch:1,fail=module:2") == 0);
    CUfunction function = function_of("test_last_block", {"u64"});
    GIVES(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, launch(function, 1, 1, 0, nullptr, at));
    OK(launch(function, 1, 1, 0, nullptr, at));
    CUmodule module;
    GIVES(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, ptx_of("test_last_block", {"u64"}).c_str()));
    // A text that cannot be read changes nothing.
    CHECK(tercet_emulator_configure("fail=alloc:x") == 1 && tercet_emulator_configure("colour=red") == 1);
    // A lost device says so to every call. (What is queued would count.)
    OK(cuCtxSynchronize());
    CHECK(tercet_emulator_configure("fail=none,fail=lost:2:214") == 0);
    OK(launch(function, 1, 1, 0, nullptr, at));
    OK(cuCtxSynchronize());
    OK(launch(function, 1, 1, 0, nullptr, at));
    GIVES(CUDA_ERROR_ECC_UNCORRECTABLE, cuCtxSynchronize());
    GIVES(CUDA_ERROR_ECC_UNCORRECTABLE, cuMemAlloc_v2(&at, 16));
    GIVES(CUDA_ERROR_ECC_UNCORRECTABLE, launch(function, 1, 1, 0, nullptr, at));
    const char *text;
    OK(cuGetErrorName(214, &text));
    CHECK(strcmp(text, "CUDA_ERROR_ECC_UNCORRECTABLE") == 0);
    GIVES(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(12345, &text));
    CHECK(tercet_emulator_count("faults") == 8);
}

// What a program meets before it has a device.
void no_device() {
    CUcontext context;
    int devices;
    GIVES(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&devices));
    CHECK(tercet_emulator_configure("fail=init:1:803") == 0);
    GIVES(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, cuInit(0));
    CHECK(tercet_emulator_configure("devices=0") == 0);
    GIVES(CUDA_ERROR_NO_DEVICE, cuInit(0));
    CHECK(tercet_emulator_configure("devices=1,driver=11040") == 0);
    OK(cuInit(0));
    int version;
    OK(cuDriverGetVersion(&version));
    CHECK(version == 11040);
    GIVES(CUDA_ERROR_INVALID_DEVICE, cuDevicePrimaryCtxRetain(&context, 1));
    GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
    CHECK(tercet_emulator_configure("driver=12040") == 0);
}
} // namespace

int main() {
    no_device();
    start();
    modules();
    launches();
    places();
    faults();
}
