"""Translates a module of PTX to C++ for the emulated device, an instruction a line: kernels/emulator/translate.py MODULE.ptx

What instructions mean stands in language/ptx.h. One that is not known here ends the translation with its place.
"""

import pathlib
import re
import sys

TYPES = {"s8", "u8", "b8", "s16", "u16", "b16", "s32", "u32", "b32", "s64", "u64", "b64", "f16", "f32", "f64", "pred"}
# What a type of registers is as a variable.
REGISTERS = {"pred": "pred", "b16": "u16", "b32": "u32", "b64": "u64", "f32": "f32", "f64": "f64"}
SPECIAL = {f"%{name}.{axis}": f"{of}.{axis}" for axis in "xyz"
           for name, of in [("tid", "threadIdx"), ("ctaid", "blockIdx"), ("ntid", "blockDim"), ("nctaid", "gridDim")]}
# What C++ has a sign for; floats round once, to nearest even.
OPERATORS = {"add": "+", "sub": "-", "mul.lo": "*", "and": "&", "or": "|", "xor": "^", "add.rn": "+", "sub.rn": "-", "mul.rn": "*", "div.rn": "/"}
# Functions of values of the instruction's type.
FUNCTIONS = {"div": "quotient", "rem": "remainder", "min": "least", "max": "greatest", "abs": "magnitude", "neg": "negative", "rcp.rn": "__frcp_rn",
             "sqrt.rn": "__fsqrt_rn", "mul.hi": "high"}
# Comparisons: those of floats that hold of a NaN too are the opposites of what does not.
COMPARE = {"eq": "{0} == {1}", "ne": "{0} != {1}", "lt": "{0} < {1}", "le": "{0} <= {1}", "gt": "{0} > {1}", "ge": "{0} >= {1}",
           "neu": "{0} != {1}", "ltu": "!({0} >= {1})", "leu": "!({0} > {1})", "gtu": "!({0} <= {1})", "geu": "!({0} < {1})",
           "nan": "{0} != {0} || {1} != {1}"}
ATOMICS = {"add": "Add", "max": "Max", "min": "Min", "or": "Or", "cas": "CAS"}
SHUFFLES = {"up": "UP", "down": "DOWN", "bfly": "BUTTERFLY", "idx": "INDEX"}
# What only hints at how memory is used.
HINTS = {"nc", "L1::no_allocate", "cs", "cg", "volatile"}


class Unknown(Exception):
    """An instruction or declaration that is not known here."""


