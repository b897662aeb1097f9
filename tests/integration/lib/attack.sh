# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the attack scripts share; they source it in the place of common.sh. It runs ptd with the capabilities
# of its unit and as a user of its own, lets an attacker loose on it, and judges what ptd did meanwhile:
#
#	. "$(dirname "$0")/lib/attack.sh"
#	attack_start pt MaxUse=1G
#	attack 10 as_nobody "$T/bin/attack-notes" "$T/nobody"
#
# The attacker is user 65534: as_nobody runs a command without groups, as_member with ptd's group, which is
# all that recording takes. $T/bin has copies of the programs that both can execute; $T/nobody belongs to
# the attacker, $T/private to another user of the machine, 65532, who is in the group (as_other).
#
# With ATTACK_DISK, options of a tmpfs, the state directory is on one of its own; the script has to be in a
# namespace of mounts of its own then.
#
# Beside the attack works an honest user, 65532. Of the whole machine recorded, he executes programs that end at
# once, each with a content of its own: the snapshot must have all records of each, and its file as it was. Of the
# software source, he records programs: what they ran must be decoded as it was logged.
#
# An attack fails the test if its command ends with an error, if the honest user's recording is not complete, if `ptctl status`, a snapshot by root or SIGTERM
# is not heard within the time that a hung recorder would take, or if ptd's own memory grows by 64 MiB. How soon ptd
# answered is printed, beside how long a command took that does not ask ptd, and is not judged: it depends on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need setpriv
[[ $EUID == 0 ]] || skip "only root can be ptd's service manager and another user in turn"
[[ -z ${PTD_ASAN:-} ]] || skip "a sanitizer takes memory and privileges of its own"

PTD_ID=65533 # user and group of the recorder; also members of that group may use it
NOBODY=65534
OTHER=65532

GROWTH_KIB=65536

attacker= # its process group
recordings=() # what users record in the background: pids
forger= # a user who writes what is not true: a pid
honest=   # likewise
source=   # that ptd was started with
collector_pid=
n_runs=0
umask 022
chmod 755 "$T"
mkdir "$T/bin"
install -m 755 -t "$T/bin" "$O"/{ptd,ptd-collector,ptdecode,ptctl,ptd-emu.so} "$O"/tools/{ptd-nopt,attack-*} "$O"/targets/*.c
install -d -o $NOBODY -g $NOBODY "$T/nobody"
install -d -m 700 -o $OTHER -g $OTHER "$T/private"
export PTD_EMU_SO=$T/bin/ptd-emu.so

# caps UNIT: its capabilities, in the terms of setpriv.
caps() {
	echo "-all$(sed -n 's/^AmbientCapabilities=//p' "systemd/$1" | tr A-Z a-z | tr ' ' '\n' | sed 's/^cap_/,+/' | tr -d '\n')"
}
caps=$(caps ptd.service)
collector_caps=$(caps ptd-collector.service)
[[ $caps == *perfmon* && $collector_caps == *ptrace* ]] || fail "the units name no capabilities"

as_nobody() { as_user $NOBODY "$@"; }
as_member() { as_user $NOBODY:$PTD_ID "$@"; }
as_other() { as_user $OTHER:$PTD_ID "$@"; }

# finish_recordings: those that users began in the background succeed.
finish_recordings() {
	local pid
	for pid in "${recordings[@]}"; do
		wait "$pid" || fail "a recording failed: $(tail -n 5 "$T"/6000?/err)"
	done
	recordings=()
}

attack_over() {
	[[ -z $attacker ]] || { kill -KILL -- "-$attacker" && wait "$attacker"; } 2>/dev/null
	attacker=
}

# --- the honest user --------------------------------------------------------------------------------

# Executes honest-1, honest-2, ..., and writes down which of them ran from when to when, in us.
honest_programs() {
	local i start
	for ((i = 1; ; i++)); do
		# Owned by the user who runs it: root's share of what is kept is also that of all other programs of the machine.
		{ cat "$O/targets/plain.c"; echo "honest-$i"; } >"$T/bin/honest-$i"
		chown $OTHER "$T/bin/honest-$i"
		chmod 755 "$T/bin/honest-$i"
		start=${EPOCHREALTIME/[.,]/}
		as_other "$T/bin/honest-$i" >/dev/null
		echo "$i $start ${EPOCHREALTIME/[.,]/}" >>"$T/honest/ran"
		sleep 0.1
	done
}

honest_begin() {
	rm -rf "$T"/honest "$T"/bin/honest-*
	install -d -o $OTHER -g $OTHER "$T/honest" "$T/honest/log"
	set -m
	if [[ $source == pt ]]; then
		honest_programs &
	else
		PTD_EMU_LOG=$T/honest/log as_other "$T/bin/ptctl" record --then summary -o "$T/honest/summary" -- \
			sh -c 'for i in 1 2 3 4; do ls /usr | sort | tail -n 1; sleep 0.2; done' >"$T/honest/out" 2>&1 &
	fi
	honest=$!
	set +m
}

honest_over() {
	[[ -z $honest ]] || { kill -KILL -- "-$honest" && wait "$honest"; } 2>/dev/null
	honest=
}

# place_of SNAPSHOT ID PATH: where the snapshot has the file that objects.map calls so.
place_of() {
	case $2 in
	sha256:*) echo "$1/objects/sha256/${2#sha256:}/elf" ;;
	*) echo "$1/objects/.build-id/${2:0:2}/${2:2}/elf" ;;
	esac
}

# Enough to be judged, on a machine that is busy, too.
honest_has_worked() {
	[[ $source == emu || (-e $T/honest/ran && $(wc -l <"$T/honest/ran") -ge 20) ]]
}

# What the honest user has from ptd while the attack goes on: only the software source has something for him.
honest_ask() {
	[[ $source == emu ]] || return 0
	wait "$honest" || fail "the honest user cannot record: $(cat "$T/honest/out")"
	honest=
	"$O/ptctl" snapshot -o "$T/honest/all" >/dev/null 2>"$T/err" || fail "no snapshot of the honest user: $(cat "$T/err")"
}

# Without an attacker who takes the CPUs.
honest_judge() {
	if [[ $source == emu ]]; then
		local n pids
		pids=$("$O/tools/emulog" "$T/honest/log" | sed 's/^/-p /; s/\..*//' | sort -u)
		"$O/tools/exact" $pids "$T/honest/all" "$T/honest/log" >"$T/exact" ||
			{ tail -n 20 "$T/exact"; fail "what the honest user ran is not what was logged"; }
		n=$("$O/tools/emulog" "$T/honest/log" | awk '{ n += $2 } END { print n }')
		[[ $n -gt 1000000 ]] || fail "the honest user has $n instructions only"
		echo "honest user: $n instructions, equal to the log"
	else
		honest_judge_programs
	fi
}

