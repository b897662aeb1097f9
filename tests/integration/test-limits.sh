#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# --max-output and --max-spill: what fits is written, what does not is refused with a clear word, and nothing is
# written beyond it.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

start_ptd
record true /bin/true
"$O/ptdecode" export addresses -o "$T/whole" "$T/true"
size=$(stat -c %s "$T/whole")

# refused TEXT ARGS...: ptdecode fails and says so.
refused() {
	local text=$1 status
	shift
	"$O/ptdecode" "$@" >"$T/stdout" 2>"$T/stderr"
	status=$?
	[[ $status == 1 && $(cat "$T/stderr") == "ptdecode: $text" ]] ||
		fail "$*: exit status $status, expected \"$text\": $(cat "$T/stderr")"
}

"$O/ptdecode" --max-output "$size" export addresses -o "$T/out" "$T/true" || fail "exactly what it has: exit status $?"
cmp "$T/out" "$T/whole" || fail "exactly what it has"
for max in $((size - 1)) 4096 1; do
	refused "$T/out: cannot write: more than the $max bytes of --max-output" \
		--max-output "$max" export addresses -o "$T/out" "$T/true"
	cmp "$T/out" <(head -c "$max" "$T/whole") || fail "--max-output $max: $(stat -c %s "$T/out") bytes"
done
refused "standard output: cannot write: more than the 4096 bytes of --max-output" \
	--max-output 4K export addresses "$T/true"
[[ $(stat -c %s "$T/stdout") == 4096 ]] || fail "standard output: $(stat -c %s "$T/stdout") bytes"

# All outputs together.
"$O/ptdecode" --max-output "$((2 * size))" export addresses -o "$T/a" --also "export addresses -o $T/b" "$T/true" || fail "two outputs"
rm "$T/a" "$T/b"
"$O/ptdecode" --max-output "$((2 * size - 1))" export addresses -o "$T/a" --also "export addresses -o $T/b" "$T/true" 2>"$T/stderr" &&
	fail "two outputs that do not fit"
[[ $(($(stat -c %s "$T/a") + $(stat -c %s "$T/b"))) == $((2 * size - 1)) ]] || fail "$(ls -l "$T"/[ab])"
refused "$T/traces: cannot write: more than the 102400 bytes of --max-output" \
	--max-output 100K export drmemtrace -o "$T/traces" "$T/true"
written=$(cat "$T"/traces/trace/* | wc -c)
[[ $written -le 102400 ]] || fail "drmemtrace: $written bytes"

# What comes out of a pipe is put into a temporary file, but not more than that.
data=$(stat -c %s "$T/true/data")
cat "$T/true/data" | "$O/ptdecode" --max-spill 1G export addresses -o "$T/out" - || fail "through a pipe"
cmp "$T/out" "$T/whole" || fail "through a pipe"
cat "$T/true/data" | refused "-: would put more than 4096 bytes into temporary files, the limit (--max-spill)" \
	--max-spill 4K export addresses -o "$T/out" -


# A disk that is full is not the input's fault. A file system of a few pages can be had by root.
if unshare -m true 2>/dev/null && mkdir "$T/small" && [[ $data -gt 8192 ]]; then
	cat "$T/true/data" | TMPDIR=$T/small unshare -m bash -c 'mount -t tmpfs -o size=8k none "$TMPDIR" && exec "$@"' - \
		"$O/ptdecode" export addresses -o "$T/out" - 2>"$T/stderr" && fail "a full disk: exit status 0"
	grep -qx "ptdecode: -: cannot write what is made of it to a temporary file in $T/small: No space left on device" \
		"$T/stderr" || fail "a full disk: $(cat "$T/stderr")"
fi

# Of too little memory, how much may be taken is said.
if [[ -z ${PTD_ASAN:-} ]]; then
	# Little more than ptdecode starts with, libraries and all.
	for ((kib = 8000; kib < 100000; kib += 500)); do
		(ulimit -v $kib && "$O/ptdecode" --version >"$T/out" 2>&1) && break
	done
	(ulimit -v $((kib + 1000)) && "$O/ptdecode" export addresses -o "$T/out" "$T/true") 2>"$T/stderr" && fail "no memory: exit status 0"
	grep -q "Cannot allocate memory" "$T/stderr" && grep -q "at most [0-9.]* GiB of address space" "$T/stderr" ||
		fail "no memory: $(cat "$T/stderr")"
fi

for wrong in 0 -1 x 1x 1KK 1.5G "" 99999999999999999999 9999999T; do
	for option in --max-output --max-spill; do
		"$O/ptdecode" summary $option "$wrong" "$T/true" >/dev/null 2>"$T/stderr"
		[[ $? == 2 ]] && grep -q -- "$option takes a number of bytes" "$T/stderr" ||
			fail "$option '$wrong': $(cat "$T/stderr")"
	done
done
echo "$size bytes of output and $data of a pipe, limited"
