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
 * The major version; a different one may break callers.
 */
#define TERCET_VERSION_MAJOR 0

/**
 * The minor version; while the major version is 0, a different one may break callers too.
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
 * Maximum number of layers of a network.
 */
#define TERCET_NETWORK_LAYERS 8

/**
 * The digest of nothing: the initial value of a digest.
 */
#define TERCET_DIGEST 14695981039346656037ull

/**
 * The result of every call that can fail; 0 is success. Numbers never change their meaning; new ones may be added.
 */
enum tercet_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Success.
     */
    TERCET_STATUS_OK = 0,
    /**
     * A pointer is null that must not be null.
     */
    TERCET_STATUS_NULL = 1,
    /**
     * A pointer is not aligned for its type.
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
     * A length does not match the others.
     */
    TERCET_STATUS_LENGTH = 5,
    /**
     * No values, no points or no clusters.
     */
    TERCET_STATUS_EMPTY = 6,
    /**
     * A size exceeds what the library can count or an address space can hold.
     */
    TERCET_STATUS_LIMIT = 7,
    /**
     * An option is outside its range.
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
     * The bytes are not clusters saved with this k and d.
     */
    TERCET_STATUS_SAVED = 12,
    /**
     * The bytes are not a whole GGUF file.
     */
    TERCET_STATUS_FILE = 13,
    /**
     * The file contains no network of this version, or a layer that does not fit.
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
 * The rule by which values become -1 and +1.
 */
enum tercet_ternary_rule
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Values of at least half of the largest magnitude, which is the scale: ggml's rule.
     */
    TERCET_TERNARY_RULE_ABS_MAX = 0,
    /**
     * Values above half of the mean magnitude, which is the scale: BitNet b1.58.
     */
    TERCET_TERNARY_RULE_ABS_MEAN = 1,
    /**
     * Values above 0.7 of the mean magnitude; the scale is the mean of the coded ones: Ternary Weight Networks.
     */
    TERCET_TERNARY_RULE_TWN = 2,
    /**
     * Least squared error of all ternary codes; the scale is the mean of the coded ones.
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
 * The source of the scale of ternary codes.
 */
enum tercet_ternary_scale
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The rule's own scale.
     */
    TERCET_TERNARY_SCALE_RULE = 0,
    /**
     * The scale of least squared error: the mean of the magnitudes that got a code.
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
 * The choice of the first centroids by `tercet_kmeans`.
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
     * Random distinct points.
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
 * The reason why `tercet_kmeans` ended.
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
     * Labels changed, but the inertia did not.
     */
    TERCET_KMEANS_STOP_INERTIA = 1,
    /**
     * The inertia fell by no more than the tolerance.
     */
    TERCET_KMEANS_STOP_TOLERANCE = 2,
    /**
     * The maximum number of steps was reached.
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
 * k clusters of d coordinates that follow a stream, without storing its points, in `TERCET_ONLINE_WORDS(k, d)` words
 * of the caller's memory.
 */
typedef struct tercet_online tercet_online;

/**
 * The outcome of quantizing, counted over the groups.
 */
typedef struct tercet_quantize_report {
    /**
     * Number of groups.
     */
    uint64_t groups;
    /**
     * Number of groups of zeros only: scale 0.
     */
    uint64_t zero;
    /**
     * Number of groups that became zeros because their scale does not fit a float, though some value was not 0.
     */
    uint64_t flushed;
    /**
     * Number of codes other than the zero point.
     */
    uint64_t coded;
    /**
     * Number of values that the grid's ends clipped by at least half a step.
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
     * Distance between neighbours, finite and not negative; 0 maps all values to the zero point.
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
     * Its index, the lowest one on ties.
     */
    uint32_t label;
    /**
     * The squared distance to it.
     */
    uint32_t distance;
} tercet_found;

/**
 * The outcome of a point given to `tercet_online_observe`.
 */
typedef struct tercet_observation {
    /**
     * The cluster that it joined; the lowest one on ties.
     */
    uint32_t label;
    /**
     * Its squared distance to that cluster's centroid before it joined; 0 for a seed.
     */
    uint32_t distance;
    /**
     * True if it became the first point of its cluster.
     */
    bool seed;
} tercet_observation;

/**
 * Read access to clusters. The pointers point into the clusters' own memory and are valid until that is initialised
 * again. The values that they point to change with every observation.
 */
typedef struct tercet_online_parts {
    /**
     * Maximum number of clusters.
     */
    size_t k;
    /**
     * Number of coordinates per point.
     */
    size_t d;
    /**
     * Number of clusters that have a centroid.
     */
    size_t used;
    /**
     * The count at which a cluster's sum and count are halved.
     */
    uint32_t cap;
    /**
     * k * d values, row by row, of which the first `used` rows are valid: rounded means, halves away from zero.
     */
    const int8_t *centroids;
    /**
     * k * d values: the sum of each cluster's points, as far as they are not forgotten.
     */
    const int32_t *sums;
    /**
     * k values: the number of points in each sum.
     */
    const uint32_t *counts;
} tercet_online_parts;

