// Cases over int8 rows: k-means, search, linear layers. And additions to one address.
#pragma once

#include "case.h"

// Points and centroids, and what assigning each point to the nearest one gives: of every `step`-th point, so that the host is done in a second.
inline Case assigned(u64 size, u64 dims, u64 clusters, u64 shared, bool panels, std::function<u32(const Room &)> most, u64 tile) {
    const u64 points = size / 32;
    const std::vector<i8> rows = codes(points * dims, 11), centroids = codes(clusters * dims, 12);
    std::vector<u32> lengths(points), before(points), labels, distances;
    std::vector<i32> norms(clusters);
    for (u64 i = 0; i < points; i++) lengths[i] = (u32)dot(&rows[i * dims], &rows[i * dims], dims);
    for (u64 i = 0; i < clusters; i++) norms[i] = dot(&centroids[i * dims], &centroids[i * dims], dims);
    Random random{13};
    for (u32 &label : before) label = random.below((u32)clusters);
    const u64 step = sample_step(points, clusters * dims);
    for (u64 i = 0; i < points; i += step) {
        u32 label = 0, least = ~0u;
        for (u64 k = 0; k < clusters; k++) {
            // ‖x − c‖². Of equals the first.
            const u32 distance = lengths[i] + (u32)norms[k] - 2 * (u32)dot(&rows[i * dims], &centroids[k * dims], dims);
            if (distance < least) {
                least = distance;
                label = (u32)k;
            }
        }
        labels.push_back(label);
        distances.push_back(least);
    }
    enum { ROWS, LENGTHS, CENTROIDS, NORMS, LABELS, PREVIOUS, DISTANCES, RESULT };
    auto launch = [=](const std::vector<u64> &at, const Room &room) {
        std::vector<Argument> arguments = {at[ROWS], u32(dims), u32(points), NONE, at[LENGTHS], at[CENTROIDS], at[NORMS], u32(clusters),
                                           at[LABELS], at[PREVIOUS], at[DISTANCES]};
        // Panels of points: all parts of 64 bytes of a row, two at least.
        if (panels) arguments.push_back(std::max<u32>(u32(dims + 63) / 64, 2));
        arguments.push_back(at[RESULT]);
        return Launch{blocks_for(points, tile, most(room)), 1, arguments};
    };
    // The inertia, and how many labels changed: of all points, by what was found of them.
    auto right = [=](const std::vector<Bytes> &found) {
        const std::vector<u32> after = numbers_of<u32>(found[LABELS]), far = numbers_of<u32>(found[DISTANCES]);
        u64 inertia = 0, changed = 0;
        for (u64 i = 0; i < points; i++) {
            inertia += far[i];
            changed += after[i] != before[i];
        }
        return numbers_of<u64>(found[RESULT]) == std::vector<u64>{inertia, changed, 0, 0};
    };
    return {in_short(points) + " x " + in_short(dims) + ", k = " + in_short(clusters), double(points) * (dims + 20),
            2.0 * points * clusters * dims,
            {{bytes_of(rows)},
             {bytes_of(lengths)},
             {bytes_of(centroids)},
             {bytes_of(norms)},
             {bytes_of(before), bytes_of(labels), 4, step},
             {unwritten(points * 4), bytes_of(before)},
             {unwritten(points * 4), bytes_of(distances), 4, step},
             {zeros(32)}},
            launch, u32(shared), right};
}

// Clusters of the larger problem: 1,024 for the usual size.
inline u64 many_clusters(u64 size) { return std::min<u64>(std::max<u64>(size / 32768, 128), 1024); }

inline Case assigned_mma(u64 size) {
    // Two panels of points and two of centroids, 128 rows of 80 bytes each.
    return assigned(size, 128, many_clusters(size), 4 * 128 * 80, true, [](const Room &room) { return room.blocks; }, 128);
}

inline Case assigned_wgmma(u64 size) {
    // Four parts of 256 points and of 128 centroids, and room to begin at a multiple of 1,024.
    return assigned(size, 128, many_clusters(size), 4 * (256 + 128) * 128 + 1008, false,
                    [](const Room &room) { return room.multiprocessors; }, 256);
}

inline Case assigned_few(u64 size) {
    return assigned(size, 64, 64, 0, false, [](const Room &room) { return room.blocks; }, 256);
}

