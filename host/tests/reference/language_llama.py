"""llama.cpp and ik_llama.cpp as libraries: logits of each position, and greedy text.

usage: language_llama.py logits LIBRARY MODEL TOKENS LOGITS
       language_llama.py greedy LIBRARY MODEL COUNT TEXT
       language_llama.py tokens LIBRARY MODEL TEXT
       language_llama.py windows LIBRARY MODEL CONTEXT TOKENS
       language_llama.py perplexity PROGRAM MODEL FILE [OPTION…]
       language_llama.py bits LIBRARY MODEL KERNELS THREADS BATCH FLASH COUNT TEXT
       language_llama.py speed LIBRARY MODEL THREADS PROMPT COUNT

LIBRARY  a compiled libllama of llama.cpp, with the others of its package beside it (npm `@node-llama-cpp/linux-x64` has them), or `ik` for
         the one in the Python package `ik-llama-cpp-python`
logits   TOKENS are ids with commas between, evaluated in one batch; LOGITS gets float32 [tokens, vocabulary] as .npy
greedy   tokenizes TEXT as the model says and goes on with the most likely token, the lowest id of equal ones, COUNT times or to an end;
         prints the ids of the prompt, those of the answer, the answer's text as JSON, and by how much each token's logit exceeded the
         next one's, that of an end included
tokens   prints the ids of TEXT, one line with commas between
windows  scores TOKENS as llama-perplexity does, whole windows of CONTEXT alone, the second half of each, BOS in place of a window's first
         token if the model adds one; prints how many were scored, and their cost in nats
perplexity  runs `PROGRAM -m MODEL -f FILE OPTION…`, where PROGRAM is llama-perplexity or a script that starts it, and prints the estimate
bits     goes on as greedy does, COUNT times, with the kernels of one library (libggml-cpu-….so) and no others, the prompt in batches of at most
         BATCH tokens, 0 for one of all, and with flash attention as the library chooses (FLASH is `auto`) or not (`off`); prints JSON:
         prompt_tokens, tokens, digest (FNV-1a of 64 bits over the logits that each token was taken from, as `tercet generate --digest`), count
         and nats (of the prompt's tokens after its first)
speed    evaluates PROMPT made-up tokens in one batch, then COUNT others one after the other, as llama-bench does; prints JSON: prompt and
         text, in tokens a second

The parameters' structures differ between versions. They are passed as blocks of bytes of more than any version's size, as the library's own
defaults fill them in: a callee reads its part. Only the context's length, batches and flash attention are set, after their defaults were found in
their places.
"""

import ctypes as c
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import time

ROOM = 4096


