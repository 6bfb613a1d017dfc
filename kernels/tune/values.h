// Cases over floats: statistics, codes and scales, histograms, activations, GGUF's blocks.
#pragma once

#include "case.h"

// Rows that a warp takes; rows of activations.
const u64 ROW = 1024, ACTIVATIONS = 4096;

inline const char *name_of(Type type) { return type == F32 ? "f32" : type == F16 ? "f16" : "bf16"; }

// The record of statistics: the sum in units of 2⁻¹⁴⁹, no bad value, the complement of the least key, the greatest key.
inline Case statistics(u64 size) {
    const Tensor x = bells(size, 1);
    Units sum = 0;
    for (float value : x.values) sum += units_of(value);
    const auto [least, most] = std::minmax_element(x.values.begin(), x.values.end());
    const u64 keys = (u64)ordered(*most) << 32 | (u32)~ordered(*least);
    // Units of 2⁻⁶⁴ begin 85 bits up: 21 in the second word.
    const std::vector<u64> record = {0, (u64)(sum << 21), (u64)(sum >> 43), (u64)(sum >> 107), 0, 0, 0, keys};
    return {in_short(size) + " f32", 4.0 * size, 0, {{x.bytes}, {zeros(64), bytes_of(record)}}, [=](const auto &at, const Room &room) {
                const Pieces pieces(size, room.blocks);
                return Launch{blocks_for(pieces.count, 1, room.blocks), 1,
                              {at[0], u64(0), u64(1), u64(size), pieces.count, pieces.piece, u32(1), at[1]}};
            }};
}

// Codes by a plan: the sign if the magnitude reaches 1/2.
inline Case ternary_codes(u64 size) {
    const Tensor x = bells(size, 2);
    std::vector<i8> codes(size);
    u64 coded = 0;
    for (u64 i = 0; i < size; i++) {
        codes[i] = std::fabs(x.values[i]) < 0.5f ? 0 : x.values[i] < 0 ? -1 : 1;
        coded += codes[i] != 0;
    }
    const std::vector<u32> plan = {bits_of(0.5f), 0, 0, (u32)-1, 1};
    const std::vector<u64> record = {coded, 0, 0, 0, 0, 0, 0, 0};
    return {in_short(size) + " f32", 5.0 * size, 0,
            {{x.bytes}, {bytes_of(plan)}, {unwritten(size), bytes_of(codes)}, {zeros(64), bytes_of(record)}},
            [=](const auto &at, const Room &room) {
                const Pieces pieces(size, room.blocks);
                return Launch{blocks_for(pieces.count, 1, room.blocks), 1,
                              {at[0], u64(0), u64(1), u64(size), pieces.count, pieces.piece, at[1], at[2], at[3]}};
            }};
}

// Codes and scales of rows in one launch. `method`, `grid`: as `Method::unpack` in include/tercet/plan.cuh.
inline Case quantized_rows(u64 size, Type type, bool ternary) {
    const Tensor x = bells(size, 3, type);
    const u64 rows = size / ROW;
    std::vector<i8> codes(size);
    std::vector<float> scales(rows);
    u64 coded = 0;
    for (u64 row = 0; row < rows; row++) {
        const float *own = x.values.data() + row * ROW;
        float most = 0;
        Units sum = 0;
        for (u64 i = 0; i < ROW; i++) {
            most = std::max(most, std::fabs(own[i]));
            sum += units_of(own[i]);
        }
        const float scale = ternary ? mean_of(sum, ROW) : most / 127, inverse = 1 / scale;
        scales[row] = scale;
        for (u64 i = 0; i < ROW; i++) {
            const int sign = own[i] < 0 ? -1 : 1;
            const int code = ternary ? (std::fabs(own[i]) * inverse > 0.5f ? sign : 0) : (int)std::nearbyint(own[i] / scale);
            codes[row * ROW + i] = (i8)code;
            coded += code != 0;
        }
    }
    // No row of zeros, none whose scale is one, nothing clipped, refused or misplaced.
    const std::vector<u64> report = {0, 0, coded, 0, 0, 0};
    const u32 method = ternary ? 0 | 1 << 8 : 1, grid = ternary ? 0 : 0x7F8100;
    return {in_short(rows) + " x " + in_short(ROW) + " " + name_of(type), (type == F32 ? 5.0 : 3.0) * size, 0,
            {{x.bytes}, {unwritten(size), bytes_of(codes)}, {unwritten(rows * 4), bytes_of(scales)}, {zeros(48), bytes_of(report)}},
            [=](const auto &at, const Room &room) {
                return Launch{blocks_for(rows, 8, room.blocks), 1,
                              {at[0], u64(0), u64(rows), u64(ROW), method, 0.0f, grid, at[1], at[2], NONE, at[3]}};
            }};
}

