#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Do the tests see it when the code is wrong?

Make single changes, chosen by a seed, to the code of the decoder, the daemon and ptctl. Build each in a
copy of the tree, run units, corpora, golden cases and the scripts test-small, -raw, -control and
-badinput, and print which test saw it first, or that none did. A change that the compiler makes the same
object code of is no change, and is not counted. CC, CXX and LDFLAGS are make's.

    tests/tools/mutants.py --seed 1 --count 100
    tests/tools/mutants.py --count 10 --files 'daemon/control/peer.c'
    tests/tools/mutants.py --seed 2 --count 50 --part 2/2
"""

import argparse
import fnmatch
import itertools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FOLDERS = ("daemon/", "decoder/", "ctl/", "util/")
SCRIPTS = ("test-raw.sh", "test-control.sh", "test-small.sh", "test-badinput.sh")
SCRIPTS_SOURCE = ("lib/common.sh", "lib/tree.sh")
PROGRAMS = ("ptd", "ptctl", "ptdecode", "ptd-emu.so")
KINDS = ("comparison", "condition", "statement", "return", "constant")
# What takes longer than this, and than so many times as long as without the change, hangs: that is seen.
TEST_S = 40
TEST_TIMES = 10
TWIN = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&"}
KEYWORDS = frozenset(
    "if else for while do switch case default return break continue goto sizeof struct union enum static"
    " const extern typedef char int unsigned signed long short float double bool void volatile inline"
    " static_assert assert _cleanup_ va_start va_end va_list va_arg".split())
TOKEN = re.compile(
    r'(?P<space>\s+|/\*.*?\*/|//[^\n]*)|(?P<text>"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
    r'|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)'
    r'|(?P<sign>->|<<=|>>=|<<|>>|\+\+|--|&&|\|\||[-+*/%&|^=!<>]=|\.\.\.|.)', re.S)


class Token:
    def __init__(self, kind, text, at):
        self.kind, self.text, self.at = kind, text, at


def tokens_of(source):
    """The tokens outside comments and preprocessor lines, but with the values of #define."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    # The name goes, the value stays; so does its place in the file.
    source = re.sub(r"^#[ \t]*define[ \t]+\w+(?=[ \t])", blank, source, flags=re.M)
    source = re.sub(r"^#(?:\\\n|.)*", blank, source, flags=re.M)
    return [Token(m.lastgroup, m.group(), m.start())
            for m in TOKEN.finditer(source) if m.lastgroup != "space"]


class Function:
    """Where a walk over the tokens is: inside a function's body, and inside which parentheses."""

    def __init__(self):
        self.braces = []  # for each: is it a function's body?
        self.parens = []  # for each: the token before it

    def inside(self):
        return any(self.braces)


def closing(tokens, i):
    """The index of what closes the parenthesis at i."""
    depth = 0
    for k in range(i, len(tokens)):
        depth += (tokens[k].text == "(") - (tokens[k].text == ")")
        if depth == 0:
            return k
    return None


def statement_end(tokens, i):
    depth = 0
    for k in range(i, len(tokens)):
        text = tokens[k].text
        if text in ("(", "{", "["):
            depth += 1
        elif text in (")", "}", "]"):
            depth -= 1
        if depth < 0:
            return None
        if depth == 0 and text == ";":
            return k
    return None


def is_expression(tokens, i):
    """Does a statement that is no declaration, and goes nowhere, begin here?"""
    a, b, c = (t.text for t in tokens[i:i + 3])
    if a == "(":
        return b == "void"
    if a in ("*", "++", "--"):
        return True
    if tokens[i].kind != "name" or a in KEYWORDS or b == ":":
        return False
    return tokens[i + 1].kind != "name" and not (b == "*" and tokens[i + 2].kind == "name")


def declares_array(tokens, i):
    return (tokens[i - 1].text == "[" and tokens[i + 1].text == "]" and
            (tokens[i - 3].kind == "name" or tokens[i - 3].text in ("*", ",")))