/**
 * The options of `tercet_kmeans`. If all but `max_iter` are zero, it does one complete run from greedy seeds.
 */
typedef struct tercet_kmeans_options {
    /**
     * Seed of the random numbers: the same seed gives the same bits on every machine.
     */
    uint64_t seed;
    /**
     * A `tercet_kmeans_init`.
     */
    uint32_t init;
    /**
     * Number of runs, of which the best is returned; 0 counts as 1.
     */
    uint32_t restarts;
    /**
     * Maximum number of steps per run; 300 is usual.
     */
    uint32_t max_iter;
    /**
     * A run ends if a step lowers the inertia by no more than this many millionths of it.
     */
    uint32_t tol_ppm;
} tercet_kmeans_options;

/**
 * The outcome of clustering.
 */
typedef struct tercet_kmeans_outcome {
    /**
     * The sum of the squared distances.
     */
    uint64_t inertia;
    /**
     * Number of times that an empty cluster got the coordinates of a far point.
     */
    uint64_t reseeded;
    /**
     * Number of steps.
     */
    uint32_t iterations;
    /**
     * A `tercet_kmeans_stop`.
     */
    uint32_t stop;
    /**
     * Number of clusters without members, if there are fewer distinct points than clusters.
     */
    size_t empty;
} tercet_kmeans_outcome;

/**
 * A network, borrowed from its file. The fields are private to the library.
 */
typedef struct tercet_network {
    size_t opaque[192];
} tercet_network;

/**
 * The sizes of a network.
 */
typedef struct tercet_network_shape {
    /**
     * Number of layers.
     */
    size_t layers;
    /**
     * Number of inputs of the first layer.
     */
    size_t inputs;
    /**
     * Number of outputs of the last layer.
     */
    size_t outputs;
    /**
     * Words of scratch that a run needs.
     */
    size_t words;
    /**
     * Words of scratch above which a run gets no faster.
     */
    size_t fast_words;
    /**
     * The value of 1 in the input.
     */
    float input_scale;
} tercet_network_shape;

/**
 * An arena in the caller's memory. Allocations take memory from its front, and are given back all at once. The fields
 * are private to the library.
 */
typedef struct tercet_arena {
    size_t opaque[8];
} tercet_arena;

/**
 * The use of an arena's memory now and at most, and the number of failed requests.
 */
typedef struct tercet_arena_usage {
    /**
     * Bytes of its memory.
     */
    size_t capacity;
    /**
     * Bytes in use now, including those that alignment skipped.
     */
    size_t in_use;
    /**
     * Maximum of bytes in use since `tercet_arena_init`.
     */
    size_t high_water;
    /**
     * Number of failed requests.
     */
    uint32_t failures;
} tercet_arena_usage;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the version of the linked library, `major << 16 | minor << 8 | patch`. It equals `TERCET_VERSION` of the
 * header that belongs to the library.
 */
uint32_t tercet_version(void);

/**
 * Returns a sentence about a status, in English, without a full stop; "unknown status" for any other number. The
 * sentence is in constant memory.
 */
const char *tercet_message(int32_t status);

/**
 * Quantizes `len` values in `groups` groups of neighbours on symmetric grids: codes -limit to limit, one scale per
 * group.
 *
 * `limit` is 127 for int8 and 7 for int4. A group's scale is max|x| / limit. Its codes are x / scale rounded half to
 * even: those of ONNX QuantizeLinear. `codes` holds `len`, `scales` holds `groups`. `report` may be null. Two passes.
 *
 * Returns TERCET_STATUS_LENGTH unless `groups` divides `len`; TERCET_STATUS_ARGUMENT for a limit that is not
 * positive; TERCET_STATUS_NOT_FINITE for a NaN or an infinity, and then the outputs are meaningless.
 */
tercet_status tercet_quantize_symmetric(const float *values,
                                        int8_t *codes,
                                        size_t len,
                                        int8_t limit,
                                        float *scales,
                                        size_t groups,
                                        struct tercet_quantize_report *report);

/**
 * Quantizes `len` values in `groups` groups of neighbours to int8 with a zero point: codes -128 to 127 over the range
 * of each group, widened to contain 0, as ONNX DynamicQuantizeLinear chooses it.
 *
 * `codes` holds `len`, `scales` and `zero_points` hold `groups`. `report` may be null. Two passes. Errors are those
 * of `tercet_quantize_symmetric`.
 */
tercet_status tercet_quantize_affine(const float *values,
                                     int8_t *codes,
                                     size_t len,
                                     float *scales,
                                     int8_t *zero_points,
                                     size_t groups,
                                     struct tercet_quantize_report *report);