# Those that ran wholly since all records of the snapshot are there; those of the last second may not be drained yet.
honest_expected() {
	awk -F= 'FNR == NR {
			x[$1] = $2
			if (($1 == "sideband_since_ns" || $1 ~ /switch_oldest_ns/) && $2 + 0 > since)
				since = $2 + 0
			next
		}
		{ split($0, run, " ") }
		run[2] > (since + x["realtime_offset_ns"]) / 1000 &&
		run[3] < (x["clock_ns"] + x["realtime_offset_ns"]) / 1000 - 1000000 { print run[1] }' \
		"$snapshot/manifest" "$T/honest/ran"
}

honest_judge_programs() {
	local i n id path missing=0
	"$O/ptdecode" sideband -o "$T/records" "$snapshot" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
	honest_expected >"$T/expected"
	n=$(wc -l <"$T/expected")
	[[ $n -ge 5 ]] || fail "the honest user executed $n programs only, of $(wc -l <"$T/honest/ran"): $(grep 'since\|oldest\|clock_ns\|offset' "$snapshot/manifest")"
	while read -r i; do
		grep -q "honest-$i\>" "$T/records" || { missing=$((missing + 1)) && echo "honest-$i is missing"; }
		IFS='	' read -r id path < <(grep "/honest-$i$" "$snapshot/objects.map")
		cmp -s "$(place_of "$snapshot" "$id")" "$T/bin/honest-$i" ||
			{ missing=$((missing + 1)) && echo "the file honest-$i is not kept: $id"; }
	done <"$T/expected"
	echo "honest user: $n programs with their files, $missing missing"
	[[ $missing -eq 0 ]] || fail "what the honest user executed is missing: $(tail -n 5 "$T/ptd.log")"
	! grep -q "^sideband_[a-z]*\.$OTHER=" "$snapshot/manifest" || fail "the honest user lost records"
}

# --- ptd --------------------------------------------------------------------------------------------

