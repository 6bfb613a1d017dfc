"""Compiles cuda/*.cu to ptx/ARCHITECTURE/*.ptx, and writes what is shipped into src/modules.rs; and emulator/tests/*.cu to ptx/*.ptx there.

    python kernels/compile.py [--check] [NAME...]
    python kernels/compile.py --out FOLDER [--define MACRO=VALUE]... [NAME...]

With --check nothing is written; where a file differs from what the sources give, says so and ends with 1. With names (`quantize`,
`cluster_mma`) only those are compiled, and src/modules.rs lists what lies in ptx/.

With --out the compiled modules, and nothing else, are written to FOLDER/ARCHITECTURE/*.ptx: variants, to be timed beside what is shipped. --define
sets a macro that a source has a value for if it is not defined.

The same sources give the same bytes: one pinned NVRTC, and no path or date in its output.
"""

import argparse
import ctypes
import difflib
import pathlib
import re
import sys

import architectures
import lint
import nvidia

# Lambdas are functions of the device too.
OPTIONS = ["--std=c++17", "--device-as-default-execution-space", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
           f"--include-path={architectures.KERNELS / 'include'}"]
MODULES = architectures.KERNELS / "src" / "modules.rs"


class Nvrtc:
    """The compiler as a library."""

    def __init__(self):
        path = nvidia.nvrtc()
        # NVRTC looks for its built-in declarations by name.
        ctypes.CDLL(str(next(path.parent.glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
        self.library = ctypes.CDLL(str(path))
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            raise RuntimeError(f"{name}: {self.library.nvrtcGetErrorString(status).decode()}")

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.value.decode()

    def compile(self, source, defines=()):
        """The PTX of a source file; ends the program with the compiler's log where there is none."""
        program = ctypes.c_void_p()
        # The name is what messages say; a path would be one of this machine.
        self.call("nvrtcCreateProgram", ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
        options = [f"--gpu-architecture=compute_{architectures.architecture(source)}", *OPTIONS,
                   *(f"--define-macro={define}" for define in defines)]
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = self.library.nvrtcCompileProgram(program, len(options), array)
        log = self.text(program, "ProgramLog").strip()
        if status:
            sys.exit(f"{source.name} does not compile:\n{log}")
        if log:
            print(log, file=sys.stderr)
        # The compiler writes its own version whatever the text uses. That an older one will do is what ptxas of that version says.
        ptx, written = re.subn(r"^\.version 8\.4$", f".version {architectures.VERSIONS[architectures.architecture(source)]}",
                               self.text(program, "PTX"), flags=re.M)
        if written != 1:
            sys.exit(f"{source.name}: the compiler wrote no .version 8.4")
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return ptx


def entries(ptx):
    """The kernels of a module."""
    return re.findall(r"\.entry\s+(\w+)", ptx)


def modules(texts):
    """src/modules.rs for PTX texts by their paths under ptx/."""
    lines = ["//! What is shipped. Written by compile.py.", "", "use super::{Architecture, Module};", "",
             "pub(super) const MODULES: &[Module] = &["]
    for path, text in sorted(texts.items()):
        architecture, file = path.split("/")
        lines += ["    Module {", f'        name: "{file.removesuffix(".ptx")}",',
                  f"        architecture: Architecture::Sm{architecture},",
                  f'        ptx: include_str!("../ptx/{path}"),']
        names = [f'"{name}"' for name in entries(text)]
        flat = f"[{', '.join(names)}]"
        # As rustfmt has it.
        lines += ([f"        kernels: &{flat},"] if len(flat) <= 60 else
                  ["        kernels: &[", *(f"            {name}," for name in names), "        ],"])
        lines += ["    },"]
    return "\n".join([*lines, "];", ""])


def difference(path, wanted):
    """One line on how a file differs from what it should be; None where it does not."""
    if not path.is_file():
        return f"{path.relative_to(architectures.KERNELS)}: missing"
    found = path.read_text()
    if found == wanted:
        return None
    changes = [line for line in difflib.unified_diff(found.splitlines(), wanted.splitlines(), lineterm="", n=0)][2:]
    added = sum(line.startswith("+") for line in changes)
    removed = sum(line.startswith("-") for line in changes)
    first = next((line for line in changes if not line.startswith("@@")), "")
    return f"{path.relative_to(architectures.KERNELS)}: {added} lines more and {removed} less, first {first}"


def check_defines(defines):
    """Ends the program if a macro has no value, or no source has one for it: what is compiled would be what is shipped."""
    texts = [path.read_text() for pattern in ["cuda/*.cu", "include/*/*.cuh"] for path in architectures.KERNELS.glob(pattern)]
    for define in defines:
        name, _, value = define.partition("=")
        if not value:
            sys.exit(f"--define {define}: it has to be MACRO=VALUE")
        if not any(f"#ifndef {name}\n" in text for text in texts):
            sys.exit(f"--define {define}: no source has #ifndef {name}")


def main():
    parser = argparse.ArgumentParser(description="Compiles the kernels to PTX.")
    parser.add_argument("--check", action="store_true", help="compare with what is there, write nothing")
    parser.add_argument("--out", type=pathlib.Path, metavar="FOLDER", help="write the compiled modules here, and nothing else")
    parser.add_argument("--define", action="append", default=[], metavar="MACRO=VALUE", help="a macro of the sources; only with --out")
    parser.add_argument("names", nargs="*", help="source files without .cu (default: all)")
    arguments = parser.parse_args()
    if arguments.check and arguments.out:
        parser.error("--check writes nothing, and --out does")
    if arguments.define and not arguments.out:
        parser.error("--define makes a variant, which needs --out")
    check_defines(arguments.define)

    folder = architectures.KERNELS / "ptx"
    sources = [*architectures.sources(), *architectures.tests()]
    unknown = set(arguments.names) - {source.stem for source in sources}
    if unknown:
        sys.exit(f"no cuda/{min(unknown)}.cu")
    nvrtc = Nvrtc()
    wanted, compiled = {}, {}
    for source in sources:
        path = architectures.ptx(source)
        if arguments.names and source.stem not in arguments.names:
            if path.is_file():
                wanted[path] = path.read_text()
            continue
        wanted[path] = nvrtc.compile(source, arguments.define)
        if path.is_relative_to(folder):
            compiled[f"ptx/{path.relative_to(folder)}"] = wanted[path]
    if not lint.check(compiled):
        sys.exit("refused by lint.py; nothing is written")
    if arguments.out:
        for name, text in compiled.items():
            path = arguments.out / pathlib.Path(name).relative_to("ptx")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path}")
        return
    stale = [path for path in [*folder.glob("*/*.ptx"), *architectures.TESTS.glob("ptx/*.ptx")] if path not in wanted]
    wanted[MODULES] = modules({str(path.relative_to(folder)): text for path, text in wanted.items() if path.is_relative_to(folder)})

    if arguments.check:
        differences = [difference(path, text) for path, text in wanted.items()]
        differences = [line for line in differences if line] + [f"{path.relative_to(architectures.KERNELS)}: has no source"
                                                                 for path in stale]
        print("\n".join(differences or [f"{len(wanted) - 1} modules are what the sources give"]))
        sys.exit(bool(differences))
    for path in stale:
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if difference(path, text):
            path.write_text(text)
            print(f"wrote {path.relative_to(architectures.KERNELS)}")


if __name__ == "__main__":
    main()