/**
 * Quantizes `len` values in `groups` groups of neighbours to -1, 0 and +1, one scale per group.
 *
 * `rule` is a `tercet_ternary_rule`, `scale` a `tercet_ternary_scale`. `codes` holds `len`, `scales` holds `groups`.
 * `report` may be null. `scratch` may be null with `scratch_len` 0, except for the optimal rule with groups of more
 * than 256 values, which needs at least `TERCET_TERNARY_WORDS` words and takes fewer passes with more. For groups of
 * up to 256 values the optimal rule takes 1.2 KiB of stack.
 *
 * Errors are those of `tercet_quantize_symmetric`, and TERCET_STATUS_SCRATCH.
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
 * Quantizes `len` values on one given grid, for example from calibration: x / scale rounded half to even, plus the
 * zero point, within low to high. `report` may be null.
 *
 * Returns TERCET_STATUS_ARGUMENT for an invalid grid, and TERCET_STATUS_NOT_FINITE for a NaN or an infinity.
 */
tercet_status tercet_quantize_fixed(const float *values,
                                    int8_t *codes,
                                    size_t len,
                                    const struct tercet_grid *grid,
                                    struct tercet_quantize_report *report);

/**
 * Writes `len` values (code - zero point) * scale, in `groups` groups. If `zero_points` is null, all are 0.
 */
tercet_status tercet_dequantize(const int8_t *codes,
                                float *values,
                                size_t len,
                                const float *scales,
                                const int8_t *zero_points,
                                size_t groups);

/**
 * Finds the nearest of `k` centroids (k * d values, row by row) to a point of `d` coordinates, 1 to 43,690. O(k * d).
 *
 * Returns TERCET_STATUS_EMPTY if k or d is 0, and TERCET_STATUS_LIMIT above those sizes.
 */
tercet_status tercet_nearest(const int8_t *point,
                             size_t d,
                             const int8_t *centroids,
                             size_t k,
                             struct tercet_found *found);

/**
 * Computes, for each of `n` points (n * d values, row by row), the label of its nearest centroid, the lowest one on
 * ties, and the squared distance to it. O(n * k * d).
 *
 * `labels` and `distances` hold n. `inertia`, the sum of the distances, may be null. Errors are those of
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
 * Makes `k` clusters of `d` coordinates (1 to 43,690) in `memory`, at least `TERCET_ONLINE_WORDS(k, d)` words. They
 * have no centroids yet; the first k distinct points found them.
 *
 * `clusters` gets the address that the other calls take. The memory belongs to the clusters until the caller stops
 * using them. They have no other memory, so there is nothing to free. O(k * d).
 *
 * Returns TERCET_STATUS_SCRATCH if there are too few words.
 */
tercet_status tercet_online_init(uint32_t *memory,
                                 size_t len,
                                 size_t k,
                                 size_t d,
                                 struct tercet_online **clusters);

/**
 * Restarts from given centroids, k * d values in `len`. Each counts as `weight` points, fewer than the cap (else
 * TERCET_STATUS_ARGUMENT). With weight 0 the first point of a cluster replaces its centroid. O(k * d).
 */
tercet_status tercet_online_restart(struct tercet_online *clusters,
                                    const int8_t *centroids,
                                    size_t len,
                                    uint32_t weight);

/**
 * Sets the count at which a cluster's sum and count are halved, 2 to 2^24; the initial value is 2^24. A smaller count
 * forgets the past sooner. O(k * d). Returns TERCET_STATUS_ARGUMENT outside that range.
 */
tercet_status tercet_online_set_cap(struct tercet_online *clusters,
                                    uint32_t cap);

/**
 * Adds a point of `len` = d coordinates to a cluster and reports the cluster in `seen`, which may be null. O(k * d),
 * with d divisions.
 */
tercet_status tercet_online_observe(struct tercet_online *clusters,
                                    const int8_t *point,
                                    size_t len,
                                    struct tercet_observation *seen);

/**
 * Finds the nearest centroid to a point of `len` = d coordinates without any change. O(k * d). Returns
 * TERCET_STATUS_NO_CLUSTERS before the first observation.
 */
tercet_status tercet_online_predict(const struct tercet_online *clusters,
                                    const int8_t *point,
                                    size_t len,
                                    struct tercet_found *found);

/**
 * Gives read access to centroids, sums and counts in place. O(1).
 */
tercet_status tercet_online_view(const struct tercet_online *clusters, struct tercet_online_parts *view);

/**
 * Writes the clusters into `len` = `TERCET_ONLINE_SAVED(k, d)` bytes, the same on every machine, for flash or for
 * another computer. O(k * d).
 */
tercet_status tercet_online_save(const struct tercet_online *clusters,
                                 uint8_t *bytes,
                                 size_t len);

