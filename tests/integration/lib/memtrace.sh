# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that write drmemtrace directories; they source it after common.sh and jit.sh.

seed=${PTD_SEED:-14}

# write_memtrace NAME: the recording as a drmemtrace directory, $T/NAME.mem, which is valid and, read back, is what
# ran. What was added to a recording of JIT code is not in its SHA256SUMS.
write_memtrace() {
	"$O/ptdecode" --force export drmemtrace -o "$T/$1.mem" "$T/$1" || fail "$1: drmemtrace"
	"$O/tools/memtrace-check" "$T/$1.mem" >"$T/checked" || { head -5 "$T/checked"; fail "$1: the drmemtrace is not valid"; }
	[[ $# -gt 1 ]] || "$O/tools/exact" -b "$T/$1.mem" "$T/$1.log" >"$T/exact" ||
		{ tail -5 "$T/exact"; fail "$1: the drmemtrace is not what ran"; }
	[[ $# -gt 1 ]] || echo "$1: $(tail -1 "$T/exact")"
}

# symbols_of NAME OBJECT [TRUTH]: of the instructions of the file OBJECT, those of the drmemtrace directory are what
# addr2line says of it, or of the file TRUTH, which has symbols.
symbols_of() {
	"$O/ptdecode" sideband -o "$T/sideband" "$T/$1" || fail "$1: sideband"
	tests/tools/symbols.py elf "$T/$1.mem" "$T/sideband" "$seed" "$2" "${3:-$2}" || fail "$1: symbols of $2"
}

# symbols_of_jit NAME [bytes]: those of JIT code are what its jitdump says.
symbols_of_jit() {
	local dump pid
	for dump in "$T/$1"/jit/jit-*.dump; do
		pid=${dump##*/jit-} pid=${pid%.dump}
		tests/tools/symbols.py jit "$T/$1.mem" "$dump" "$pid" "$seed" "${@:2}" || fail "$1: symbols of $dump"
	done
}

# build_program NAME COMMAND...: $T/bin/NAME. addr2line names the innermost inlined function where there is
# DWARF, so nothing is inlined.
build_program() {
	mkdir -p "$T/bin"
	"${@:2}" -o "$T/bin/$1" || fail "$1: cannot build"
}
# shellcheck disable=SC2034 # the scripts use it
cc=(cc -O1 -fno-inline -g -pthread)
