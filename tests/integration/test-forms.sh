#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One recording in every form of perf.data: what is decoded is always the same, and what perf lists of
# each that it can read. Then pipes and files as standard input.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/perf.sh
need qemu-x86_64

decode() {
	"$O/ptdecode" text -o "$T/text" --also "summary -o $T/summary" "$1" || fail "$1: exit status $?"
	n=$(sed -n 's/^Instructions: //p' "$T/summary")
	grep -v '^#' "$T/text" | md5sum
}

perf=
[[ -n ${PTD_ASAN:-} ]] || ! command -v perf >/dev/null || perf=yes
start_ptd
record it sh -c 'ls /etc | sort | tail -3; /bin/true'
"$O/tools/exact" "$T/it" "$T/it.log" >"$T/exact" || fail "the recording itself"
want=$(decode "$T/it") || exit 1
decode "$T/it" >/dev/null
echo "snapshot: $n instructions, $(stat -c %s "$T/it/data") bytes"
[[ $n -gt 10000 ]] || fail "only $n instructions"

# Some have samples of other events.
fields=pid,tid,event,ip
for form in pipe threads zstd zstd2 full "-p full" overlap "-p overlap" sample "-p sample"; do
	file=$T/${form#-p }
	# shellcheck disable=SC2086 # an option
	"$O/tools/reshape" $form "$T/it/data" "$file" || fail "reshape $form"
	got=$(decode "$file") || exit 1
	[[ $got == "$want" ]] || { tail -12 "$T/summary"; fail "$form: other instructions"; }
	[[ $form != full ]] || grep -q '^Records skipped: 1 of unknown types, 0 ' "$T/summary" ||
		fail "full: the unknown record was not counted"
	echo "$form: the same"
	[[ -n $perf ]] || continue
	case $form in
	# perf wants a pipe there, and says that it likes none.
	pipe)
		cat "$file" | perf script -i - --itrace=i1i -F $fields --ns 2>"$T/perf.err" >"$T/perf.txt"
		judge_list pipe "$T/it" 0
		;;
	# The others show what perf does wrong: tests/perf-defects.
	threads | zstd | -p*) judge "$form" "$file" 0 "$T/it" ;;
	esac
done
# These forms have no times, or perf does not show them.
[[ -z $perf ]] || judged no-times

got=$(decode - <"$T/zstd") && [[ $got == "$want" ]] || fail "a file as standard input"
got=$(cat "$T/threads/../pipe" | decode -) && [[ $got == "$want" ]] || fail "a pipe as standard input"
mkfifo "$T/fifo"
cat "$T/full" >"$T/fifo" &
got=$(decode "$T/fifo") && [[ $got == "$want" ]] || fail "a FIFO"
got=$(decode <(cat "$T/pipe")) && [[ $got == "$want" ]] || fail "what a shell substitutes"
echo "standard input, FIFO: the same"

# The objects alone, elsewhere: none but those with the right build-id.
mkdir "$T/empty" "$T/root" "$T/wrong" "$T/home"
export HOME=$T/home
cp "$T/it/data" "$T/alone"
while IFS=$'\t' read -r _ path; do
	[[ $path == /* && -f $path ]] || continue
	mkdir -p "$T/root/${path%/*}" "$T/wrong/${path%/*}"
	cp "$path" "$T/root/$path"
	cp "$O/ptdecode" "$T/wrong/$path"
done <"$T/it/objects.map"
# elsewhere OPTION...: decodes the same without the files at their paths.
elsewhere() {
	"$O/ptdecode" text -o "$T/text" "$@" "$T/alone" || fail "$*: exit status $?"
	got=$(grep -v '^#' "$T/text" | md5sum)
	[[ $got == "$want" ]] || fail "$*: other instructions"
}
elsewhere --symfs "$T/empty" --buildid-dir "$T/it/objects"
elsewhere --symfs "$T/wrong" --buildid-dir "$T/it/objects"
elsewhere --symfs "$T/root"
cp -r "$T/it/objects" "$T/home/.debug"
elsewhere --symfs "$T/empty"
rm -r "$T/home/.debug"
for root in empty wrong; do
	"$O/ptdecode" summary --symfs "$T/$root" "$T/alone" >"$T/summary"
	[[ $? == 3 ]] && grep -q '^Instructions: 0$' "$T/summary" || fail "decodes without the objects"
done
grep -q 'object has another build-id' "$T/summary" || fail "does not say that the objects are others"
echo "objects by build-id, below another root: the same; wrong ones: nothing"
