// Reads the options and counts down to the faults that were asked for.
#include "options.h"

#include "../nccl/api.h"
#include "state.h"

#include <cstdio>
#include <cstdlib>

namespace emulator {
namespace {
std::vector<std::string> split(const std::string &text, char at) {
    std::vector<std::string> parts;
    size_t from = 0;
    while (from <= text.size()) {
        size_t to = text.find(at, from);
        to = to == std::string::npos ? text.size() : to;
        parts.push_back(text.substr(from, to - from));
        from = to + 1;
    }
    return parts;
}

bool number(const std::string &text, unsigned long long &out) {
    char *end = nullptr;
    out = strtoull(text.c_str(), &end, 0);
    if (end == text.c_str()) {
        return false;
    }
    std::string unit = end;
    out <<= unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
    return unit.empty() || unit == "K" || unit == "M" || unit == "G";
}

CUresult usual_error(const std::string &kind) {
    if (kind == "alloc" || kind == "host" || kind == "instantiate") {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (kind == "init") {
        return CUDA_ERROR_NO_DEVICE;
    }
    if (kind == "launch") {
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    if (kind == "module") {
        return CUDA_ERROR_INVALID_PTX;
    }
    if (kind == "capture") {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (kind.rfind("nccl", 0) == 0) {
        // Of NCCL's own numbers.
        return CUresult(ncclSystemError);
    }
    return kind == "lost" ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_UNKNOWN;
}

// "alloc:3": the third from now; "alloc:3+": all from the third on; "alloc:3:2": with error 2.
bool read_fault(const std::string &text, Fault &fault) {
    std::vector<std::string> parts = split(text, ':');
    static const char *const KINDS[] = {"init",  "context", "alloc", "host",    "copy",        "memset", "launch", "module",
                                        "event", "stream",  "sync",  "capture", "instantiate", "graph",  "lost",   "nccl-init",
                                        "nccl",  "nccl-end", "nccl-async"};
    bool known = false;
    for (const char *kind : KINDS) {
        known |= parts[0] == kind;
    }
    unsigned long long at = 1, code = usual_error(parts[0]);
    bool for_ever = parts.size() > 1 && !parts[1].empty() && parts[1].back() == '+';
    if (for_ever) {
        parts[1].pop_back();
    }
    if (!known || parts.size() > 3 || (parts.size() > 1 && !number(parts[1], at)) || (parts.size() > 2 && !number(parts[2], code))) {
        return false;
    }
    fault = {parts[0], long(at), for_ever, int(code)};
    return at != 0 && code != 0;
}

bool set(Options &to, const std::string &name, const std::string &text) {
    if (name == "fail") {
        Fault fault;
        if (text == "none") {
            to.faults.clear();
            return true;
        }
        if (!read_fault(text, fault)) {
            return false;
        }
        to.faults.push_back(fault);
        return true;
    }
    if (name == "capability") {
        std::vector<std::string> parts = split(text, '.');
        unsigned long long major, minor;
        if (parts.size() != 2 || !number(parts[0], major) || !number(parts[1], minor)) {
            return false;
        }
        to.major = int(major);
        to.minor = int(minor);
        return true;
    }
    if (name == "late") {
        to.lateness = text == "most" ? 0 : text == "least" ? 1 : 2;
        return text == "most" || text == "least" || text == "drawn";
    }
    unsigned long long value;
    if (!number(text, value)) {
        return false;
    }
    if (name == "seed") {
        to.seed = value;
    } else if (name == "memory") {
        to.memory = size_t(value);
    } else if (name == "devices") {
        to.devices = int(value);
    } else if (name == "driver") {
        to.driver = int(value);
    } else if (name == "nccl") {
        to.nccl = int(value);
    } else if (name == "multiprocessors") {
        to.multiprocessors = int(value);
    } else if (name == "pools") {
        to.pools = value != 0;
    } else if (name == "peers") {
        to.peers = value != 0;
    } else if (name == "fragments") {
        to.fragments = value != 0;
    } else if (name == "tell") {
        to.tell = value != 0;
    } else {
        return false;
    }
    return true;
}

Options from_environment() {
    Options found;
    if (const char *text = getenv("TERCET_EMULATOR")) {
        for (const std::string &part : split(text, ',')) {
            size_t at = part.find('=');
            if (!part.empty() && (at == std::string::npos || !set(found, part.substr(0, at), part.substr(at + 1)))) {
                fprintf(stderr, "tercet emulator: TERCET_EMULATOR has \"%s\", which it does not know\n", part.c_str());
                abort();
            }
        }
    }
    return found;
}
} // namespace

Options &options() {
    static Options *all = new Options(from_environment());
    return *all;
}

Dice &dice() {
    static Dice *one = new Dice{options().seed};
    return *one;
}

bool configure(const std::string &text) {
    Options next = options();
    for (const std::string &part : split(text, ',')) {
        size_t at = part.find('=');
        if (!part.empty() && (at == std::string::npos || !set(next, part.substr(0, at), part.substr(at + 1)))) {
            return false;
        }
    }
    options() = next;
    if (("," + text).find(",seed=") != std::string::npos) {
        dice().state = next.seed;
    }
    return true;
}

CUresult due(const char *kind) {
    CUresult found = CUDA_SUCCESS;
    for (Fault &fault : options().faults) {
        if (fault.kind != kind) {
            continue;
        }
        fault.countdown -= fault.countdown > 0;
        if (fault.countdown == 0) {
            found = CUresult(fault.code);
            // Once is enough, unless all from here on fail.
            fault.countdown = fault.for_ever ? 0 : -1;
        }
    }
    if (found != CUDA_SUCCESS) {
        count("faults");
    }
    return found;
}

void reach(const char *kind) {
    if (CUresult error = due(kind)) {
        throw Error{error};
    }
}
} // namespace emulator

// Changes options of the running process; 0, or 1 for a text that cannot be read. What is there already (devices, memory) stays.
TERCET_API int tercet_emulator_configure(const char *text) {
    std::lock_guard<std::recursive_mutex> guard(emulator::state().lock);
    return emulator::configure(text) ? 0 : 1;
}

// How often something was done: launches, copies, allocations, … ; 0 for a name never counted.
TERCET_API unsigned long long tercet_emulator_count(const char *what) {
    std::lock_guard<std::recursive_mutex> guard(emulator::state().lock);
    auto found = emulator::state().counts.find(what);
    return found == emulator::state().counts.end() ? 0 : found->second;
}

// What ended the last launch that failed; empty for none. Valid until the next failure.
TERCET_API const char *tercet_emulator_message() {
    std::lock_guard<std::recursive_mutex> guard(emulator::state().lock);
    return emulator::state().message.c_str();
}
