#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptctl info --core: an entry of systemd-coredump in the journal leads to the snapshot that has the process, and to
# what the thread that crashed executed last; not to snapshots taken before, or of other processes only. The entries
# are written here, through a journald of our own.
. "$(dirname "$0")/lib/common.sh"
journald=/lib/systemd/systemd-journald
need qemu-x86_64 unshare logger "$journald"
[[ $EUID -eq 0 ]] || skip "a journald of its own needs root"
ptctl=$O/ptctl
cp "$O/targets/when.c" "$T/when"
cp "$T/when" "$T/other"

# entry PID NAME [FIELD]...: of a process that crashed now, or at $crashed, for the journal
entry() {
	printf '%s\n' MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1 "MESSAGE=Process $1 ($2) of user 0 dumped core." \
		"COREDUMP_PID=$1" "COREDUMP_COMM=$2" "COREDUMP_EXE=$T/$2" COREDUMP_SIGNAL=11 COREDUMP_SIGNAL_NAME=SIGSEGV \
		"COREDUMP_TIMESTAMP=${crashed:-$(date +%s)}000000" "${@:3}" >"$T/entries/$1"
	# The next crash has another second, and the snapshots before it are older.
	sleep 2
}

# latest: id of the newest snapshot
latest() { "$ptctl" list | tail -1 | cut -d' ' -f1; }

mkdir "$T/entries"
start_ptd AuxSize=16M
"$ptctl" snapshot >/dev/null 2>&1 || fail "a snapshot before all"
sleep 2

# A snapshot is taken because the process crashes, and others of the same second.
"$ptctl" record --when exit:0 -- "$T/other" usr1 >/dev/null 2>&1
"$ptctl" record --when signal:SEGV -- "$T/when" segv >"$T/pid" 2>/dev/null
triggered_id=$(latest)
triggered=$(cat "$T/pid")
"$ptctl" snapshot >/dev/null 2>&1
# Large cores are noted later.
sleep 2
entry "$triggered" when
# Snapshots are taken later. One of them is limited to another process.
"$ptctl" record -- "$T/other" segv >"$T/pid" 2>/dev/null
later=$(cat "$T/pid")
"$ptctl" rm latest
entry "$later" other
"$ptctl" snapshot --pid "$triggered" >/dev/null 2>&1 || fail "a snapshot of another process"
"$ptctl" snapshot >/dev/null 2>&1 || fail "a later snapshot"
later_id=$(latest)
"$ptctl" snapshot >/dev/null 2>&1 || fail "a still later one"
# The entry says which thread it was. The crash is not after the snapshot, whichever second ends between them.
sleep 2
crashed=$(date +%s)
"$ptctl" record --when "enter:on_third@when" -- "$T/when" enter >"$T/tid" 2>"$T/err" || fail "$(cat "$T/err")"
tid=$(cat "$T/tid")
threads_id=$(latest)
threads=$("$ptctl" info latest | awk '$1 == "command_pid:" { print $2 }')
entry "$threads" when "COREDUMP_TID=$tid" "COREDUMP_FILENAME=/var/lib/systemd/coredump/core.$(printf '\033')[1m"
# No snapshot was taken any more.
crashed=
entry 4000000 gone

cat >"$T/journald.sh" <<'END'
mount -t tmpfs none /run && mkdir -p /run/systemd/journal /run/log/journal || exit 1
"$1" 2>/dev/null &
for i in $(seq 3000); do [ -S /run/systemd/journal/socket ] && break; sleep 0.1; done
for f in $(ls -tr "$2"/entries/*); do logger --journald="$f" || exit 1; done
for i in $(seq 3000); do
	cp -r /run/log/journal/* "$2/journal"
	[ "$(journalctl -q -D "$2/journal" -o cat COREDUMP_COMM=gone)" ] && break
	sleep 0.1
done
kill $! && wait $!
END
mkdir "$T/journal"
unshare --mount sh "$T/journald.sh" "$journald" "$T" || skip "journald does not run here"
ls "$T"/journal/*/*.journal >/dev/null 2>&1 || skip "journald wrote nothing here"

# core STATUS ARGUMENT...: ptctl info --core
core() {
	local status=$1 got
	shift
	"$ptctl" info --core --journal "$T/journal" "$@" >"$T/out" 2>"$T/err"
	got=$?
	[[ $got == "$status" ]] || { cat "$T/out" "$T/err"; fail "info --core $*: exit status $got, not $status"; }
}
key() { sed -n "s/^ *$1: //p" "$T/out"; }
has() { [[ $(key "$1") == "$2" ]] || { cat "$T/out"; fail "$1 is \"$(key "$1")\", not \"$2\""; }; }
instructions() { grep -vE '^#|^ +[a-z]+: |^$' "$T/out"; }

echo "--- taken because of the crash"
core 0 "$triggered"
has snapshot "$triggered_id"
has pid "$triggered"
has tid "$triggered"
has comm when
has exe "$T/when"
has signal SIGSEGV
[[ $(instructions | wc -l) == 20 ]] || { cat "$T/out"; fail "not 20 instructions"; }
instructions | tail -1 | grep -q ' main+' || { cat "$T/out"; fail "the last one is not in main()"; }
"$O/ptdecode" text --tid "$triggered" --last 20 "$T/state/snapshots/$triggered_id" | cmp - <(grep -v '^$' "$T/out" | sed -n '/^#/,$p') ||
	fail "not what ptdecode shows"
core 0 --last 3 "$triggered"
[[ $(instructions | wc -l) == 3 ]] || fail "not 3 instructions"

echo "--- taken later"
core 0 other
has snapshot "$later_id"
has tid ""
grep -q 'which thread crashed is not known' "$T/err" || fail "$(cat "$T/err")"
instructions | tail -1 | grep -qE "^ *other +$later/$later .* main\\+" || { cat "$T/out"; fail "not in main()"; }

echo "--- the thread that the entry names"
core 0 "$T/when"
has snapshot "$threads_id"
has tid "$tid"
has core '/var/lib/systemd/coredump/core.?[1m'
[[ -z $(instructions | grep -vE "^ *when +$threads/$tid ") ]] || { cat "$T/out"; fail "another thread"; }
"$ptctl" --json info --core --journal "$T/journal" when >"$T/out" || fail "--json"
python3 - "$T/out" "$threads" "$tid" "$threads_id" <<'END' || fail "$(cat "$T/out")"
import json, sys
e = json.load(open(sys.argv[1]))
assert e["pid"] == sys.argv[2] and e["tid"] == sys.argv[3] and e["snapshot"] == sys.argv[4], e
assert "\x1b" in e["core"], e
END

echo "--- no snapshot, no entry"
core 6
has pid 4000000
has comm gone
grep -q 'no snapshot has process 4000000' "$T/err" || fail "$(cat "$T/err")"
core 1 absent
grep -q 'the journal has no core dump of absent' "$T/err" || fail "$(cat "$T/err")"
core 2 a b
core 2 --last 0
"$ptctl" info --last 3 latest >/dev/null 2>&1
[[ $? == 2 ]] || fail "--last without --core"
"$ptctl" info --core --journal "$T/absent" >/dev/null 2>"$T/err" && fail "a journal that is not there"
grep -q 'cannot read core dumps' "$T/err" || fail "$(cat "$T/err")"
stop_ptd
core 3 when
