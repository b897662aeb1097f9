#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Do the schedule files of a drmemtrace directory agree with its traces?

Each CPU marker of a trace is an entry: the thread, the last timestamp, the CPU, and how many instructions of the
thread's file stand before it. Sorted by time, CPU, thread and instructions, of entries of one thread that follow
each other the first is kept. The files of the traces must be plain.
"""

import glob
import gzip
import struct
import sys
import zipfile

INSTRUCTIONS = {10, 11, 12, 13, 14, 15, 16, 31, 48, 49}
THREAD, MARKER = 22, 28
TIMESTAMP, CPU = 2, 3


def entries(path):
    tid = time = count = 0
    with open(path, "rb") as f:
        for kind, size, value in struct.iter_unpack("<HHQ", f.read()):
            if kind == THREAD:
                tid = value
            elif kind in INSTRUCTIONS:
                count += 1
            elif kind == MARKER and size == TIMESTAMP:
                time = value
            elif kind == MARKER and size == CPU:
                yield time, value, tid, count


def pack(rows):
    kept = []
    for time, cpu, tid, count in sorted(rows):
        if not kept or kept[-1][0] != tid:
            kept.append((tid, time, cpu, count))
    return b"".join(struct.pack("<QQQQ", *row) for row in kept)


def main():
    trace = sys.argv[1] + "/trace/"
    rows = [row for path in glob.glob(trace + "drmemtrace.*") for row in entries(path)]
    with gzip.open(trace + "serial_schedule.bin.gz") as f:
        if f.read() != pack(rows):
            sys.exit("serial_schedule.bin.gz does not agree with the traces")
    with zipfile.ZipFile(trace + "cpu_schedule.bin.zip") as archive:
        members = {int(name): archive.read(name) for name in archive.namelist()}
    if members != {cpu: pack(row for row in rows if row[1] == cpu) for cpu in {row[1] for row in rows}}:
        sys.exit("cpu_schedule.bin.zip does not agree with the traces")
    print(f"{len(rows)} CPU markers on {len(members)} CPUs are as in the schedule files")


main()
