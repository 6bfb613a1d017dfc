// Times kernels and variants of them on a machine with a driver alone:
//
//     g++ -std=c++17 -O2 -ffp-contract=off -x c++ kernels/tune/main.cu -o tune -ldl
//     ./tune kernels/ptx [VARIANT...]
//
// All of it runs on the processor; kernels come as PTX. It takes a minute with the usual size, most of it for the references.

#include "report.h"
#include "rows.h"
#include "transfers.h"
#include "values.h"

const char *const HELP =
    R"(tune [--only WORD]... [--size N] [--once] [--json FILE] PTX_FOLDER [VARIANT_FOLDER...]

Runs each kernel of folders laid out as kernels/ptx, compares all that it writes with a reference on the processor, bit by bit,
and then times it: the shortest of several turns of 50 launches or more in a graph, which go around in memory of four times the
device's cache. The first folder is what is shipped; from another one a kernel runs if its module is there. Data is random, and the
same each time.

  --only WORD   only cases that have the word, or one of several, in their names or kernels; and the copy that others are compared with
  --size N      values, a multiple of 32,768; 33,554,432 without it. Int8 rows have two to four times as many
  --once        one launch of each kernel, and no times: for profilers
  --json FILE   the table as JSON too; a number that was not measured is 0, or -1 for registers

Ends with 1 if something is wrong or fails, and with 2 for arguments that it does not understand.
)";

// Arguments that make no sense.
struct Misuse : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Arguments {
    std::vector<std::string> only, folders;
    u64 size = 32 << 20;
    bool once = false;
    std::string json;

    Arguments(int count, char **values) {
        for (int i = 1; i < count; i++) {
            const std::string word = values[i];
            auto next = [&] {
                if (i + 1 == count) throw Misuse(word + " needs a value");
                return std::string(values[++i]);
            };
            if (word == "--only") {
                only.push_back(next());
            } else if (word == "--size") {
                const std::string number = next();
                char *end = nullptr;
                size = strtoull(number.c_str(), &end, 10);
                if (*end != 0 || size == 0 || size % 32768 != 0 || size >> 32 != 0) {
                    throw Misuse("--size " + number + ": it takes a multiple of 32768 below 2^32");
                }
            } else if (word == "--json") {
                json = next();
            } else if (word == "--once") {
                once = true;
            } else if (word.compare(0, 1, "-") == 0) {
                throw Misuse("there is no " + word + "; --help says what there is");
            } else {
                // Without slashes at the end: the last name is the variant's.
                folders.push_back(word.substr(0, word.find_last_not_of('/') + 1));
            }
        }
        if (folders.empty()) throw Misuse("no folder of PTX is named; --help says more");
    }
};

std::vector<Entry> entries() {
    typedef std::function<Case(u64)> Make;
    auto rows = [](Type type, bool ternary) -> Make { return [=](u64 size) { return quantized_rows(size, type, ternary); }; };
    auto encodes = [](Encode encode) -> Make { return [=](u64 size) { return encoded(size, encode); }; };
    auto decodes = [](Encode encode, Decode decode) -> Make { return [=](u64 size) { return decoded(size, encode, decode); }; };
    auto sums = [](u32 moving) -> Make { return [=](u64 size) { return summed(size, moving); }; };
    auto ternary = [](u64 count, bool dp4a) -> Make { return [=](u64 size) { return product(size / 2048, 4096, count, 2, 0, dp4a); }; };
    auto square = [](u32 bits, u64 tile) -> Make {
        return [=](u64 size) { return product(side(size), side(size), side(size), bits, tile); };
    };
    return {
        {"atomics at one address", "75/cluster_update", "cluster_next_empty", one_address},
        {"statistics, exact mean", "75/stats", "stats_f32", statistics},
        {"ternary codes", "75/quantize_f32", "quantize_apply_ternary_f32", ternary_codes},
        {"ternary rows, absmean", "75/quantize_f32", "quantize_short_ternary_f32", rows(F32, true)},
        {"int8 rows", "75/quantize_f32", "quantize_short_symmetric_f32", rows(F32, false)},
        {"int8 rows", "75/quantize_f16", "quantize_short_symmetric_f16", rows(F16, false)},
        {"int8 rows", "75/quantize_bf16", "quantize_short_symmetric_bf16", rows(BF16, false)},
        {"dequantize int8", "75/dequantize", "dequantize_f32", dequantized},
        {"norm and quantize", "75/activations", "activations_a8", activations},
        {"histogram", "75/histogram_ordered", "histogram_f32", histogram},
        {"encode tq2_0", "75/block_encode", "block_encode_tq2_0", encodes(encode_ternary)},
        {"decode tq2_0", "75/block_decode", "block_decode_tq2_0_f32", decodes(encode_ternary, decode_ternary)},
        {"encode q8_0", "75/block_encode", "block_encode_q8_0", encodes(encode_bytes)},
        {"decode q8_0", "75/block_decode", "block_decode_q8_0_f32", decodes(encode_bytes, decode_bytes)},
        {"k-means, lengths", "75/cluster", "cluster_norms", squared_lengths},
        {"k-means, assign few", "80/cluster_few_mma", "cluster_assign_few_64x64", assigned_few},
        {"k-means, assign mma", "80/cluster_mma", "cluster_assign_mma", assigned_mma},
        {"k-means, assign wgmma", "90a/cluster_wgmma", "cluster_assign_wgmma", assigned_wgmma},
        {"k-means, sums of all", "75/cluster", "cluster_accumulate_shared", sums(1)},
        {"k-means, sums of 1 in 32", "75/cluster", "cluster_accumulate_shared", sums(32)},
        {"search, one query", "75/search_int8", "search_one_int8", searched},
        {"matvec tq2_0, dp4a", "75/linear", "linear_2_blocks_1", ternary(1, true)},
        {"matvec tq2_0", "80/linear_mma", "linear_mma_rows_2_256", ternary(1, false)},
        {"matmat tq2_0, few", "80/linear_mma", "linear_mma_rows16_2_256", ternary(16, false)},
        {"matmat tq2_0", "80/linear_tile_mma", "linear_tile_2_256", square(2, 64)},
        {"matmat int8", "80/linear_tile_mma", "linear_tile_8", square(8, 128)},
    };
}

