#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# --debuginfod: what is not on this machine any more, a program and its debug file, is got by build-id from a server,
# here one of the test's own, and decodes to the same; without the option no server is asked.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 objcopy readelf "${CC:-cc}"
[[ -z ${PTD_ASAN:-} ]] || skip "libdebuginfod is not built with sanitizers"

# A program that is recorded, stripped, and its debug file.
echo 'int main(void) { volatile int n = 1000; while (n > 0) n--; return n; }' >"$T/program.c"
"${CC:-cc}" -g -Wl,--build-id -o "$T/program" "$T/program.c" || fail "cannot compile"
objcopy --only-keep-debug "$T/program" "$T/program.debug"
strip "$T/program"
id=$(readelf -n "$T/program" | sed -n 's/.*Build ID: //p')
[[ $id ]] || fail "the program has no build-id"
start_ptd
record whole "$T/program"
stop_ptd

# The recording alone, as perf leaves it; its program is gone.
cp "$T/whole/data" "$T/alone"
mkdir -p "$T/www/buildid/$id"
mv "$T/program" "$T/www/buildid/$id/executable"
mv "$T/program.debug" "$T/www/buildid/$id/debuginfo"

cat >"$T/server.py" <<'EOF'
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.HTTPServer(("127.0.0.1", 0), handler)
print(server.server_port, flush=True)
server.serve_forever()
EOF
timeout 300 python3 "$T/server.py" "$T/www" >"$T/port" 2>"$T/asked" &
server=$!
trap 'kill $server 2>/dev/null; finish' EXIT
for ((i = 0; i < 300; i++)); do
	[[ ! -s $T/port ]] || break
	kill -0 $server || skip "no server can be had: $(tail -1 "$T/asked")"
	sleep 0.1
done
export DEBUGINFOD_URLS="http://127.0.0.1:$(<"$T/port")/" DEBUGINFOD_CACHE_PATH=$T/cache HOME=$T
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY

# decode NAME OPTION...: the program's instructions, with their names.
decode() {
	local name=$1 status=0
	shift
	"$O/ptdecode" text "$@" >"$T/text" 2>"$T/err" || status=$?
	[[ $status = 0 || $status = 3 ]] || { cat "$T/err"; fail "$name: exit status $status"; }
	grep "($T/program)" "$T/text" >"$T/$name.lines"
	echo "$name: $(wc -l <"$T/$name.lines") instructions of the program"
}

decode without "$T/alone"
[[ ! -s $T/without.lines ]] || fail "the program is still there"
[[ ! -s $T/asked ]] || { cat "$T/asked"; fail "the server was asked, though nobody wanted that"; }

decode got "$T/alone" --debuginfod
for file in executable debuginfo; do
	grep -q "GET /buildid/$id/$file HTTP.* 200" "$T/asked" || { cat "$T/asked"; fail "nobody asked for the $file"; }
done
mkdir -p "$T/debug/.build-id/${id:0:2}"
cp "$T/www/buildid/$id/debuginfo" "$T/debug/.build-id/${id:0:2}/${id:2}.debug"
decode snapshot "$T/whole" --debug-dir "$T/debug"
[[ -s $T/snapshot.lines ]] && grep -q " main" "$T/snapshot.lines" || fail "nothing to compare with"
cmp "$T/got.lines" "$T/snapshot.lines" || fail "other instructions or names"

# A snapshot that has lost its program: what decodes it may not even open the cache.
cp -r "$T/whole" "$T/robbed"
rm -r "$T/robbed/objects/.build-id/${id:0:2}/${id:2}" || fail "the snapshot never had its program"
for engine in insn flow; do
	decode robbed "$T/robbed" --force
	[[ ! -s $T/robbed.lines ]] || fail "the snapshot still has its program"
	decode robbed "$T/robbed" --force --debuginfod --engine "$engine"
	cmp "$T/robbed.lines" "$T/snapshot.lines" || { cat "$T/err"; fail "other instructions or names in a snapshot"; }
done

