/* One quantizer and nothing else: what the linker keeps of the library for it. */
#include "tercet.h"

int main(void) {
    static const float VALUES[] = {0.5f, -1.0f, 0.25f, 2.0f};
    int8_t codes[4];
    float scale;
    return tercet_quantize_symmetric(VALUES, codes, 4, 127, &scale, 1, NULL) != TERCET_STATUS_OK || codes[3] != 127;
}
