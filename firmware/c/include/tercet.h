/*
 * Tercet's C API: quantizers, clustering, integer networks and an arena, without a heap and without a panic.
 *
 * Every call that can fail returns a tercet_status; 0 is success. Every pointer is checked for null and for alignment, lengths
 * are checked against each other, and outputs that overlap an input or another output are refused. What is left to the caller:
 * that a pointer leads to as much memory as the length says, and that nobody else changes it during the call.
 *
 * All memory is the caller's. The library has no global state and no locks: calls on different objects may run at once, in
 * threads and interrupts; an object is used by one call at a time, or by any number that take it as const.
 *
 * A call with more than one thing wrong answers one of them; unless its page says otherwise, outputs of a refused call mean
 * nothing.
 *
 * ABI: fixed-width types, size_t and pointers, no float by value, no bool by value, no enum by value but the status, which is
 * an int32_t. So -fshort-enums and the float ABI do not matter to the header; the archive must be of the same float ABI as the
 * program. Integers of the type uint32_t that a comment calls a tercet_... take its enumerators.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef TERCET_H
#define TERCET_H

/* Made by cbindgen; `TERCET_OVERWRITE=1 cargo test --test header` renews it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version that this header belongs to; equal to tercet_version() of its library. */
#define TERCET_VERSION (TERCET_VERSION_MAJOR << 16 | TERCET_VERSION_MINOR << 8 | TERCET_VERSION_PATCH)

/* Words (uint32_t) of memory that k clusters of d coordinates take: 73 for 8 of 6. */
#define TERCET_ONLINE_WORDS(k, d) (5 + (k) * (d) + (k) + ((k) * (d) + 3) / 4)

/* Bytes of saved clusters. */
#define TERCET_ONLINE_SAVED(k, d) (20 + (k) * (5 * (d) + 4))

/* Words (uint64_t) of scratch that tercet_kmeans needs. With more than one restart: */
#define TERCET_KMEANS_WORDS(k, d) ((k) + (5 * (k) * (d) + 4 * (k) + 7) / 8)


/**
 * The major version; another one may break callers.
 */
#define TERCET_VERSION_MAJOR 0

/**
 * The minor version; while the major version is 0, another one may break callers too.
 */
#define TERCET_VERSION_MINOR 1

/**
 * The patch version.
 */
#define TERCET_VERSION_PATCH 0

/**
 * Words of scratch that the optimal ternary rule needs for groups of more than 256 values.
 */
#define TERCET_TERNARY_WORDS 256

/**
 * The most layers of a network.
 */
#define TERCET_NETWORK_LAYERS 8

/**
 * The digest of nothing; what a digest starts as.
 */
#define TERCET_DIGEST 14695981039346656037ull

/**
 * What every call that can fail returns; 0 is success. Numbers never change their meaning; new ones may come.
 */
enum tercet_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    TERCET_STATUS_OK = 0,
    /**
     * A pointer is null that must not be.
     */
    TERCET_STATUS_NULL = 1,
    /**
     * A pointer is not aligned for what it points to.
     */
    TERCET_STATUS_ALIGNMENT = 2,
    /**
     * An output overlaps another output or an input.
     */
    TERCET_STATUS_OVERLAP = 3,
    /**
     * The object was not initialised.
     */
    TERCET_STATUS_STATE = 4,
    /**
     * A length does not fit the others.
     */
    TERCET_STATUS_LENGTH = 5,
    /**
     * No values, no points or no clusters.
     */
    TERCET_STATUS_EMPTY = 6,
    /**
     * A size is beyond what the library can count or an address can hold.
     */
    TERCET_STATUS_LIMIT = 7,
    /**
     * An option lies outside its range.
     */
    TERCET_STATUS_ARGUMENT = 8,
    /**
     * A value is a NaN or an infinity.
     */
    TERCET_STATUS_NOT_FINITE = 9,
    /**
     * An activation is -128, which has no opposite.
     */
    TERCET_STATUS_NOT_SYMMETRIC = 10,
    /**
     * The scratch memory is too small.
     */
    TERCET_STATUS_SCRATCH = 11,
    /**
     * The bytes are no clusters saved from this k and d.
     */
    TERCET_STATUS_SAVED = 12,
    /**
     * The bytes are no whole GGUF file.
     */
    TERCET_STATUS_FILE = 13,
    /**
     * The file holds no network of this version, or a layer that does not fit.
     */
    TERCET_STATUS_NETWORK = 14,
    /**
     * The network has more layers than `TERCET_NETWORK_LAYERS`.
     */
    TERCET_STATUS_LAYERS = 15,
    /**
     * The library was built without the layout of a layer's weights.
     */
    TERCET_STATUS_LAYOUT = 16,
    /**
     * There are no clusters yet.
     */
    TERCET_STATUS_NO_CLUSTERS = 17,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tercet_status tercet_status;
