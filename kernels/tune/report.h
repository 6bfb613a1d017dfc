// The table of results, and the same as JSON.
#pragma once

#include "measure.h"

const char *const COPY = "copy";

// A number, or a dash for 0.
inline std::string shown(double number, int digits) {
    char text[32];
    snprintf(text, sizeof text, "%.*f", digits, number);
    return number > 0 ? text : "-";
}

inline std::string quoted(const std::string &text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += (u8)c < ' ' ? ' ' : c;
    }
    return out + "\"";
}

// The table, printed line by line, and what it ends with.
struct Report {
    const Device &device;
    std::vector<Result> results = {};
    // Bytes a second of the copy.
    double copy = 0;

    void begin() const {
        printf("%s, %u.%u, %u multiprocessors, %.1f MiB of cache, driver %d.%d\n\n", device.name.c_str(), device.capability / 10,
               device.capability % 10, device.multiprocessors, (double)device.cache / (1 << 20), device.driver / 1000, device.driver % 1000 / 10);
        line("case", "size", "variant", "       µs", "GB/s", "Gop/s", "of copy", "registers", "local", "right");
    }

    static void line(const std::string &name, const std::string &size, const std::string &variant, const std::string &time,
                     const std::string &bytes, const std::string &operations, const std::string &share, const std::string &registers,
                     const std::string &local, const std::string &right) {
        printf("%-24s  %-26s  %-10s %9s %8s %9s %8s %9s %5s  %s\n", name.c_str(), size.c_str(), variant.c_str(), time.c_str(), bytes.c_str(),
               operations.c_str(), share.c_str(), registers.c_str(), local.c_str(), right.c_str());
        fflush(stdout);
    }

    double share(const Result &one) const { return copy > 0 ? one.bytes_per_second() / copy : 0; }

    void add(const Result &one) {
        if (one.name == COPY) copy = one.bytes_per_second();
        results.push_back(one);
        line(one.name, one.size, one.variant, shown(one.microseconds, 2), shown(one.bytes_per_second() / 1e9, 1),
             shown(one.operations_per_second() / 1e9, 1), shown(share(one), 2), one.registers < 0 ? "-" : std::to_string(one.registers),
             one.local < 0 ? "-" : std::to_string(one.local), one.right);
    }

    // Runs and adds; what fails becomes a line as well. The device may be lost by it: then nothing else can run.
    template <class Run>
    void run(Result result, Run run) {
        try {
            run(result);
        } catch (const Failure &failure) {
            result.right = std::string("FAILED: ") + failure.what();
        }
        add(result);
        if (result.right.compare(0, 6, "FAILED") == 0 && Driver::get().cuStreamSynchronize(device.stream) != 0) {
            throw Failure("the device is lost since " + result.name + " of " + result.variant + "; what comes after it is not run");
        }
    }

    bool right() const {
        return std::all_of(results.begin(), results.end(), [](const Result &one) { return one.right == "yes"; });
    }

    void write(const std::string &path, u64 size) const {
        std::ofstream file(path);
        file << "{\"device\": " << quoted(device.name) << ", \"driver\": " << device.driver << ", \"capability\": " << device.capability
             << ", \"multiprocessors\": " << device.multiprocessors << ", \"cache\": " << device.cache << ", \"values\": " << size
             << ", \"results\": [";
        for (const Result &one : results) {
            file << (&one == &results[0] ? "\n" : ",\n") << "{\"case\": " << quoted(one.name) << ", \"size\": " << quoted(one.size)
                 << ", \"variant\": " << quoted(one.variant) << ", \"us\": " << one.microseconds << ", \"gb_s\": "
                 << one.bytes_per_second() / 1e9 << ", \"gop_s\": " << one.operations_per_second() / 1e9 << ", \"of_copy\": " << share(one)
                 << ", \"registers\": " << one.registers << ", \"local\": " << one.local << ", \"right\": " << quoted(one.right) << "}";
        }
        file << "\n]}\n";
        if (!file.flush()) throw Failure("cannot write " + path);
    }
};
