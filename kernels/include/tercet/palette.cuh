// A matrix of palette indices on the device: as core/src/palette/layout.rs and pack.rs.
#pragma once

#include "tercet/device.cuh"

namespace tercet {

// Eight indices take as many bytes as an index has bits; rows begin on whole bytes; row r is of group r / group_rows.
struct PaletteShape {
    u32 bits;
    u64 rows, cols, group_rows, row_bytes;

    // Runs of eight indices in a row, the last perhaps not whole.
    __device__ __forceinline__ u64 runs() const { return (cols + 7) / 8; }
    __device__ __forceinline__ u32 mask() const { return (1u << bits) - 1; }

    // A run's bits, the first index in the lowest. Byte by byte, since a row begins anywhere; what a row has not is 0.
    __device__ __forceinline__ u64 run(const u8 *row, u64 number) const {
        u64 found = 0, at = number * bits;
        for (u32 i = 0; i < bits; i++) {
            if (at + i < row_bytes) found |= (u64)row[at + i] << (8 * i);
        }
        return found;
    }
};

}  // namespace tercet
