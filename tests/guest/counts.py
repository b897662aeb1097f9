# SPDX-License-Identifier: LGPL-2.1-or-later
#
# stdin: packets as the module makes them up at a "rate": PTW packets that count, and PSBs. Prints how
# many, if from the first PSB on none is missing.
import sys

bytes_ = sys.stdin.buffer.read()
psb = bytes([2, 0x82] * 8)
psbend = bytes([2, 0x23])
at = bytes_.find(psb)
n, before = 0, None
while 0 <= at < len(bytes_):
    if bytes_.startswith(psb, at):
        at += len(psb) + 8 + len(psbend)
    elif bytes_.startswith(b"\x02\x32", at) and at + 10 <= len(bytes_):
        value = int.from_bytes(bytes_[at + 2:at + 10], "little")
        if before is not None and value != before + 1:
            sys.exit(f"{value} after {before} at {at}")
        n, before = n + 1, value
        at += 10
    elif len(bytes_) - at < 26:
        break  # cut at the end, or padding
    else:
        sys.exit(f"no packet at {at}: {bytes_[at:at + 16].hex()}")
print(n)
