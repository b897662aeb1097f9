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


OPEN = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p))
WRITE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Batch), c.c_void_p, c.c_size_t, c.c_void_p)
FINISH = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p)
FREE = c.CFUNCTYPE(None, c.c_void_p)


class SinkOps(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("help", c.c_char_p),
        ("directory", c.c_char_p),
        ("options", c.c_void_p),
        ("open", OPEN),
        ("event", c.c_void_p),
        ("remember", c.c_void_p),
        ("forget", c.c_void_p),
        ("expand", c.c_void_p),
        ("write", WRITE),
        ("logged", c.c_void_p),
        ("finish", FINISH),
        ("omission", c.c_void_p),
        ("free", FREE),
    ]


def load():
    lib = c.CDLL(os.environ.get("PTDECODE_LIBRARY", "libptdecode.so.0"))
    lib.ptd_decoder_info.restype = c.c_void_p
    lib.ptd_decoder_stats.restype = c.c_void_p
    lib.ptd_decoder_free.restype = c.c_void_p
    lib.ptd_sink_free.restype = c.c_void_p
    lib.ptd_decoder_message.restype = c.c_char_p
    lib.ptd_output_write.argtypes = [c.c_void_p, c.c_char_p, c.c_size_t]
    for name in ("info", "stats", "free", "message"):
        getattr(lib, "ptd_decoder_" + name).argtypes = [c.c_void_p]
    return lib


class Count:
    """A sink of this program's own kind."""

    def __init__(self, lib):
        self.lib = lib
        self.n_shown = 0
        self.names = []
        self.n_insns = []
        # The callbacks live as long as the table.
        self.ops = SinkOps(
            size=c.sizeof(SinkOps),
            name=b"count",
            open=OPEN(self.open),
            write=WRITE(self.write),
            finish=FINISH(self.finish),
            free=FREE(lambda state: None),
        )

    def put(self, output, text):
        self.lib.ptd_output_write(output, text, len(text))

    def open(self, _config, _output, ret_state):
        ret_state[0] = c.c_void_p(1)  # the state is this object
        return 0

    def write(self, _state, batch, _bytes, _n_bytes, output):
        b = batch[0]
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
                    self.put(output, b"%x %s\n" % (run.base + insn.offset, name))
        return 0

    def finish(self, _state, _stats, output):
        for n, name in zip(self.n_insns, self.names):
            if n:
                self.put(output, b"%12d %s\n" % (n, name))
        return 0


def decode(lib, decoder, path):
    count = Count(lib)
    sink = c.c_void_p()
    info = c.c_void_p(lib.ptd_decoder_info(decoder))
    r = lib.ptd_sink_open(c.byref(count.ops), path, info, None, c.byref(sink))
    if r < 0:
        sys.exit(f"{os.fsdecode(path)}: {os.strerror(-r)}")
    batch = c.POINTER(Batch)()
    r = 0
    while r == 0:
        r = lib.ptd_decoder_next(decoder, c.byref(batch))
        if r == 0:
            r = lib.ptd_sink_batch(sink, batch)
    if r == END:
        r = lib.ptd_sink_finish(sink, c.c_void_p(lib.ptd_decoder_stats(decoder)))
    lib.ptd_sink_free(sink)
    if r < 0:
        message = lib.ptd_decoder_message(decoder)
        sys.exit(message.decode() if message else os.strerror(-r))


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
    decode(lib, decoder, os.fsencode(sys.argv[2]))
    lib.ptd_decoder_free(decoder)


if __name__ == "__main__":
    main()
