// Reads as much of a PTX text as concerns the driver.
#include "ptx.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

namespace emulator {
namespace {
// Words and single signs, without comments.
std::vector<std::string> tokens_of(const std::string &text) {
    std::vector<std::string> tokens;
    for (size_t i = 0; i < text.size();) {
        if (text.compare(i, 2, "//") == 0) {
            size_t end = text.find('\n', i);
            i = end == std::string::npos ? text.size() : end;
        } else if (text.compare(i, 2, "/*") == 0) {
            size_t end = text.find("*/", i);
            i = end == std::string::npos ? text.size() : end + 2;
        } else if (isspace(static_cast<unsigned char>(text[i]))) {
            i++;
        } else {
            size_t end = i;
            while (end < text.size() && (isalnum(static_cast<unsigned char>(text[end])) || strchr("._$%", text[end]) != nullptr)) {
                end++;
            }
            end = end == i ? i + 1 : end;
            tokens.push_back(text.substr(i, end - i));
            i = end;
        }
    }
    return tokens;
}

unsigned bytes_of_type(const std::string &type) {
    if (type.size() < 3 || type[0] != '.' || strchr("usbf", type[1]) == nullptr) {
        return 0;
    }
    int bits = atoi(type.c_str() + 2);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 ? unsigned(bits) / 8 : 0;
}

struct Variable {
    std::string name;
    unsigned bytes = 0;
};

// A declaration after its state space, as `.align 4 .b8 name[64]`; leaves `at` behind its name and length.
Variable read_variable(const std::vector<std::string> &tokens, size_t &at) {
    Variable found;
    unsigned unit = 0;
    for (; at < tokens.size() && tokens[at] != "," && tokens[at] != ")" && tokens[at] != ";" && tokens[at] != "="; at++) {
        const std::string &token = tokens[at];
        if (token == ".align") {
            at++;
        } else if (unsigned bytes = bytes_of_type(token)) {
            unit = bytes;
        } else if (token == "[") {
            found.bytes = at + 1 < tokens.size() ? unit * unsigned(atoi(tokens[at + 1].c_str())) : 0;
        } else if (token[0] != '.' && found.name.empty()) {
            found.name = token;
            found.bytes = unit;
        }
    }
    return found;
}
} // namespace

bool read_ptx(const std::string &text, Ptx &out) {
    std::vector<std::string> tokens = tokens_of(text);
    std::vector<Variable> shared;
    auto next = [&](size_t at) { return at < tokens.size() ? tokens[at] : std::string(); };
    int depth = 0;
    for (size_t i = 0; i < tokens.size(); i++) {
        const std::string &token = tokens[i];
        if (token == ".version") {
            const std::string number = next(i + 1);
            size_t dot = number.find('.');
            out.version = atoi(number.c_str()) * 10 + (dot == std::string::npos ? 0 : atoi(number.c_str() + dot + 1));
        } else if (token == ".target") {
            const std::string target = next(i + 1);
            out.target = target.compare(0, 3, "sm_") == 0 ? atoi(target.c_str() + 3) : 0;
            out.exact_target = !target.empty() && target.back() == 'a';
        } else if (token == ".entry") {
            PtxEntry entry;
            entry.name = next(i + 1);
            i += 2;
            while (i < tokens.size() && tokens[i] != ")" && tokens[i] != "{") {
                if (tokens[i] == ".param") {
                    i++;
                    entry.parameter_bytes.push_back(read_variable(tokens, i).bytes);
                } else {
                    i++;
                }
            }
            out.entries.push_back(entry);
        } else if (token == ".maxntid" && !out.entries.empty()) {
            unsigned threads = 1;
            for (i++; isdigit(static_cast<unsigned char>(next(i)[0])); i += next(i + 1) == "," ? 2 : 1) {
                threads *= unsigned(atoi(tokens[i].c_str()));
            }
            i--;
            out.entries.back().max_threads = threads;
        } else if (token == ".shared" && next(i + 1) == ".align") {
            i++;
            Variable found = read_variable(tokens, i);
            if (depth == 0) {
                shared.push_back(found);
            } else if (!out.entries.empty()) {
                out.entries.back().shared_bytes += found.bytes;
            }
        } else if (token == "{" || token == "}") {
            depth += token == "{" ? 1 : -1;
        } else if (depth > 0 && !out.entries.empty()) {
            // A variable of the module counts for the entries that name it, once each.
            for (Variable &variable : shared) {
                if (variable.name == token && variable.bytes != 0) {
                    out.entries.back().shared_bytes += variable.bytes;
                    variable.bytes = 0;
                }
            }
        }
    }
    return out.version != 0 && out.target != 0 && depth == 0;
}
} // namespace emulator