class Block(c.Structure):
    """A structure of a version that nobody here knows."""

    _fields_ = [("words", c.c_uint32 * (ROOM // 4))]


class Batch(c.Structure):
    """What every version's llama_batch begins with."""

    _fields_ = [
        ("n_tokens", c.c_int32),
        ("token", c.POINTER(c.c_int32)),
        ("embd", c.c_void_p),
        ("pos", c.POINTER(c.c_int32)),
        ("n_seq_id", c.POINTER(c.c_int32)),
        ("seq_id", c.POINTER(c.POINTER(c.c_int32))),
        ("logits", c.POINTER(c.c_int8)),
        ("rest", c.c_uint8 * (ROOM - 56)),
    ]


def quiet(level, text, user):
    """Errors alone."""
    if level == 4 or os.environ.get("TERCET_LLAMA_LOG"):
        sys.stderr.buffer.write(text)


QUIET = c.CFUNCTYPE(None, c.c_int, c.c_char_p, c.c_void_p)(quiet)


class Llama:
    def __init__(self, library, model, context, batch, kernels=None, threads=1, flash="auto"):
        self.is_ik = library == "ik"
        if self.is_ik:
            folder = importlib.util.find_spec("ik_llama_cpp").submodule_search_locations[0]
            library = os.path.join(folder, "lib", "libllama.so")
        self.library = c.CDLL(library, c.RTLD_GLOBAL)
        self.function("llama_log_set", None, c.c_void_p, c.c_void_p)(c.cast(QUIET, c.c_void_p), None)
        if not self.is_ik:
            # Its kernels, those of this processor unless named: one of several libraries beside it.
            folder = os.path.dirname(os.path.abspath(library))
            ggml = c.CDLL(glob.glob(os.path.join(folder, "libggml.*so*"))[0], c.RTLD_GLOBAL)
            if kernels is None:
                ggml.ggml_backend_load_all_from_path(folder.encode())
            else:
                ggml.ggml_backend_load.restype = c.c_void_p
                if not ggml.ggml_backend_load(kernels.encode()):
                    sys.exit(f"{kernels}: not for this processor")
        self.function("llama_backend_init", None)()
        parameters = self.function("llama_model_default_params", Block)()
        load = self.function("llama_model_load_from_file", c.c_void_p, c.c_char_p, Block)
        self.model = load(model.encode(), parameters)
        if not self.model:
            sys.exit(f"{model}: not loaded")
        parameters = self.function("llama_context_default_params", Block)()
        # ik_llama.cpp has a seed first. Then context, batch and the batch's parts.
        first = int(self.is_ik)
        if list(parameters.words[first : first + 3]) != [512, 2048, 512]:
            sys.exit(f"{library}: another layout of llama_context_params")
        parameters.words[first : first + 3] = [context, batch, batch]
        if flash == "off":
            # The last of four enumerations that say -1, for as the model says or as the library chooses.
            chosen = [0xFFFFFFFF] * 4
            parameters.words[next(at for at in range(32) if parameters.words[at : at + 4] == chosen) + 3] = 0
        create = self.function("llama_init_from_model", c.c_void_p, c.c_void_p, Block)
        self.context = create(self.model, parameters)
        if not self.context:
            sys.exit(f"{model}: no context of {context}")
        # Its threads wait for each other by spinning, which beside other tests takes many times what they save. No bit depends on them.
        self.function("llama_set_n_threads", None, c.c_void_p, c.c_int32, c.c_int32)(self.context, threads, threads)
        # ik_llama.cpp asks the model what llama.cpp asks the vocabulary.
        self.vocab = self.model if self.is_ik else self.function("llama_model_get_vocab", c.c_void_p, c.c_void_p)(self.model)
        self.n_vocab = self.function("llama_n_vocab", c.c_int32, c.c_void_p)(self.vocab)
        self.batch = self.function("llama_batch_init", Batch, c.c_int32, c.c_int32, c.c_int32)(batch, 0, 1)
        self.position = 0

    def function(self, name, result, *arguments):
        function = getattr(self.library, name)
        function.restype, function.argtypes = result, arguments
        return function

    def evaluate(self, tokens, all_logits=True):
        """Evaluates tokens in one batch, with logits of each or of the last."""
        self.batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            self.batch.token[index] = token
            self.batch.pos[index] = self.position + index
            self.batch.n_seq_id[index] = 1
            self.batch.seq_id[index][0] = 0
            self.batch.logits[index] = all_logits or index + 1 == len(tokens)
        if self.function("llama_decode", c.c_int32, c.c_void_p, Batch)(self.context, self.batch) != 0:
            sys.exit("llama_decode failed")
        self.position += len(tokens)

    def decode(self, tokens):
        """Evaluates tokens in one batch; logits of each, float32 [tokens, vocabulary]."""
        import numpy as np

        self.evaluate(tokens)
        get = self.function("llama_get_logits_ith", c.POINTER(c.c_float), c.c_void_p, c.c_int32)
        rows = [np.ctypeslib.as_array(get(self.context, index), (self.n_vocab,)) for index in range(len(tokens))]
        return np.array(rows)

    def forget(self):
        self.position = 0
        if self.is_ik:
            self.function("llama_kv_cache_clear", None, c.c_void_p)(self.context)
            return
        memory = self.function("llama_get_memory", c.c_void_p, c.c_void_p)(self.context)
        self.function("llama_memory_clear", None, c.c_void_p, c.c_bool)(memory, True)

    def begin(self):
        """The token before each text, or None."""
        if not self.function("llama_vocab_get_add_bos", c.c_bool, c.c_void_p)(self.vocab):
            return None
        return self.function("llama_vocab_bos", c.c_int32, c.c_void_p)(self.vocab)

    def tokens(self, text):
        text = text.encode()
        room = len(text) + 16
        found = (c.c_int32 * room)()
        arguments = [c.c_void_p, c.c_char_p, c.c_int32, c.c_void_p, c.c_int32, c.c_bool, c.c_bool]
        count = self.function("llama_tokenize", c.c_int32, *arguments)(self.vocab, text, len(text), found, room, True, True)
        if count < 0:
            sys.exit("llama_tokenize failed")
        return list(found[:count])

    def piece(self, token):
        room = c.create_string_buffer(512)
        arguments = [c.c_void_p, c.c_int32, c.c_void_p, c.c_int32, c.c_int32, c.c_bool]
        count = self.function("llama_token_to_piece", c.c_int32, *arguments)(self.vocab, token, room, 512, 0, True)
        return room.raw[: max(count, 0)]

    def ends(self, token):
        name = "llama_token_is_eog" if self.is_ik else "llama_vocab_is_eog"
        return self.function(name, c.c_bool, c.c_void_p, c.c_int32)(self.vocab, token)


def commas(tokens):
    return ",".join(map(str, tokens))


def logits(library, model, tokens, out):
    import numpy as np

    tokens = [int(word) for word in tokens.split(",")]
    np.save(out, Llama(library, model, max(len(tokens), 32), len(tokens)).decode(tokens))


def greedy(library, model, count, text):
    count = int(count)
    llama = Llama(library, model, len(text.encode()) + count + 32, len(text.encode()) + 16)
    prompt, answer, leads = llama.tokens(text), [], []
    following = prompt
    while len(answer) < count:
        logits = llama.decode(following)[-1]
        token = int(logits.argmax())
        best = logits[token]
        logits[token] = -float("inf")
        leads.append(best - logits.max())
        if llama.ends(token):
            break
        answer.append(token)
        following = [token]
    print(commas(prompt))
    print(commas(answer))
    print(json.dumps(b"".join(map(llama.piece, answer)).decode(errors="replace"), ensure_ascii=False))
    print(commas(leads))


def tokens(library, model, text):
    print(commas(Llama(library, model, 32, 1).tokens(text)))


def windows(library, model, context, tokens):
    import numpy as np

    context, tokens = int(context), [int(word) for word in tokens.split(",")]
    llama = Llama(library, model, context, context)
    begin, nats, count = llama.begin(), 0.0, 0
    for first in range(0, len(tokens) - context + 1, context):
        window = tokens[first : first + context]
        if begin is not None:
            window[0] = begin
        llama.forget()
        logits = llama.decode(window)[context // 2 : -1].astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        chosen = logits[np.arange(len(logits)), window[context // 2 + 1 :]]
        nats += (np.log(np.exp(logits).sum(-1)) - chosen).sum()
        count += len(logits)
    print("count", count)
    print("nats", nats)


def perplexity(program, model, file, *options):
    done = subprocess.run([program, "-m", model, "-f", file, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    found = re.search(r"Final estimate: PPL = ([0-9.]+) \+/- ([0-9.]+)", done.stdout)
    if not found:
        sys.exit(f"{program} ended with {done.returncode}:\n{done.stdout}")
    print("perplexity", found[1])
    print("error", found[2])


def fnv(state, data):
    """FNV-1a of 64 bits: the state after more bytes."""
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return state


def bits(library, model, kernels, threads, size, flash, count, text):
    import numpy as np

    size, count = int(size), int(count)
    room = len(text.encode()) + 16
    llama = Llama(library, model, room + count, room, kernels, int(threads), flash)
    prompt, answer, digest = llama.tokens(text), [], 0xCBF29CE484222325
    size = size or len(prompt)
    logits = np.concatenate([llama.decode(prompt[first : first + size]) for first in range(0, len(prompt), size)])
    before = logits[:-1].astype(np.float64)
    before -= before.max(-1, keepdims=True)
    nats = (np.log(np.exp(before).sum(-1)) - before[np.arange(len(before)), prompt[1:]]).sum()
    while True:
        last = logits[-1]
        digest = fnv(digest, last.astype("<f4").tobytes())
        answer.append(int(last.argmax()))
        if len(answer) == count or llama.ends(answer[-1]):
            break
        logits = llama.decode(answer[-1:])
    found = {"prompt_tokens": len(prompt), "tokens": answer, "digest": f"{digest:016x}", "count": len(before), "nats": float(nats)}
    print(json.dumps(found))


def speed(library, model, threads, prompt, count):
    prompt, count = int(prompt), int(count)
    longest = max(prompt, count)
    llama = Llama(library, model, -(-longest // 256) * 256, longest, threads=int(threads))
    # All of them are bytes or parts of words in every vocabulary of ours. The first evaluation also reads the file.
    tokens = [3 + at * 89 % 250 for at in range(longest)]
    llama.evaluate(tokens[:1])
    llama.forget()
    start = time.perf_counter()
    llama.evaluate(tokens[:prompt], False)
    synchronize = llama.function("llama_synchronize", None, c.c_void_p)
    synchronize(llama.context)
    middle = time.perf_counter()
    llama.forget()
    begin = time.perf_counter()
    for token in tokens[:count]:
        llama.evaluate([token])
    synchronize(llama.context)
    end = time.perf_counter()
    print(json.dumps({"prompt": prompt / (middle - start), "text": count / (end - begin)}))


if __name__ == "__main__":
    commands = {
        "logits": (logits, 4),
        "greedy": (greedy, 4),
        "tokens": (tokens, 3),
        "windows": (windows, 4),
        "perplexity": (perplexity, 3),
        "bits": (bits, 8),
        "speed": (speed, 5),
    }
    function, least = commands.get(sys.argv[1] if len(sys.argv) > 1 else "", (None, 0))
    arguments = sys.argv[2:]
    if function is None or len(arguments) < least or (function is not perplexity and len(arguments) > least):
        sys.exit(__doc__)
    function(*arguments)