#else
typedef int32_t tercet_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which values become -1 and +1.
 */
enum tercet_ternary_rule
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * From half of the largest magnitude on, which is the scale: ggml's rule.
     */
    TERCET_TERNARY_RULE_ABS_MAX = 0,
    /**
     * Above half of the mean magnitude, which is the scale: BitNet b1.58.
     */
    TERCET_TERNARY_RULE_ABS_MEAN = 1,
    /**
     * Above 0.7 of the mean magnitude; the scale is the mean of the coded ones: Ternary Weight Networks.
     */
    TERCET_TERNARY_RULE_TWN = 2,
    /**
     * The least squared error any ternary code can have; the scale is the mean of the coded ones.
     */
    TERCET_TERNARY_RULE_OPTIMAL = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tercet_ternary_rule tercet_ternary_rule;
#else
typedef uint32_t tercet_ternary_rule;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Where the scale of ternary codes comes from.
 */
enum tercet_ternary_scale
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The rule's own.
     */
    TERCET_TERNARY_SCALE_RULE = 0,
    /**
     * The one of least squared error: the mean of the magnitudes that got a code.
     */
    TERCET_TERNARY_SCALE_LEAST_SQUARES = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tercet_ternary_scale tercet_ternary_scale;
#else
typedef uint32_t tercet_ternary_scale;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How `tercet_kmeans` chooses its first centroids.
 */
enum tercet_kmeans_init
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Greedy k-means++: each centroid is the best of 2 + ln k candidates, as in scikit-learn.
     */
    TERCET_KMEANS_INIT_GREEDY = 0,
    /**
     * k-means++ as published.
     */
    TERCET_KMEANS_INIT_PLUS_PLUS = 1,
    /**
     * Distinct points at random.
     */
    TERCET_KMEANS_INIT_RANDOM = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tercet_kmeans_init tercet_kmeans_init;
#else
typedef uint32_t tercet_kmeans_init;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why `tercet_kmeans` ended.
 */
enum tercet_kmeans_stop
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * No label changed.
     */
    TERCET_KMEANS_STOP_LABELS = 0,
    /**
     * Labels changed and the inertia did not.
     */
    TERCET_KMEANS_STOP_INERTIA = 1,
    /**
     * The inertia fell by no more than the tolerance.
     */
    TERCET_KMEANS_STOP_TOLERANCE = 2,
    /**
     * The steps ran out.
     */
    TERCET_KMEANS_STOP_ITERATIONS = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tercet_kmeans_stop tercet_kmeans_stop;
#else
typedef uint32_t tercet_kmeans_stop;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * k clusters of d coordinates that follow a stream, with no history: in `TERCET_ONLINE_WORDS(k, d)` words of the
 * caller's memory.
 */
typedef struct tercet_online tercet_online;

/**
 * What quantizing did, counted over the groups.
 */
typedef struct tercet_quantize_report {
    /**
     * Groups quantized.
     */
    uint64_t groups;
    /**
     * Groups of zeros only: scale 0.
     */
    uint64_t zero;
    /**
     * Groups that became zeros because their scale does not fit a float, though some value was not 0.
     */
    uint64_t flushed;
    /**
     * Codes other than the zero point.
     */
    uint64_t coded;
    /**
     * Values that the grid's ends clipped by at least half a step.
     */
    uint64_t clipped;
    /**
     * With TERCET_STATUS_NOT_FINITE, the index of the first such value; else 0.
     */
    uint64_t not_finite;
} tercet_quantize_report;

/**
 * An evenly spaced grid: a code stands for (code - zero_point) * scale.
 */
typedef struct tercet_grid {
    /**
     * Distance between neighbours, finite and not negative; 0 sends all to the zero point.
     */
    float scale;
    /**
     * The code of 0.0, within `low` to `high`.
     */
    int8_t zero_point;
    /**
     * The smallest code.
     */
    int8_t low;
    /**
     * The largest code.
     */
    int8_t high;
} tercet_grid;

