#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same in Python, by ctypes: print the first thousand instructions of a recording, with their
symbols; then how many instructions each function executed.

    python3 insns.py INPUT OUTPUT

PTDECODE_LIBRARY names the library if it is not where the dynamic linker looks.
"""

import ctypes as c
import os
import sys

SHOWN = 1000
END = 1  # PTD_END

# The structs of ptd/decode.h, ptd/record.h and ptd/sink.h, as far as they are needed here.


class Options(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("engine", c.c_char_p),
        ("input", c.c_char_p),
    ]  # what follows is as if it were 0


class Insn(c.Structure):
    _fields_ = [
        ("offset", c.c_uint16),
        ("size", c.c_uint8),
        ("iclass", c.c_uint8),
        ("symbol", c.c_uint32),
    ]


class Symbol(c.Structure):
    _fields_ = [("name", c.c_char_p), ("address", c.c_uint64)]


class Block(c.Structure):
    _fields_ = [
        ("id", c.c_uint32),
        ("n_insns", c.c_uint16),
        ("size", c.c_uint16),
        ("mode", c.c_uint8),
        ("object", c.c_void_p),
        ("address", c.c_uint64),
        ("bytes", c.c_void_p),
        ("insns", c.POINTER(Insn)),
        ("target", c.c_int64),
    ]


class Run(c.Structure):
    _fields_ = [
        ("block", c.POINTER(Block)),
        ("base", c.c_uint64),
        ("t", c.c_uint64),
        ("first", c.c_uint16),
        ("n", c.c_uint16),
        ("early", c.c_bool),
    ]


class Batch(c.Structure):
    _fields_ = [
        ("slice", c.c_void_p),
        ("runs", c.POINTER(Run)),
        ("n_runs", c.c_size_t),
        ("marks", c.c_void_p),
        ("n_marks", c.c_size_t),
        ("symbols", c.POINTER(c.POINTER(Symbol))),
        ("n_symbols", c.c_size_t),
    ]


def load():
    lib = c.CDLL(os.environ.get("PTDECODE_LIBRARY", "libptdecode.so.0"))
    lib.ptd_decoder_info.restype = c.c_void_p
    lib.ptd_decoder_stats.restype = c.c_void_p
    lib.ptd_decoder_free.restype = c.c_void_p
    lib.ptd_decoder_message.restype = c.c_char_p
    for name in ("info", "stats", "free", "message"):
        getattr(lib, "ptd_decoder_" + name).argtypes = [c.c_void_p]
    return lib


class Count:
    """What was executed: each instruction of the first, and a number for each function."""

    def __init__(self, output):
        self.output = output
        self.n_shown = 0
        self.names = []
        self.n_insns = []

    def add(self, b):
        for i in range(len(self.names), b.n_symbols):
            self.names.append(b.symbols[i][0].name if i else b"[unknown]")
            self.n_insns.append(0)
        for i in range(b.n_runs):
            run = b.runs[i]
            insns = run.block[0].insns
            for k in range(run.first, run.first + run.n):
                insn = insns[k]
                self.n_insns[insn.symbol] += 1
                if self.n_shown < SHOWN:
                    self.n_shown += 1
                    name = self.names[insn.symbol]
                    self.output.write(b"%x %s\n" % (run.base + insn.offset, name))

    def finish(self):
        for n, name in zip(self.n_insns, self.names):
            if n:
                self.output.write(b"%12d %s\n" % (n, name))


def decode(lib, decoder, output):
    count = Count(output)
    batch = c.POINTER(Batch)()
    while (r := lib.ptd_decoder_next(decoder, c.byref(batch))) == 0:
        count.add(batch[0])
    if r < 0:
        message = lib.ptd_decoder_message(decoder)
        sys.exit(message.decode() if message else os.strerror(-r))
    count.finish()


def main():
    if len(sys.argv) != 3:
        sys.exit("Usage: insns.py INPUT OUTPUT")
    lib = load()
    options = Options(size=c.sizeof(Options), input=os.fsencode(sys.argv[1]))
    decoder = c.c_void_p()
    message = c.c_char_p()
    r = lib.ptd_decoder_new(c.byref(options), c.byref(decoder), c.byref(message))
    if r < 0:
        sys.exit(message.value.decode() if message.value else os.strerror(-r))
    with open(sys.argv[2], "wb") as output:
        decode(lib, decoder, output)
    lib.ptd_decoder_free(decoder)


if __name__ == "__main__":
    main()
