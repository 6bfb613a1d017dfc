"""Fails naming every public function of tercet-core that firmware's program `no_panic` does not reach.

    no_panic.py RUSTDOC.json PRINTED EXEMPT

RUSTDOC.json is rustdoc's JSON of the core, PRINTED what the program printed: a line `reached TYPE_NAME` for each function,
as `core::any::type_name` has it. Both name a function by the module that defines it, so public paths and re-exports do not
matter. EXEMPT has a line `NAME  REASON`, two spaces apart, for each function that needs not be reached, and fails where one is stale.

Public are free functions, inherent methods, methods of traits for the core's types or by the core's traits, and methods that
a trait provides (one implementation will do). Not asked for: impls that the compiler derives, field by field, and all of
`Debug` and `Display`, since `core::fmt` itself can panic.
"""

import json
import re
import sys

FORMATTING = {"core::fmt::Debug", "core::fmt::Display"}
# Formats whose layout this script was read against: 57 is that of a 1.97 nightly.
FORMATS = range(45, 100)


class Crate:
    def __init__(self, documented):
        if documented["format_version"] not in FORMATS:
            sys.exit(f"rustdoc's format {documented['format_version']} is not known here")
        self.items = documented["index"]
        self.paths = documented["paths"]
        self.asked = {}
        self.seen = set()
        self.walk(documented["root"])

    def item(self, number):
        """An item's kind, what it is of that kind, and all about it; nothing where rustdoc left it out."""
        item = self.items.get(str(number))
        if item is None:
            return None, None, None
        (kind, inner), = item["inner"].items()
        return kind, inner, item

    def path(self, number):
        return "::".join(self.paths[str(number)]["path"])

    def walk(self, number):
        kind, inner, item = self.item(number)
        if kind == "use":
            if inner["id"] is not None:
                self.walk(inner["id"])
            return
        if kind is None or number in self.seen:
            return
        self.seen.add(number)
        if kind == "module":
            for child in inner["items"]:
                self.walk(child)
        elif kind == "function":
            self.ask(self.path(number), literal(self.path(number)))
        elif kind in ("struct", "enum", "union"):
            for impl in inner["impls"]:
                self.implementation(impl)
        elif kind == "trait":
            for method, name in self.methods(inner["items"]):
                if method["has_body"]:
                    # On whatever type.
                    trait = self.path(number)
                    self.ask(f"{trait}::{name}", rf"<.* as {literal(trait)}(<.*>)?>::{name}")
            for impl in inner["implementations"]:
                self.implementation(impl)

    def methods(self, numbers):
        for number in numbers:
            kind, inner, item = self.item(number)
            if kind == "function":
                yield inner, item["name"]

    def implementation(self, number):
        kind, impl, item = self.item(number)
        if kind != "impl" or impl["is_synthetic"] or impl["blanket_impl"]:
            return
        if any("automatically_derived" in str(attribute) for attribute in item["attrs"]):
            return
        of, pattern = self.type(impl["for"])
        prefix, patterns = of, pattern
        if impl["trait"]:
            trait, trait_pattern = self.resolved(impl["trait"])
            if self.path(impl["trait"]["id"]) in FORMATTING:
                return
            if trait == "core::ops::drop::Drop":
                self.ask(f"<{of} as {trait}>::drop", rf"core::mem::drop<{pattern}>")
                return
            prefix, patterns = f"<{of} as {trait}>", f"<{pattern} as {trait_pattern}>"
        for _, name in self.methods(impl["items"]):
            # Where an impl lies elsewhere than its type, the name says so.
            self.ask(f"{prefix}::{name}", rf"({patterns}|\S*::<impl {pattern}>)::{name}")

    def ask(self, name, pattern):
        # `f`, or `f<T>`.
        self.asked[name] = re.compile(pattern + r"(<.*>)?")

    def type(self, described):
        """A type in words, and as a pattern for the compiler's name of it."""
        if isinstance(described, str):
            return described, ".*"
        (kind, inner), = described.items()
        if kind == "resolved_path":
            return self.resolved(inner)
        if kind == "primitive":
            return inner, inner
        if kind == "generic":
            return inner, ".+"
        if kind == "borrowed_ref":
            words, pattern = self.type(inner["type"])
            mutable = "mut " if inner["is_mutable"] else ""
            return f"&{mutable}{words}", f"&{mutable}{pattern}"
        if kind == "slice":
            words, pattern = self.type(inner)
            return f"[{words}]", rf"\[{pattern}\]"
        if kind == "array":
            words, pattern = self.type(inner["type"])
            return f"[{words}; {inner['len']}]", rf"\[{pattern}; .+\]"
        return kind, ".+"

    def resolved(self, path):
        name = self.path(path["id"])
        arguments = (path.get("args") or {}).get("angle_bracketed", {}).get("args", [])
        words, patterns = [], []
        for argument in arguments:
            if "type" in argument:
                word, pattern = self.type(argument["type"])
            elif "const" in argument:
                word, pattern = argument["const"]["expr"], ".+"
            else:
                continue
            words.append(word)
            patterns.append(pattern)
        if not words:
            return name, literal(name)
        return f"{name}<{', '.join(words)}>", rf"{literal(name)}<{', '.join(patterns)}>"


def literal(name):
    return re.escape(name)


def without_lifetimes(name):
    """Some compilers write lifetimes, as `'_`, and some do not."""
    name = re.sub(r"'\w+, ", "", name)
    name = re.sub(r"<'\w+>", "", name)
    return re.sub(r"&'\w+ ", "&", name)


def main():
    documented, printed, exempt = sys.argv[1:]
    with open(documented) as file:
        crate = Crate(json.load(file))
    with open(printed) as file:
        reached = [
            without_lifetimes(line.removeprefix("reached ").strip()) for line in file if line.startswith("reached ")
        ]
    with open(exempt) as file:
        exempt = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in file if line.strip() and not line.startswith("#"))
    missing = {name for name, pattern in crate.asked.items() if not any(map(pattern.fullmatch, reached))}
    failures = [f"not reached: {name}" for name in sorted(missing - exempt.keys())]
    failures += [f"exempt, but reached or gone: {name}" for name in sorted(exempt.keys() - missing)]
    if not reached or not crate.asked:
        failures.append("nothing was printed, or nothing is documented")
    for failure in failures:
        print(failure)
    print(f"{len(crate.asked) - len(missing)} of {len(crate.asked)} public functions reached, {len(exempt)} exempt")
    sys.exit(bool(failures))


main()