/**
 * The nearest centroid of a point.
 */
typedef struct tercet_found {
    /**
     * Its index, the lowest of equals.
     */
    uint32_t label;
    /**
     * The squared distance to it.
     */
    uint32_t distance;
} tercet_found;

/**
 * What became of a point that `tercet_online_observe` took.
 */
typedef struct tercet_observation {
    /**
     * The cluster it joined; the lowest of equally near ones.
     */
    uint32_t label;
    /**
     * Its squared distance to that cluster's centroid as it was before; 0 for a seed.
     */
    uint32_t distance;
    /**
     * Whether it became the first point of its cluster.
     */
    bool seed;
} tercet_observation;

/**
 * Clusters to look at. The pointers lead into the clusters' own memory and hold until that is initialised anew;
 * what they point to changes with every observation.
 */
typedef struct tercet_online_parts {
    /**
     * Clusters that there may be.
     */
    size_t k;
    /**
     * Coordinates of a point.
     */
    size_t d;
    /**
     * Clusters that have a centroid.
     */
    size_t used;
    /**
     * The count at which a cluster's sum and count are halved.
     */
    uint32_t cap;
    /**
     * k * d, row by row, of which `used` rows mean something: rounded means, halves away from zero.
     */
    const int8_t *centroids;
    /**
     * k * d: the sum of each cluster's points, as far as they are not forgotten.
     */
    const int32_t *sums;
    /**
     * k: how many points each sum stands for.
     */
    const uint32_t *counts;
} tercet_online_parts;

/**
 * What `tercet_kmeans` does. All zeros but `max_iter` is one run to the end from greedy seeds.
 */
typedef struct tercet_kmeans_options {
    /**
     * Seeds the draws: the same seed gives the same bits on every machine.
     */
    uint64_t seed;
    /**
     * A `tercet_kmeans_init`.
     */
    uint32_t init;
    /**
     * Runs, the best of which is returned; 0 counts as 1.
     */
    uint32_t restarts;
    /**
     * The most steps of a run; 300 is usual.
     */
    uint32_t max_iter;
    /**
     * A run ends where the inertia fell by no more than that many millionths of itself in a step.
     */
    uint32_t tol_ppm;
} tercet_kmeans_options;

/**
 * How clustering went.
 */
typedef struct tercet_kmeans_outcome {
    /**
     * The sum of the squared distances.
     */
    uint64_t inertia;
    /**
     * How often an empty cluster was given the coordinates of a far point.
     */
    uint64_t reseeded;
    /**
     * Steps taken.
     */
    uint32_t iterations;
    /**
     * A `tercet_kmeans_stop`.
     */
    uint32_t stop;
    /**
     * Clusters without members: fewer distinct points than clusters.
     */
    size_t empty;
} tercet_kmeans_outcome;

/**
 * A network, borrowed from its file. The fields are the library's.
 */
typedef struct tercet_network {
    size_t opaque[192];
} tercet_network;

/**
 * The sizes of a network.
 */
typedef struct tercet_network_shape {
    /**
     * Layers.
     */
    size_t layers;
    /**
     * Inputs of the first layer.
     */
    size_t inputs;
    /**
     * Outputs of the last layer.
     */
    size_t outputs;
    /**
     * Words of scratch that a run needs.
     */
    size_t words;
    /**
     * Words of scratch beyond which a run gets no faster.
     */
    size_t fast_words;
    /**
     * What 1 in the input stands for.
     */
    float input_scale;
} tercet_network_shape;

/**
 * An arena over the caller's memory: its parts are taken from the front and given back all at once. The fields are
 * the library's.
 */
typedef struct tercet_arena {
    size_t opaque[8];
} tercet_arena;

/**
 * How full an arena is, was at most, and how often it had no room.
 */
typedef struct tercet_arena_usage {
    /**
     * Bytes of its memory.
     */
    size_t capacity;
    /**
     * Bytes in use now, with those that alignment skipped.
     */
    size_t in_use;
    /**
     * The most that were in use at once since `tercet_arena_init`.
     */
    size_t high_water;
    /**
     * Requests refused.
     */
    uint32_t failures;
} tercet_arena_usage;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The version of the linked library, `major << 16 | minor << 8 | patch`: equal to `TERCET_VERSION` of the header
 * that belongs to it.
 */
