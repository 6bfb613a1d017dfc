// Order between touches: by the block's barriers, by the clocks of lanes that met; between blocks by a fence, an atomic operation, another
// thread's atomic operation on the same word, and that one's fence.
#include "../driver/clock.h"
#include "order.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
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
// What was published at a word, so far as somebody has looked.
struct Seen {
    uintptr_t word;
    size_t count;
};
// What a thread knew at a fence: its block's earlier phases, its warp by clocks, and what it had seen of other blocks.
struct Fence {
    unsigned block, phase, warp;
    unsigned clocks[32];
    std::vector<Seen> seen;
};
// Published at words, in this launch.
std::unordered_map<uintptr_t, std::vector<Fence>> published;
// What threads of the running block have seen, and since when.
struct Acquired {
    Stamp since;
    Seen seen;
};
std::vector<Acquired> acquired;
// The last fence of each thread of the running block, and what it has looked at since.
std::unordered_map<unsigned, Fence> fences;
std::unordered_map<unsigned, std::vector<Seen>> looked;
// The clock of each thread after its last fence for products.
unsigned proxy_fences[1024];

bool covers(const Fence &fence, Stamp stamp) {
    // Numbers of phases wrap; half of them are taken for later ones.
    const unsigned behind = (fence.phase - unsigned(stamp.phase)) & 8191, warp = stamp.index() / 32;
    return stamp.block == fence.block &&
           ((behind != 0 && behind < 4096) || (behind == 0 && warp == fence.warp && (fence.clocks[stamp.index() % 32] & 0x7FFFF) > stamp.clock));
}

// Whether what was seen at a word has a touch before it. What was asked of a word is not asked again.
bool covers(Seen seen, Stamp stamp, std::unordered_map<uintptr_t, size_t> &asked) {
    const std::vector<Fence> &all = published[seen.word];
    size_t from = asked[seen.word];
    asked[seen.word] = std::max(from, seen.count);
    for (; from < seen.count; from++) {
        if (covers(all[from], stamp)) {
            return true;
        }
        for (Seen earlier : all[from].seen) {
            if (covers(earlier, stamp, asked)) {
                return true;
            }
        }
    }
    return false;
}
} // namespace

void check_launch() {
    pages.clear();
    taken = 0;
    memset(recent_pages, 0, sizeof recent_pages);
    published.clear();
}

namespace {
Use use_of(const Cell &cell) { return !cell.write.any() ? Use::Read : cell.write.atomic ? Use::Atomic : Use::Write; }
} // namespace

bool check_launched(const char *kernel) {
    for (const auto &[key, page] : pages) {
        for (unsigned chunk = 0; chunk < PAGE / CHUNK; chunk++) {
            if (page.chunks[chunk] == nullptr) {
                continue;
            }
            // Bytes in a row that were touched alike.
            const Cell *cells = page.chunks[chunk]->cells;
            for (unsigned from = 0, to; from < CHUNK; from = to) {
                const bool touched = cells[from].touched();
                const Use use = use_of(cells[from]);
                for (to = from + 1; to < CHUNK && use_of(cells[to]) == use && cells[to].touched() == touched; to++) {
                }
                if (touched && !touch_in_order(key * PAGE + chunk * CHUNK + from, to - from, use, kernel)) {
                    return false;
                }
            }
        }
    }
    return true;
}

void check_block() {
    phase = 0;
    acquired.clear();
    fences.clear();
    looked.clear();
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

void check_fence() {
    const unsigned warp = current->warp, lane = current->place.lane, self = warp * 32 + lane;
    // What the thread writes from here on has a later clock.
    clocks[warp].of[lane][lane]++;
    const Stamp now = stamp_now(false);
    for (Seen seen : looked[self]) {
        acquired.push_back({now, seen});
    }
    looked[self].clear();
    Fence &fence = fences[self];
    fence = {number, phase & 8191, warp, {}, {}};
    memcpy(fence.clocks, clocks[warp].of[lane], sizeof fence.clocks);
    for (const Acquired &known : acquired) {
        if (is_before(known.since, now)) {
            fence.seen.push_back(known.seen);
        }
    }
}

void check_atomic(uintptr_t address) {
    if (fences.empty() && published.empty()) {
        return;
    }
    const unsigned self = current->warp * 32 + current->place.lane;
    std::vector<Fence> &there = published[address];
    looked[self].push_back({address, there.size()});
    auto fence = fences.find(self);
    if (fence != fences.end()) {
        there.push_back(fence->second);
    }
}

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
        std::unordered_map<uintptr_t, size_t> asked;
        return std::any_of(acquired.begin(), acquired.end(),
                           [&](const Acquired &known) { return is_before(known.since, now) && covers(known.seen, stamp, asked); });
    }
    if (stamp.thread == now.thread || stamp.phase != now.phase) {
        return true;
    }
    unsigned warp = stamp.index() / 32;
    return warp == now.index() / 32 && (clocks[warp].of[now.index() % 32][stamp.index() % 32] & 0x7FFFF) > stamp.clock;
}
} // namespace emulator
