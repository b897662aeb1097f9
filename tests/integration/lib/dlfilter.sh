# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts about the dlfilter share; they source it after common.sh.
need perf
perf script -h 2>&1 | grep -q -- --dlfilter || skip "this perf has no --dlfilter"
[[ -z ${PTD_ASAN:-} ]] || skip "perf is not built with sanitizers"

# filter INPUT OUTPUT...: perf decodes, and the dlfilter writes.
filter() {
	local input=$1 args=()
	shift
	for output; do
		args+=(--dlarg "$output")
	done
	perf script -i "$input" --itrace=b --dlfilter "$O/libptd-dlfilter.so" "${args[@]}"
}
