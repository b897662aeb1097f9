#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each attack, for longer. How long a snapshot by root takes under it is printed beside how long it takes under
# the same load without requests: both take turns, SNAPSHOTS snapshots each. The same load without requests is: files
# that are mapped without being executable, programs that are read instead of executed, or the same requests to another
# ptd. And none of 10,000 requests (REQUESTS) of every method brings an outsider one byte of what three users have in
# their memory, files, cores, environment and arguments.
#
# ONLY is a pattern of sections.
#
# Alone: the attack takes the CPUs of other tests.
. "$(dirname "$0")/attack.sh"
need qemu-x86_64 cc jq

SNAPSHOTS=${SNAPSHOTS:-12}
REQUESTS=${REQUESTS:-10000}
ROUNDS=3
USERS=(60001 60002 60003)
OUTSIDER=60009

decoy=
others=()
others_over() {
	local group
	for group in "${others[@]}"; do kill -KILL -- "-$group"; done 2>/dev/null
	others=()
}

leave() {
	others_over
	[[ -z $decoy ]] || { kill "$decoy" && wait "$decoy"; } 2>/dev/null
	attack_leave
}
trap leave EXIT

# background FILE CMD...: in a group of processes of its own, until others_over; what it prints goes to the file.
background() {
	set -m
	"${@:2}" >"$1" 2>&1 &
	others+=($!)
	set +m
}

# decoy_start: another ptd, whose socket is $T/decoy/run/control.
decoy_start() {
	mkdir -p "$T/decoy"
	"$T/bin/ptd" --runtime-dir "$T/decoy/run" --state-dir "$T/decoy/state" --config "$T/ptd.conf" 2>"$T/decoy/log" &
	decoy=$!
	for _ in {1..200}; do
		PTD_SOCKET=$T/decoy/run/control "$O/ptctl" status >/dev/null 2>&1 && break
		sleep 0.05
	done
	chmod 755 "$T/decoy" "$T/decoy/run"
	chmod 666 "$T/decoy/run/control" || fail "no other ptd: $(cat "$T/decoy/log")"
}

decoy_stop() {
	kill "$decoy" && wait "$decoy"
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
	honest_judge
}

wanted() { [[ -z ${ONLY:-} || $1 == $ONLY ]] && echo "--- $1"; }

# --- the whole machine is recorded ------------------------------------------------------------------

for name in notes growing large; do
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
		forge) at "$1" as_nobody "$T/bin/attack-pool" forge $$ 0x400000 /bin/true "$T/bin/ptdecode" ;;
		claim) at "$1" as_nobody "$T/bin/attack-pool" claim /bin/true 0x1000 ;;
		*) at "$1" as_nobody "$T/bin/attack-pool" $name ;;
		esac
	}
	load() { pool decoy; }
	attack() { pool ptd; }
	compare $name emu
	decoy_stop
done

if wanted siege; then
	start emu
	decoy_start
	load() { nice -n 5 "$O/tools/siege" "$T/decoy/run/control" 64 1000; }
	attack() { nice -n 5 "$O/tools/siege" "$T/run/control" 64 1000; }
	compare siege emu
	decoy_stop
fi

if wanted own; then
	start emu
	decoy_start
	PTD_SOCKET=$T/decoy/run/control
	record_all() {
		local user
		for user in "${USERS[@]}"; do
			as_user "$user" "$T/bin/ptctl" record -f summary -- sh -c 'ls /usr | sort' >"$T/out" 2>&1 ||
				fail "cannot record: $(cat "$T/out")"
		done
	}
	record_all
	prepare() { record_all; }
	own() {
		local user
		for user in "${USERS[@]}"; do
			at "$1" as_user "$user" sh -c 'while :; do "$1/bin/ptctl" snapshot --own -f text; done' sh "$T" &
		done
		wait
	}
	load() { own decoy; }
	attack() { own ptd; }
	compare own emu
	unset -f prepare
	decoy_stop
fi

# --- canaries ---------------------------------------------------------------------------------------

