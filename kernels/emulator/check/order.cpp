// Order between touches: by the block's barriers, by the clocks of lanes that met, by fences between blocks.
#include "order.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace emulator {
namespace {
// The pages and chunks of this launch; the chunks' memory is used again by the next.
std::unordered_map<uintptr_t, Page> pages;
std::vector<std::unique_ptr<Chunk>> made;
size_t taken = 0;

unsigned phase = 0;
// The running block.
unsigned number = 0;
// clocks[w].of[i][j]: how much lane i of warp w knows of lane j's meetings.
struct Clocks {
    unsigned of[32][32];
};
Clocks clocks[32];
// Blocks with a fence after their writes, and whether the running one has looked for them by an atomic operation.
std::unordered_set<unsigned> fenced;
bool acquired = false;
// The clock of each thread after its last fence for products.
unsigned proxy_fences[1024];

} // namespace

void check_launch() {
    pages.clear();
    taken = 0;
    memset(recent_pages, 0, sizeof recent_pages);
    fenced.clear();
}

void check_block() {
    phase = 0;
    acquired = false;
    memset(proxy_fences, 0, sizeof proxy_fences);
    memset(clocks, 0, (block_size.x * block_size.y * block_size.z + 31) / 32 * sizeof *clocks);
    number = (block_index.x + grid_size.x * (block_index.y + grid_size.y * block_index.z)) & ((1u << 20) - 1);
}

void check_barrier() { phase++; }

void check_together(unsigned warp, unsigned members) {
    unsigned(&all)[32][32] = clocks[warp].of;
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
    proxy_fences[warp * 32 + lane] = ++clocks[warp].of[lane][lane] & 0x7FFFF;
}

bool is_fenced(Stamp stamp) { return stamp.clock < proxy_fences[stamp.index()]; }

void check_fence() { fenced.insert(number); }
void acquire() { acquired = true; }

Page *recent_pages[64];

Cell &find_cell(uintptr_t address) {
    uintptr_t key = address / PAGE;
    Page &page = pages[key];
    page.key = key;
    recent_pages[key % 64] = &page;
    Chunk *&chunk = page.chunks[address / CHUNK % (PAGE / CHUNK)];
    if (chunk == nullptr) {
        if (taken == made.size()) {
            made.push_back(std::make_unique<Chunk>());
        }
        chunk = made[taken++].get();
        memset(static_cast<void *>(chunk), 0, sizeof *chunk);
    }
    return chunk->cells[address % CHUNK];
}

Stamp stamp_now(bool atomic) {
    unsigned warp = current->warp, lane = current->place.lane;
    Stamp stamp;
    stamp.block = number;
    stamp.phase = phase & 8191;
    stamp.thread = warp * 32 + lane + 1;
    stamp.clock = clocks[warp].of[lane][lane] & 0x7FFFF;
    stamp.atomic = atomic;
    return stamp;
}

bool is_of_block(Stamp stamp) { return stamp.block == number; }

bool is_before(Stamp stamp, Stamp now) {
    if (stamp.block != now.block) {
        return acquired && fenced.count(unsigned(stamp.block)) != 0;
    }
    if (stamp.thread == now.thread || stamp.phase != now.phase) {
        return true;
    }
    unsigned warp = stamp.index() / 32;
    return warp == now.index() / 32 && (clocks[warp].of[now.index() % 32][stamp.index() % 32] & 0x7FFFF) > stamp.clock;
}
} // namespace emulator