// Sums and counts of clusters: of all points, or of the one in `moving` whose label is another than before.
inline Case summed(u64 size, u32 moving) {
    const u64 points = size / 32, dims = 64, clusters = 64;
    const std::vector<i8> rows = codes(points * dims, 14);
    std::vector<u32> previous(points), labels(points);
    std::vector<u64> sums(clusters * dims), counts(clusters);
    Random random{15};
    u64 added = 0;
    for (u64 i = 0; i < points; i++) {
        previous[i] = random.below((u32)clusters);
        labels[i] = moving == 1 || random.below(moving) == 0 ? random.below((u32)clusters) : previous[i];
        if (moving != 1 && labels[i] == previous[i]) continue;
        added++;
        counts[labels[i]]++;
        counts[previous[i]] -= moving != 1;
        for (u64 d = 0; d < dims; d++) {
            // Modulo 2⁶⁴, as the kernel has it.
            sums[labels[i] * dims + d] += (u64)(i64)rows[i * dims + d];
            if (moving != 1) sums[previous[i] * dims + d] -= (u64)(i64)rows[i * dims + d];
        }
    }
    return {in_short(points) + " x 64, k = 64", double(points) * (moving == 1 ? 4 : 8) + double(added) * dims, 0,
            {{bytes_of(rows)}, {bytes_of(previous)}, {bytes_of(labels)}, {zeros(sums.size() * 8), bytes_of(sums)},
             {zeros(counts.size() * 8), bytes_of(counts)}},
            [=](const auto &at, const Room &room) {
                return Launch{blocks_for(points, 1024, room.blocks), 1,
                              {at[0], u32(dims), u32(dims), u32(points), moving == 1 ? NONE : at[1], at[2], u32(clusters), at[3], at[4]}};
            },
            u32((clusters * dims + clusters) * 4)};
}

inline Case squared_lengths(u64 size) {
    const u64 points = size / 32, dims = 64;
    const std::vector<i8> rows = codes(points * dims, 16);
    std::vector<u32> lengths(points);
    for (u64 i = 0; i < points; i++) lengths[i] = (u32)dot(&rows[i * dims], &rows[i * dims], dims);
    return {in_short(points) + " x 64", double(points) * (dims + 4), 0,
            {{bytes_of(rows)}, {unwritten(points * 4), bytes_of(lengths)}}, [=](const auto &at, const Room &) {
                return Launch{blocks_for(points, 32, ~0u), 1, {at[0], u32(dims), u32(points), at[1]}};
            }};
}

// One query: the keys and rows of all dot products that reach a bar, which one row in 4,096 does, in any order.
inline Case searched(u64 size) {
    const u64 pitch = 256, rows = size / 64, room_for = 65536;
    const std::vector<i8> base = codes(rows * pitch, 17), query = codes(pitch, 18);
    std::vector<u64> ranked(rows);
    for (u64 i = 0; i < rows; i++) ranked[i] = (u64)((u32)dot(&base[i * pitch], query.data(), pitch) ^ 0x80000000) << 32 | i;
    std::sort(ranked.rbegin(), ranked.rend());
    const u32 bar = (u32)(ranked[std::max<u64>(rows / 4096, 1) - 1] >> 32);
    u64 reach = 0;
    while (reach < rows && ranked[reach] >> 32 >= bar) reach++;
    ranked.resize(reach);
    enum { ROWS, QUERY, NORM, BAR, FOUND, COUNT };
    auto right = [=](const std::vector<Bytes> &found) {
        std::vector<u64> list = numbers_of<u64>(found[FOUND]);
        list.resize(reach);
        std::sort(list.rbegin(), list.rend());
        return list == ranked;
    };
    return {in_short(rows) + " x 256", double(rows) * pitch, 0,
            {{bytes_of(base)}, {bytes_of(query)}, {zeros(4)}, {bytes_of(std::vector<u32>{bar})}, {unwritten(room_for * 8)},
             {zeros(4), bytes_of(std::vector<u32>{(u32)reach})}},
            [=](const auto &at, const Room &room) {
                // Metric 0: the dot product. No norms, and no keys of a sample.
                return Launch{blocks_for(rows, 32, room.blocks), 1,
                              {at[ROWS], u64(pitch), NONE, u64(0), u64(1), u64(rows), at[QUERY], at[NORM], u32(0), NONE, at[BAR], at[FOUND],
                               at[COUNT], u32(room_for)}};
            },
            u32(pitch), right};
}

