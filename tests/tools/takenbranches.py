#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Print the lines that `ptdecode export bolt` should write of a static program, by another way: from the address of
each instruction (export addresses) and objdump's names of the instructions.

    takenbranches.py PROGRAM ADDRESSES
"""

import collections
import re
import struct
import subprocess
import sys


def disassemble(program):
    """Return: of each address, the size of the instruction and its name."""
    code, last = {}, None
    listing = subprocess.run(["objdump", "-d", "-w", "--section=.text", "--section=.plt", "--section=.init",
                              "--section=.fini", program], capture_output=True, text=True, check=True).stdout
    for line in listing.splitlines():
        match = re.match(r" +([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(.*)", line)
        if not match:
            continue
        words = [word for word in match[3].split() if word not in ("bnd", "notrack", "repz", "rep", "cs", "addr32")]
        last = int(match[1], 16)
        code[last] = (len(match[2].split()), words[0] if words else "")
    return code


def main():
    code = disassemble(sys.argv[1])
    with open(sys.argv[2], "rb") as f:
        addresses = [address for address, in struct.iter_unpack("<Q", f.read())]
    counts = collections.Counter()
    start, from_outside = 0, False
    for at, to in zip(addresses, addresses[1:]):
        size, name = code.get(at, (None, ""))
        is_branch = name.startswith(("call", "jmp", "ret"))
        if size is None:
            # Of the vDSO or the like: a branch is what leads into the program.
            is_branch = to in code
        if not is_branch and (not name.startswith(("j", "loop")) or to == at + size):
            continue
        inside = at if at in code else 0
        target = to if to in code else 0
        if inside or target:
            counts["B", inside, target] += 1
        if start and inside:
            counts["f" if from_outside else "F", start, inside] += 1
        start, from_outside = target, not inside
    for (kind, at, to), n in sorted(counts.items(), key=lambda item: ("BFf".index(item[0][0]), item[0][1:])):
        print(f"{kind} {at:x} {to:x} {n}{' 0' if kind == 'B' else ''}")


main()
