#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Are the symbols of marker 101 those that others give the same addresses?

Of the instructions of a drmemtrace directory 1,200 are picked by a seed, with build/tools/memtrace-pick.

elf DIR SIDEBAND SEED OBJECT TRUTH
    Of those in the mappings of the file OBJECT, which SIDEBAND lists (ptdecode sideband), the symbol is what
    addr2line -f says of the file TRUTH, and its row in symbols.tsv covers the address that addr2line was asked.
    addr2line knows no stubs of the PLT, which must be called NAME@plt here, and no names in a file without
    symbols, where they must be made of the address.

jit DIR DUMP PID SEED [bytes]
    Of those in the code that the jitdump DUMP describes, the symbol is the function that it has at that address at
    that time. The times of an instruction are those between the timestamps around it. If the code ran before it
    was noted, it is the first function that was noted there later; if it is no longer noted, there is none. The
    rows of symbols.tsv are the dump's records. With "bytes", the code is the dump's, too.
"""
import collections
import glob
import os
import re
import struct
import subprocess
import sys

PICKS, NEEDED = 1200, 1000
MMAP = re.compile(r'PERF_RECORD_MMAP2? (\d+)/\d+: \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*?\]: (\S+) (.*)$')
PICK = os.environ['O'] + '/tools/memtrace-pick'
US_1601 = 11644473600000000
Row = collections.namedtuple('Row', 'id name object build_id address size kind pid jit_index valid_from')
Pick = collections.namedtuple('Pick', 'pc row since until code')


def read_rows(directory):
    with open(directory + '/aux/symbols.tsv') as table:
        if tuple(next(table).split()) != Row._fields:
            sys.exit('symbols.tsv has other columns')
        return {int(line.split('\t', 1)[0]): Row(*line.rstrip('\n').split('\t')) for line in table}


def pick(directory, seed, ranges, *options):
    rows = read_rows(directory)
    files = sorted(glob.glob(directory + '/trace/drmemtrace.*'))
    command = [PICK, '-n', str(PICKS), '-s', seed, *options] + [f'{a:x}-{b:x}' for a, b in ranges] + files
    picks = []
    for line in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        pc, symbol, since, until, code = line.split(' ')
        picks.append(Pick(int(pc, 16), rows[int(symbol)] if symbol != '0' else None, int(since), int(until), code))
    return picks


def finish(what, wrong, right, n):
    if wrong:
        print(*wrong[:20], sep='\n')
        sys.exit(f'{what}: {len(wrong)} of {n} symbols are wrong')
    if right < NEEDED:
        sys.exit(f'{what}: only {right} symbols of {n} could be judged')


# --- ELF files -------------------------------------------------------------------------------------------------


def read_mappings(sideband, path):
    """(start, end, offset in the file) of what was mapped to be executed."""
    found = []
    with open(sideband) as lines:
        for match in filter(None, map(MMAP.search, lines)):
            start, size, offset = (int(match[i], 16) for i in (2, 3, 4))
            if match[6] == path and 'x' in match[5]:
                found.append((start, start + size, offset))
    return sorted(set(found))


def read_segments(path):
    """(offset, size, address) of what is loaded of an ELF file."""
    text = subprocess.run(['readelf', '-lW', path], stdout=subprocess.PIPE, text=True, check=True).stdout
    words = [line.split() for line in text.splitlines()]
    return [(int(w[1], 16), int(w[4], 16), int(w[2], 16)) for w in words if w[:1] == ['LOAD']]


def link_address(segments, offset):
    return next(address + offset - start for start, size, address in segments if start <= offset < start + size)


def ask_addr2line(truth, addresses):
    text = subprocess.run(['addr2line', '-fC', '-e', truth], input='\n'.join(map(hex, addresses)),
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return text.splitlines()[::2]


def judge_elf(directory, sideband, seed, path, truth):
    mappings, segments = read_mappings(sideband, path), read_segments(path)
    picks = pick(directory, seed, [mapping[:2] for mapping in mappings])
    addresses = []
    for one in picks:
        start, _, offset = next(m for m in mappings if m[0] <= one.pc < m[1])
        addresses.append(link_address(segments, one.pc - start + offset))
    wrong, same, stubs = [], 0, 0
    for one, address, name in zip(picks, addresses, ask_addr2line(truth, addresses)):
        row = one.row
        start, size = (int(row.address, 16), int(row.size)) if row else (0, 0)
        covers = row and row.object == path and start <= address and (size == 0 or address < start + size)
        if covers and row.kind == 'elf' and row.name == name:
            same += 1
        elif name == '??' and (not row or row.name == '-' or covers and (
                row.kind == 'plt' and row.name.endswith('@plt') or re.search(r'\+0x[0-9a-f]+(\.cold)?$', row.name))):
            stubs += 1
        else:
            wrong.append(f'{one.pc:#x}, {address:#x} in the file: addr2line says {name}, the row is {row}')
    finish(path, wrong, same, len(picks))
    names = len({one.row for one in picks})
    print(f'{os.path.basename(path)}, seed {seed}: {same} of {len(picks)} as addr2line says, {stubs} without its '
          f'word, {names} functions')


# --- jitdumps --------------------------------------------------------------------------------------------------

class Version:
    """What a record LOAD or MOVE says: from its time until the next that overlaps it."""

    def __init__(self, start, size, time, index, name, code, noted_at):
        self.start, self.end, self.index, self.name, self.code = start, start + size, index, name, code
        self.begin, self.over, self.noted_at = time, None, noted_at

    def holds(self, time):
        return self.begin <= time and (self.over is None or time < self.over)


class Dump:
    PAGE = 4096

    def __init__(self, path):
        self.versions, self.on_page = [], collections.defaultdict(list)
        self.by_index = {}
        with open(path, 'rb') as file:
            data = file.read()
        at = struct.unpack_from('<I', data, 8)[0]
        while at + 16 <= len(data):
            kind, size, time = struct.unpack_from('<IIQ', data, at)
            if size < 16 or at + size > len(data):
                break
            self.read_record(kind, data[at:at + size], time)
            at += size

    def read_record(self, kind, record, time):
        if kind == 0:
            start, size, index = struct.unpack_from('<QQQ', record, 32)
            end = record.index(b'\0', 56)
            if size:
                self.add(Version(start, size, time, index, record[56:end].decode(errors='replace'),
                                 record[end + 1:end + 1 + size], start))
        elif kind == 1:
            start, size, index = struct.unpack_from('<QQQ', record, 40)
            moved = self.by_index[index]
            self.add(Version(start, size, time, index, moved.name, moved.code, moved.noted_at))
        # A CLOSE ends no code: a child that shares the file writes one, and its parent goes on.

    def pages(self, version):
        return range(version.start // self.PAGE, (version.end - 1) // self.PAGE + 1)

    def add(self, version):
        for page in self.pages(version):
            for old in self.on_page[page]:
                if old.over is None and old.start < version.end and version.start < old.end:
                    old.over = version.begin
            self.on_page[page].append(version)
        self.versions.append(version)
        self.by_index[version.index] = version

    def at(self, pc):
        return [v for v in self.on_page[pc // self.PAGE] if v.start <= pc < v.end]

    def ranges(self):
        """The code, as few ranges as pages that follow each other allow."""
        pages = sorted(self.on_page)
        starts = [p for p in pages if p - 1 not in self.on_page]
        ends = [p for p in pages if p + 1 not in self.on_page]
        return [(a * self.PAGE, (b + 1) * self.PAGE) for a, b in zip(starts, ends)]


def expect(versions, time):
    """The version that an instruction at one of the versions' addresses belongs to at this time; or None."""
    for version in versions:
        if version.holds(time):
            return version
    if any(v.begin <= time for v in versions):
        return None
    return min(versions, key=lambda v: v.begin)