std::string last_name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

// What a module's folder asks of a device: nothing if it has that, which is 9.0 alone for "90a", else that or newer.
std::string lacking(const Device &device, const std::string &module) {
    const bool exact = module.find('a') < module.find('/');
    const u32 capability = (u32)atoi(module.c_str());
    if (exact ? device.capability == capability : device.capability >= capability) return "";
    return "compute capability " + std::to_string(capability / 10) + "." + std::to_string(capability % 10) + (exact ? " and no other" : "");
}

// Copies between the two memories.
const struct {
    const char *name;
    bool back;
    u32 streams;
} TRANSFERS[] = {{"to the device, 1 stream", false, 1},
                 {"to the device, 4 streams", false, 4},
                 {"back, 1 stream", true, 1},
                 {"back, 4 streams", true, 4}};

const char *const LATENCY = "launch and read 32 bytes";

// What --only looks into.
std::string words_of(const Entry &entry) { return std::string(entry.name) + " " + entry.kernel; }

bool has(const std::string &names, const std::string &word) { return names.find(word) != std::string::npos; }

void check_words(const std::vector<std::string> &only) {
    std::vector<std::string> known = {COPY, LATENCY};
    for (const auto &transfer : TRANSFERS) known.push_back(transfer.name);
    for (const Entry &entry : entries()) known.push_back(words_of(entry));
    for (const std::string &word : only) {
        if (std::none_of(known.begin(), known.end(), [&](const std::string &names) { return has(names, word); })) {
            throw Misuse("--only " + word + ": no case has that in its name");
        }
    }
}

void run(const Arguments &arguments, const Device &device, Report &report) {
    const std::vector<std::string> &only = arguments.only;
    auto wanted = [&](const std::string &names) {
        return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string &word) { return has(names, word); });
    };
    report.begin();
    const std::string size = in_short(arguments.size * 4) + "B";
    if (!arguments.once) {
        // Always: the others' shares are of it.
        report.run({COPY, size, "-"}, [&](Result &result) { copied(device, arguments.size, result); });
        for (const auto &transfer : TRANSFERS) {
            if (!wanted(transfer.name)) continue;
            report.run({transfer.name, size, "-"},
                       [&](Result &result) { transferred(arguments.size, transfer.back, transfer.streams, result); });
        }
        if (wanted(LATENCY)) {
            report.run({LATENCY, "4 u64", last_name(arguments.folders[0])}, [&](Result &result) {
                there_and_back(device, read_file(arguments.folders[0] + "/75/reduce.ptx"), result);
            });
        }
    }
    for (const Entry &entry : entries()) {
        if (!wanted(words_of(entry))) continue;
        const std::string lacked = lacking(device, entry.module);
        if (!lacked.empty()) {
            fprintf(stderr, "tune: %s is not run: it needs %s\n", entry.name, lacked.c_str());
            continue;
        }
        const Case one = entry.make(arguments.size);
        for (const std::string &folder : arguments.folders) {
            const std::string file = std::string(entry.module) + ".ptx", ptx = read_file(folder + "/" + file);
            if (ptx.empty() && &folder != &arguments.folders[0]) continue;
            report.run({entry.name, one.size, last_name(folder)}, [&](Result &result) {
                if (ptx.empty()) throw Failure("there is no " + folder + "/" + file);
                measure(device, entry, one, ptx, arguments.once, result);
            });
        }
    }
    if (report.results.empty()) throw Failure("no case was run");
}

int main(int count, char **values) {
    for (int i = 1; i < count; i++) {
        if (strcmp(values[i], "--help") == 0) return fputs(HELP, stdout) < 0;
    }
    try {
        const Arguments arguments(count, values);
        check_words(arguments.only);
        const Device device;
        Report report = {device};
        std::string lost;
        try {
            run(arguments, device, report);
        } catch (const Failure &failure) {
            lost = failure.what();
        }
        // What was measured before is worth something.
        if (!arguments.json.empty()) report.write(arguments.json, arguments.size);
        if (!lost.empty()) throw Failure(lost);
        return report.right() ? 0 : 1;
    } catch (const Misuse &misuse) {
        fprintf(stderr, "tune: %s\n", misuse.what());
        return 2;
    } catch (const Failure &failure) {
        fprintf(stderr, "tune: %s\n", failure.what());
        return 1;
    }
}
