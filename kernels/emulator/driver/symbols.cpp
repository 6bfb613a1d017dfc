// Functions by name, for callers that ask the driver instead of the loader.
#include "state.h"

#include <dlfcn.h>
#include <string>

using namespace emulator;

TERCET_API CUresult cuGetProcAddress_v2(const char *name, void **out, int, unsigned long long, int *status) {
    return locked([&] {
        given(out) = nullptr;
        Dl_info info;
        if (dladdr(reinterpret_cast<void *>(&cuGetProcAddress_v2), &info) == 0) {
            throw Error{CUDA_ERROR_NOT_FOUND};
        }
        void *library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
        // The newest of a function's versions.
        for (const char *version : {"_v3", "_v2", ""}) {
            *out = *out != nullptr ? *out : dlsym(library, (std::string(&given(name)) + version).c_str());
        }
        if (status != nullptr) {
            *status = *out != nullptr ? 0 : 1;
        }
        if (*out == nullptr) {
            throw Error{CUDA_ERROR_NOT_FOUND};
        }
    });
}
TERCET_API CUresult cuGetProcAddress(const char *name, void **out, int version, unsigned long long flags) {
    return cuGetProcAddress_v2(name, out, version, flags, nullptr);
}
