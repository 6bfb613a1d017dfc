// Order between touches: by the block's barriers, by the clocks of lanes that met, by fences between blocks.
#include "order.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace emulator {
namespace {
constexpr unsigned CHUNK = 64;
struct Chunk {
    Cell cells[CHUNK];
};

// The chunks of this launch; their memory is used again by the next.
std::unordered_map<uintptr_t, Chunk *> chunks;
std::vector<std::unique_ptr<Chunk>> made;
size_t taken = 0;
uintptr_t last_key = 0;
Chunk *last_chunk = nullptr;

unsigned phase = 0;
// clocks[w][i][j]: how much lane i of warp w knows of lane j's meetings.
struct Clocks {
    unsigned of[32][32] = {};
};
std::vector<std::unique_ptr<Clocks>> clocks;
// Blocks with a fence after their writes, and whether the running one has looked for them by an atomic operation.
std::unordered_set<unsigned> fenced;
bool acquired = false;
// The clock of each thread after its last fence for products.
unsigned proxy_fences[1024];

unsigned block_number() {
    return (block_index.x + grid_size.x * (block_index.y + grid_size.y * block_index.z)) & ((1u << 20) - 1);
}

auto &clocks_of(unsigned warp) {
    while (clocks.size() <= warp) {
        clocks.push_back(std::make_unique<Clocks>());
    }
    return clocks[warp]->of;
}
} // namespace

void check_launch() {
    chunks.clear();
    taken = 0;
    last_chunk = nullptr;
    fenced.clear();
}

void check_block() {
    phase = 0;
    acquired = false;
    memset(proxy_fences, 0, sizeof proxy_fences);
    for (const auto &of_warp : clocks) {
        *of_warp = {};
    }
}

void check_barrier() { phase++; }

void check_together(unsigned warp, unsigned members) {
    auto &all = clocks_of(warp);
    unsigned merged[32] = {};
    for (unsigned i = 0; i < 32; i++) {
        if (members >> i & 1) {
            all[i][i]++;
            for (unsigned j = 0; j < 32; j++) {
                merged[j] = std::max(merged[j], all[i][j]);
            }
        }
    }
    for (unsigned i = 0; i < 32; i++) {
        if (members >> i & 1) {
            memcpy(all[i], merged, sizeof merged);
        }
    }
}

void check_proxy_fence() {
    unsigned warp = current->warp, lane = current->place.lane;
    // What the thread writes from here on has a later clock.
    proxy_fences[warp * 32 + lane] = ++clocks_of(warp)[lane][lane] & 0x7FFFF;
}

bool is_fenced(Stamp stamp) { return stamp.clock < proxy_fences[stamp.index()]; }

void check_fence() { fenced.insert(block_number()); }
void acquire() { acquired = true; }

Cell &cell_of(uintptr_t address) {
    uintptr_t key = address / CHUNK;
    if (last_chunk == nullptr || key != last_key) {
        Chunk *&found = chunks[key];
        if (found == nullptr) {
            if (taken == made.size()) {
                made.push_back(std::make_unique<Chunk>());
            }
            found = made[taken++].get();
            memset(static_cast<void *>(found), 0, sizeof *found);
        }
        last_key = key;
        last_chunk = found;
    }
    return last_chunk->cells[address % CHUNK];
}

Stamp stamp_now(bool atomic) {
    unsigned warp = current->warp, lane = current->place.lane;
    Stamp stamp;
    stamp.block = block_number();
    stamp.phase = phase & 8191;
    stamp.thread = warp * 32 + lane + 1;
    stamp.clock = clocks_of(warp)[lane][lane] & 0x7FFFF;
    stamp.atomic = atomic;
    return stamp;
}

bool is_before_now(Stamp stamp) {
    Stamp now = stamp_now(false);
    if (stamp.block != now.block) {
        return acquired && fenced.count(unsigned(stamp.block)) != 0;
    }
    if (stamp.thread == now.thread || stamp.phase != now.phase) {
        return true;
    }
    unsigned warp = stamp.index() / 32;
    return warp == current->warp && (clocks_of(warp)[current->place.lane][stamp.index() % 32] & 0x7FFFF) > stamp.clock;
}
} // namespace emulator