uint32_t tercet_version(void);

/**
 * A sentence about a status, in English, without a full stop; "unknown status" for a number that is none. It lies
 * in constant memory.
 */
const char *tercet_message(int32_t status);

/**
 * Quantizes `len` values in `groups` groups of neighbours on symmetric grids: codes -limit to limit, one scale a
 * group.
 *
 * `limit` is 127 for int8 and 7 for int4. A group's scale is max|x| / limit, its codes x / scale rounded half to
 * even: those of ONNX QuantizeLinear. `codes` holds `len`, `scales` holds `groups`. `report` may be null. Two
 * passes. TERCET_STATUS_LENGTH unless `groups` divides `len`; TERCET_STATUS_ARGUMENT for a limit that is not
 * positive; TERCET_STATUS_NOT_FINITE, and then outputs mean nothing.
 */
tercet_status tercet_quantize_symmetric(const float *values,
                                        int8_t *codes,
                                        size_t len,
                                        int8_t limit,
                                        float *scales,
                                        size_t groups,
                                        struct tercet_quantize_report *report);

/**
 * Quantizes `len` values in `groups` groups of neighbours to int8 with a zero point: codes -128 to 127 over the
 * range of each group, widened to hold 0, as ONNX DynamicQuantizeLinear chooses it.
 *
 * `codes` holds `len`, `scales` and `zero_points` hold `groups`. `report` may be null. Two passes. Errors as of
 * `tercet_quantize_symmetric`.
 */
tercet_status tercet_quantize_affine(const float *values,
                                     int8_t *codes,
                                     size_t len,
                                     float *scales,
                                     int8_t *zero_points,
                                     size_t groups,
                                     struct tercet_quantize_report *report);

/**
 * Quantizes `len` values in `groups` groups of neighbours to -1, 0 and +1, one scale a group.
 *
 * `rule` is a `tercet_ternary_rule`, `scale` a `tercet_ternary_scale`. `codes` holds `len`, `scales` holds
 * `groups`. `scratch` may be null with `scratch_len` 0, but for the optimal rule over groups of more than 256
 * values, which needs `TERCET_TERNARY_WORDS` words at least and takes fewer passes with more. `report` may be
 * null. The optimal rule takes 1.2 KiB of stack for groups up to 256 values. Errors as of
 * `tercet_quantize_symmetric`, and TERCET_STATUS_SCRATCH.
 */
tercet_status tercet_quantize_ternary(const float *values,
                                      int8_t *codes,
                                      size_t len,
                                      uint32_t rule,
                                      uint32_t scale,
                                      float *scales,
                                      size_t groups,
                                      uint64_t *scratch,
                                      size_t scratch_len,
                                      struct tercet_quantize_report *report);

/**
 * Quantizes `len` values on one given grid, as calibration finds it: x / scale rounded half to even, plus the zero
 * point, within low to high.
 *
 * `report` may be null. TERCET_STATUS_ARGUMENT for a grid that is none; TERCET_STATUS_NOT_FINITE.
 */
tercet_status tercet_quantize_fixed(const float *values,
                                    int8_t *codes,
                                    size_t len,
                                    const struct tercet_grid *grid,
                                    struct tercet_quantize_report *report);

/**
 * Writes `len` values (code - zero point) * scale, of `groups` groups; `zero_points` may be null and stands for
 * zeros then.
 */
tercet_status tercet_dequantize(const int8_t *codes,
                                float *values,
                                size_t len,
                                const float *scales,
                                const int8_t *zero_points,
                                size_t groups);

/**
 * Finds the nearest of `k` centroids (k * d values, row by row) to a point of `d` coordinates, 1 to 43,690. O(k *
 * d).
 *
 * TERCET_STATUS_EMPTY where k or d is 0, TERCET_STATUS_LIMIT above those sizes.
 */
tercet_status tercet_nearest(const int8_t *point,
                             size_t d,
                             const int8_t *centroids,
                             size_t k,
                             struct tercet_found *found);

/**
 * Gives each of `n` points (n * d values, row by row) the label of its nearest centroid, the lowest of equals, and
 * its squared distance. O(n * k * d).
 *
 * `labels` and `distances` hold n. `inertia`, the sum of the distances, may be null. Errors as of
 * `tercet_nearest`.
 */
