#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Triggers: the recorder takes a snapshot when a condition holds in whatever process of the machine, once or as
# often as was asked for, and says in which thread; not when it does not hold; and it still waits after a restart.
# The programs are not recorded here, since that takes hardware: what is asserted is the moment and the thread.

# Tracepoints have their numbers in a file system that not every machine mounts.
if [[ ! -e /sys/kernel/tracing/events && -z ${PTD_TRACEFS:-} ]]; then
	PTD_TRACEFS=1 exec unshare --mount sh -c 'mount -t tracefs none /sys/kernel/tracing; exec "$0"' "$0"
fi
. "$(dirname "$0")/lib/common.sh"
need gdbus
ptctl=$O/ptctl
cp "$O/targets/when.c" "$T/when"
cp "$T/when" "$T/other"

# The kernel has to let us.
start_ptd AuxSize=1M
"$ptctl" trigger oom >"$T/out" 2>&1 || skip "this kernel or user has no such events: $(cat "$T/out")"
"$ptctl" trigger --remove 1 || fail "--remove"

nothing_pending() { ! "$ptctl" status | grep -qE '^ *pending: [1-9]'; }

# hits: of the triggers so far, each "CONDITION TID".
hits() {
	local id
	await nothing_pending
	for id in $("$ptctl" list | awk 'NR > 1 { print $1 }'); do
		"$ptctl" info "$id" | awk '$1 == "trigger:" { t = $2 } $1 == "trigger_tid:" { print t, $2 }'
	done
}

has_hits() {
	hits >"$T/hits"
	[[ $(wc -l <"$T/hits") -ge $1 ]]
}

# wait_hits N: wait until there are so many, and print them.
wait_hits() {
	await has_hits "$1"
	cat "$T/hits"
}

forget() {
	local id
	for id in $("$ptctl" list | awk 'NR > 1 { print $1 }'); do
		"$ptctl" rm "$id"
	done
}

echo "--- each condition, in the thread that says so"
check() { # CONDITION MODE
	local got tid
	# Other programs of the machine end as well.
	"$ptctl" trigger --comm when "$1" >"$T/id" || fail "$1"
	# What is like it, but is not it.
	"$T/other" usr1 >/dev/null
	"$T/when" often >/dev/null
	[[ $1 != core ]] || "$T/handles/when" -e '$SIG{SEGV} = sub {}; kill SEGV => $$' || fail "the signal is not handled"
	tid=$("$T/when" "$2" 2>/dev/null)
	got=$(wait_hits 1)
	[[ $got == "$1 $tid" ]] || { cat "$T/ptd.log"; fail "$1: \"$got\", not thread \"$tid\""; }
	[[ $("$ptctl" trigger | wc -l) == 1 ]] || fail "$1: still there"
	forget
	echo "$1: thread $tid"
}
check "signal:SEGV" segv
mkdir "$T/handles"
cp "$(command -v perl)" "$T/handles/when"
check "core" segv
check "exit:3" exit
check "exit:failure" exit
mv "$T/other" "$T/often"
"$ptctl" trigger "enter:wanted@$T/when" >/dev/null
tid=$("$T/when" enter)
[[ $(wait_hits 1) == "enter:wanted@$T/when $tid" ]] || fail "enter: $(cat "$T/hits"), not $tid"
forget
"$ptctl" trigger "return:wanted@$T/when" >/dev/null
tid=$("$T/when" enter)
[[ $(wait_hits 1) == "return:wanted@$T/when $tid" ]] || fail "return: $(cat "$T/hits"), not $tid"
forget

echo "--- what takes longer than it should, in the thread that needs so long, and nothing else"
# longer CONDITION: holds in the thread that `when slow` names, when the limit is over
longer() {
	local tid got
	"$ptctl" trigger "$1" >/dev/null || fail "$1"
	"$T/when" often >/dev/null
	tid=$("$T/when" slow)
	got=$(wait_hits 1)
	[[ $got == "$1 $tid" ]] || { cat "$T/ptd.log"; fail "$1: \"$got\", not thread \"$tid\""; }
	[[ $("$ptctl" trigger | wc -l) == 1 ]] || fail "$1: still there"
	forget
	echo "$1: thread $tid"
}
longer "longer:600ms:tarry@$T/when"
longer "longer:600ms:tarry,after@$T/when"
longer "longer:1s:tarry@$T/when"
for never in longer:900s:tarry longer:900s:tarry,after longer:900s:after longer:900s:wanted longer:900s:after,on_third; do
	"$ptctl" trigger "$never@$T/when" >/dev/null || fail "$never"
done
"$T/when" slow >/dev/null
"$T/when" often >/dev/null
sleep 0.3
[[ -z $(hits) ]] || fail "held, but should not: $(hits)"
"$ptctl" trigger --remove $("$ptctl" --json trigger | grep -oE '"id":[0-9]+' | cut -d: -f2) || fail "removing them"

echo "--- threads of one name only"
"$ptctl" trigger --comm often "signal:SEGV" >/dev/null
"$T/when" segv >/dev/null 2>&1
tid=$("$T/often" segv 2>/dev/null)
[[ $(wait_hits 1) == "signal:SEGV $tid" ]] || fail "--comm: $(cat "$T/hits"), not $tid"
forget

echo "--- as often as was asked for, and no more"
"$ptctl" trigger --count 3 --interval 300ms "enter:wanted@$T/when" >"$T/id"
for _ in {1..12}; do
	"$T/when" often >/dev/null
	sleep 0.1
