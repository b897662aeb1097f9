#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that pprof shows functions by the names that a profile gives them, and that a C++ name which is
# demangled already can be the system name, too. Where both are the same, and the name looks like C++, Go's pprof
# cuts off the arguments, and those of templates: overloads, and the instances of a template, become one line. They
# stay apart where the system name is mangled or missing.
#
# Depended on by: decoder/sink/export/pprof.c, put_function().
. "$(dirname "$0")/lib.sh"
debian_package golang-1.19-go go 1.19.8-2
PATH=$PATH:$T/root/usr/lib/go-1.19/bin
pprof=$(go tool -n pprof 2>/dev/null)
[[ -x $pprof ]] || pprof=$T/root/usr/lib/go-1.19/pkg/tool/linux_amd64/pprof
go version
python3 - <<'EOP'
import gzip

def number(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)

def field(key, value):
    if isinstance(value, int):
        return number(key << 3) + number(value)
    return number(key << 3 | 2) + number(len(value)) + value

texts = ["", "time", "nanoseconds", "/bin/demo"]

def text(t):
    if t not in texts:
        texts.append(t)
    return texts.index(t)

profile = field(1, field(1, 1) + field(2, 2)) + field(3, field(1, 1) + field(3, 1 << 20) + field(5, 3) + field(7, 1))
functions = [("same::f(int)", "same::f(int)"), ("same::f(long)", "same::f(long)"), ("same::g<int>()", "same::g<int>()"),
             ("same::g<long>()", "same::g<long>()"), ("mangled::f(int)", "_ZN7mangled1fEi"),
             ("mangled::f(long)", "_ZN7mangled1fEl"), ("none::f(int)", ""), ("none::f(long)", "")]
for i, (name, system) in enumerate(functions, 1):
    profile += field(2, field(1, number(i)) + field(2, number(10)))
    profile += field(4, field(1, i) + field(2, 1) + field(3, 16 * i) + field(4, field(1, i)))
    profile += field(5, field(1, i) + field(2, text(name)) + field(3, text(system)))
for t in texts:
    profile += field(6, t.encode())
with gzip.open("demo.pb.gz", "wb") as file:
    file.write(profile)
EOP
"$pprof" -top demo.pb.gz >top 2>said || changed "pprof: $(tail -n 1 said)"
sed -n '/flat%/,$p' top
names=$(awk '/flat%/ { on = 1; next } on { print $6, $1 }' top | sort | tr '\n' ',')
want="mangled::f(int) 10ns,mangled::f(long) 10ns,none::f(int) 10ns,none::f(long) 10ns,same::f 20ns,same::g 20ns,"
[[ $names == "$want" ]] || changed "other lines"
