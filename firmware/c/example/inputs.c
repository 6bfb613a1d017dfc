#include "inputs.h"

#include <string.h>

static uint64_t rotated(uint64_t x, unsigned by) {
    return x << by | x >> (64 - by);
}

void random_seed(struct random *random, uint64_t seed) {
    for (size_t i = 0; i < 4; i += 1) {
        seed += 0x9E3779B97F4A7C15u;
        uint64_t z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        random->state[i] = z ^ z >> 31;
    }
}

uint64_t random_next(struct random *random) {
    uint64_t *s = random->state;
    const uint64_t result = rotated(s[0] + s[3], 23) + s[0];
    const uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotated(s[3], 45);
    return result;
}

uint32_t random_below(struct random *random, uint32_t n) {
    /* The high half of 64 bits times n, in two steps of 32. */
    const uint64_t draw = random_next(random);
    return (uint32_t)(((draw >> 32) * n + ((draw & 0xFFFFFFFFu) * n >> 32)) >> 32);
}

void stream_point(struct random *random, uint32_t index, int8_t *x, size_t d) {
    const uint32_t group = (uint32_t)(random_next(random) % 16);
    if (group == 0) {
        return;
    }
    for (size_t i = 0; i < d; i += 1) {
        if (group < 3) {
            x[i] = group == 1 ? INT8_MIN : INT8_MAX;
            continue;
        }
        int32_t value = (int32_t)(group * 15 + index / 32) - 128 + (int32_t)random_below(random, 9);
        if (value > INT8_MAX) {
            value = INT8_MAX;
        }
        x[i] = (int8_t)value;
    }
}

static float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float family_value(unsigned family, uint64_t draw) {
    const uint32_t sign = (uint32_t)(draw >> 63) << 31;
    switch (family) {
    case 0: {
        int32_t sum = -1020;
        for (unsigned byte = 0; byte < 8; byte += 1) {
            sum += (int32_t)(draw >> 8 * byte & 0xFF);
        }
        return (float)sum / 256.0f;
    }
    case 1:
        return ((float)(draw % 65) - 32.0f) * (sign != 0 ? -0.25f : 0.25f);
    case 2:
        return of_bits(sign | ((uint32_t)draw & 0x00FFFFFFu));
    case 3:
        return of_bits(sign | 0x7E800000u | ((uint32_t)draw & 0x00FFFFFFu));
    case 4:
        return of_bits(sign | (uint32_t)(draw >> 32) % 255 << 23 | ((uint32_t)draw & 0x7FFFFFu));
    default:
        return of_bits(sign);
    }
}

void family_fill(unsigned family, uint64_t seed, float *values, size_t len) {
    struct random random;
    random_seed(&random, seed);
    for (size_t i = 0; i < len; i += 1) {
        values[i] = family_value(family, random_next(&random));
    }
}
