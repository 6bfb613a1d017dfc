"""One peer of Tercet's, in a process of its own that `tercet_benches::peers` keeps alive and times in turns with others.

    python serve.py PEER        a module of contenders/, such as numpy_

The first line out is {"name", "version", "work": [what it can do]}, or {"missing": why}. Then each line in is a JSON object, answered
by one line:

    {"do": "load", "what", "files": {name: .npy}, "options": {}, "threads"}   {}; reads the files and runs once, untimed; or {"failed": why}
    {"do": "run", "what", "n", "phase"}   {"seconds"}: the shortest of n runs; `phase` is for work that is timed at two lengths
    {"do": "answer", "what", "folder"}    {name: file}: what its last run found, as raw little-endian values
    {"do": "drop"}                        {}; frees all of it

A work's run may give its own seconds, as where a device has a clock; else the time of the call counts. A module may have a `drop`, which
gives back what it keeps beside its works. It ends with its input.
"""

import contextlib
import gc
import importlib
import json
import os
import sys
import time
import traceback

# Libraries that print must not print answers.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "contenders"))


def answer(value):
    print(json.dumps(value), file=answers, flush=True)


def threads(count):
    """Every OpenMP and BLAS library that is loaded, each of which has threads of its own."""
    try:
        import threadpoolctl
    except ImportError:
        return contextlib.nullcontext()
    return threadpoolctl.threadpool_limits(limits=count)


def load(module, request, arrays):
    import numpy as np

    for name, path in request["files"].items():
        if name not in arrays:
            # A copy: a mapped file's pages are small ones, which costs what Tercet does not pay.
            arrays[name] = np.array(np.load(path, mmap_mode="r"))
    return module.WORK[request["what"]](arrays, request["options"], request["threads"])


def write(found, folder):
    import numpy as np

    files = {}
    for name, array in found.items():
        files[name] = os.path.join(folder, name)
        np.ascontiguousarray(array).tofile(files[name])
    return files


def main():
    try:
        module = importlib.import_module(sys.argv[1])
    except (ImportError, OSError) as error:
        answer({"missing": str(error)})
        return
    answer({"name": module.NAME, "version": module.VERSION, "work": list(module.WORK)})
    arrays, works, limit = {}, {}, 1
    for line in sys.stdin:
        request = json.loads(line)
        what = request.get("what")
        if request["do"] == "load":
            limit = request["threads"]
            try:
                with threads(limit):
                    works[what] = load(module, request, arrays)
                    works[what].run(0)
                answer({})
            except (MemoryError, RuntimeError, ImportError) as error:
                # No room on a device, or nothing compiled for it: others go on.
                works.pop(what, None)
                answer({"failed": str(error).splitlines()[0] if str(error) else type(error).__name__})
        elif request["do"] == "run":
            best = float("inf")
            with threads(limit):
                for _ in range(request["n"]):
                    start = time.perf_counter()
                    seconds = works[what].run(request["phase"])
                    best = min(best, time.perf_counter() - start if seconds is None else seconds)
            # Threads of OpenMP wait for more work by spinning; the next contender should not run beside them.
            time.sleep(0.01)
            answer({"seconds": best})
        elif request["do"] == "answer":
            answer(write(works[what].answer(), request["folder"]))
        else:
            arrays, works = {}, {}
            gc.collect()
            getattr(module, "drop", lambda: None)()
            answer({})


try:
    main()
except Exception:
    traceback.print_exc()
    sys.exit(1)