# A program that kept its symbols, but lacks its DWARF, which is asked for where lines are shown.
echo 'int main(void) { volatile int n = 10; while (n > 0) n--; return n; }' >"$T/named.c"
mkdir "$T/bin"
"${CC:-cc}" -g -Wl,--build-id -o "$T/bin/named" "$T/named.c" || fail "cannot compile"
named=$(readelf -n "$T/bin/named" | sed -n 's/.*Build ID: //p')
mkdir -p "$T/www/buildid/$named"
objcopy --only-keep-debug "$T/bin/named" "$T/www/buildid/$named/debuginfo"
strip -g "$T/bin/named"
start_ptd
record named "$T/bin/named"
stop_ptd
"$O/ptdecode" text --lines "$T/named" | grep -q "named.c:" && fail "there are lines without the DWARF"
"$O/ptdecode" text --debuginfod -o "$T/text" "$T/named" || fail "status $?"
grep -q "$named" "$T/asked" && { cat "$T/asked"; fail "DWARF was asked for that is not needed"; }
for verb in text calls; do
	"$O/ptdecode" $verb --debuginfod --lines -o "$T/text" "$T/named" || fail "$verb: status $?"
	grep -q "$T/named.c:1" "$T/text" || fail "$verb --lines --debuginfod: no line of the program"
done
grep -q "GET /buildid/$named/debuginfo HTTP.* 200" "$T/asked" || fail "nobody asked for the DWARF"

# What is in the cache is not asked for again; what nobody has is a gap.
n=$(grep -c "$id" "$T/asked")
decode again "$T/alone" --debuginfod
cmp "$T/again.lines" "$T/snapshot.lines" || fail "the cache has something else"
[[ $(grep -c "$id" "$T/asked") = "$n" ]] || fail "the cache was not used"
rm -r "$T/www/buildid/$id" "$T/cache"
decode nobody "$T/alone" --debuginfod
[[ ! -s $T/nobody.lines ]] || fail "out of nothing"

DEBUGINFOD_URLS= "$O/ptdecode" text "$T/alone" --debuginfod 2>"$T/err" && fail "no server, and no word of it"
grep -q "DEBUGINFOD_URLS names no server" "$T/err" || { cat "$T/err"; fail "it is not said what is missing"; }

# A file can name any number of build-ids: servers that do not answer are not asked for each.
python3 - "$T/many" <<'EOF'
import struct, sys
def record(kind, body, misc=2):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body
trailer = struct.pack("<IIQIIQ", 10, 10, 1, 0, 0, 1)
priv = [8, 0, 1, 0, 1, 0x400, 0x800, 1, 0, 1, 0x200, 0x3c000, 0, 0, 2, 0, 0]
data = record(70, struct.pack("<II17Q", 1, 0, *priv))
for i in range(4000):
    data += record(10, struct.pack("<IIQQQB3x20sII", 10, 10, 0x1000 * i, 0x1000, 0, 20,
                                   b"%020d" % i, 5, 2) + b"/gone/file".ljust(16, b"\0") + trailer, 0x4002)
attr = struct.pack("<IIQQQQQ", 8, 112, 0x2401, 1, 0x10087, 0, 1 << 18).ljust(112, b"\0")
header = b"PERFILE2" + struct.pack("<8Q", 104, 128, 112, 128, 240, len(data), 0, 0) + bytes(32)
open(sys.argv[1], "wb").write(header + struct.pack("<Q", 1) + attr + struct.pack("<QQ", 104, 8) + data)
EOF
n=$(grep -c GET "$T/asked")
"$O/ptdecode" summary "$T/many" --debuginfod >"$T/text" 2>"$T/err" || [[ $? = 3 ]] || { cat "$T/err"; fail "many"; }
grep -q "1024 files were not to be had: no more are asked for" "$T/err" || { cat "$T/err"; fail "they were all asked for"; }
n=$(($(grep -c GET "$T/asked") - n))
echo "of 4000 files that nobody has, $n were asked for"
[[ $n = 1024 ]] || fail "that is not what was said"
kill $server
wait $server 2>/dev/null || true
rm -r "$T/cache"
"$O/ptdecode" summary "$T/many" --debuginfod >"$T/text" 2>"$T/err" || [[ $? = 3 ]] || { cat "$T/err"; fail "no server"; }
grep -q "3 questions in a row failed" "$T/err" || { cat "$T/err"; fail "a server that is gone was asked for each"; }
