#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What DynamoRIO's tools and others say of a drmemtrace directory, compared with what is known otherwise.

calls LOG OBJECT... < what func_view -show_func_trace printed
    The tree of calls is the program's own log of its calls: for each thread, which functions of the objects were
    entered and left, in which order. A line of LOG is a thread, + or -, and a function's name; functions that it
    does not name do not count.

kernel DIR
    Prints the system calls and signals in the files, in the order of each: "TID call NUMBER"
    and "TID signal NUMBER", where marker 25 is right behind a system call and marker 40 behind marker 0. The type of
    each file says that there are numbers.

schedule DIR
    The schedule files agree with the traces: each CPU marker is an entry: the thread, the last timestamp, the CPU, and
    how many instructions of the thread's file stand before it. Sorted by time, CPU, thread and instructions, of
    entries of one thread that follow each other the first is kept.

records FILE
    Writes the records of a zip file as a plain file has them: without the footer at the end of each chunk but the
    last, and without what the next one begins with, which must be there.

mix TEXT < what opcode_mix printed
    Each opcode was executed as often as TEXT has it, which ptdecode text --no-bytes printed. DynamoRIO and Zydis
    write some names differently, those of moves above all: these count together.
"""
import collections
import glob
import gzip
import re
import struct
import sys
import zipfile

RECORD = struct.Struct('<HHQ')
THREAD, MARKER, ENCODING = 22, 28, 47
INSNS = {10, 11, 12, 14, 15, 16, 31, 48, 49}
SIGNAL, FILETYPE, SYSCALL, SIGNAL_NUMBER = 0, 9, 25, 40
TIMESTAMP, CPU, FOOTER, ORDINAL = 2, 3, 21, 22
CALLS = {b'\x0f\x05', b'\x0f\x34', b'\xcd\x80'}

LINE = re.compile(r'^T(\d+) +(\S.*)$')
ENTER = re.compile(r'^0x[0-9a-f]+ => ([^!]*)!(.*?)\(\)( => 0x0)?$')
PREFIXES = {'rep', 'repe', 'repne', 'repz', 'repnz', 'lock', 'bnd', 'data16', 'notrack'}
SAME = {'endbr64': 'nop', 'rdsspq': 'nop', 'cmpxchg16b': 'cmpxchg8b', 'cdqe': 'cwde', 'cqo': 'cdq'}


def bare(name):
    """The name without return type, namespaces, parameters and arguments of templates."""
    depth, text = 0, ''
    for c in name.replace('(anonymous namespace)', 'anonymous'):
        depth += c == '<'
        if depth == 0:
            text += c
        depth -= c == '>'
    return text.split('(')[0].split('::')[-1].split(' ')[-1]


def printed_calls(names, objects):
    calls, stacks = {}, {}
    for line in sys.stdin:
        match = LINE.match(line.rstrip())
        if not match:
            continue
        thread, what = match.groups()
        stack = stacks.setdefault(thread, [])
        entered = ENTER.match(what)
        if entered:
            name = bare(entered.group(2))
            name = name if entered.group(1) in objects and name in names else None
            stack.append(name)
            if name:
                calls.setdefault(thread, []).append('+' + name)
        if not entered or entered.group(3):
            if not stack:
                sys.exit(f'thread {thread}: left what was not entered: {line}')
            name = stack.pop()
            if name:
                calls.setdefault(thread, []).append('-' + name)
    return calls


def compare_calls(log, objects):
    logged = {}
    with open(log) as lines:
        for line in lines:
            thread, call = line.split()
            logged.setdefault(thread, []).append(call)
    names = {call[1:] for calls in logged.values() for call in calls}
    found = printed_calls(names, objects)
    for thread, calls in logged.items():
        mine = found.get(thread, [])
        if mine != calls:
            i = next((i for i, (a, b) in enumerate(zip(mine, calls)) if a != b), min(len(mine), len(calls)))
            sys.exit(f'thread {thread}: call {i}: printed {mine[i:i + 5]}, logged {calls[i:i + 5]}')
    print(f'{sum(map(len, logged.values()))} calls and returns as logged')


def opcode(name, known):
    if name.startswith(('mov', 'kmov', 'vmov')):
        return 'mov'
    name = SAME.get(name, name)
    if name not in known and name[-1:] in 'bwldqxy' and name[:-1] in known:
        name = name[:-1]
    return name


def compare_mix(text):
    told, mine = collections.Counter(), collections.Counter()
    for line in sys.stdin:
        words = line.split()
        if told and 'total' in line:
            break
        if words[1:2] == [':'] and words[2] != 'total':
            told[words[-1]] += int(words[0])
        if 'sets of categories' in line:
            break
    del told['categories']
    del told['int3']  # the packets do not report it, so that it is not in the text
    known = set(told)
    merged = collections.Counter()
    for name, n in told.items():
        merged[opcode(name, known)] += n
    with open(text) as lines:
        for line in lines:
            if line[0] == '#':
                continue
            words = line.split(None, 8)[5:]
            while words[0] in PREFIXES:
                words.pop(0)
            mine[opcode(words[0], known)] += 1
    wrong = [(name, merged[name], mine[name]) for name in sorted(set(merged) | set(mine)) if merged[name] != mine[name]]
    if wrong:
        sys.exit(f'opcodes whose counts differ (opcode_mix, text): {wrong}')
    print(f'{len(mine)} opcodes, {sum(mine.values())} instructions as decoded')


def chunks(path):
    """The records of each chunk of a file, without the footer at the end of each but the last, and without what the
    next one begins with, which must be there."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        for i, name in enumerate(names):
            data = memoryview(archive.read(name))
            if i > 0:
                first = [RECORD.unpack_from(data, j * RECORD.size)[:2] for j in range(3)]
                if first != [(MARKER, ORDINAL), (MARKER, TIMESTAMP), (MARKER, CPU)]:
                    sys.exit(f'{path}: {name} begins with {first}')
                data = data[3 * RECORD.size:]
            if i + 1 < len(names):
                last = RECORD.unpack_from(data, len(data) - RECORD.size)
                if last != (MARKER, FOOTER, i):
                    sys.exit(f'{path}: {name} ends with {last}')
                data = data[:-RECORD.size]
            yield data