if wanted canaries; then
	attack_start emu
	paths=()
	cp /bin/true "$T/bin/public"
	echo CANARY-public >>"$T/bin/public"
	for user in "${USERS[@]}"; do
		canary_program "$user"
		# ELF files, as cores are, since nothing else is ever kept.
		for what in file core; do
			cp /bin/true "$T/$user/$what"
			echo "CANARY-$what-$user" >>"$T/$user/$what"
		done
		chown "$user:$user" "$T/$user"/{file,core}
		chmod 600 "$T/$user"/{file,core}
		paths+=("$T/$user/file" "$T/$user/core" "$T/$user/CANARY-me-$user")
		background "$T/victim.$user" as_user "$user" env "CANARY=CANARY-environment-$user" \
			"$T/bin/attack-pool" victim "CANARY-memory-$user"
		background "$T/recording.$user" as_user "$user" env "CANARY=CANARY-environment-$user" "$T/bin/ptctl" record -f summary -- \
			sh -c "while :; do '$T/$user/CANARY-me-$user' CANARY-argument-$user; sleep 0.3; done"
	done
	sleep 2
	for user in "${USERS[@]}"; do
		read -r pid address <"$T/victim.$user"
		[[ $address == 0x* ]] || fail "no victim: $(cat "$T/victim.$user")"
	done
	id=$(basename "$(ls -d "$T/state/snapshots"/*Z-* | tail -n 1)")

	# The outsider says what he likes of their processes and files, and asks for everything.
	install -d -o $OUTSIDER -g $OUTSIDER "$T/outsider"
	as_user $OUTSIDER "$T/bin/ptctl" record -f summary -- sh -c 'ls /usr | sort' >"$T/err" 2>&1 ||
		fail "the outsider cannot record: $(cat "$T/err")"
	for user in "${USERS[@]}"; do
		read -r pid address <"$T/victim.$user"
		background "$T/forge.$user" as_user $OUTSIDER "$T/bin/attack-pool" forge "$pid" "$address" "$T/bin/public" "${paths[@]}"
	done
	background "$T/forge" as_user $OUTSIDER "$T/bin/attack-pool" claim "${paths[2]}" 0x1100
	sleep 1
	start=$SECONDS
	as_user $OUTSIDER "$T/bin/attack-requests" "$REQUESTS" "$T/outsider" "$pid" "$id" "${paths[@]}" >"$T/outsider/counts" 2>&1 ||
		fail "attack-requests: $(tail -n 3 "$T/outsider/counts")"
	cat "$T/outsider/counts"
	echo "$REQUESTS requests in $((SECONDS - start)) s, $(du -sm "$T/outsider" | cut -f1) MiB came back"
	[[ $(awk '{ n += $2 } END { print n }' "$T/outsider/counts") -ge $REQUESTS ]] || fail "not all requests were made"
	awk '$1 ~ /^(GetStatus|OpenSource|TakeOwn|WaitOwn)$/ ? $3 == 0 : $3 > 0 { exit 1 }' "$T/outsider/counts" ||
		fail "what was granted is not what it should be"

	# Names of files are what he wrote himself.
	for path in "${paths[@]}"; do printf 's|%s||g\n' "$path"; done >"$T/script"
	find "$T/outsider" -type f -exec sed -i -f "$T/script" {} +
	! grep -raoE "${CANARY}6000[0-9]" "$T/outsider" | sort | uniq -c | head -n 20 | grep . ||
		fail "the outsider has something of another user"
	grep -aq "bin/ls" "$T/outsider/answers" || fail "the outsider has not what he ran himself: this test sees nothing"
	grep -raq "forged" "$T/outsider" || fail "the outsider has not what he forged himself: this test sees nothing"

	# Nor does root get what nobody executed, because the outsider said so; but what was executed.
	"$O/ptctl" snapshot -o "$T/whole" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
	grep -raohE "CANARY[-_](public|[a-z]+[-_]6000[0-9])" "$T/whole/objects" "$T/whole"/mem* 2>/dev/null | sort | uniq -c >"$T/found"
	cat "$T/found"
	for what in public "symbol_${USERS[0]}" "string-${USERS[1]}"; do
		grep -q "$what" "$T/found" || fail "$what is not in root's snapshot: this test sees nothing"
	done
	! grep -E "(memory|file|core|environment|argument)-" "$T/found" || fail "what nobody executed is in root's snapshot"
	for pid in "${others[@]}"; do
		kill -0 "$pid" || fail "not all have worked to the end: $(tail -n 3 "$T"/{recording,victim}.* "$T"/forge*)"
	done
	others_over
fi
stop_ptd
echo ok