/**
 * Reads clusters that `tercet_online_save` wrote for the same k and d. The bytes may be arbitrary; if they are
 * refused (TERCET_STATUS_SAVED), nothing changes. There is no checksum: add one for flash whose writes can be
 * interrupted. O(k * d).
 */
tercet_status tercet_online_load(struct tercet_online *clusters,
                                 const uint8_t *bytes,
                                 size_t len);

/**
 * Clusters `n` points of `d` coordinates (n * d values, row by row) into `k` clusters, exactly: the same bits on
 * every machine.
 *
 * Points: 1 to 2^24 - 1; k: 1 to n; d: 1 to 43,690. `options` may be null: one complete run with seed 0. Writes the
 * `centroids` (k * d), and the `labels` and the squared `distances` to them (n each). `scratch` holds at least
 * `TERCET_KMEANS_WORDS(k, d)` words with any content. `outcome` may be null. O(n * k * d) per step.
 *
 * Returns TERCET_STATUS_SCRATCH if there are too few words, and TERCET_STATUS_ARGUMENT for a k or an init outside its
 * range.
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
 * Nothing is copied: the file must stay where it is, unchanged, for as long as the network is used. One pass checks
 * the whole file, so a damaged or hostile file is refused and never read out of bounds. O(layers * (keys + tensors) +
 * weights).
 *
 * Returns TERCET_STATUS_FILE, TERCET_STATUS_NETWORK or TERCET_STATUS_LAYERS for a faulty file; `tercet network`
 * reports the fault.
 */
tercet_status tercet_network_open(struct tercet_network *network,
                                  const uint8_t *file,
                                  size_t len);

/**
 * Reports a network's sizes and the needs of its runs. O(layers).
 */
tercet_status tercet_network_sizes(const struct tercet_network *network, struct tercet_network_shape *sizes);

/**
 * Rounds `len` floats, one per input, to the codes that `tercet_network_run` takes: x / input_scale, half to even,
 * within -127 to 127.
 *
 * Returns TERCET_STATUS_NOT_FINITE for a NaN or an infinity; the codes are then meaningless.
 */
tercet_status tercet_network_quantize(const struct tercet_network *network,
                                      const float *values,
                                      int8_t *codes,
                                      size_t len);

/**
 * Runs the network on `inputs` activations of -127 to 127. Writes `outputs` exact sums, the same on every machine.
 *
 * `scratch` holds at least `words` of `tercet_network_sizes` words with any content. O(weights).
 *
 * Returns TERCET_STATUS_LENGTH unless both lengths are the network's, TERCET_STATUS_SCRATCH,
 * TERCET_STATUS_NOT_SYMMETRIC or TERCET_STATUS_LAYOUT.
 */
tercet_status tercet_network_run(const struct tercet_network *network,
                                 const int8_t *x,
                                 size_t inputs,
                                 uint32_t *scratch,
                                 size_t scratch_len,
                                 int64_t *sums,
                                 size_t outputs);

/**
 * Finds the class: the row of the largest logit, the lowest one on ties. `sums` are those of a run.
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
 * Adds sums to a digest, in order. From `TERCET_DIGEST` on, this is the digest of an input that `tercet network run
 * --digest` prints.
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
 * Allocates `len` bytes at a multiple of `align`, a power of two. O(1); the content of the bytes is unspecified.
 *
 * Returns null if there is too little memory, if `align` is not a power of two, or if the arena was not initialised.
 * The first two are counted in the arena's failures. If `len` is 0, the address is aligned, not null, and must not be
 * read.
 */
void *tercet_arena_alloc(struct tercet_arena *arena,
                         size_t len,
                         size_t align);

/**
 * Stores the number of bytes in use now in `mark`, for `tercet_arena_rewind`. O(1).
 */
tercet_status tercet_arena_mark(const struct tercet_arena *arena, size_t *mark);

/**
 * Gives back all memory allocated since a mark; 0 is the mark of an empty arena. O(1).
 *
 * The caller must not use that memory any more. Returns TERCET_STATUS_ARGUMENT for a mark beyond the bytes in use.
 */
tercet_status tercet_arena_rewind(struct tercet_arena *arena,
                                  size_t mark);

/**
 * Reports the arena's use of memory now and at most. O(1).
 */
tercet_status tercet_arena_stats(const struct tercet_arena *arena, struct tercet_arena_usage *stats);

/**
 * Adds bytes to a digest: 64-bit FNV-1a, which detects differences but does not resist attackers.
 *
 * O(len). `bytes` may be null if `len` is 0.
 */
tercet_status tercet_digest_bytes(uint64_t *digest, const uint8_t *bytes, size_t len);

/**
 * Adds an integer to a digest as its eight bytes, the lowest first, on machines of any byte order.
 */
tercet_status tercet_digest_u64(uint64_t *digest, uint64_t value);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TERCET_H */
