/* A sensor node: clusters that follow a stream, and k-means over points kept. Digested as Tercet's conformance suite does. */
#include <string.h>

#include "example.h"
#include "inputs.h"
#include "text.h"

#define STREAM 300

/* Feeds 32 bits, lowest byte first. */
static tercet_status feed_u32(uint64_t *digest, uint32_t value) {
    const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};
    return tercet_digest_bytes(digest, bytes, sizeof bytes);
}

/* Sends clusters to sleep and wakes others from the bytes, which must be the same. */
static tercet_status sleep_and_wake(tercet_arena *arena, const tercet_online *clusters, size_t k, size_t d,
                                    tercet_online **woken) {
    const size_t len = TERCET_ONLINE_SAVED(k, d);
    uint32_t *memory;
    uint8_t *flash;
    TAKE(arena, memory, TERCET_ONLINE_WORDS(k, d));
    TAKE(arena, flash, len);
    TRY(tercet_online_save(clusters, flash, len));
    TRY(tercet_online_init(memory, TERCET_ONLINE_WORDS(k, d), k, d, woken));
    return tercet_online_load(*woken, flash, len);
}

tercet_status online(tercet_arena *arena, const char *name, size_t k, size_t d) {
    uint32_t *memory;
    int8_t *x;
    tercet_online *clusters;
    tercet_online_parts parts;
    uint64_t digest = TERCET_DIGEST;
    struct random random;

    TAKE(arena, memory, TERCET_ONLINE_WORDS(k, d));
    TAKE(arena, x, d);
    TRY(tercet_online_init(memory, TERCET_ONLINE_WORDS(k, d), k, d, &clusters));
    memset(x, 0, d);
    random_seed(&random, 60);
    for (uint32_t index = 0; index < STREAM; index += 1) {
        tercet_observation seen;
        stream_point(&random, index, x, d);
        TRY(tercet_online_observe(clusters, x, d, &seen));
        TRY(tercet_digest_u64(&digest, (uint64_t)seen.label << 32 | seen.distance));
        const uint8_t seed = seen.seed;
        TRY(tercet_digest_bytes(&digest, &seed, 1));
        if (index == STREAM / 2 && k * d < 100) {
            TRY(sleep_and_wake(arena, clusters, k, d, &clusters));
        }
    }
    TRY(tercet_online_view(clusters, &parts));
    for (size_t label = 0; label < parts.used; label += 1) {
        const int8_t *centroid = &parts.centroids[label * d];
        tercet_found found;
        TRY(tercet_digest_bytes(&digest, (const uint8_t *)centroid, d));
        TRY(tercet_online_predict(clusters, centroid, d, &found));
        TRY(tercet_digest_u64(&digest, found.label));
    }
    for (size_t label = 0; label < k; label += 1) {
        TRY(tercet_digest_u64(&digest, parts.counts[label]));
        for (size_t i = 0; i < d; i += 1) {
            TRY(feed_u32(&digest, (uint32_t)parts.sums[label * d + i]));
        }
    }
    text_digest(name, digest);
    return TERCET_STATUS_OK;
}

tercet_status lloyd(tercet_arena *arena) {
    enum { N = 96, D = 6, K = 8 };
    int8_t *points, *centroids, x[D] = {0};
    uint32_t *labels, *distances;
    uint64_t *scratch, again, digest = TERCET_DIGEST;
    tercet_kmeans_outcome outcome;
    struct random random;

    TAKE(arena, scratch, TERCET_KMEANS_WORDS(K, D));
    TAKE(arena, labels, N);
    TAKE(arena, distances, N);
    TAKE(arena, points, N * D);
    TAKE(arena, centroids, K * D);
    random_seed(&random, 61);
    for (uint32_t index = 0; index < N; index += 1) {
        stream_point(&random, index, x, D);
        memcpy(&points[index * D], x, D);
    }
    TRY(tercet_kmeans(points, N, D, K, NULL, centroids, labels, distances, scratch, TERCET_KMEANS_WORDS(K, D), &outcome));
    TRY(tercet_digest_u64(&digest, outcome.inertia));
    TRY(tercet_digest_u64(&digest, outcome.iterations));
    TRY(tercet_digest_u64(&digest, outcome.stop));
    TRY(tercet_digest_u64(&digest, outcome.reseeded));
    for (size_t i = 0; i < N; i += 1) {
        TRY(feed_u32(&digest, labels[i]));
    }
    for (size_t i = 0; i < N; i += 1) {
        TRY(feed_u32(&digest, distances[i]));
    }
    TRY(tercet_digest_bytes(&digest, (const uint8_t *)centroids, K * D));
    text_digest("cluster/lloyd/8x6", digest);
    /* What the centroids say of the points afterwards is what k-means said. */
    TRY(tercet_assign(points, N, D, centroids, K, labels, distances, &again));
    return again == outcome.inertia ? TERCET_STATUS_OK : TERCET_STATUS_STATE;
}
