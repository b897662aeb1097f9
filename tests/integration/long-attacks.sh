#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Hostile programs beside honest ones that do the same amount of work: how long the slowest of 100 calls of status
# and a snapshot by root take, in runs that take turns. The medians are printed; those of a hostile program may be
# twice as large. OPEN names the kinds of which it is known that they are not so yet: they are printed only.
#
# And each attack, for longer. How long a snapshot by root takes under it is printed beside how long it takes under
# the same load without requests: both take turns, SNAPSHOTS snapshots each. The same load without requests is: files
# that are mapped without being executable, programs that are read instead of executed, or the same pool of another
# ptd.
#
# ONLY is a pattern of sections.
#
# Alone: the attack takes the CPUs of other tests.
. "$(dirname "$0")/lib/attack.sh"
need qemu-x86_64 cc jq

SNAPSHOTS=${SNAPSHOTS:-12}
ROUNDS=${ROUNDS:-3}

decoy=
leave() {
	[[ -z $decoy ]] || { kill -- "-$decoy" && wait "$decoy"; } 2>/dev/null
	attack_leave
}
trap leave EXIT

# decoy_start: another ptd, whose socket is $T/decoy/run/control.
decoy_start() {
	install -d -o $NOBODY -g $NOBODY "$T/decoy"
	set -m
	as_nobody "$T/bin/ptd" --runtime-dir "$T/decoy/run" --state-dir "$T/decoy/state" --config "$T/ptd.conf" 2>"$T/decoy/log" &
	decoy=$!
	set +m
	await env PTD_SOCKET="$T/decoy/run/control" "$O/ptctl" status
	[[ -S $T/decoy/run/control ]] || fail "no other ptd: $(cat "$T/decoy/log")"
}

decoy_stop() {
	kill -- "-$decoy" && wait "$decoy"
	decoy=
	rm -rf "$T/decoy"
}

# snapshots N FILE: how long each of them takes goes to the file; the last one's path to $snapshot.
snapshots() {
	local i
	for ((i = 0; i < $1; i++)); do
		attack_time "$2" "$O/ptctl" snapshot
		snapshot=$T/state/snapshots/$(grep -m 1 '^[0-9T.]*Z-[0-9]*$' "$T/out") || fail "no snapshot: $(cat "$T/out")"
		sleep 0.1
	done
}

# loose CMD...: in a group of processes of its own, for a moment before anything is measured.
loose() {
	set -m
	"$@" >"$T/attacker.out" 2>&1 &
	attacker=$!
	set +m
	sleep 1
}

# figures FILE: median and longest.
figures() {
	sort -n "$1" | awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)], x[NR] }'
}

# start ARG...: as attack_start; as a service ptd has a part of the CPUs of its own, whatever users' programs do.
start() {
	attack_start "$@"
	renice -n -10 $(ls /proc/$ptd_pid/task) $collector_pid >/dev/null
	! declare -F prepare >/dev/null || prepare
}

# compare NAME ARG...: of start. "load" is the command of the load without requests, "attack" of the attack;
# "prepare", if there is one, comes before each.
compare() {
	local name=$1 round n base_median base_worst median worst
	shift
	rm -f "$T"/{base,attacked}.us
	n=$(((SNAPSHOTS + ROUNDS - 1) / ROUNDS))
	for ((round = 1; round <= ROUNDS; round++)); do
		start "$@"
		loose load
		snapshots $n "$T/base.us"
		attack_over
		start "$@"
		[[ $round -lt ROUNDS ]] || honest_begin
		loose attack
		snapshots $n "$T/attacked.us"
		if [[ $round == "$ROUNDS" ]]; then
			until honest_has_worked; do sleep 0.1; done
			[[ $source == emu ]] || snapshots 1 "$T/attacked.us"
			honest_ask
		fi
		kill -0 "$attacker" 2>/dev/null || fail "$name: the attacker has ended: $(cat "$T/attacker.out")"
		attack_over
	done
	honest_over
	read -r base_median base_worst < <(figures "$T/base.us")
	read -r median worst < <(figures "$T/attacked.us")
	echo "$name: $(wc -l <"$T/attacked.us") snapshots: median $((median / 1000)) ms, longest $((worst / 1000)) ms;" \
		"$(wc -l <"$T/base.us") with the same load without requests: $((base_median / 1000)) and $((base_worst / 1000)) ms"
	# Members share the pool's rings, and one is no enemy of another's: ptd has to live, and that is all.
	[[ $name == litter ]] || honest_judge
}

wanted() { [[ -z ${ONLY:-} || $1 == $ONLY ]] && echo "--- $1"; }

# --- hostile and honest programs that do the same amount of work ------------------------------------

# measure NAME: the p99 of calls of status goes to $T/NAME.status, and how long each snapshot took to $T/NAME.snapshot.
measure() {
	local i k
	rm -f "$T/calls.us"
	for ((i = 0; i < 2; i++)); do
		for ((k = 0; k < 50; k++)); do
			attack_time "$T/calls.us" "$O/ptctl" status
			sleep 0.02
		done
		snapshots 1 "$T/$1.snapshot"
	done
	p99 "$T/calls.us" >>"$T/$1.status"
	kill -0 "$attacker" 2>/dev/null || fail "the program has ended: $(cat "$T/attacker.out")"
}