def changes(source):
    """Yield (kind, start, end, replacement)."""
    tokens = tokens_of(source)
    place = Function()
    after_condition = -1  # the index of the token behind "if (…)" and the like
    ignore_until = -1

    for i, t in enumerate(tokens[:-3]):
        before = tokens[i - 1].text if i else ""
        if i <= ignore_until:
            continue
        if t.text in ("assert", "static_assert", "_Static_assert"):
            ignore_until = statement_end(tokens, i) or i
            continue
        if (place.inside() and not place.parens and is_expression(tokens, i) and
                (before in (";", "{", "}", "else", "do", ":") or i == after_condition)):
            end = statement_end(tokens, i)
            if end is not None:
                yield "statement", t.at, tokens[end].at, ""
        if t.text == "{":
            place.braces.append(before == ")" and not place.inside() and not place.parens)
        elif t.text == "}" and place.braces:
            place.braces.pop()
        elif t.text == "(":
            place.parens.append(before)
            if before in ("if", "while", "for", "switch"):
                end = closing(tokens, i)
                after_condition = end + 1
                if before in ("if", "while"):
                    yield ("condition", t.at, tokens[end].at + 1,
                           "(!" + source[t.at:tokens[end].at + 1] + ")")
        elif t.text == ")" and place.parens:
            place.parens.pop()
        elif t.text in TWIN and t.kind == "sign" and place.inside():
            yield "comparison", t.at, t.at + len(t.text), TWIN[t.text]
        elif t.text == "return":
            end = statement_end(tokens, i)
            value = source[t.at + 6:tokens[end].at].strip()
            if value not in ("", "0", "NULL", "false"):
                yield "return", t.at, tokens[end].at, "return 0"
        elif t.kind == "number" and not declares_array(tokens, i):
            m = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", t.text)
            if m:
                hexadecimal = m.group(1).lower().startswith("0x")
                value = int(m.group(1), 16 if hexadecimal else 8 if m.group(1)[0] == "0" else 10) + 1
                yield ("constant", t.at, t.at + len(t.text),
                       (hex(value) if hexadecimal else str(value)) + m.group(2))


class Change:
    def __init__(self, path, source, kind, start, end, replacement):
        self.path, self.kind = path, kind
        # Deleted lines stay as empty ones, so that __LINE__ makes no difference.
        self.source = (source[:start] + replacement +
                       "\n" * (source[start:end].count("\n") - replacement.count("\n")) + source[end:])
        self.line = source.count("\n", 0, start) + 1
        first, last = source.rfind("\n", 0, start) + 1, source.find("\n", end)
        flat = lambda s: " ".join(s.split())
        self.before = flat(source[first:last])
        self.after = flat(source[first:start] + replacement + source[end:last])

    def __str__(self):
        return f"{self.path}:{self.line}: {self.kind}\n    - {self.before}\n    + {self.after}"