done
n=$(wait_hits 3 | wc -l)
[[ $n == 3 ]] || { cat "$T/ptd.log"; "$ptctl" trigger; fail "$n snapshots of 12,000 hits, 3 wanted"; }
[[ $("$ptctl" trigger | wc -l) == 1 ]] || fail "it is still waited for"
forget
"$ptctl" trigger --count 100 --interval 1s "enter:wanted@$T/when" >"$T/id"
begin=$SECONDS
for _ in {1..20}; do
	"$T/when" often >/dev/null
	sleep 0.1
done
# The last one may be under way.
sleep 0.5
n=$(hits | wc -l)
took=$((SECONDS - begin + 2))
[[ $n -ge 2 && $n -le $took ]] || fail "$n snapshots within $took s, at most one a second wanted"
echo "20,000 hits: $n snapshots within $took s"
"$ptctl" trigger | grep -qE " $n/100 .*enter:wanted@$T/when" || { "$ptctl" trigger; fail "the list does not have $n/100"; }

echo "--- delayed"
forget
"$ptctl" trigger --delay 1s --comm when exit:3 >/dev/null
"$T/when" exit >/dev/null
[[ $(wait_hits 1) == exit:3* ]] || fail "delayed for ever"
late=$("$ptctl" info latest | awk '$1 == "clock_ns:" { c = $2 } $1 == "trigger_ns:" { t = $2 } END { print int((c - t) / 1e6) }')
[[ $late -ge 1000 ]] || fail "delayed by $late ms, not a second"
forget

echo "--- over a restart"
"$ptctl" trigger --count 7 --comm gone "signal:USR1" >"$T/id"
mv "$T/when" "$T/gone"
"$ptctl" trigger >"$T/before"
kill "$ptd_pid" && wait "$ptd_pid"
printf 'nonsense\n9\t1\t0\t1000000000\t0\t0\t-\tenter:\n9\t1\t1\t1\t0\t0\t-\toom\n' >>"$T/state/triggers"
"$O/ptd" --runtime-dir "$T/run" --state-dir "$T/state" --config "$T/ptd.conf" 2>"$T/ptd.log" &
ptd_pid=$!
for _ in {1..100}; do
	"$ptctl" status >/dev/null 2>&1 && break
	sleep 0.05
done
"$ptctl" trigger >"$T/after"
grep -q "is no trigger, ignoring" "$T/ptd.log" || fail "the log does not have the bad line"
grep -qE ' failed .*enter:wanted' "$T/after" && grep -q "$T/when: No such file" "$T/after" ||
	{ cat "$T/after"; fail "the program is gone, and nothing is said"; }
tid=$("$T/gone" usr1)
[[ $(wait_hits 1) == "signal:USR1 $tid" ]] || fail "after the restart: $(cat "$T/hits")"
"$ptctl" trigger | grep -q ' 1/7 .*signal:USR1' || fail "not one of seven"
id=$("$ptctl" trigger "exit:9")
[[ $id -gt $(cat "$T/id") ]] || fail "the id $id was used before"

echo "--- what is refused"
refused() { # TEXT ARGUMENT...
	local text=$1
	shift
	! "$ptctl" trigger "$@" >"$T/out" 2>&1 || fail "trigger $*: not refused"
	grep -qF -- "$text" "$T/out" || fail "trigger $*: $(cat "$T/out")"
}
refused 'is no condition' nonsense
refused 'which file has it?' enter:main
refused 'which file has it?' enter:main@relative
refused 'which file has it?' longer:1s:main
refused 'has no function called nowhere' "longer:1s:main,nowhere@$T/gone"
refused 'No such file' "enter:main@$T/absent"
refused 'cannot look for functions in it' "enter:main@$T/ptd.log"
refused 'has no function called nowhere' "enter:nowhere@$T/gone"
chmod 0700 "$T/gone"
refused 'Permission denied' "enter:main@$T/gone"
mkfifo "$T/fifo"
refused 'Invalid argument' "enter:main@$T/fifo"
refused 'is no name of a thread' --comm 'a"b' oom
refused 'is no name of a thread' --comm - oom
refused 'a text is longer' --comm 1234567890123456 oom
refused 'interval from 100 ms' --interval 99ms oom
refused 'the delay at most a day' --delay 25h oom
refused 'is no time' --delay 1x oom
refused 'is no number' --count 0 oom
refused '--remove has no other options' --remove --count 2 1
refused 'which trigger?' --remove
refused 'there is no trigger 999' --remove 999
refused 'which condition?' --count 2
refused 'one condition a trigger' oom exit:1
call() {
	gdbus call --timeout 20 --address "unix:path=$T/run/control" --dest org.ptd --object-path /org/ptd/Recorder1 \
		--method "org.ptd.Recorder1.$1" "${@:2}" 2>&1
}
[[ $(call AddTrigger $'enter:a@/x\ny' '{}') == *"is no condition"* ]] || fail "a line's end in a condition"
[[ $(call AddTrigger oom "{'fast': <true>}") == *'there is no option "fast"'* ]] || fail "an option that is none"
[[ $(call AddTrigger "exit:$(printf '%02000d' 1)" '{}') == *'a text is longer'* ]] || fail "a long condition"
for _ in {1..40}; do
	"$ptctl" trigger oom >/dev/null 2>"$T/err" || break
done
grep -q 'there are 32 triggers already' "$T/err" || fail "there is no limit: $(cat "$T/err")"
"$ptctl" trigger --remove $("$ptctl" --json trigger | grep -oE '"id":[0-9]+' | cut -d: -f2) || fail "removing all"
[[ $("$ptctl" trigger | wc -l) == 1 && ! -s $T/state/triggers ]] || fail "some are left"