tercet_status tercet_assign(const int8_t *points,
                            size_t n,
                            size_t d,
                            const int8_t *centroids,
                            size_t k,
                            uint32_t *labels,
                            uint32_t *distances,
                            uint64_t *inertia);

/**
 * Makes `k` clusters of `d` coordinates (1 to 43,690) in `memory`, at least `TERCET_ONLINE_WORDS(k, d)` words,
 * with no centroid yet: the first k distinct points found them.
 *
 * `clusters` gets the address by which the other calls know them; the memory belongs to them until the caller
 * stops using them. They live in that memory alone, so there is nothing to free. O(k * d). TERCET_STATUS_SCRATCH
 * where there are too few words.
 */
tercet_status tercet_online_init(uint32_t *memory,
                                 size_t len,
                                 size_t k,
                                 size_t d,
                                 struct tercet_online **clusters);

/**
 * Starts over from given centroids, k * d values in `len`, each of which counts as `weight` points, less than the
 * cap (else TERCET_STATUS_ARGUMENT). With weight 0 the first point of a cluster replaces its centroid. O(k * d).
 */
tercet_status tercet_online_restart(struct tercet_online *clusters,
                                    const int8_t *centroids,
                                    size_t len,
                                    uint32_t weight);

/**
 * Sets the count at which a cluster's sum and count are halved, 2 to 2^24 (which it is at first): a smaller one
 * forgets the past sooner. O(k * d). TERCET_STATUS_ARGUMENT outside that.
 */
tercet_status tercet_online_set_cap(struct tercet_online *clusters,
                                    uint32_t cap);

/**
 * Takes up a point of `len` = d coordinates and says where it went. O(k * d), with d divisions. `seen` may be
 * null.
 */
tercet_status tercet_online_observe(struct tercet_online *clusters,
                                    const int8_t *point,
                                    size_t len,
                                    struct tercet_observation *seen);

/**
 * Finds the nearest centroid to a point of `len` = d coordinates; nothing changes. O(k * d).
 * TERCET_STATUS_NO_CLUSTERS before the first observation.
 */
tercet_status tercet_online_predict(const struct tercet_online *clusters,
                                    const int8_t *point,
                                    size_t len,
                                    struct tercet_found *found);

/**
 * Shows centroids, sums and counts where they lie. O(1).
 */
tercet_status tercet_online_view(const struct tercet_online *clusters, struct tercet_online_parts *view);

/**
 * Writes the clusters into `len` = `TERCET_ONLINE_SAVED(k, d)` bytes: the same on every machine, for flash or for
 * another computer. O(k * d).
 */
tercet_status tercet_online_save(const struct tercet_online *clusters,
                                 uint8_t *bytes,
                                 size_t len);

/**
 * Takes the clusters from what `tercet_online_save` wrote for the same k and d. Any bytes may come; where they are
 * refused (TERCET_STATUS_SAVED), nothing changes. There is no checksum: flash that can tear wants one around it.
 * O(k * d).
 */
tercet_status tercet_online_load(struct tercet_online *clusters,
                                 const uint8_t *bytes,
                                 size_t len);

/**
 * Clusters `n` points of `d` coordinates (n * d values, row by row) into `k`, exactly: the same bits on every
 * machine.
 *
 * Points: 1 to 2^24 - 1; k: 1 to n; d: 1 to 43,690. `options` may be null: one run to the end, seed 0. Gives
 * `centroids` (k * d), and the `labels` and squared `distances` (n each) to them. `scratch` holds at least
 * `TERCET_KMEANS_WORDS(k, d)` words; what it held does not matter. `outcome` may be null. O(n * k * d) a step.
 * TERCET_STATUS_SCRATCH, TERCET_STATUS_ARGUMENT for a k or an init outside their ranges.
 */
tercet_status tercet_kmeans(const int8_t *points,
                            size_t n,
                            size_t d,
                            size_t k,
                            const struct tercet_kmeans_options *options,
                            int8_t *centroids,
                            uint32_t *labels,
                            uint32_t *distances,
                            uint64_t *scratch,
                            size_t scratch_len,
                            struct tercet_kmeans_outcome *outcome);

