/* Every quantizer over awkward values, digested as Tercet's conformance suite does: its refusals too. */
#include <math.h>
#include <string.h>

#include "example.h"
#include "inputs.h"
#include "text.h"

#define LONGEST 257
#define GROUPS 5

struct method {
    const char *name;
    /* Symmetric where a limit is given, affine where none is, ternary where it is negative. */
    int8_t limit;
    uint32_t rule, scale;
};

static const struct method METHODS[] = {
    {"quant/ternary/absmax", -1, TERCET_TERNARY_RULE_ABS_MAX, TERCET_TERNARY_SCALE_RULE},
    {"quant/ternary/absmean", -1, TERCET_TERNARY_RULE_ABS_MEAN, TERCET_TERNARY_SCALE_RULE},
    {"quant/ternary/absmean/ls", -1, TERCET_TERNARY_RULE_ABS_MEAN, TERCET_TERNARY_SCALE_LEAST_SQUARES},
    {"quant/ternary/absmax/ls", -1, TERCET_TERNARY_RULE_ABS_MAX, TERCET_TERNARY_SCALE_LEAST_SQUARES},
    {"quant/ternary/twn", -1, TERCET_TERNARY_RULE_TWN, TERCET_TERNARY_SCALE_RULE},
    {"quant/ternary/optimal", -1, TERCET_TERNARY_RULE_OPTIMAL, TERCET_TERNARY_SCALE_RULE},
    {"quant/int8/symmetric", 127, 0, 0},
    {"quant/int8/affine", 0, 0, 0},
    {"quant/int4/symmetric", 7, 0, 0},
};

struct tensor {
    float *values;
    int8_t *codes;
    float *scales;
    int8_t *zero_points;
};

static tercet_status quantize(const struct method *method, const struct tensor *t, size_t len, size_t groups,
                              tercet_quantize_report *report) {
    if (method->limit > 0) {
        return tercet_quantize_symmetric(t->values, t->codes, len, method->limit, t->scales, groups, report);
    }
    if (method->limit == 0) {
        return tercet_quantize_affine(t->values, t->codes, len, t->scales, t->zero_points, groups, report);
    }
    return tercet_quantize_ternary(t->values, t->codes, len, method->rule, method->scale, t->scales, groups, NULL, 0, report);
}

static tercet_status feed_text(uint64_t *digest, const char *part) {
    return tercet_digest_bytes(digest, (const uint8_t *)part, strlen(part));
}

static tercet_status feed_number(uint64_t *digest, uint64_t number) {
    char digits[20];
    size_t first = sizeof digits;
    do {
        first -= 1;
        digits[first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return tercet_digest_bytes(digest, (const uint8_t *)&digits[first], sizeof digits - first);
}

/* The suite digests what core says of a refusal; these are those that its inputs meet. */
static tercet_status feed_refusal(uint64_t *digest, tercet_status status, size_t len, size_t fitting, uint64_t not_finite) {
    switch (status) {
    case TERCET_STATUS_EMPTY:
        return feed_text(digest, "no values to quantize");
    case TERCET_STATUS_LENGTH:
        TRY(feed_text(digest, "buffer holds "));
        TRY(feed_number(digest, len));
        TRY(feed_text(digest, " elements where "));
        TRY(feed_number(digest, fitting));
        return feed_text(digest, " are needed");
    case TERCET_STATUS_NOT_FINITE:
        TRY(feed_text(digest, "value "));
        TRY(feed_number(digest, not_finite));
        return feed_text(digest, " is not finite");
    case TERCET_STATUS_SCRATCH:
        /* A bin is two words. */
        TRY(feed_text(digest, "scratch of "));
        TRY(feed_number(digest, TERCET_TERNARY_WORDS / 2));
        return feed_text(digest, " elements is needed");
    default:
        return status;
    }
}

/* Quantizes in groups of `group_len` and digests codes, scales, zero points, counts and refusals. */
static tercet_status feed(uint64_t *digest, const struct method *method, const struct tensor *t, size_t len, size_t group_len) {
    if (group_len == 0) {
        return TERCET_STATUS_OK;
    }
    const size_t groups = len / group_len;
    tercet_quantize_report report;
    tercet_status status = TERCET_STATUS_EMPTY;
    memset(t->zero_points, 0, GROUPS);
    if (groups > 0) {
        status = quantize(method, t, len, groups, &report);
    }
    const uint8_t done = status == TERCET_STATUS_OK;
    TRY(tercet_digest_bytes(digest, &done, 1));
    if (!done) {
        const uint64_t not_finite = groups > 0 ? report.not_finite : 0;
        return feed_refusal(digest, status, len, groups * group_len, not_finite);
    }
    TRY(tercet_digest_u64(digest, report.groups));
    TRY(tercet_digest_u64(digest, report.zero));
    TRY(tercet_digest_u64(digest, report.flushed));
    TRY(tercet_digest_u64(digest, report.coded));
    TRY(tercet_digest_u64(digest, report.clipped));
    TRY(tercet_digest_bytes(digest, (const uint8_t *)t->codes, len));
    TRY(tercet_digest_bytes(digest, (const uint8_t *)t->scales, groups * sizeof *t->scales));
    return tercet_digest_bytes(digest, (const uint8_t *)t->zero_points, groups);
}

tercet_status quantizers(tercet_arena *arena) {
    static const size_t SIZES[] = {0, 1, 31, 255, 256, 257};
    struct tensor t;
    TAKE(arena, t.values, LONGEST);
    TAKE(arena, t.scales, GROUPS);
    TAKE(arena, t.codes, LONGEST);
    TAKE(arena, t.zero_points, GROUPS);
    for (size_t m = 0; m < sizeof METHODS / sizeof METHODS[0]; m += 1) {
        const struct method *method = &METHODS[m];
        uint64_t digest = TERCET_DIGEST;
        for (unsigned family = 0; family < FAMILIES; family += 1) {
            for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0]; s += 1) {
                const size_t len = SIZES[s];
                family_fill(family, 4 ^ (uint64_t)family << 32 ^ len, t.values, len);
                TRY(feed(&digest, method, &t, len, len));
                TRY(feed(&digest, method, &t, len, 51));
                TRY(feed(&digest, method, &t, len, 85));
            }
        }
        for (size_t i = 0; i < 40; i += 1) {
            t.values[i] = i == 33 ? NAN : 1.0f;
        }
        TRY(feed(&digest, method, &t, 40, 20));
        text_digest(method->name, digest);
    }
    return TERCET_STATUS_OK;
}
