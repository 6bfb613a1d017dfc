// Each intrinsic against a loop that says what it means.
#include "harness.h"

#include <cmath>
#include <cstring>

namespace {
using Words = std::vector<unsigned>;
unsigned state = 12345;
unsigned draw() {
    state = state * 1664525 + 1013904223;
    return state ^ state >> 13;
}
float as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
unsigned as_bits(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}
int signed_byte(unsigned word, int at) { return static_cast<signed char>(word >> (8 * at)); }
int byte(unsigned word, int at) { return word >> (8 * at) & 255; }

// The value of an f16 by its definition.
double half_value(unsigned bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 0 ? fraction * 0x1p-24 : (1024 + fraction) * std::ldexp(1.0, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

void check_words(const Words &in, const Words &out) {
    auto a = [&](int lane) { return in[4 * lane]; };
    for (int t = 0; t < 32; t++) {
        unsigned b = in[4 * t + 1], c = in[4 * t + 2], s = in[4 * t + 3];
        const unsigned *o = &out[40 * t];
        unsigned ss = c, uu = c, us = c, permuted = 0;
        for (int i = 0; i < 4; i++) {
            ss += unsigned(signed_byte(a(t), i) * signed_byte(b, i));
            uu += unsigned(byte(a(t), i) * byte(b, i));
            us += unsigned(byte(a(t), i) * signed_byte(b, i));
            int digit = s >> (4 * i) & 15, chosen = digit & 4 ? byte(b, digit & 3) : byte(a(t), digit & 3);
            permuted |= unsigned(chosen) << (8 * i);
        }
        CHECK(o[0] == ss && o[1] == uu && o[2] == us && o[3] == permuted);
        int ones = 0, zeros = 32, first = 0;
        for (int i = 31; i >= 0; i--) {
            ones += a(t) >> i & 1;
            zeros = (a(t) >> i & 1) && zeros == 32 ? 31 - i : zeros;
            first = a(t) >> i & 1 ? i + 1 : first;
        }
        CHECK(o[4] == unsigned(ones) && o[5] == unsigned(zeros) && o[6] == unsigned(first));
        CHECK(o[11] == a(s & 31));
        int up = t - int(s & 15), down = t + int(s & 15);
        CHECK(o[12] == a(up < 0 ? t : up));
        CHECK(o[13] == a(down > 31 ? t : down));
        CHECK(o[14] == a(t ^ 5));
        CHECK(o[15] == a(t % 8 + 3 > 7 ? t : t + 3));
        CHECK(o[16] == a((t & 16) | (s & 15)));
        unsigned odd = 0, same = 0, low = 0, high = 0, sum = 0, least = ~0u;
        int most = -0x7FFFFFFF - 1;
        for (int i = 0; i < 32; i++) {
            odd |= (a(i) & 1) << i;
            same |= unsigned((a(i) & 3) == (a(t) & 3)) << i;
            low |= i < 16 ? (a(i) & 1) << i : 0;
            high |= i >= 16 ? (a(i) >> 1 & 1) << i : 0;
            sum += a(i);
            least = a(i) < least ? a(i) : least;
            most = int(a(i)) > most ? int(a(i)) : most;
        }
        CHECK(o[17] == odd && o[18] == 1 && o[19] == 0 && o[20] == same);
        CHECK(o[21] == sum && o[22] == least && int(o[23]) == most);
        CHECK(o[24] == in[4 * (t ^ 1) + 1] && o[25] == a(t ^ 1));
        CHECK(o[26] == (t < 16 ? low : high));
        unsigned long long product = 1ull * a(t) * b;
        long long signed_product = 1ll * int(a(t)) * int(b);
        CHECK(o[27] == unsigned(product >> 32) && o[28] == unsigned(signed_product >> 32));
        unsigned long long wide = 1ull * b << 32 | a(t);
        CHECK(o[29] == unsigned(wide >> (s & 31)));
        for (int i = 0; i < 32; i++) {
            CHECK((o[30] >> i & 1) == (a(t) >> (31 - i) & 1));
        }
        CHECK(int(o[37]) == (int(a(t)) < int(b) ? int(a(t)) : int(b)) && o[38] == (a(t) > b ? a(t) : b));
        CHECK(o[39] == unsigned(__builtin_popcount(odd)));
    }
}

void words() {
    CUfunction kernel = function_of("test_words", {"u64", "u64"});
    for (int round = 0; round < 50; round++) {
        Words in(128);
        for (unsigned &word : in) {
            // Small ones too, and equal ones.
            word = draw() >> (draw() % 3 * 12);
        }
        in[28] = 3;
        in[32] = 4;
        CUdeviceptr from = upload(in), to = device_memory(40 * 32 * 4);
        OK(launch(kernel, 1, 32, 0, nullptr, from, to));
        check_words(in, download<unsigned>(to, 40 * 32));
        OK(cuMemFree_v2(from));
        OK(cuMemFree_v2(to));
    }
}

void halves() {
    CUfunction kernel = function_of("test_halves", {"u64", "u64", "u64"});
    CUdeviceptr wide = device_memory(4 << 16), narrow = device_memory(2 << 16), half_way = device_memory(2 << 16);
    OK(launch(kernel, 256, 256, 0, nullptr, wide, narrow, half_way));
    auto values = download<unsigned>(wide, 1 << 16);
    auto back = download<unsigned short>(narrow, 1 << 16), middle = download<unsigned short>(half_way, 1 << 16);
    for (unsigned i = 0; i < 1 << 16; i++) {
        bool infinite = (i & 0x7FFF) == 0x7C00, nan = (i & 0x7FFF) > 0x7C00;
        if (nan) {
            CHECK(std::isnan(as_float(values[i])) && back[i] == 0x7FFF);
            continue;
        }
        CHECK(infinite ? std::isinf(as_float(values[i])) : values[i] == as_bits(float(half_value(i))));
        CHECK(back[i] == i);
        if ((i & 0x7FFF) < 0x7BFF) {
            // The even one of both.
            CHECK(middle[i] == (i & 1 ? i + 1 : i));
        }
    }
}

void tensor_product() {
    CUfunction kernel = function_of("test_mma", {"u64", "u64", "u64", "u64", "u64"});
    for (int round = 0; round < 20; round++) {
        std::vector<signed char> a(16 * 32), b(32 * 8);
        std::vector<int> d(16 * 8), want(16 * 8);
        for (auto &value : a) {
            value = round == 0 ? -128 : static_cast<signed char>(draw());
        }
        for (auto &value : b) {
            value = round == 0 ? -128 : static_cast<signed char>(draw());
        }
        for (int i = 0; i < 128; i++) {
            d[i] = int(draw()) >> 8;
            want[i] = d[i];
            for (int k = 0; k < 32; k++) {
                want[i] += a[i / 8 * 32 + k] * b[k * 8 + i % 8];
            }
        }
        CUdeviceptr pa = upload(a), pb = upload(b), pd = upload(d), out = device_memory(512), loads = device_memory(512);
        OK(launch(kernel, 1, 32, 0, nullptr, pa, pb, pd, out, loads));
        CHECK(download<int>(out, 128) == want);
        CHECK(download<int>(loads, 128) == want);
    }
}

void atomics() {
    CUfunction kernel = function_of("test_atomics", {"u64", "u64", "u64"});
    CUdeviceptr words = upload(Words{0, 0, 9999, 0, 0}), wide = upload(std::vector<unsigned long long>{5, ~0ull}), signs = upload(std::vector<int>{0, 0});
    OK(launch(kernel, 4, 64, 0, nullptr, words, wide, signs));
    Words out = download<unsigned>(words, 5);
    CHECK(out[0] == 255 * 128 && out[1] == 255 && out[2] == 0 && out[3] == ~0u && out[4] >= 1 && out[4] <= 256);
    auto sums = download<unsigned long long>(wide, 2);
    CHECK(sums[0] == 5 + (255ull * 128 << 30) && sums[1] == 0);
    CHECK((download<int>(signs, 2) == std::vector<int>{-255, -256}));
}
} // namespace

int main() {
    start();
    words();
    halves();
    tensor_product();
    atomics();
}