class Module:
    """One file."""

    def __init__(self, path):
        self.path, self.file = path, path.stem
        self.shared, self.constants, self.kernels, self.out = set(), {}, [], []
        self.registers, self.parameters, self.pointers, self.from_parameter = {}, {}, set(), {}

    # Operands.

    def value(self, operand, kind):
        """An operand as a value of a type: the low bits of a register."""
        if operand in SPECIAL:
            return SPECIAL[operand]
        if operand.startswith("%"):
            name, own = self.register(operand)
            # Plain words where they will do: each call of a function costs the compiler time.
            if own == kind or (own[0], kind[0], own[1:]) == ("u", "b", kind[1:]):
                return name
            return f"cast_bits<{kind}>({name})" if "f" in (own[0], kind[0]) else f"({kind}){name}"
        if match := re.fullmatch(r"0([fd])([0-9A-F]+)", operand):
            number = f"0x{match[2]}{'u' if match[1] == 'f' else 'ull'}"
            return f"cast_bits<{kind}>({number})" if kind[0] == "f" else number
        if re.fullmatch(r"-?(0x)?[0-9A-Fa-f]+", operand):
            return f"({kind}){int(operand, 0) % 2**64}{'u' if int(operand, 0) in range(2**32) else 'ull'}"
        if operand == "tercet_dynamic_shared":
            return "dynamic"
        if operand in self.shared:
            return f"address_of(shared, {operand})"
        if operand in self.constants:
            self.constants[operand][1] = True
            return f"(u64){operand}"
        raise Unknown(f"operand {operand}")

    def register(self, operand):
        """A register's variable and its type."""
        match = re.fullmatch(r"%([A-Za-z]+)[0-9]*", operand)
        if not match or match[1] not in self.registers:
            raise Unknown(f"register {operand}")
        # Not the name of a type.
        return f"{operand[1:]}_", self.registers[match[1]]

    def put(self, operand, kind, value):
        """A result of a type into a register. A wider one gets zeros or, of signed types, the sign."""
        name, own = self.register(operand)
        if (own[0] == "f") != (kind[0] == "f"):
            return f"{name} = cast_bits<{own}>({value});"
        return f"{name} = {f'({kind})({value})' if kind[1:] in ('8', '16') else value};"

    def pointer(self, operand, space):
        """Where [register+number] points to."""
        match = re.fullmatch(r"\[([%\w$]+)(?:\+(-?\d+))?\]", operand)
        if not match:
            raise Unknown(f"address {operand}")
        address = self.value(match[1], "u64") + (f" + ({match[2]})" if match[2] else "")
        return f"shared_pointer(shared, dynamic_memory, dynamic, {address})" if space == "shared" else f"(void *)({address})"

    def parameter(self, operand):
        match = re.fullmatch(r"\[(\w+)(?:\+(\d+))?\]", operand)
        if not match or match[1] not in self.parameters:
            raise Unknown(f"parameter {operand}")
        return self.parameters[match[1]][0], int(match[2] or 0)

    # Instructions.

    def instruction(self, op, operands):
        """C++ for an instruction."""
        words = op.split(".")
        base, kinds = words[0], [word for word in words[1:] if word in TYPES]
        others = [word for word in words[1:] if word not in TYPES]
        kind = kinds[-1] if kinds else None
        get, name = self.value, ".".join([base, *others])
        # Integers wrap, so they are unsigned wherever the sign makes no difference.
        wrapping = f"u{kind[1:]}" if kind and kind[0] in "sb" else kind

        def put(value, of=kind):
            return self.put(operands[0], of, value)

        def values(of=kind):
            return [get(operand, of) for operand in operands[1:]]

        # A kernel's end, a branch, what threads do together.
        if op == "ret":
            return "return;"
        if base == "bra" and others in ([], ["uni"]):
            return f"goto {operands[0].replace('$', '_')};"
        if op == "bar.sync" and operands == ["0"]:
            return "__syncthreads();"
        if op == "bar.red.popc.u32" and operands[1] == "0":
            return put(f"__syncthreads_count({get(operands[2], 'pred')})")
        if op == "bar.warp.sync":
            return f"__syncwarp({get(operands[0], 'u32')});"
        if base == "shfl" and others[0] == "sync" and others[1] in SHUFFLES and kind == "b32":
            to, _, inside = operands[0].partition("|")
            inside = f"&{self.register(inside)[0]}" if inside else "nullptr"
            arguments = ", ".join(get(operand, "u32") for operand in operands[1:])
            return self.put(to, "u32", f"shuffle({SHUFFLES[others[1]]}, {inside}, {arguments}, __LINE__)")
        if op in ("vote.sync.all.pred", "vote.sync.any.pred", "vote.sync.ballot.b32"):
            return put(f"__{others[1]}_sync({get(operands[2], 'u32')}, {get(operands[1], 'pred')})" + (" != 0" if kind == "pred" else ""))
        if op == "match.any.sync.b32":
            return put(f"__match_any_sync({get(operands[2], 'u32')}, {get(operands[1], 'u32')})")
        # Memory.
        if op == "membar.gl":
            return "__threadfence();"
        if base in ("ld", "st"):
            return self.move(base, [word for word in others if word not in HINTS], kind, operands)
        if base in ("atom", "red") and len(others) == 2 and others[1] in ATOMICS:
            memory, *arguments = operands[1:] if base == "atom" else operands
            arguments = ", ".join(get(operand, wrapping if others[1] == "cas" else kind) for operand in arguments)
            value = f"atomic{ATOMICS[others[1]]}(({wrapping if others[1] == 'cas' else kind} *){self.pointer(memory, others[0])}, {arguments})"
            return put(value) if base == "atom" else f"{value};"
        if op == "cvta.to.global.u64":
            if operands[1] in self.from_parameter:
                self.pointers.add(self.from_parameter[operands[1]])
            return put(get(operands[1], "u64"))
        # Values.
        if base == "mov":
            return self.copy(kind, operands)
        if base == "selp":
            return put(f"{get(operands[3], 'pred')} ? {get(operands[1], kind)} : {get(operands[2], kind)}")
        if base == "setp" and len(others) == 1 and others[0] in COMPARE:
            return put(COMPARE[others[0]].format(*values()), "pred")
        if op == "not.pred":
            return put(f"!{get(operands[1], kind)}")
        if base in ("not", "neg") and kind[0] != "f":
            return put(f"{'~' if base == 'not' else '-'}{get(operands[1], wrapping)}", wrapping)
        if name in OPERATORS:
            return put(f" {OPERATORS[name]} ".join(values(wrapping)), wrapping)
        if name == "mad.lo":
            return put("{} * {} + {}".format(*values(wrapping)), wrapping)
        if base in ("shl", "shr") and operands[2].isdigit() and int(operands[2]) < int(kind[1:]):
            return put(f"{get(operands[1], kind)} {'<<' if base == 'shl' else '>>'} {operands[2]}")
        if base in ("shl", "shr"):
            return put(f"shift_{'left' if base == 'shl' else 'right'}<{kind}>({get(operands[1], kind)}, {get(operands[2], 'u32')})")
        if op in ("add.cc.u64", "addc.cc.u64", "addc.u64"):
            arguments = f"carry, {', '.join(values())}"
            return put(f"add_carry_out({arguments})" if base == "add" else f"add_carry({arguments}, {'true' if 'cc' in others else 'false'})")
        if name == "mul.wide":
            to = f"{kind[0]}{2 * int(kind[1:])}"
            return put("({0}){1} * {2}".format(to, *values()), to)
        if name in FUNCTIONS:
            return put(f"{FUNCTIONS[name]}({', '.join(values())})")
        if base == "cvt":
            return self.convert(op, others, kinds, operands, put)
        if base == "dp4a":
            return put(f"dot4<{kinds[0][0]}8, {kinds[1][0]}8>({', '.join(values('u32'))})", "u32")
        if op == "prmt.b32":
            return put(f"permute({', '.join(values('u32'))})")
        if base == "bfi":
            return put(f"insert<{kind}>({', '.join(values()[:2])}, {get(operands[3], 'u32')}, {get(operands[4], 'u32')})")
        if op == "shf.r.wrap.b32":
            return put(f"__funnelshift_r({', '.join(values('u32'))})")
        if op == "bfind.shiftamt.u32":
            return put(f"find_shift({get(operands[1], 'u32')})")
        if op == "brev.b32":
            return put(f"__brev({get(operands[1], 'u32')})")
        if base in ("clz", "popc"):
            return put(f"__{base}{'ll' if kind == 'b64' else ''}({get(operands[1], kind)})", "u32")
        return self.together(op, operands)

    def copy(self, kind, operands):
        """Of a register, and of its halves."""
        half, width = {"b64": ("u32", 32), "b32": ("u16", 16)}.get(kind, (None, None))
        if operands[1].startswith("{"):
            low, high = (self.value(word, half) for word in members(operands[1]))
            return self.put(operands[0], kind, f"{low} | ({kind}){high} << {width}")
        if operands[0].startswith("{"):
            low, high = members(operands[0])
            # The source may be one of the two.
            return (f"{{ {kind} from = {self.value(operands[1], kind)}; {self.put(low, half, f'({half})from')} "
                    f"{self.put(high, half, f'({half})(from >> {width})')} }}")
        return self.put(operands[0], kind, "(u64)depot" if operands[1].startswith("__local_depot") else self.value(operands[1], kind))

    def move(self, base, others, kind, operands):
        """Loads and stores."""
        if others == ["param"]:
            index, offset = self.parameter(operands[1])
            if kind == "u64" and offset == 0:
                self.from_parameter[operands[0]] = index
            return self.put(operands[0], kind, f"emulator::parameter<{kind}>(values, {index}, {offset})")
        space = next((word for word in others if word in ("global", "shared", "local")), "generic")
        many = next((int(word[1:]) for word in others if word in ("v2", "v4")), 1)
        if set(others) - {space, f"v{many}"}:
            raise Unknown(f"{base} with {others}")
        address, registers = (operands[1], operands[0]) if base == "ld" else (operands[0], operands[1])
        registers = members(registers) if many > 1 else [registers]
        if base == "ld":
            moves = " ".join(self.put(register, kind, f"memory[{i}]") for i, register in enumerate(registers))
        else:
            moves = " ".join(f"memory[{i}] = {self.value(register, kind)};" for i, register in enumerate(registers))
        size = int(kind[1:]) // 8 * many
        check = f"PTX_ALIGNED(memory, {size}); " if size > 1 else ""
        return f"{{ {kind} *memory = ({kind} *){self.pointer(address, space)}; {check}{moves} }}"

    def convert(self, op, others, kinds, operands, put):
        """Numbers of one type to another."""
        to, kind = kinds
        source = self.value(operands[1], "u16" if kind == "f16" else kind)
        if others in (["rni"], ["rzi"]) and op.endswith("s32.f32"):
            return put(f"{'__float2int_rn' if others == ['rni'] else '__float2int_rz'}({source})", to)
        # Between integers, to a wider float, or to the nearest.
        if others not in ([], ["rn"]) or (to[0] in "su" and kind[0] == "f"):
            raise Unknown(op)
        if "f16" in kinds:
            return put(f"emulator::{kind}_to_{to}({source})", "u16" if to == "f16" else to)
        return put(f"({to}){source}", to)

    def together(self, op, operands):
        """Matrix products, and the copies that feed them."""
        get = self.value
        if op.startswith("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"):
            d, a, b, c = map(members, operands)
            begin = ", ".join(get(word, "s32") for word in c)
            words = ", ".join(get(word, "u32") for word in a), ", ".join(get(word, "u32") for word in b)
            puts = " ".join(self.put(word, "s32", f"d[{i}]") for i, word in enumerate(d))
            return f"{{ s32 d[4] = {{{begin}}}; u32 a[4] = {{{words[0]}}}, b[2] = {{{words[1]}}}; emulator::mma_m16n8k32(d, a, b); {puts} }}"
        if op == "ldmatrix.sync.aligned.m8n8.x4.shared.b16":
            puts = " ".join(self.put(word, "u32", f"rows[{i}]") for i, word in enumerate(members(operands[0])))
            return f"{{ u32 rows[4]; emulator::load_matrices(rows, {self.pointer(operands[1], 'shared')}); {puts} }}"
        if op == "cp.async.cg.shared.global" and operands[2] == "16":
            bytes_ = get(operands[3], "u32") if len(operands) > 3 else "16"
            return f"emulator::copy_async16({self.pointer(operands[0], 'shared')}, {self.pointer(operands[1], 'global')}, {bytes_});"
        if op == "cp.async.commit_group":
            return "emulator::copy_async_commit();"
        if op == "cp.async.wait_group":
            return f"emulator::copy_async_wait({int(operands[0])});"
        if op == "fence.proxy.async.shared::cta":
            return "emulator::fence_proxy_async();"
        if op == "wgmma.fence.sync.aligned":
            return "emulator::wgmma_fence();"
        if op == "wgmma.commit_group.sync.aligned":
            return "emulator::wgmma_commit();"
        if op == "wgmma.wait_group.sync.aligned":
            return f"emulator::wgmma_wait({int(operands[0])});"
        if match := re.fullmatch(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k32\.s32\.s8\.s8", op):
            words = members(operands[0])
            if len(words) != int(match[1]) // 2:
                raise Unknown(f"{op} of {len(words)} registers")
            # The registers themselves, which nobody may touch until the product is waited for.
            to = ", ".join(f"(s32 *)&{self.register(word)[0]}" for word in words)
            return (f"{{ s32 *const d[] = {{{to}}}; emulator::wgmma_to(d, {match[1]}, {get(operands[1], 'u64')}, {get(operands[2], 'u64')}, "
                    f"{get(operands[3], 'pred')}); }}")
        raise Unknown(op)

    # Lines.

    def statement(self, line):
        """C++ for a line within a kernel."""
        if not line or line.startswith(("//", ".pragma")):
            return ""
        if match := re.fullmatch(r"(\$\w+):", line):
            return f"{match[1].replace('$', '_')}:;"
        if match := re.fullmatch(r"\.reg \.(\w+)\s+%(\w+)<(\d+)>;", line):
            kind, name = REGISTERS[match[1]], match[2]
            self.registers[name] = kind
            return f"{kind} " + ", ".join(f"{name}{i}_ = UNWRITTEN_{kind}" for i in range(int(match[3]))) + ";"
        if match := re.fullmatch(r"\.reg \.(\w+)\s+%([A-Za-z]+)(\d*);", line):
            self.registers[match[2]] = REGISTERS[match[1]]
            return f"{REGISTERS[match[1]]} {match[2]}{match[3]}_ = UNWRITTEN_{REGISTERS[match[1]]};"
        if match := re.fullmatch(r"\.local \.align (\d+) \.b8\s+__local_depot\d+\[(\d+)\];", line):
            return f"alignas({match[1]}) u8 depot[{match[2]}];"
        match = re.fullmatch(r"(?:@(!?)%(p\d+)\s+)?([a-z][\w.:]*)(?:\s+(.*?))?\s*;", line)
        if not match:
            raise Unknown(line)
        operands = [part.strip() for part in re.split(r",(?![^{]*\})", match[4])] if match[4] else []
        code = self.instruction(match[3], operands)
        return f"if ({match[1]}{match[2]}_) {code}" if match[2] else code

    def variable(self, line):
        """A declaration of shared memory or of a constant, within a kernel or before all; None of anything else."""
        if match := re.fullmatch(r"\.shared \.align (\d+) \.(\w+) (\w+)(?:\[(\d+)\])?;", line):
            self.shared.add(match[3])
            return f"alignas({match[1]}) __shared__ {match[2]} {match[3]}[{match[4] or 1}];"
        if match := re.fullmatch(r"\.global \.align (\d+) \.(\w+) (\w+)(?:\[\d*\])?(?: = (.*))?;", line):
            self.constants[match[3]] = [f"alignas({match[1]}) static const {match[2]} {match[3]}[] = {{{(match[4] or '0').strip('{}')}}};", False]
            return ""
        return "" if line == ".extern .shared .align 16 .b8 tercet_dynamic_shared[];" else None

    def kernel(self, name, lines):
        """A kernel from the line of its name on; gives back what follows it."""
        self.registers, self.parameters, self.pointers, self.from_parameter = {}, {}, set(), {}
        variables, body, depth = [], None, 0
        for number, line in lines:
            if body is None:
                if match := re.match(r"\.param (?:\.align \d+ )?\.(\w+) (\w+)(?:\[(\d+)\])?", line):
                    self.parameters[match[2]] = len(self.parameters), int(match[3] or 1) * int(match[1][1:]) // 8
                elif line == "{":
                    body = [f'#line {number} "{self.path}"', ""]
                elif line not in ("", ")") and not line.startswith((".maxntid", ".minnctapersm")):
                    raise Unknown(line)
                continue
            if line in ("{", "}"):
                depth += 1 if line == "{" else -1
                if depth < 0:
                    break
                body.append(line)
                continue
            declared = self.variable(line)
            if declared:
                variables.append(declared)
            body.append(self.statement(line) if declared is None else "")
        # The window of this block's dynamic memory, which no kernel changes.
        head = [f"void {name}(void *const *values) {{", "(void)values;", f"[[maybe_unused]] const char *shared = __start_tercet_shared_{self.file};",
                "[[maybe_unused]] const u64 dynamic = emulator::dynamic_window();",
                "[[maybe_unused]] char *dynamic_memory = static_cast<char *>(emulator::dynamic_shared());", "[[maybe_unused]] bool carry = true;"]
        self.out += [*variables, *head, *body, "}"]
        kinds = ", ".join(f"{{{bytes_}, {'true' if index in self.pointers else 'false'}}}" for index, bytes_ in self.parameters.values())
        self.kernels.append(f"PTX_KERNEL({name}, {self.file}, {kinds});")

    def translate(self):
        """The C++ of the file; ends the program where a line is not known."""
        lines = iter(enumerate((line.strip() for line in self.path.read_text().splitlines()), 1))
        self.place = 0

        def numbered():
            for self.place, line in lines:
                yield self.place, line

        every = numbered()
        try:
            for _, line in every:
                if match := re.fullmatch(r"\.visible \.entry (\w+)\(", line):
                    self.kernel(match[1], every)
                elif line and not line.startswith(("//", ".version", ".target", ".address_size")):
                    declared = self.variable(line)
                    if declared is None:
                        raise Unknown(line)
                    self.out.append(declared)
        except (Unknown, KeyError, ValueError, IndexError, TypeError) as error:
            sys.exit(f"{self.path}:{self.place}: not known to the emulated device: {error}")
        used = [text for text, is_used in self.constants.values() if is_used]
        return "\n".join(["using namespace ptx;", f"TERCET_FILE({self.file});", "namespace {", *used, *self.out, *self.kernels, "}", ""])


def members(operand):
    """Registers in braces."""
    if not operand.startswith("{"):
        raise Unknown(operand)
    return [part.strip() for part in operand.strip("{}").split(",")]


if __name__ == "__main__":
    sys.stdout.write(Module(pathlib.Path(sys.argv[1]).resolve()).translate())
