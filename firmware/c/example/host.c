/* A desk: stdio. */
#include <stdio.h>

#include "platform.h"

void platform_write(const char *text) {
    fputs(text, stdout);
}