def offset_of(rows, dump):
    """Real time less the dump's time, in ns, which the rows must agree about."""
    low, high = 0, 1 << 64
    for row in rows:
        times = [v.begin for v in dump.versions if v.index == int(row.jit_index) and v.start == int(row.address, 16)
                 and v.name == row.name and v.end - v.start == int(row.size)]
        if not times:
            sys.exit(f'no record of the jitdump is {row}')
        if len(times) == 1:
            real = (int(row.valid_from) - US_1601) * 1000
            low, high = max(low, real - times[0]), min(high, real + 1000 - times[0])
    if low > high:
        sys.exit('the times of symbols.tsv are not those of the jitdump')
    return low


def judge_jit(directory, path, pid, seed, *options):
    dump = Dump(path)
    rows = [row for row in read_rows(directory).values() if row.kind == 'jit' and row.pid == pid
            and row.jit_index != '-']
    offset = offset_of(rows, dump)
    wrong, named, nameless, unsure, n = [], 0, 0, 0, 0
    for one in pick(directory, seed, dump.ranges(), '-p', pid):
        versions = dump.at(one.pc)
        since = (one.since - US_1601) * 1000 - offset - 1000
        until = (one.until - US_1601 + 1) * 1000 - offset if one.until else 1 << 64
        times = {since, until} | {t for v in versions for t in (v.begin, v.over) if t and since < t < until}
        may_be = [expect(versions, time) for time in times] if versions else [None]
        row = one.row if one.row and one.row.name != '-' and one.row.kind == 'jit' else None
        found = [v for v in may_be if (row is None) == (v is None) and (v is None or (
            v.name, v.index, v.noted_at) == (row.name, int(row.jit_index), int(row.address, 16)))]
        n += 1
        unsure += len(set(may_be)) > 1
        if not found:
            wrong.append(f'{one.pc:#x}: the row is {one.row}, but the dump has {[v and v.name for v in may_be]}')
        elif row is None:
            nameless += 1
        else:
            named += 1
            code = found[0].code[one.pc - found[0].start:][:len(one.code) // 2].hex()
            if 'bytes' in options and code != one.code:
                wrong.append(f'{one.pc:#x} in {row.name}: its bytes are {one.code}, but those of the dump {code}')
    finish('jit', wrong, named, n)
    used_again = sum(any(a.start < b.end and b.start < a.end for b in dump.at(a.start) if b is not a)
                     for a in dump.versions)
    print(f'jit, seed {seed}: {named} of {n} named as in the dump, {nameless} without a name, of {unsure} the time '
          f'leaves more than one; {len(rows)} rows; {used_again} of {len(dump.versions)} functions at addresses '
          f'that were used more than once')


def main():
    {'elf': judge_elf, 'jit': judge_jit}[sys.argv[1]](*sys.argv[2:])


main()