def records(path):
    for chunk in chunks(path):
        yield from RECORD.iter_unpack(chunk)


def write_records(path):
    for chunk in chunks(path):
        sys.stdout.buffer.write(chunk)


def print_kernel(directory):
    for path in sorted(glob.glob(f'{directory}/trace/drmemtrace.*')):
        tid, code, last, after_signal = 0, {}, None, False
        pieces = b''
        for kind, size, value in records(path):
            if kind == THREAD:
                tid = value
            elif kind == ENCODING:
                pieces += value.to_bytes(8, 'little')[:size]
            elif kind in INSNS:
                code[value] = pieces or code[value]
                last, pieces = code[value], b''
            elif kind == MARKER and size == FILETYPE and not value & 0x400:
                sys.exit(f'{path}: type {value:#x}: no numbers')
            elif kind == MARKER and size == SYSCALL:
                if last not in CALLS:
                    sys.exit(f'{path}: system call {value} behind {last.hex()}')
                last = b''
                print(tid, 'call', value)
            elif kind == MARKER and size == SIGNAL_NUMBER:
                if not after_signal:
                    sys.exit(f'{path}: signal {value} without marker 0')
                print(tid, 'signal', value)
            after_signal = kind == MARKER and size == SIGNAL


def cpu_markers(path):
    tid = time = count = 0
    for kind, size, value in records(path):
        if kind == THREAD:
            tid = value
        elif kind in INSNS:
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
    return b''.join(struct.pack('<QQQQ', *row) for row in kept)


def check_schedule(directory):
    trace = directory + '/trace/'
    rows = [row for path in glob.glob(trace + 'drmemtrace.*') for row in cpu_markers(path)]
    with gzip.open(trace + 'serial_schedule.bin.gz') as f:
        if f.read() != pack(rows):
            sys.exit('serial_schedule.bin.gz does not agree with the traces')
    with zipfile.ZipFile(trace + 'cpu_schedule.bin.zip') as archive:
        members = {int(name): archive.read(name) for name in archive.namelist()}
    if members != {cpu: pack(row for row in rows if row[1] == cpu) for cpu in {row[1] for row in rows}}:
        sys.exit('cpu_schedule.bin.zip does not agree with the traces')
    print(f'{len(rows)} CPU markers on {len(members)} CPUs are as in the schedule files')


def main():
    what = {'kernel': lambda a: print_kernel(*a), 'schedule': lambda a: check_schedule(*a),
            'records': lambda a: write_records(*a),
            'calls': lambda a: compare_calls(a[0], a[1:]), 'mix': lambda a: compare_mix(*a)}
    what[sys.argv[1]](sys.argv[2:])


main()