# ratio NAME WHAT: of medians, under attack and without; more than twice as long fails.
ratio() {
	local honest hostile
	read -r honest _ < <(figures "$T/honest.$2")
	read -r hostile _ < <(figures "$T/hostile.$2")
	awk -v a="$hostile" -v b="$honest" -v what="$1: $2" 'BEGIN {
		printf "%s: hostile %.1f ms, honest %.1f ms, ratio %.2f\n", what, a / 1000, b / 1000, a / b
		exit a > 2 * b
	}'
}

# weigh NAME pt|emu COMMAND...: the command gets "hostile" or "honest", and a directory of its own. They take turns.
weigh() {
	local name=$1 round way before grown peak=0 bad=
	shift
	rm -f "$T"/{honest,hostile}.{status,snapshot}
	for ((round = 0; round < ROUNDS; round++)); do
		for way in honest hostile; do
			start "$1" SidebandMax=64M
			install -d -o $NOBODY -g $NOBODY "$T/nobody/$way"
			before=$(attack_memory)
			loose "${@:2}" $way "$T/nobody/$way"
			sleep 3
			measure $way
			grown=$(($(attack_memory) - before))
			[[ $way == honest || $grown -lt $peak ]] || peak=$grown
			attack_over
			umount -l "$T/served" 2>/dev/null
			rm -rf "$T/nobody/$way"
		done
	done
	ratio "$name" status || bad=status
	ratio "$name" snapshot || bad="$bad snapshot"
	echo "$name: memory +$((peak / 1024)) MiB, $(find "$snapshot" -type f -path '*/mem/*' | wc -l) files of memory"
	[[ -z $bad || " $OPEN " == *" $name "* ]] || over="$over$name ($bad), "
	[[ $peak -lt $GROWTH_KIB ]] || over="$over$name (memory), "
}

OPEN="dirty"
over=
work() { exec setpriv --reuid $NOBODY --regid $NOBODY --clear-groups "$T/bin/attack-load" "$@"; }
work_other() { exec setpriv --reuid $NOBODY --regid $NOBODY --clear-groups env "ATTACK_WAY=$2" "$T/bin/attack-$1" "$3"; }
member() { as_member "$T/bin/ptctl" record -- "$T/bin/attack-load" "$@"; }

# Programs of a file server, which answers whoever asks it, or its user only.
programs() {
	local verbs=()
	[[ $1 == honest ]] || verbs=(look stat open read)
	mkdir -p "$T/served"
	rm -f "$T/server"
	"$O/tools/attack-stuckfs" "$T/served" /bin/sleep $NOBODY $NOBODY "${verbs[@]}" >"$T/server" &
	await grep -qs ready "$T/server"
	as_nobody bash -c 'for name in a b c d; do "$1/$name" 1000 & done; while :; do "$1/short" 0; sleep 0.05; done' - "$T/served"
}

for name in pages files mappings names dirty; do
	! wanted $name || weigh $name pt work $name
done
for name in notes growing; do
	! wanted $name || weigh $name pt work_other $name
done
! wanted served || weigh served pt programs
for name in pages files mappings names; do
	! wanted member-$name || weigh member-$name emu member $name
done

[[ -z $over ]] || fail "more than twice as long as beside honest programs: ${over%, }"

# --- the whole machine is recorded ------------------------------------------------------------------

for name in large; do
	wanted $name || continue
	load() { exec setpriv --reuid $NOBODY --regid $NOBODY --clear-groups env ATTACK_IDLE=1 "$T/bin/attack-$name" "$T/nobody"; }
	attack() { exec setpriv --reuid $NOBODY --regid $NOBODY --clear-groups "$T/bin/attack-$name" "$T/nobody"; }
	compare $name pt
	rm -rf "$T"/nobody/*
done

for name in "burst 3000 0.03" "repeat 100000 0"; do
	wanted "${name%% *}" || continue
	storm() { as_nobody env "$1" sh -c 'while :; do "$1" "$2" "$3"; sleep "$4"; done' sh "$T/bin/storm.c" $name; }
	load() { storm ATTACK_IDLE=1; }
	attack() { storm ATTACK=1; }
	compare "${name%% *}" pt SidebandMax=8M
done

if wanted programs; then
	head -c 32000000 /dev/urandom >"$T/random"
	for i in {1..24}; do { cat /bin/true "$T/random"; echo "$i"; } >"$T/nobody/program.$i"; done
	chmod 755 "$T"/nobody/program.*
	load() { as_nobody bash -c 'while :; do for i in "$1"/program.*; do cat "$i" >/dev/null; done; sleep 0.1; done' - "$T/nobody"; }
	attack() { as_nobody bash -c 'while :; do for i in "$1"/program.*; do "$i"; done; sleep 0.1; done' - "$T/nobody"; }
	compare programs pt MaxUse=800M
	rm -rf "$T"/nobody/*
fi

# --- the software source ----------------------------------------------------------------------------

# at WHERE CMD...: with the socket of ptd, or of the other one.
at() {
	[[ $1 == ptd ]] || local -x PTD_SOCKET=$T/decoy/run/control
	"${@:2}"
}

for name in forge claim scribble litter; do
	wanted $name || continue
	start emu
	decoy_start
	pool() {
		case $name in
		forge) at "$1" as_member "$T/bin/attack-pool" forge $$ 0x400000 /bin/true "$T/bin/ptdecode" ;;
		claim) at "$1" as_member "$T/bin/attack-pool" claim /bin/true 0x1000 ;;
		*) at "$1" as_member "$T/bin/attack-pool" $name ;;
		esac
	}
	load() { pool decoy; }
	attack() { pool ptd; }
	compare $name emu
	decoy_stop
done

stop_ptd
echo ok
