"""Writes classes_table.rs: the classes of Unicode 15.1 that pre-tokenizers tell apart.

usage: python3.13 classes.py > classes_table.rs

Python 3.13 carries Unicode 15.1, the version of llama.cpp's unicode-data.cpp. A newer one would cut texts in newer scripts
otherwise than the models' own tools do.
"""

import sys
import unicodedata

assert unicodedata.unidata_version == "15.1.0", f"Python carries Unicode {unicodedata.unidata_version}"
OTHER, LETTER, NUMBER, SPACE = range(4)
# The property White_Space: PropList.txt, the same since Unicode 6.3.
WHITE_SPACE = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}


def of(point):
    if point in WHITE_SPACE:
        return SPACE
    return {"L": LETTER, "N": NUMBER}.get(unicodedata.category(chr(point))[0], OTHER)


starts, last = [], None
for point in range(0x110000):
    kind = of(point)
    if kind != last:
        starts.append(point << 2 | kind)
        last = kind

out = sys.stdout.write
out("//! Written by classes.py from Unicode 15.1. Each element is the first code point of a range times four, plus its class: 0 other,\n")
out("//! 1 letter (L), 2 number (N), 3 White_Space. A range ends where the next begins.\n\n")
out("#[rustfmt::skip]\n")
out(f"pub(super) static STARTS: [u32; {len(starts)}] = [\n")
for at in range(0, len(starts), 12):
    out("    " + ", ".join(f"0x{start:x}" for start in starts[at : at + 12]) + ",\n")
out("];\n")