class Tree:
    """The copy that is changed and built."""

    def __init__(self, work):
        self.top = os.path.join(work, "tree")
        os.chmod(work, 0o755)  # some tests are another user, too
        for path in subprocess.check_output(["git", "ls-files", "-z"], text=True).split("\0")[:-1]:
            copy = os.path.join(self.top, path)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy2(path, copy, follow_symlinks=False)
        shared = os.path.realpath("../shared")
        if os.path.isdir(shared):
            os.symlink(shared, os.path.join(work, "shared"))
        self.tmp = os.path.join(work, "tmp")
        os.mkdir(self.tmp)
        os.chmod(self.tmp, 0o1777)
        self.environment = {**os.environ, "TMPDIR": self.tmp, "CFLAGS": "-O2", "O": "build",
                            "PTD_EMU_SO": "build/ptd-emu.so"}

    def read(self, path):
        with open(os.path.join(self.top, path), encoding="utf-8") as f:
            return f.read()

    def write(self, path, source):
        with open(os.path.join(self.top, path), "w", encoding="utf-8") as f:
            f.write(source)

    def make(self, *targets):
        return subprocess.run(["make", "-s", "-j2", "VERSION=dev", *targets], cwd=self.top,
                              env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def used_by_scripts(self):
        text = "".join(self.read(f"tests/integration/{name}") for name in SCRIPTS + SCRIPTS_SOURCE)
        return [f"build/{name}" for name in PROGRAMS] + sorted(
            f"build/tools/{name}" for name in set(re.findall(r"\$O/tools/([\w-]+)", text)))

    def object_code(self, path):
        with open(os.path.join(self.top, "build", path[:-2] + ".o"), "rb") as f:
            return f.read()

    def contains(self, program, path):
        """Was the program linked from this source file? make has written what from."""
        with open(os.path.join(self.top, program + ".d"), encoding="utf-8") as f:
            return f"build/{path[:-2]}.o:\n" in f.read()


def end_session(leader):
    """End what a test has left, and only that: it is all in the test's own session."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.getsid(int(name)) == leader:
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass


def set_limits():
    # A program that was broken may ask for all there is: it goes first. (test-filebytes maps 64 GiB.)
    resource.setrlimit(resource.RLIMIT_AS, (80 << 30, 80 << 30))
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
        f.write("1000")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Test:
    def __init__(self, name, command, program=None):
        self.name, self.command = name, command
        self.program = program  # the one that it runs; None if it runs many
        self.seconds = 30  # that it takes unchanged; more is known when it has run
        self.hangs = False

    def passes(self, tree):
        process = subprocess.Popen(self.command, cwd=tree.top, env=tree.environment, shell=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True,
                                   preexec_fn=set_limits)
        try:
            status = process.wait(TEST_S + TEST_TIMES * self.seconds)
        except subprocess.TimeoutExpired:
            status, self.hangs = -1, True
        end_session(process.pid)
        process.wait()
        for name in os.listdir(tree.tmp):
            shutil.rmtree(os.path.join(tree.tmp, name), ignore_errors=True)
        return status in (0, 77)

    def fails(self, tree):
        """What fails only once has another reason."""
        self.hangs = False
        return not self.passes(tree) and (self.hangs or not self.passes(tree))


def tests_of(tree):
    nouns = lambda folder, prefix: sorted(
        name[len(prefix):-2] for name in os.listdir(os.path.join(tree.top, folder))
        if name.startswith(prefix) and name.endswith(".c"))
    tests = [Test("test-" + n, f"build/test-{n}", f"build/test-{n}")
             for n in nouns("tests/unit", "test-")]
    tests += [Test("corpus-" + n, f"build/replay-{n} tests/fuzz/corpus/{n}/*", f"build/replay-{n}")
              for n in nouns("tests/fuzz", "fuzz-")]
    tests.append(Test("golden", "build/tools/golden tests/golden/*.case", "build/tools/golden"))
    tests += [Test(n, f"tests/integration/{n}", "build/ptdecode" if n == "test-raw.sh" else None)
              for n in SCRIPTS]
    return tests


def choose(tree, files, rng):
    """Yield changes without end, of each kind as many."""
    found = {kind: [] for kind in KINDS}
    for path in files:
        source = tree.read(path)
        for kind, start, end, replacement in changes(source):
            found[kind].append((path, source, kind, start, end, replacement))
    for kind in KINDS:
        rng.shuffle(found[kind])
    print("to choose from: " + ", ".join(f"{len(v)} {k}s" for k, v in found.items()))
    while any(found.values()):
        kind = rng.choice([k for k in KINDS if found[k]])
        yield Change(*found[kind].pop())


def judge(tree, change, tests):
    """Return who saw it; "" if nobody did; None if it is no change, or does not compile."""
    before, source = tree.object_code(change.path), tree.read(change.path)
    noun = os.path.basename(change.path)[:-2]
    # A test whose program does not contain the change cannot see it, and need not be built.
    linked = [t for t in tests if t.program and tree.contains(t.program, change.path)]
    own = [t for t in linked if t.name == "test-" + noun]
    others = [t for t in linked if t not in own]
    scripts = [t for t in tests if not t.program]
    tree.write(change.path, change.source)
    try:
        if (not tree.make("build/" + change.path[:-2] + ".o") or
                tree.object_code(change.path) == before):
            return None
        for some, targets in ((own, [t.program for t in own]),
                              (others, [t.program for t in others]), (scripts, tree.used_by_scripts())):
            if targets and not tree.make(*targets):
                return None
            for t in some:
                if t.fails(tree):
                    return t.name + (", which hangs" if t.hangs else "")
        return ""
    finally:
        tree.write(change.path, source)


def prepare(tree, tests):
    """Build it unchanged; keep the tests that pass, the quickest first."""
    if not tree.make("tests"):
        sys.exit("the unchanged tree cannot be built (git ls-files must list all of it)")
    passing = []
    for t in tests:
        start = time.monotonic()
        if t.fails(tree):
            print(f"not used, since it fails on the unchanged tree: {t.name}")
            continue
        t.seconds = time.monotonic() - start
        passing.append(t)
    return sorted(passing, key=lambda t: t.seconds)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--files", default="*", help="a pattern of paths: change only these")
    parser.add_argument("--part", default="1/1",
                        help="K/N: of the seed's changes only each Nth, from the Kth on; for N at once")
    parser.add_argument("--list", action="store_true", help="only print what would be changed")
    return parser.parse_args()


def main():
    options = arguments()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    sys.stdout.reconfigure(line_buffering=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    part, n_parts = map(int, options.part.split("/"))
    survivors, n, n_same = [], 0, 0

    with tempfile.TemporaryDirectory(prefix="ptd-mutants-") as work:
        tree = Tree(work)
        files = [path for path in subprocess.check_output(["git", "ls-files"], text=True).split()
                 if path.startswith(FOLDERS) and path.endswith(".c") and "/examples/" not in path and
                 fnmatch.fnmatch(path, options.files)]
        chosen = itertools.islice(choose(tree, files, random.Random(options.seed)), part - 1, None,
                                  n_parts)
        if options.list:
            for change, _ in zip(chosen, range(options.count)):
                print(change)
            return
        tests = prepare(tree, tests_of(tree))
        for change in chosen:
            if n == options.count:
                break
            start = time.monotonic()
            seen_by = judge(tree, change, tests)
            if seen_by is None:
                n_same += 1
                continue
            n += 1
            if not seen_by:
                survivors.append(change)
            print(f"{n} {'seen by ' + seen_by if seen_by else 'SURVIVED'}"
                  f" ({time.monotonic() - start:.0f} s) {change}")

    print(f"\n{n} changes, {n - len(survivors)} seen, {len(survivors)} survived;"
          f" {n_same} more had the same object code or did not compile")
    for change in survivors:
        print(change)


main()
