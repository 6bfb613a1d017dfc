"""Refuses PTX whose results could differ from the number rules.

    python kernels/lint.py [FILE...]     (default: everything in ptx/)

A driver compiles PTX further, and may fuse a multiplication with an addition, unless both say how they round. So what is refused is
not only what is inexact, but also what leaves a choice.
"""

import pathlib
import re
import sys

FLOAT = r"\.(?:f16|f16x2|bf16|bf16x2|tf32|f32|f64|e4m3|e5m2)\b"

# Name, what an instruction looks like that breaks the rule, and why it is a rule.
RULES = [
    ("fused", re.compile(rf"^(?:fma|mad)\b.*{FLOAT}"), "rounds once where the rules round twice"),
    ("contractable", re.compile(rf"^(?:add|sub|mul|div|sqrt|rcp)(?!.*\.r[nzmp]\b)\b.*{FLOAT}"), "without .rn a driver may fuse it"),
    ("flush", re.compile(r"\.ftz\b"), "takes subnormals for zeros"),
    ("approximate", re.compile(r"\.(?:approx|full)\b"), "is not correctly rounded"),
    ("rounding", re.compile(r"\.(?:rz|rm|rp|rna|rs)\b"), "rounds otherwise than to nearest even"),
    ("atomic", re.compile(rf"^(?:atom|red|multimem)\b.*{FLOAT}"), "adds floats in whatever order threads come"),
    ("tensor", re.compile(rf"^(?:mma|wmma|wgmma)\b.*{FLOAT}"), "adds floats in an order that is not documented"),
    ("local", re.compile(r"^\.local\b"), "keeps in memory what registers could hold"),
]
# Wrong for speed only: said, not refused.
REPORTED = {"local"}

# An instruction, after a label or a predicate if it has one.
INSTRUCTION = re.compile(r"^(?:\$?[\w$]+:\s*)?(?:@!?%\w+\s+)?(\S.*)$")


def findings(ptx):
    """What breaks a rule: its name, and "line: rule: why: instruction"."""
    found = []
    for number, line in enumerate(ptx.splitlines(), 1):
        line = line.split("//")[0].strip()
        match = INSTRUCTION.match(line)
        if not match:
            continue
        for name, pattern, why in RULES:
            if pattern.search(match[1]):
                found.append((name, f"{number}: {name}: {why}: {line}"))
    return found


def check(texts):
    """Prints what PTX texts, by name, break; true where nothing is refused."""
    found = [(rule, f"{name}:{finding}") for name, text in texts.items() for rule, finding in findings(text)]
    for _, finding in found:
        print(finding, file=sys.stderr)
    return all(rule in REPORTED for rule, _ in found)


def main(paths):
    paths = paths or sorted((pathlib.Path(__file__).resolve().parent / "ptx").glob("*/*.ptx"))
    kept = check({str(path): pathlib.Path(path).read_text() for path in paths})
    if kept:
        print(f"{len(paths)} files keep the rules")
    sys.exit(not kept)


if __name__ == "__main__":
    main(sys.argv[1:])
