/* The parts of the example. Each prints what it did and returns what went wrong. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include "tercet.h"

/* Returns from the function it stands in where a call was refused. */
#define TRY(call)                                                                                                              \
    do {                                                                                                                       \
        const tercet_status try_status = (call);                                                                               \
        if (try_status != TERCET_STATUS_OK) {                                                                                  \
            return try_status;                                                                                                 \
        }                                                                                                                      \
    } while (0)

/* Lets a pointer lead to `len` values from the arena, or returns. */
#define TAKE(arena, pointer, len)                                                                                              \
    do {                                                                                                                       \
        (pointer) = tercet_arena_alloc((arena), (len) * sizeof *(pointer), 8);                                                 \
        if ((pointer) == NULL) {                                                                                               \
            return TERCET_STATUS_SCRATCH;                                                                                      \
        }                                                                                                                      \
    } while (0)

tercet_status quantizers(tercet_arena *arena);
tercet_status online(tercet_arena *arena, const char *name, size_t k, size_t d);
tercet_status lloyd(tercet_arena *arena);
tercet_status digits(tercet_arena *arena);

#endif
