// The machine's devices: what they are, and what they say of themselves.
#include "memory.h"
#include "module.h"
#include "options.h"
#include "stream.h"

#include <cstdio>

namespace emulator {
State &state() {
    static auto *one = new State;
    return *one;
}

void count(const char *what, unsigned long long by) { state().counts[what] += by; }

Device &device_of(CUdevice device) {
    if (device < 0 || size_t(device) >= state().devices.size()) {
        throw Error{CUDA_ERROR_INVALID_DEVICE};
    }
    return *state().devices[size_t(device)];
}

namespace {
void make_devices() {
    for (int i = int(state().devices.size()); i < options().devices; i++) {
        auto device = std::make_unique<Device>();
        device->index = i;
        device->total = options().memory;
        device->pool.device = i;
        device->pool.is_default = true;
        device->current_pool = give_out(&device->pool);
        state().devices.push_back(std::move(device));
    }
}

int attribute_of(const Device &device, int attribute) {
    switch (attribute) {
    case 1: // threads of a block
    case 2: // its extents
    case 3:
        return 1024;
    case 4:
        return 64;
    case 5: // extents of a grid
        return 0x7FFFFFFF;
    case 6:
    case 7:
        return 65535;
    case 8: // shared memory of a block
        return int(SHARED_USUAL);
    case 9: // constant memory
        return 65536;
    case 10: // lanes of a warp
        return 32;
    case 12: // registers of a block
    case 82: // and of a multiprocessor
        return 65536;
    case 13: // kHz
        return 1000000;
    case 16:
        return options().multiprocessors;
    case 19: // host memory can be mapped
    case 31: // kernels side by side
    case 41: // one space of addresses
    case 78: // priorities
    case 83: // managed memory
    case 91: // registered memory under its own address
    case 99: // memory can be registered
        return 1;
    case 33: // PCI bus
        return device.index + 1;
    case 36: // kHz of memory
        return 1000000;
    case 37: // bits of its bus
        return 256;
    case 38: // bytes of the second cache
        return 1 << 20;
    case 39: // threads of a multiprocessor
        return options().major == 7 ? 1024 : 2048;
    case 40: // copy engines
        return 2;
    case 75:
        return options().major;
    case 76:
        return options().minor;
    case 81: // shared memory of a multiprocessor
        return int(shared_most(device)) + 1024;
    case 97: // shared memory of a block, with leave
        return int(shared_most(device));
    case 106: // blocks of a multiprocessor
        return 32;
    case 111: // shared memory that the system keeps of each block
        return options().major >= 8 ? 1024 : 0;
    case 115: // memory pools
        return options().pools;
    default:
        if (attribute < 1 || attribute > 140) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        return 0;
    }
}
} // namespace
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuInit(unsigned flags) {
    return locked([&] {
        reach("init");
        if (flags != 0) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        if (options().devices == 0) {
            throw Error{CUDA_ERROR_NO_DEVICE};
        }
        make_devices();
        state().initialized = true;
    });
}

TERCET_API CUresult cuDriverGetVersion(int *out) {
    return locked([&] { given(out) = options().driver; });
}

TERCET_API CUresult cuDeviceGetCount(int *out) {
    return initialized([&] { given(out) = int(state().devices.size()); });
}

TERCET_API CUresult cuDeviceGet(CUdevice *out, int ordinal) {
    return initialized([&] { given(out) = device_of(ordinal).index; });
}

TERCET_API CUresult cuDeviceGetName(char *out, int bytes, CUdevice device) {
    return initialized([&] {
        if (bytes <= 0) {
            throw Error{CUDA_ERROR_INVALID_VALUE};
        }
        snprintf(&given(out), size_t(bytes), "Tercet emulated device %d", device_of(device).index);
    });
}

TERCET_API CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device) {
    return initialized([&] {
        given(out) = {{'t', 'e', 'r', 'c', 'e', 't', ' ', 'e', 'm', 'u', 'l', 'a', 't', 'e', 'd', char(device_of(device).index)}};
    });
}
TERCET_API CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) { return cuDeviceGetUuid_v2(out, device); }

TERCET_API CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device) {
    return initialized([&] { given(out) = device_of(device).total; });
}

TERCET_API CUresult cuDeviceGetAttribute(int *out, int attribute, CUdevice device) {
    return initialized([&] { given(out) = attribute_of(device_of(device), attribute); });
}

TERCET_API CUresult cuDeviceGetPCIBusId(char *out, int bytes, CUdevice device) {
    return initialized([&] { snprintf(&given(out), size_t(bytes), "0000:%02x:00.0", device_of(device).index + 1); });
}

TERCET_API CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer) {
    return initialized([&] { given(out) = device_of(device).index != device_of(peer).index && options().peers; });
}

TERCET_API CUresult cuDeviceGetP2PAttribute(int *out, int attribute, CUdevice device, CUdevice peer) {
    return initialized([&] {
        bool different = device_of(device).index != device_of(peer).index;
        // 2: access; 3: native atomics.
        given(out) = different && options().peers && (attribute == 2 || attribute == 3);
    });
}
