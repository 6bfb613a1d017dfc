/* Tercet from C: each part takes its memory from one arena and gives it back. */
#include "example.h"
#include "text.h"

static const char *failed(const char *part, tercet_status status) {
    text("# ");
    text(part);
    text(": ");
    text(tercet_message(status));
    text("\n");
    return part;
}

static tercet_status run(tercet_arena *arena, const char **part) {
    size_t mark;
    TRY(tercet_arena_mark(arena, &mark));
    *part = "quantizers";
    TRY(quantizers(arena));
    TRY(tercet_arena_rewind(arena, mark));
    *part = "online";
    TRY(online(arena, "cluster/online/8x6", 8, 6));
    TRY(tercet_arena_rewind(arena, mark));
    TRY(online(arena, "cluster/online/16x64", 16, 64));
    TRY(tercet_arena_rewind(arena, mark));
    *part = "lloyd";
    TRY(lloyd(arena));
    TRY(tercet_arena_rewind(arena, mark));
    *part = "digits";
    return digits(arena);
}

int main(void) {
    static uint64_t memory[6 * 1024 / sizeof(uint64_t)];
    tercet_arena arena;
    tercet_arena_usage usage;
    const char *part = "arena";

    if (tercet_version() != TERCET_VERSION) {
        failed("tercet.h", TERCET_STATUS_ARGUMENT);
        return 1;
    }
    tercet_status status = tercet_arena_init(&arena, memory, sizeof memory);
    if (status == TERCET_STATUS_OK) {
        status = run(&arena, &part);
    }
    if (status == TERCET_STATUS_OK) {
        status = tercet_arena_stats(&arena, &usage);
    }
    if (status != TERCET_STATUS_OK) {
        failed(part, status);
        return 1;
    }
    text("# arena: at most ");
    text_number((uint32_t)usage.high_water);
    text(" of ");
    text_number((uint32_t)usage.capacity);
    text(" bytes, ");
    text_number(usage.failures);
    text(" refused\n");
    return 0;
}
