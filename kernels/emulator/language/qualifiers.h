// Qualifiers and vector types.
#pragma once

#ifdef TERCET_LIST_KERNELS
// The build script reads the names of kernels out of the preprocessed source.
#define __global__ TERCET_GLOBAL
#else
#define __global__ __attribute__((used))
#endif
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __constant__ static const
#define __align__(n) alignas(n)
// The build script moves them to a section of their own, so that the emulator can spoil them before each block. (An attribute that
// names the section is without effect in templates. This one keeps the compiler from proving that nobody writes them.)
#define __shared__ static __attribute__((used))

struct uint2 {
    unsigned x, y;
} __attribute__((aligned(8)));
struct uint4 {
    unsigned x, y, z, w;
} __attribute__((aligned(16)));
struct int2 {
    int x, y;
} __attribute__((aligned(8)));
struct int4 {
    int x, y, z, w;
} __attribute__((aligned(16)));
struct float2 {
    float x, y;
} __attribute__((aligned(8)));
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