// Codes of `bits` bits as the kernels have them: column 4 l + b of a 32-bit word is in byte b, bits · l up.
inline Bytes packed(const std::vector<u8> &codes, u32 bits) {
    const u64 each = 32 / bits;
    Bytes bytes(codes.size() * bits / 8);
    for (u64 i = 0; i < codes.size(); i++) bytes[i / each * 4 + i % 4] |= (u8)(codes[i] << bits * (i % each / 4));
    return bytes;
}

// Rows of weights by rows of int8 activations, to floats. Weights of 2 bits are -1, 0 and 1, and have a scale for each 256 columns; of 8 bits they
// have none. Products on tensor cores by tiles of `tile` rows of activations, or by one pass over the weights (0).
inline Case product(u64 rows, u64 cols, u64 count, u32 bits, u64 tile, bool dp4a = false) {
    const u64 blocks = bits == 2 ? cols / 256 : 0;
    std::vector<i8> weights = codes(rows * cols, 19);
    const std::vector<i8> x = codes(count * cols, 20);
    const std::vector<float> x_scales = bells(count, 21).values;
    std::vector<u8> stored(rows * cols);
    for (u64 i = 0; i < weights.size(); i++) {
        if (bits == 2) weights[i] = (i8)(((int)weights[i] + 127) % 3 - 1);
        stored[i] = (u8)(bits == 2 ? weights[i] + 1 : weights[i]);
    }
    std::vector<u16> scales(rows * blocks);
    const std::vector<float> drawn = bells(scales.size(), 22).values;
    for (u64 i = 0; i < scales.size(); i++) scales[i] = half_of(drawn[i]);
    const float scale = bits == 2 ? 1.0f : 0.0123f, unit = bits == 2 ? 0x1p-24f : 1.0f;
    std::vector<float> out;
    const u64 step = sample_step(rows * count, cols);
    for (u64 at = 0; at < rows * count; at += step) {
        const u64 row = at % rows, x_row = at / rows;
        i64 sum = 0;
        for (u64 block = 0; block < blocks; block++) {
            // A scale in units of 2⁻²⁴, which every f16 is a multiple of.
            const i64 units = (i64)(of_half(scales[row * blocks + block]) * 0x1p24);
            sum += units * dot(&weights[row * cols + block * 256], &x[x_row * cols + block * 256], 256);
        }
        if (blocks == 0) sum = dot(&weights[row * cols], &x[x_row * cols], cols);
        out.push_back((float)sum * unit * scale * x_scales[x_row]);
    }
    const Bytes bytes = packed(stored, bits);
    const u64 row_bytes = cols * bits / 8;
    return {in_short(rows) + " x " + in_short(cols) + (count > 1 ? " x " + in_short(count) : ""),
            double(bytes.size()) + scales.size() * 2.0 + count * (cols + 4.0) + rows * count * 4.0, 2.0 * rows * cols * count,
            {{bytes}, {bytes_of(scales)}, {bytes_of(x)}, {bytes_of(x_scales)}, {unwritten(rows * count * 4), bytes_of(out), 4, step}},
            [=](const auto &at, const Room &) {
                std::vector<Argument> arguments = {at[0], u64(row_bytes), blocks != 0 ? at[1] : NONE, u32(blocks)};
                // 16 bytes of a row have 64 columns of 2 bits.
                if (dp4a) arguments.push_back(u32(256 / 64));
                for (Argument argument : std::vector<Argument>{u32(rows), at[2], u64(cols), u32(count), NONE, NONE, scale, unit, at[3], NONE,
                                                               at[4]}) {
                    arguments.push_back(argument);
                }
                return Launch{blocks_for(rows, tile != 0 ? 128 : 32, ~0u), tile != 0 ? blocks_for(count, tile, ~0u) : 1, arguments};
            }};
}

// As many rows as columns and activations: 8,192 for the usual size.
inline u64 side(u64 size) { return std::max<u64>((u64)std::sqrt(2.0 * (double)size) / 256 * 256, 256); }

// The largest of some numbers, at one address: a thread has one, as `k` less its index for every empty one of k clusters. All are empty, since
// that makes one atomic of 64 bits each.
inline Case one_address(u64 size) {
    const u64 count = size / 32;
    return {in_short(count) + " u64", 8.0 * count, double(count),
            {{zeros(count * 8)}, {zeros(32), bytes_of(std::vector<u64>{0, 0, count, 0})}}, [=](const auto &at, const Room &) {
                return Launch{blocks_for(count, 256, 1024), 1, {at[0], u32(count), u32(0), at[1]}};
            }};
}
