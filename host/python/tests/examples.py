"""Runs the examples of all modules of the installed package; fails if one fails, or if there are none."""

import doctest
import importlib
import pkgutil
import sys

import tercet

names = ["tercet", *(it.name for it in pkgutil.iter_modules(tercet.__path__, "tercet."))]
found = [doctest.testmod(importlib.import_module(name)) for name in names]
sys.exit(any(it.failed for it in found) or not any(it.attempted for it in found))
