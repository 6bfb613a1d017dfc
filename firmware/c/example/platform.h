/* What the example needs of the machine it runs on: board/semihosting.c or host.c. */
#ifndef PLATFORM_H
#define PLATFORM_H

/* Prints text. */
void platform_write(const char *text);

#endif
