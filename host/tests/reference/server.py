"""Runs scripts in processes forked from this one, which has imported what takes longer to import than they run.

usage: server.py, then on standard input a line for each script: a JSON array of its path and its arguments

Answers each line once its script has ended, with a line of JSON: {"status": its exit status, "out": …, "err": …}. A script runs as
`python SCRIPT ARGUMENTS` would, with nothing on its standard input. The modules named below are imported by the first script that names
them, the same for all after it. Elsewhere than on Linux, libraries may mind a fork: there each script gets a new Python. Ends with its input.
"""

import ast
import gc
import importlib
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

# Those that many scripts share. None starts a thread when imported, which a fork would lose, where OPENBLAS_NUM_THREADS is 1.
SHARED = {"numpy", "gguf", "safetensors.numpy", "sklearn.cluster"}


def modules(script):
    """Every module that a script names, wherever it does."""
    for node in ast.walk(ast.parse(pathlib.Path(script).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def start(arguments, out, err):
    """Forks: gives the child's process ID in the parent, 0 in the child, which is as new."""
    child = os.fork()
    if child == 0:
        sys.stdin = open(os.devnull)
        for target, source in enumerate([sys.stdin.fileno(), out.fileno(), err.fileno()]):
            os.dup2(source, target)
        sys.argv[:] = arguments
        sys.path[0] = os.path.dirname(arguments[0])
    return child


def main():
    for line in sys.stdin:
        arguments = json.loads(line)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            if sys.platform == "linux":
                for module in SHARED.intersection(modules(arguments[0])):
                    importlib.import_module(module)
                gc.freeze()
                child = start(arguments, out, err)
                if child == 0:
                    return arguments[0]
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            else:
                status = subprocess.call([sys.executable, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            answer = {"status": status}
            for name, file in [("out", out), ("err", err)]:
                file.seek(0)
                answer[name] = file.read().decode()
        print(json.dumps(answer), flush=True)
    return None


# Where the script is known to the child, this module's frames have ended.
script = main()
if script:
    runpy.run_path(script, run_name="__main__")
