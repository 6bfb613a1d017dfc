"""Tokens and pieces of llama.cpp's own library.

usage: tokenizer.py FOLDER MODEL CASES OUT

FOLDER holds libllama and ggml's libraries, as npm's @node-llama-cpp/linux-x64 has them. CASES is texts, one after the other: a little-endian
u32 of its bytes, a byte of flags (1: add_special, 2: parse_special), the bytes. OUT gets a line for each: ids. Then, after an empty line,
one for each id among them: a bar, the bytes of its piece in hexadecimal, a bar, the same of a piece that may be a special token.
"""

import ctypes as c
import glob
import sys

folder, model, cases, out = sys.argv[1:]


def library(name):
    return c.CDLL(glob.glob(f"{folder}/{name}")[0], c.RTLD_GLOBAL)


library("libggml-base.so")
ggml = library("libggml.v*.so")
llama = library("libllama.v*.so")


class Parameters(c.Structure):
    """llama_model_params of llama.cpp v0.5.0: pointers and numbers, then flags, the first of which is vocab_only."""

    _fields_ = [("head", c.c_uint8 * 72), ("vocab_only", c.c_bool), ("flags", c.c_bool * 5), ("rest", c.c_uint8 * 2)]


log = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)(lambda *_: None)
llama.llama_log_set(log, None)
ggml.ggml_backend_load(f"{folder}/libggml-cpu-x64.so".encode())
llama.llama_model_default_params.restype = Parameters
llama.llama_model_load_from_file.argtypes = [c.c_char_p, Parameters]
llama.llama_model_load_from_file.restype = c.c_void_p
llama.llama_model_get_vocab.argtypes = [c.c_void_p]
llama.llama_model_get_vocab.restype = c.c_void_p
llama.llama_tokenize.argtypes = [c.c_void_p, c.c_char_p, c.c_int32, c.c_void_p, c.c_int32, c.c_bool, c.c_bool]
llama.llama_token_to_piece.argtypes = [c.c_void_p, c.c_int32, c.c_char_p, c.c_int32, c.c_int32, c.c_bool]

parameters = llama.llama_model_default_params()
# Another version has other fields; use_extra_bufts alone is on by default.
assert not parameters.vocab_only and list(parameters.flags) == [False, True, False, False, False]
parameters.vocab_only = True
loaded = llama.llama_model_load_from_file(model.encode(), parameters)
assert loaded, f"llama.cpp cannot open {model}"
vocabulary = llama.llama_model_get_vocab(loaded)

buffer = c.create_string_buffer(1 << 16)


def piece(token, special):
    length = llama.llama_token_to_piece(vocabulary, token, buffer, len(buffer), 0, special)
    assert length >= 0
    return c.string_at(buffer, length).hex()


with open(cases, "rb") as file:
    cases = file.read()
with open(out, "w") as file:
    at = 0
    seen = set()
    while at < len(cases):
        length, flags = int.from_bytes(cases[at : at + 4], "little"), cases[at + 4]
        text = cases[at + 5 : at + 5 + length]
        at += 5 + length
        tokens = (c.c_int32 * (3 * length + 8))()
        count = llama.llama_tokenize(vocabulary, text, length, tokens, len(tokens), bool(flags & 1), bool(flags & 2))
        assert count >= 0
        ids = tokens[:count]
        seen.update(ids)
        file.write(f"{' '.join(map(str, ids))}\n")
    file.write("\n")
    for token in sorted(seen):
        file.write(f"{token}|{piece(token, False)}|{piece(token, True)}\n")
