// Names of errors, and their sentences: the name in plain words.
#include "state.h"

#include <algorithm>
#include <cctype>

namespace emulator {
namespace {
struct Named {
    int code;
    const char *name;
};
constexpr Named NAMES[] = {
    {0, "CUDA_SUCCESS"},
    {1, "CUDA_ERROR_INVALID_VALUE"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY"},
    {3, "CUDA_ERROR_NOT_INITIALIZED"},
    {4, "CUDA_ERROR_DEINITIALIZED"},
    {34, "CUDA_ERROR_STUB_LIBRARY"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    {100, "CUDA_ERROR_NO_DEVICE"},
    {101, "CUDA_ERROR_INVALID_DEVICE"},
    {200, "CUDA_ERROR_INVALID_IMAGE"},
    {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    {218, "CUDA_ERROR_INVALID_PTX"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM"},
    {400, "CUDA_ERROR_INVALID_HANDLE"},
    {401, "CUDA_ERROR_ILLEGAL_STATE"},
    {500, "CUDA_ERROR_NOT_FOUND"},
    {600, "CUDA_ERROR_NOT_READY"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {719, "CUDA_ERROR_LAUNCH_FAILED"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
    {800, "CUDA_ERROR_NOT_PERMITTED"},
    {801, "CUDA_ERROR_NOT_SUPPORTED"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    {907, "CUDA_ERROR_CAPTURED_EVENT"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    {999, "CUDA_ERROR_UNKNOWN"},
};

const char *name_of(int code) {
    for (const Named &named : NAMES) {
        if (named.code == code) {
            return named.name;
        }
    }
    return nullptr;
}
} // namespace
} // namespace emulator

using namespace emulator;

TERCET_API CUresult cuGetErrorName(int code, const char **out) {
    if (out == nullptr || (*out = name_of(code)) == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

TERCET_API CUresult cuGetErrorString(int code, const char **out) {
    const char *name = name_of(code);
    if (out == nullptr || name == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // Made once each and kept, since the caller keeps the pointer.
    std::lock_guard<std::recursive_mutex> guard(state().lock);
    static auto *sentences = new std::map<int, std::string>;
    std::string &sentence = (*sentences)[code];
    if (sentence.empty()) {
        sentence = name;
        size_t from = sentence.find("ERROR_");
        sentence = from == std::string::npos ? "no error" : sentence.substr(from + 6);
        std::transform(sentence.begin(), sentence.end(), sentence.begin(),
                       [](unsigned char c) { return c == '_' ? ' ' : char(tolower(c)); });
    }
    *out = sentence.c_str();
    return CUDA_SUCCESS;
}