/**
 * Opens the network in `file`, a whole GGUF file of `len` bytes at any address, in flash or in memory. `tercet
 * network build` makes such files.
 *
 * Nothing is copied: the file must stay where it is, unchanged, for as long as the network is used. One scan
 * checks all of it, so a damaged or hostile file is refused and never read out of bounds. O(layers * (keys +
 * tensors) + weights). TERCET_STATUS_FILE, TERCET_STATUS_NETWORK, TERCET_STATUS_LAYERS; `tercet network` names
 * what is wrong with a file.
 */
tercet_status tercet_network_open(struct tercet_network *network,
                                  const uint8_t *file,
                                  size_t len);

/**
 * Says how large a network is and what its runs need. O(layers).
 */
tercet_status tercet_network_sizes(const struct tercet_network *network, struct tercet_network_shape *sizes);

/**
 * Rounds `len` floats, one for each input, to the codes that `tercet_network_run` takes: x / input_scale, half to
 * even, within
 * -127 to 127. TERCET_STATUS_NOT_FINITE, and then codes mean nothing.
 */
tercet_status tercet_network_quantize(const struct tercet_network *network,
                                      const float *values,
                                      int8_t *codes,
                                      size_t len);

/**
 * Runs the network: `inputs` activations of -127 to 127 in, `outputs` exact sums out, the same on every machine.
 *
 * `scratch` holds at least `words` of `tercet_network_sizes`; what it held does not matter. O(weights).
 * TERCET_STATUS_LENGTH unless both lengths are the network's; TERCET_STATUS_SCRATCH; TERCET_STATUS_NOT_SYMMETRIC;
 * TERCET_STATUS_LAYOUT.
 */
tercet_status tercet_network_run(const struct tercet_network *network,
                                 const int8_t *x,
                                 size_t inputs,
                                 uint32_t *scratch,
                                 size_t scratch_len,
                                 int64_t *sums,
                                 size_t outputs);

/**
 * Finds the class: the row of the largest logit, the lowest of equals. `sums` are those of a run.
 */
tercet_status tercet_network_class(const struct tercet_network *network,
                                   const int64_t *sums,
                                   size_t outputs,
                                   size_t *label);

/**
 * Writes the logits as floats. `sums` are those of a run.
 */
tercet_status tercet_network_logits(const struct tercet_network *network,
                                    const int64_t *sums,
                                    float *logits,
                                    size_t outputs);

/**
 * Feeds sums to a digest, in order: what `tercet network run --digest` prints of an input, from `TERCET_DIGEST`
 * on.
 */
tercet_status tercet_network_digest(uint64_t *digest,
                                    const int64_t *sums,
                                    size_t outputs);

/**
 * Makes an arena of `len` bytes of memory at any address. O(1); the memory is not written.
 *
 * The memory belongs to the arena until the caller stops using both.
 */
tercet_status tercet_arena_init(struct tercet_arena *arena, void *memory, size_t len);

/**
 * Takes `len` bytes from a multiple of `align` on, a power of two. O(1); what the bytes hold is left open.
 *
 * Null where there is no room, where `align` is no power of two and where the arena was not initialised; the first
 * two are counted in the arena's failures. Where `len` is 0 the address is aligned, not null, and must not be
 * read.
 */
void *tercet_arena_alloc(struct tercet_arena *arena,
                         size_t len,
                         size_t align);

/**
 * Notes how much is in use now, for `tercet_arena_rewind`. O(1).
 */
tercet_status tercet_arena_mark(const struct tercet_arena *arena, size_t *mark);

/**
 * Gives back all that was taken since a mark; 0 is the mark of an empty arena. O(1).
 *
 * Memory taken since must not be used any more. TERCET_STATUS_ARGUMENT for a mark beyond what is in use.
 */
tercet_status tercet_arena_rewind(struct tercet_arena *arena, size_t mark);

/**
 * Says how full the arena is and was. O(1).
 */
tercet_status tercet_arena_stats(const struct tercet_arena *arena, struct tercet_arena_usage *stats);

/**
 * Feeds bytes to a digest: 64-bit FNV-1a, which catches differences and does not resist attackers.
 *
 * O(len). `bytes` may be null where `len` is 0.
 */
tercet_status tercet_digest_bytes(uint64_t *digest, const uint8_t *bytes, size_t len);

/**
 * Feeds an integer to a digest, as its eight bytes from the lowest on, whatever the machine's order.
 */
tercet_status tercet_digest_u64(uint64_t *digest, uint64_t value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TERCET_H */
