// IEEE binary16 by integers, as the hardware converts it.
#include "../cuda.h"

namespace emulator {
float f16_to_f32(unsigned short bits) {
    unsigned sign = unsigned(bits >> 15) << 31, exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) {
        // The hardware gives one NaN for all.
        return cast_bits<float>(fraction != 0 ? 0x7FFFFFFFu : sign | 0x7F800000u);
    }
    if (exponent == 0) {
        // fraction · 2⁻²⁴, exactly; the sign of zero is kept.
        float magnitude = float(fraction) * 0x1p-24f;
        return cast_bits<float>(cast_bits<unsigned>(magnitude) | sign);
    }
    return cast_bits<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

unsigned short f32_to_f16(float x) {
    unsigned bits = cast_bits<unsigned>(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) {
        return 0x7FFF;
    }
    // From halfway between 65504 and 65536 on, the nearest is infinity.
    if (magnitude >= 0x477FF000) {
        return static_cast<unsigned short>(sign | 0x7C00);
    }
    if (magnitude < 0x38800000) {
        // Below 2⁻¹⁴: whole numbers of 2⁻²⁴. Adding 2⁻¹ leaves room for 24 bits below it, so the sum rounds there, ties to even.
        float sum = cast_bits<float>(magnitude) + 0.5f;
        return static_cast<unsigned short>(sign | (cast_bits<unsigned>(sum) - 0x3F000000));
    }
    unsigned rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
    return static_cast<unsigned short>(sign | ((rounded - (112u << 23)) >> 13));
}
} // namespace emulator
