/* Lines of text without printf, which takes more flash than all of the example. */
#ifndef TEXT_H
#define TEXT_H

#include <stdint.h>

void text(const char *part);
void text_number(uint32_t number);
/* 16 digits. */
void text_hex(uint64_t number);
/* A name, a digest and the end of the line: as the conformance table has them. */
void text_digest(const char *name, uint64_t digest);

#endif