inline Case dequantized(u64 size) {
    const std::vector<i8> from = codes(size, 4);
    std::vector<float> scales = bells(size / ROW, 5).values, values(size);
    for (u64 i = 0; i < size; i++) values[i] = (float)from[i] * scales[i / ROW];
    return {in_short(size) + " to f32", 5.0 * size, 0,
            {{bytes_of(from)}, {bytes_of(scales)}, {unwritten(size * 4), bytes_of(values)}}, [=](const auto &at, const Room &room) {
                return Launch{blocks_for(size, 8 * 256, 8 * room.multiprocessors), 1,
                              {at[0], u64(size), u64(ROW), at[1], NONE, at[2]}};
            }};
}

// Counts by the top 16 bits of keys, and the extremes.
inline Case histogram(u64 size) {
    const Tensor x = bells(size, 6);
    std::vector<u32> counts(1 << 16), found = {0, 0, 0, 0};
    for (float value : x.values) counts[ordered(value) >> 16]++;
    const auto [least, most] = std::minmax_element(x.values.begin(), x.values.end());
    found[2] = ~ordered(*least);
    found[3] = ordered(*most);
    return {in_short(size) + " f32", 4.0 * size, 0, {{x.bytes}, {zeros(16), bytes_of(found)}, {zeros(4 << 16), bytes_of(counts)}},
            [=](const auto &at, const Room &room) {
                const Pieces pieces(size, 4 * room.multiprocessors);
                return Launch{blocks_for(pieces.count, 1, 4 * room.multiprocessors), 1,
                              {at[0], u64(0), u64(size), pieces.piece, u32(16), at[1], at[2]}};
            }};
}

// Σ x² in the only order that is allowed: place i is added to lane i % 64, then the upper half of the lanes to the lower, and so on.
inline float squares_of(const float *x, u64 count) {
    float lanes[64] = {};
    for (u64 i = 0; i < count; i++) lanes[i % 64] += x[i] * x[i];
    for (u32 half = 32; half > 0; half /= 2) {
        for (u32 i = 0; i < half; i++) lanes[i] += lanes[i + half];
    }
    return lanes[0];
}

inline Case activations(u64 size) {
    const Tensor x = bells(size, 7), gains = bells(ACTIVATIONS, 8);
    const u64 rows = size / ACTIVATIONS;
    std::vector<i8> codes(size);
    std::vector<float> scales(rows);
    for (u64 row = 0; row < rows; row++) {
        const float *own = x.values.data() + row * ACTIVATIONS;
        const float root = std::sqrt(squares_of(own, ACTIVATIONS) / (float)ACTIVATIONS + 1e-5f);
        float most = 0;
        for (u64 i = 0; i < ACTIVATIONS; i++) most = std::max(most, std::fabs(own[i] * gains.values[i]));
        scales[row] = most / root / 127;
        for (u64 i = 0; i < ACTIVATIONS; i++) {
            codes[row * ACTIVATIONS + i] = (i8)std::nearbyint(own[i] * gains.values[i] * (127 / most));
        }
    }
    return {in_short(rows) + " x " + in_short(ACTIVATIONS) + " f32", 5.0 * size, 0,
            {{x.bytes}, {gains.bytes}, {unwritten(size), bytes_of(codes)}, {unwritten(rows * 4), bytes_of(scales)}},
            [=](const auto &at, const Room &room) {
                return Launch{blocks_for(rows, 1, room.blocks), 1, {at[0], u64(rows), u64(ACTIVATIONS), at[1], 1e-5f, at[2], at[3]}};
            }};
}

// Blocks of TQ2_0: 64 bytes, of which bits 2 n of byte 32 h + m are the code of value 128 h + 32 n + m, plus 1; then the scale.
const u64 TERNARY_LEN = 256, TERNARY_BYTES = 66;

