#include "text.h"

#include <stddef.h>

#include "platform.h"

void text(const char *part) {
    platform_write(part);
}

void text_number(uint32_t number) {
    char digits[11];
    size_t first = sizeof digits - 1;
    digits[first] = '\0';
    do {
        first -= 1;
        digits[first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    platform_write(&digits[first]);
}

void text_hex(uint64_t number) {
    char digits[17];
    digits[16] = '\0';
    for (size_t place = 16; place > 0; place -= 1) {
        digits[place - 1] = "0123456789abcdef"[number & 15];
        number >>= 4;
    }
    platform_write(digits);
}

void text_digest(const char *name, uint64_t digest) {
    text(name);
    text(" ");
    text_hex(digest);
    text("\n");
}
