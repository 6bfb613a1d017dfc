"""Refuses machine code in which lanes that have left a loop change what those inside still read.

    python kernels/sass.py

A driver compiles PTX for its device, and that compiler can be wrong: ptxas 13.0 had lanes that were out of a loop set a uniform register, one of the
whole warp, while the others took an address from it, and an H200 wrote there. So every module is compiled by that ptxas for 9.0 and
disassembled, and each way out of a loop on which lanes part is followed to where they meet. Ends with 1 where a uniform register is written on it
that the loop reads.
"""

import re
import subprocess
import sys
import tempfile

import architectures
import nvidia

KERNEL = re.compile(r"\.text\.(\S+):")
LABEL = re.compile(r"(\.L_x_\d+):")
INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]+)\*/\s+(.*?)\s*;")
JUMP = re.compile(r"(?:@!?U?P\d\s+)?BRA\s+(?:U?!?U?P\d,\s*)?`\((\.L_x_\d+)\)")
GUARD = re.compile(r"^@!?U?P[\dT]\s+")
# Where all lanes of the warp are together again, or none goes on.
MEETS = re.compile(r"^(?:BSYNC|WARPSYNC|BAR\.|EXIT)")
# How far an exit is followed.
FAR = 200


def kernels(text):
    """The kernels of a disassembly: name, instructions with their addresses, and where labels are among them."""
    code, labels, name = [], {}, None
    for line in text.splitlines():
        if found := KERNEL.match(line):
            if name:
                yield name, code, labels
            code, labels, name = [], {}, found[1]
        elif found := LABEL.match(line):
            labels[found[1]] = len(code)
        elif name and (found := INSTRUCTION.match(line)):
            code.append((found[1], found[2]))
    if name:
        yield name, code, labels


def written(instruction):
    """The uniform registers that an instruction writes."""
    operation, _, operands = GUARD.sub("", instruction).partition(" ")
    if not (operation.startswith("U") or operation.startswith(("R2UR", "S2UR", "VOTEU", "REDUX"))):
        return set()
    # Predicates come before or behind the register.
    for operand in operands.split(",")[:2]:
        if found := re.fullmatch(r"UR(\d+)", operand.strip()):
            first = int(found[1])
            return {first, first + 1} if re.search(r"\.64|\.WIDE", operation) else {first}
        if not re.fullmatch(r"U?P[\dT]", operand.strip()):
            break
    return set()


def read(instruction):
    """The uniform registers that an instruction reads; one that it writes too counts where it stands once more."""
    found = [int(number) for number in re.findall(r"\bUR(\d+)\b", instruction)]
    for first in written(instruction):
        if first in found:
            found.remove(first)
    return set(found) | {int(first) + 1 for first in re.findall(r"desc\[UR(\d+)\]", instruction)}


def findings(text):
    """What is wrong: "kernel: the exit's address: the instruction that writes"."""
    found = []
    for name, code, labels in kernels(text):
        for place, (address, instruction) in enumerate(code):
            jump = JUMP.match(instruction)
            # Lanes part where they say that the others need not wait for them.
            if not (jump and place and "BREAK" in code[place - 1][1]):
                continue
            back = next((end for end in range(place + 1, len(code))
                         if (other := JUMP.match(code[end][1])) and labels.get(other[1], len(code)) <= place), None)
            if back is None:
                continue
            begin = labels[JUMP.match(code[back][1])[1]]
            needed = set().union(*(read(inside) for _, inside in code[begin:back + 1]))
            exit = labels[jump[1]]
            for _, outside in code[exit:exit + FAR]:
                if MEETS.match(GUARD.sub("", outside)):
                    break
                if written(outside) & needed:
                    found.append(f"{name}: {address}: {outside}")
                    break
                if JUMP.match(outside):
                    break
    return found


def disassembled(source):
    """The machine code of a source file's module."""
    real = "90a" if architectures.architecture(source) == "90a" else "90"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        subprocess.run([nvidia.driver_ptxas(), f"-arch=sm_{real}", architectures.ptx(source), "-o", cubin.name], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return subprocess.run([nvidia.nvdisasm(), "-c", cubin.name], check=True, capture_output=True, text=True).stdout


def main():
    sources = architectures.sources()
    wrong = [f"{source.name}: {finding}" for source in sources for finding in findings(disassembled(source))]
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print(f"{len(sources)} modules leave their loops as they should")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