inline Bytes encode_ternary(const std::vector<float> &values) {
    Bytes bytes(values.size() / TERNARY_LEN * TERNARY_BYTES);
    for (u64 block = 0; block < values.size() / TERNARY_LEN; block++) {
        const float *own = values.data() + block * TERNARY_LEN;
        u8 *out = bytes.data() + block * TERNARY_BYTES;
        float most = 0;
        for (u64 i = 0; i < TERNARY_LEN; i++) most = std::max(most, std::fabs(own[i]));
        for (u64 i = 0; i < TERNARY_LEN; i++) {
            // Half away from zero.
            const int code = (int)std::lround(own[i] * (1 / most));
            out[i / 128 * 32 + i % 32] |= (u8)((code + 1) << i % 128 / 32 * 2);
        }
        const u16 scale = half_of(most);
        memcpy(out + 64, &scale, 2);
    }
    return bytes;
}

inline std::vector<float> decode_ternary(const Bytes &bytes) {
    std::vector<float> values(bytes.size() / TERNARY_BYTES * TERNARY_LEN);
    for (u64 i = 0; i < values.size(); i++) {
        const u8 *block = bytes.data() + i / TERNARY_LEN * TERNARY_BYTES;
        const u64 at = i % TERNARY_LEN;
        const int code = (block[at / 128 * 32 + at % 32] >> at % 128 / 32 * 2 & 3) - 1;
        values[i] = (float)code * of_half((u16)(block[64] | block[65] << 8));
    }
    return values;
}

// Blocks of Q8_0: the scale, then 32 codes.
const u64 BYTES_LEN = 32, BYTES_BYTES = 34;

inline Bytes encode_bytes(const std::vector<float> &values) {
    Bytes bytes(values.size() / BYTES_LEN * BYTES_BYTES);
    for (u64 block = 0; block < values.size() / BYTES_LEN; block++) {
        const float *own = values.data() + block * BYTES_LEN;
        u8 *out = bytes.data() + block * BYTES_BYTES;
        float most = 0;
        for (u64 i = 0; i < BYTES_LEN; i++) most = std::max(most, std::fabs(own[i]));
        const float inverse = 1 / (most / 127);
        const u16 scale = half_of(most / 127);
        memcpy(out, &scale, 2);
        for (u64 i = 0; i < BYTES_LEN; i++) out[2 + i] = (u8)std::lround(own[i] * inverse);
    }
    return bytes;
}

inline std::vector<float> decode_bytes(const Bytes &bytes) {
    std::vector<float> values(bytes.size() / BYTES_BYTES * BYTES_LEN);
    for (u64 i = 0; i < values.size(); i++) {
        const u8 *block = bytes.data() + i / BYTES_LEN * BYTES_BYTES;
        values[i] = (float)(i8)block[2 + i % BYTES_LEN] * of_half((u16)(block[0] | block[1] << 8));
    }
    return values;
}

typedef Bytes (*Encode)(const std::vector<float> &);
typedef std::vector<float> (*Decode)(const Bytes &);

inline Case encoded(u64 size, Encode encode) {
    const Tensor x = bells(size, 9);
    const Bytes bytes = encode(x.values);
    // Nothing flushed, refused or too large.
    const Bytes record = zeros(24);
    return {in_short(size) + " f32", 4.0 * size + bytes.size(), 0, {{x.bytes}, {unwritten(bytes.size()), bytes}, {record, record}},
            [=](const auto &at, const Room &room) {
                return Launch{blocks_for(size, 8 * 4 * 256, room.blocks), 1,
                              {at[0], u32(0), u64(0), u64(size), u32(0), u32(0), at[1], at[2]}};
            }};
}

inline Case decoded(u64 size, Encode encode, Decode decode) {
    const Bytes bytes = encode(bells(size, 10).values);
    return {in_short(size) + " to f32", 4.0 * size + bytes.size(), 0,
            {{bytes}, {unwritten(size * 4), bytes_of(decode(bytes))}, {zeros(8), zeros(8)}}, [=](const auto &at, const Room &room) {
                return Launch{blocks_for(size, 8 * 4 * 128, room.blocks), 1, {at[0], u64(0), u64(size), at[1], at[2]}};
            }};
}