# One that is lost would not hear of the end.
attack_leave() {
	attack_over
	[[ -z $forger ]] || kill "$forger" 2>/dev/null
	[[ ${#recordings[@]} -eq 0 ]] || kill "${recordings[@]}" 2>/dev/null
	honest_over
	[[ -z $ptd_pid ]] || kill -KILL "$ptd_pid" 2>/dev/null
	[[ -z ${ATTACK_DISK:-} ]] || umount -l "$T/state" 2>/dev/null
	finish
}
trap attack_leave EXIT

# attack_start pt|emu [LINE-OF-CONFIG]...: a recorder as its unit starts it. pt records the whole machine,
# without PT if it has none; emu what `ptctl record` runs. Its rings of PT are small, so that what else it
# takes is seen.
attack_start() {
	local program=ptd-nopt run
	source=$1
	shift
	stop_ptd
	# It would end some seconds later, and remove the socket of the next one.
	[[ -z $collector_pid ]] || { kill "$collector_pid" && wait "$collector_pid"; } 2>/dev/null
	[[ $source == pt ]] || program=ptd
	[[ $source == emu || $(</proc/sys/kernel/perf_event_paranoid) -le 2 ]] ||
		skip "perf_event_paranoid is above 2, CAP_PERFMON does not suffice to record this machine"
	umount "$T/state" 2>/dev/null
	rm -rf "$T"/run* "$T/state"
	# The decoder of the last ptd ends some seconds later: it must not remove the socket of the next one.
	run=$T/run.$((++n_runs))
	ln -s "$run" "$T/run"
	install -d -m 755 -o $PTD_ID -g $PTD_ID "$run" "$T/state"
	install -d -m 700 -o $PTD_ID -g $PTD_ID "$run/collector"
	if [[ -n ${ATTACK_DISK:-} ]]; then
		mount -t tmpfs -o "uid=$PTD_ID,gid=$PTD_ID,mode=755,$ATTACK_DISK" state "$T/state" ||
			skip "no tmpfs can be mounted"
	fi
	printf '%s\n' '[Recorder]' Source=$source Cpus=4 AuxSize=1M SwitchSize=8M SidebandMax=16M \
		MaxUse=4G KeepFree=0 "$@" >"$T/ptd.conf"
	setpriv --reuid $PTD_ID --regid $PTD_ID --clear-groups --no-new-privs --bounding-set "$collector_caps" \
		--inh-caps "$collector_caps" --ambient-caps "$collector_caps" \
		"$T/bin/ptd-collector" "$run/collector/socket" 2>>"$T/collector.log" &
	collector_pid=$!
	# A group "ptd" that has PTD_ID, for this ptd only.
	sed '/^ptd:/d' /etc/group >"$T/group"
	echo "ptd:x:$PTD_ID:" >>"$T/group"
	unshare --mount --propagation private sh -c '
		mount --bind "$1/group" /etc/group || exit 77
		ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
		caps=$2 id=$3
		shift 3
		exec setpriv --reuid "$id" --regid "$id" --clear-groups --no-new-privs \
			--bounding-set "$caps" --inh-caps "$caps" --ambient-caps "$caps" "$@"' \
		sh "$T" "$caps" $PTD_ID "$T/bin/$program" --runtime-dir "$run" --state-dir "$T/state" \
		--config "$T/ptd.conf" 2>"$T/ptd.log" &
	ptd_pid=$!
	export PTD_SOCKET=$T/run/control
	await ptd_answers_or_ended
	"$O/ptctl" status >/dev/null 2>&1 || attack_no_start
	[[ $(grep ^CapEff: /proc/$ptd_pid/status) == $(grep ^CapBnd: /proc/$ptd_pid/status | sed s/Bnd/Eff/) &&
		$(grep ^Uid: /proc/$ptd_pid/status) == *$PTD_ID* ]] ||
		fail "ptd has not the unit's privileges: $(cat /proc/$ptd_pid/status)"
	# What runs on the machine anyway is known before it is measured.
	is_taken "$O/ptctl" snapshot >/dev/null 2>"$T/err" || fail "no snapshot before the attack: $(cat "$T/err")"
}

# is_taken CMD...: take a snapshot. It counts, too, if there was no room to keep all that the machine executes,
# whatever that is, which it says by that status.
is_taken() {
	"$@" || [[ $? == 7 ]]
}

attack_no_start() {
	local status
	cat "$T/ptd.log" >&2
	kill $ptd_pid 2>/dev/null
	wait $ptd_pid
	status=$?
	ptd_pid=
	[[ $status -ne 77 ]] || skip "no mount namespace can be made"
	! grep -q "Operation not permitted\|Permission denied" "$T/ptd.log" ||
		skip "this machine cannot be recorded with the unit's capabilities"
	fail "ptd does not start"
}

# KiB of ptd's memory that is neither a file nor shared.
attack_memory() {
	awk '/^RssAnon:/ { print $2 }' "/proc/$ptd_pid/status" 2>/dev/null
}

# Its peak, up to the end of the attack.
attack_watch_memory() {
	local peak=0 now
	while now=$(attack_memory) && [[ -n $now ]]; do
		[[ $now -le $peak ]] || { peak=$now && echo "$peak" >"$T/peak"; }
		sleep 0.02
	done
}

# attack_time FILE CMD...: how long the command takes goes to the file, in us. Fails if it does not end.
attack_time() {
	local file=$1 start end status
	shift
	start=${EPOCHREALTIME/[.,]/}
	timeout -k 1 $HUNG_S "$@" >"$T/out" 2>&1
	status=$?
	end=${EPOCHREALTIME/[.,]/}
	[[ $status -ne 124 ]] || fail "under attack: $*: not heard for $HUNG_S s, memory $(($(attack_memory) / 1024)) MiB"
	[[ $status -eq 0 ]] ||
		fail "under attack: $*: exit status $status: $(cat "$T/out"); ptd's log: $(tail -n 20 "$T/ptd.log")"
	echo $((end - start)) >>"$file"
}

# p99 FILE: of the numbers in it.
p99() {
	sort -n "$1" | awk '{ x[NR] = $1 } END { print x[int((NR * 99 + 99) / 100)] }'
}

snapshot_suffices() {
	grep -q -- "${ATTACK_NOTED:-}" "$snapshot/manifest" &&
		[[ $source == emu || $(honest_expected | wc -l) -ge 5 ]]
}

# attack SECONDS CMD...: let it loose, and end ptd while it still is. Leaves the path of a snapshot that was
# taken meanwhile in $snapshot, ptd's log in $T/ptd.log, and the last answers in $T/status.last and
# $T/metrics.last. On a busy machine it takes longer: until the snapshot's manifest has ATTACK_NOTED, if that is set,
# and it can be judged by what the honest user executed.
attack() {
	local seconds=$1 name watcher until begun before grown status_us machine_us snapshot_us end_us
	shift
	name="${*##*/bin/}"
	rm -f "$T"/{status,machine,snapshot,peak}.us "$T/peak"
	before=$(attack_memory)
	attack_watch_memory &
	watcher=$!
	set -m
	"$@" >"$T/attacker.out" 2>&1 &
	attacker=$!
	set +m
	honest_begin
	until=$((${EPOCHREALTIME/[.,]/} + seconds * 1000000))
	begun=$((until - seconds * 500000))
	while ((${EPOCHREALTIME/[.,]/} < until)) || [[ ! -e $T/snapshot.us ]]; do
		attack_time "$T/status.us" "$O/ptctl" status
		mv "$T/out" "$T/status.last"
		attack_time "$T/machine.us" "$O/ptctl" --version
		if [[ ! -e $T/snapshot.us ]] && ((${EPOCHREALTIME/[.,]/} >= begun)) && honest_has_worked; then
			attack_time "$T/snapshot.us" "$O/ptctl" snapshot
			snapshot=$T/state/snapshots/$(grep -m 1 '^[0-9T.]*Z-[0-9]*$' "$T/out") ||
				fail "no snapshot: $(cat "$T/out")"
			snapshot_suffices || { rm "$T/snapshot.us" && sleep 1; }
			[[ -e $T/snapshot.us ]] || ((${EPOCHREALTIME/[.,]/} < until + 120000000)) ||
				skip "on a machine that is so busy this is no attack: $name"
		fi
		sleep 0.02
	done
	if ! kill -0 "$attacker" 2>/dev/null; then
		wait "$attacker"
		fail "the attacker ended before the attack was over: exit status $?: $(cat "$T/attacker.out")"
	fi

	honest_ask
	attack_time /dev/null "$O/ptctl" metrics
	mv "$T/out" "$T/metrics.last"
	begun=${EPOCHREALTIME/[.,]/}
	kill -TERM $ptd_pid
	timeout $HUNG_S tail --pid $ptd_pid -s 0.02 -f /dev/null ||
		{ kill -KILL $ptd_pid; fail "under attack: SIGTERM was not heard for $HUNG_S s"; }
	end_us=$((${EPOCHREALTIME/[.,]/} - begun))
	wait $ptd_pid || fail "under attack: ptd's exit status is $?: $(tail -n 20 "$T/ptd.log")"
	ptd_pid=
	wait $watcher
	attack_over
	honest_over

	grown=$(($(<"$T/peak") - before))
	status_us=$(p99 "$T/status.us") machine_us=$(p99 "$T/machine.us") snapshot_us=$(<"$T/snapshot.us")
	echo "$name: p99 of $(wc -l <"$T/status.us") status calls $((status_us / 1000)) ms" \
		"(of --version $((machine_us / 1000)) ms), snapshot $((snapshot_us / 1000)) ms," \
		"memory +$((grown / 1024)) MiB, SIGTERM heard in $((end_us / 1000)) ms"
	[[ $grown -lt $GROWTH_KIB ]] || fail "$name: ptd's memory grew by $grown KiB"
	honest_judge
}
