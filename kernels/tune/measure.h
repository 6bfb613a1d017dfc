// Runs a kernel of a folder's PTX: once to see that it is right, then many times.
#pragma once

#include "case.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

// A line of the table. What was not measured is 0.
struct Result {
    std::string name, size, variant;
    double microseconds = 0, bytes = 0, operations = 0;
    int registers = -1, local = -1;
    // "yes", or what was wrong.
    std::string right = {};

    double bytes_per_second() const { return microseconds > 0 ? bytes / microseconds * 1e6 : 0; }
    double operations_per_second() const { return microseconds > 0 ? operations / microseconds * 1e6 : 0; }
};

// Launches of a graph at least; how often it is timed at least, and until this many milliseconds were: a device that was idle is slow at first.
const u32 LAUNCHES = 50, TURNS = 2;
const float ENOUGH = 50;
const size_t MOST_SETS = 512;

// Bytes of each parameter of a module's kernel; false if it has no such kernel.
inline bool parameters_of(const std::string &ptx, const std::string &kernel, std::vector<u32> &bytes) {
    const size_t begin = ptx.find(".entry " + kernel + "(");
    if (begin == std::string::npos) return false;
    const std::string list = ptx.substr(begin, ptx.find(')', begin) - begin), word = ".param .";
    for (size_t at = list.find(word); at != std::string::npos; at = list.find(word, at + 1)) {
        // Such as u64.
        bytes.push_back((u32)atoi(list.c_str() + at + word.size() + 1) / 8);
    }
    return true;
}

inline std::string in_words(const std::vector<u32> &bytes) {
    std::string text;
    for (u32 number : bytes) text += " " + std::to_string(number);
    return text;
}

// A launch gives as many bytes as a kernel reads: the driver does not look.
inline void check_parameters(const std::string &ptx, const std::string &kernel, const Launch &launch) {
    std::vector<u32> found, given;
    if (!parameters_of(ptx, kernel, found)) throw Failure("there is no kernel " + kernel);
    for (const Argument &argument : launch.arguments) given.push_back(argument.bytes);
    if (found != given) throw Failure(kernel + " takes parameters of" + in_words(found) + " bytes, and is given" + in_words(given));
}

// The memory of several launches, all with the same data.
struct Sets {
    std::vector<std::vector<DeviceMemory>> sets;

    // As many sets as are four times the cache of the device together, if there is room, and no more than a graph should have launches.
    Sets(const Device &device, const std::vector<Part> &parts, bool one) {
        size_t bytes = 0, free = 0, total = 0;
        for (const Part &part : parts) bytes += part.before.size();
        CALL(cuMemGetInfo_v2, &free, &total);
        const size_t wanted = one ? 1 : 4 * device.cache / bytes + 1, room = free / 10 * 9 / bytes;
        for (size_t i = 0; i < std::max<size_t>(std::min({wanted, room, MOST_SETS}), 1); i++) {
            sets.emplace_back();
            for (const Part &part : parts) {
                sets.back().emplace_back(part.before.size());
                if (part.before.empty()) continue;
                CALL(cuMemcpyHtoDAsync_v2, sets.back().back().at, part.before.data(), part.before.size(), device.stream);
            }
        }
        device.wait();
    }

    std::vector<u64> at(size_t launch) const {
        std::vector<u64> places;
        for (const DeviceMemory &memory : sets[launch % sets.size()]) places.push_back(memory.at);
        return places;
    }

    Bytes read(const Device &device, size_t part) const {
        const DeviceMemory &memory = sets[0][part];
        Bytes bytes(memory.bytes);
        if (!bytes.empty()) CALL(cuMemcpyDtoHAsync_v2, bytes.data(), memory.at, bytes.size(), device.stream);
        device.wait();
        return bytes;
    }
};

// "yes", or the first place that is wrong.
inline std::string verdict(const Device &device, const Case &one, const Sets &sets) {
    std::vector<Bytes> all;
    for (size_t i = 0; i < one.parts.size(); i++) {
        const Part &part = one.parts[i];
        all.push_back(!part.after.empty() || one.right ? sets.read(device, i) : Bytes());
        const bool looked_at = !part.after.empty() && all[i] != part.after;
        for (u64 at = 0; looked_at && at < part.after.size(); at++) {
            const u64 place = at / part.width * part.step * part.width + at % part.width;
            if (all[i][place] != part.after[at]) {
                return "WRONG: byte " + std::to_string(place) + " of part " + std::to_string(i) + " is " + std::to_string(all[i][place]) +
                       ", not " + std::to_string(part.after[at]);
            }
        }
    }
    return one.right && !one.right(all) ? "WRONG: what was found does not fit together" : "yes";
}

// The shortest time of one of `count` things that `record` queues, one after another, in microseconds. The graph that is timed waits behind one that
// runs, so the processor's time does not show.
template <class Record>
double replayed(const Device &device, size_t count, Record record) {
    const Graph graph(device, [&] {
        for (size_t i = 0; i < count; i++) record(i);
    });
    const Event begin, end;
    float least = 0, all = 0;
    for (u32 turn = 0; turn < TURNS || (all < ENOUGH && turn < 1000); turn++) {
        float milliseconds = 0;
        CALL(cuGraphLaunch, graph.executable, device.stream);
        CALL(cuEventRecord, begin.handle, device.stream);
        CALL(cuGraphLaunch, graph.executable, device.stream);
        CALL(cuEventRecord, end.handle, device.stream);
        device.wait();
        CALL(cuEventElapsedTime, &milliseconds, begin.handle, end.handle);
        least = turn == 0 ? milliseconds : std::min(least, milliseconds);
        all += milliseconds;
    }
    return least * 1e3 / (double)count;
}

inline std::string read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return file ? text.str() : "";
}

// With `once` the kernel is launched once, and nothing is timed.
inline void measure(const Device &device, const Entry &entry, const Case &one, const std::string &ptx, bool once, Result &result) {
    check_parameters(ptx, entry.kernel, one.launch(std::vector<u64>(one.parts.size()), {1, 1}));
    const Kernel kernel(ptx, entry.kernel, one.shared);
    result.registers = kernel.registers;
    result.local = kernel.local;
    const Sets sets(device, one.parts, once);
    const Room room = {kernel.resident(device), device.multiprocessors};
    kernel.launch(device, one.launch(sets.at(0), room));
    device.wait();
    result.right = verdict(device, one, sets);
    if (once || result.right != "yes") return;
    result.microseconds = replayed(device, std::max<size_t>(LAUNCHES, sets.sets.size()),
                                   [&](size_t i) { kernel.launch(device, one.launch(sets.at(i), room)); });
    result.bytes = one.bytes;
    result.operations = one.operations;
}
