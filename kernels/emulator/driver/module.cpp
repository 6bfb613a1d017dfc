// Loads modules: their PTX is read only to see that it is the one of the kernels compiled into this library.
#include "module.h"

#include "options.h"
#include "stream.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace emulator {
namespace {
std::map<std::string, const Kernel *> &kernels() {
    static auto *all = new std::map<std::string, const Kernel *>;
    return *all;
}

// The newest PTX that a driver reads: 8.4 for CUDA 12.4.
int newest_ptx(int driver) {
    int major = driver / 1000, minor = driver % 1000 / 10;
    if (major >= 13) {
        return (major - 4) * 10 + minor;
    }
    // From 12.6 to 12.9 the numbers lag.
    static const int OF_12[] = {80, 81, 82, 83, 84, 85, 85, 86, 87, 88};
    return major == 12 ? OF_12[minor < 10 ? minor : 9] : 70 + minor;
}

[[noreturn]] void refuse(CUresult error, const std::string &message) {
    state().message = message;
    throw Error{error};
}

void check_signature(const PtxEntry &entry, const Kernel &kernel) {
    bool same = entry.parameter_bytes.size() == kernel.count;
    for (unsigned i = 0; same && i < kernel.count; i++) {
        same = entry.parameter_bytes[i] == kernel.parameters[i].bytes;
    }
    if (same) {
        return;
    }
    std::string message = entry.name + ": its PTX takes parameters of";
    for (unsigned bytes : entry.parameter_bytes) {
        message += " " + std::to_string(bytes);
    }
    message += " bytes, its source of";
    for (unsigned i = 0; i < kernel.count; i++) {
        message += " " + std::to_string(kernel.parameters[i].bytes);
    }
    refuse(CUDA_ERROR_INVALID_PTX, message);
}

Module *load(Context &context, const std::string &text) {
    reach("module");
    auto module = std::make_unique<Module>();
    module->context = &context;
    Ptx &ptx = module->ptx;
    if (!read_ptx(text, ptx)) {
        refuse(CUDA_ERROR_INVALID_IMAGE, "a module that is no PTX");
    }
    if (ptx.version > newest_ptx(options().driver)) {
        refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "a module of a PTX newer than the driver");
    }
    int capability = options().major * 10 + options().minor;
    if (ptx.target > capability || (ptx.exact_target && ptx.target != capability)) {
        refuse(CUDA_ERROR_INVALID_PTX, "a module for sm_" + std::to_string(ptx.target) + " on a device of " +
                                           std::to_string(options().major) + "." + std::to_string(options().minor));
    }
    for (const PtxEntry &entry : ptx.entries) {
        auto found = kernels().find(entry.name);
        if (found == kernels().end()) {
            refuse(CUDA_ERROR_INVALID_PTX, entry.name + ": in the PTX, but in no source of the emulated device");
        }
        check_signature(entry, *found->second);
        unsigned threads = entry.max_threads != 0 ? entry.max_threads : 1024;
        module->functions[entry.name].reset(
            new Function{found->second, module.get(), entry.shared_bytes, threads, SHARED_USUAL - entry.shared_bytes});
    }
    return give_out(module.release());
}
} // namespace

void add_kernel(const Kernel *kernel) {
    if (!kernels().emplace(kernel->name, kernel).second) {
        fprintf(stderr, "tercet emulator: two kernels are named %s\n", kernel->name);
        abort();
    }
}

unsigned shared_most(const Device &) {
    switch (options().major * 10 + options().minor) {
    case 75:
        return 64 << 10;
    case 86:
    case 89:
        return 99 << 10;
    case 80:
    case 87:
        return 163 << 10;
    default:
        return options().major >= 9 ? 227 << 10 : 96 << 10;
    }
}
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuModuleLoadData(CUmodule *out, const void *image) {
    return in_context([&](Context &context) {
        refuse_in_capture(context);
        given(out) = load(context, &given(static_cast<const char *>(image)));
    });
}
TERCET_API CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned, int *, void **) {
    return cuModuleLoadData(out, image);
}

TERCET_API CUresult cuModuleLoad(CUmodule *out, const char *path) {
    return in_context([&](Context &context) {
        std::ifstream file(&given(path));
        if (!file) {
            throw Error{CUDA_ERROR_FILE_NOT_FOUND};
        }
        std::stringstream text;
        text << file.rdbuf();
        given(out) = load(context, text.str());
    });
}

TERCET_API CUresult cuModuleUnload(CUmodule handle) {
    return in_context([&](Context &context) {
        Module &module = valid(handle);
        // Launches that are queued still name its functions.
        synchronize(context);
        for (auto &[name, function] : module.functions) {
            take_back(function.get());
        }
        take_back(handle);
        delete handle;
    });
}

TERCET_API CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    return in_context([&](Context &) {
        Module &module = valid(handle);
        auto found = module.functions.find(&given(name));
        if (found == module.functions.end()) {
            throw Error{CUDA_ERROR_NOT_FOUND};
        }
        given(out) = give_out(found->second.get());
    });
}

TERCET_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule handle, const char *) {
    return in_context([&](Context &) {
        valid(handle);
        // No kernel has a global variable.
        throw Error{CUDA_ERROR_NOT_FOUND};
    });
}

TERCET_API CUresult cuFuncGetAttribute(int *out, int attribute, CUfunction handle) {
    return in_context([&](Context &) {
        const Function &function = valid(handle);
        int capability = options().major * 10 + options().minor;
        const int values[] = {int(function.max_threads), int(function.shared_bytes), 0, 0, 32, function.module->ptx.version, capability, 0,
                              int(function.max_dynamic_shared), function.carveout};
        if (attribute < 0 || attribute > 9) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        given(out) = values[attribute];
    });
}

TERCET_API CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
    return in_context([&](Context &context) {
        Function &function = valid(handle);
        if (attribute == 8) {
            if (value < 0 || unsigned(value) + function.shared_bytes > shared_most(*context.device)) {
                throw Error{CUDA_ERROR_INVALID_VALUE};
            }
            function.max_dynamic_shared = unsigned(value);
        } else if (attribute == 9 && value >= -1 && value <= 100) {
            function.carveout = value;
        } else {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
    });
}

TERCET_API CUresult cuFuncSetCacheConfig(CUfunction handle, int) {
    return in_context([&](Context &) { valid(handle); });
}

TERCET_API CUresult cuFuncGetModule(CUmodule *out, CUfunction handle) {
    return in_context([&](Context &) { given(out) = valid(handle).module; });
}

TERCET_API CUresult cuFuncGetName(const char **out, CUfunction handle) {
    return in_context([&](Context &) { given(out) = valid(handle).kernel->name; });
}
