/* The inputs of Tercet's conformance suite, made here again: they are specified by integers and exact float steps. */
#ifndef INPUTS_H
#define INPUTS_H

#include <stddef.h>
#include <stdint.h>

/* Xoshiro256++ (Blackman and Vigna), seeded through SplitMix64. */
struct random {
    uint64_t state[4];
};
void random_seed(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
/* A draw below n. */
uint32_t random_below(struct random *random, uint32_t n);

/* Point `index` of the stream: groups that drift, points at the ends of int8, repeats. `x` holds the last one. */
void stream_point(struct random *random, uint32_t index, int8_t *x, size_t d);

/* Families of awkward floats: bell-shaped, ties, subnormals, huge, of every exponent, zeros. */
#define FAMILIES 6
void family_fill(unsigned family, uint64_t seed, float *values, size_t len);

#endif
