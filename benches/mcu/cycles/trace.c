// A QEMU plugin: how often each instruction of an image ran, and how often a chip's flash would have made the processor wait.
//
// -plugin libtrace.so,chip=NAME,out=FILE: writes a line `ran ADDRESS COUNT` for each instruction, then `missed instructions COUNT` and
// `missed data COUNT`. Flash is the first MiB of addresses. The declarations are those of version 1 of QEMU's plugin API, whose header
// Debian does not have.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), int, int, void *);
int qemu_plugin_mem_is_store(uint32_t);
void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

// QEMU 7.2 calls nothing for loads alone.
enum { FLASH = 1 << 20, LOADS_AND_STORES = 3, NO_REGISTERS = 0, MOST_WAYS = 64 };

// A cache: sets of ways, the least recently used of which makes room.
struct cache {
    unsigned line, sets, ways;
    uint64_t tags[1024][MOST_WAYS], missed;
};

// Returns whether the line of an address was there, and brings it in.
static int touch(struct cache *cache, uint64_t address)
{
    uint64_t line = address / cache->line + 1, *tags = cache->tags[line % cache->sets];
    unsigned at = 0;
    while (at < cache->ways - 1 && tags[at] != line)
        at++;
    int there = tags[at] == line;
    memmove(tags + 1, tags, at * sizeof *tags);
    tags[0] = line;
    return there;
}

static struct cache instructions, data;
static int shared, prefetches;
static uint64_t ran[FLASH / 2], last_line;
static const char *out;

static void executed(unsigned cpu, void *address_of)
{
    uint64_t address = (uintptr_t)address_of, line = address / instructions.line;
    ran[address / 2]++;
    if (line == last_line)
        return;
    // The line after the last one is on its way where a chip prefetches.
    if (!touch(&instructions, address) && !(prefetches && line == last_line + 1))
        instructions.missed++;
    last_line = line;
}

static void loaded(unsigned cpu, uint32_t info, uint64_t address, void *nothing)
{
    if (address < FLASH && !qemu_plugin_mem_is_store(info) && !touch(shared ? &instructions : &data, address))
        data.missed++;
}

static void translated(plugin_id id, struct qemu_plugin_tb *block)
{
    for (size_t at = 0; at < qemu_plugin_tb_n_insns(block); at++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, at);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        if (address < FLASH)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, NO_REGISTERS, (void *)(uintptr_t)address);
        qemu_plugin_register_vcpu_mem_cb(insn, loaded, NO_REGISTERS, LOADS_AND_STORES, NULL);
    }
}

static void ended(plugin_id id, void *nothing)
{
    FILE *file = fopen(out, "w");
    for (uint64_t at = 0; at < FLASH / 2; at++)
        if (ran[at])
            fprintf(file, "ran %" PRIx64 " %" PRIu64 "\n", at * 2, ran[at]);
    fprintf(file, "missed instructions %" PRIu64 "\nmissed data %" PRIu64 "\n", instructions.missed, data.missed);
    fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    for (int at = 0; at < argc; at++) {
        if (!strncmp(argv[at], "out=", 4))
            out = strdup(argv[at] + 4);
        if (!strcmp(argv[at], "chip=stm32f411")) {
            // RM0383, 3.4.2: 64 lines of instructions and 8 of data, of 128 bits, and a prefetch of instructions.
            instructions = (struct cache){.line = 16, .sets = 1, .ways = 64};
            data = (struct cache){.line = 16, .sets = 1, .ways = 8};
            prefetches = 1;
        }
        if (!strcmp(argv[at], "chip=rp2040")) {
            // RP2040 datasheet, 2.6.3: 16 KiB for both, 2 ways, lines of 8 bytes.
            instructions = (struct cache){.line = 8, .sets = 1024, .ways = 2};
            shared = 1;
        }
    }
    if (!out || !instructions.line)
        return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
