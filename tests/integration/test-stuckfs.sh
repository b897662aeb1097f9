#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A user runs programs from a file server that does not answer whoever else asks it, so that the collector's
# workers hang and cannot even be killed. That costs him copies of these programs, and others nothing: programs of
# root and of another user are kept, also those that he executes, too, and a snapshot by root takes at most 1 s more than with the same programs on
# a disk.
#
# Alone: how soon ptd answers is measured.
. "$(dirname "$0")/attack.sh"
need "${CC:-cc}"

server=
stuck_leave() {
	attack_over
	kill $(jobs -p) 2>/dev/null
	[[ -z $server ]] || { kill "$server" && wait "$server"; } 2>/dev/null
	umount -l "$T/stuck" 2>/dev/null
	attack_leave
}
trap stuck_leave EXIT

# program ID FILE: one that runs until it is killed, or ends at once if it has no argument.
program() {
	"${CC:-cc}" -O2 -Wl,--build-id="0x$(printf %040x "$1")" -x c -o "$2" - <<<'
		#include <unistd.h>
		int main(int n, char **arg) { (void)arg; while (n > 1) usleep(10000); return 0; }' || fail "cc"
	chmod 755 "$2"
}

mkdir -m 755 "$T/stuck" "$T/disk"
for name in a b c d short; do
	program 1 "$T/disk/$name"
done
program 2 "$T/private/others"
chmod 755 "$T/private"
n_programs=10

# The user's programs: some that stay, and others that end at once.
load() { # DIRECTORY
	set -m
	as_nobody bash -c '
		for name in a b c d; do "$1/$name" stay & done
		while :; do "$1/short"; sleep 0.05; done' - "$1" &
	attacker=$!
	set +m
}

# measure NAME DIRECTORY: the longest of some snapshots goes to $longest, in ms.
measure() {
	local name=$1 directory=$2 i begun ms id others users roots shared
	longest=0
	attack_start pt SwitchSize=8M SidebandMax=64M
	load "$directory"
	setpriv --reuid $OTHER --regid $OTHER --clear-groups "$T/private/others" stay &
	others=$!
	sleep 1
	for i in 1 2 3 4; do
		n_programs=$((n_programs + 1))
		program $n_programs "$T/bin/root.$n_programs"
		program $((n_programs + 1000)) "$T/bin/shared.$n_programs"
		# The user has it waiting behind what cannot be read, before root executes it.
		setpriv --reuid $NOBODY --regid $NOBODY --clear-groups "$T/bin/shared.$n_programs" stay &
		users=$!
		sleep 0.2
		"$T/bin/root.$n_programs" stay &
		roots=$!
		"$T/bin/shared.$n_programs" stay &
		shared=$!
		sleep 0.3
		begun=${EPOCHREALTIME/[.,]/}
		id=$("$O/ptctl" snapshot 2>"$T/err") || fail "$name: no snapshot: $(cat "$T/err"; tail -n 5 "$T/ptd.log")"
		ms=$(((${EPOCHREALTIME/[.,]/} - begun) / 1000))
		kill $roots $shared $users
		wait $roots $shared $users 2>/dev/null
		echo "$name: snapshot $i took $ms ms"
		[[ $ms -le $longest ]] || longest=$ms
		map=$T/state/snapshots/$id/objects.map
		for kept in "$T/bin/root.$n_programs" "$T/bin/shared.$n_programs" "$T/private/others"; do
			# By its content, if the user's mapping of it could not be looked at.
			grep -q "^\(sha256:\)\?[0-9a-f]\{40,64\}	$kept$" "$map" || fail "$name: $kept is not kept: $(cat "$map"; tail -n 5 "$T/ptd.log")"
		done
	done
	kill $others
	wait $others 2>/dev/null
	attack_over
}

measure disk "$T/disk"
grep -q "^[0-9a-f]\{40\}	$T/disk/a$" "$map" || fail "what is on the disk is not kept: $(cat "$map")"
limit=$((longest + 1000))

stuck() { # OWNER VERB...
	"$O/tools/attack-stuckfs" "$T/stuck" "$T/disk/a" $NOBODY "$@" >"$T/server" 2>"$T/err" &
	server=$!
	sleep 0.05
	for _ in {1..1000}; do
		grep -qs ready "$T/server" && break
		kill -0 $server 2>/dev/null || break
		sleep 0.05
	done
	if ! grep -q ready "$T/server"; then
		wait $server
		[[ $? != 77 ]] || skip "there is no FUSE: $(cat "$T/err")"
		fail "attack-stuckfs: $(cat "$T/err")"
	fi
	measure "stuck $*" "$T/stuck"
	# What lives is found without looking for its name.
	[[ $* == *" look" ]] || grep "^- .*	$T/stuck/a$" "$map" || fail "what cannot be read is kept: $(cat "$map")"
	stop_ptd
	kill $server
	wait $server
	server=
	umount -l "$T/stuck" 2>/dev/null
	[[ $longest -le $limit ]] || fail "stuck $*: a snapshot took $longest ms, of $limit"
}

stuck $NOBODY read
stuck $NOBODY open
stuck $NOBODY stat
stuck $NOBODY look
# It may say that its files are root's.
stuck 0 read
stuck 0 look stat open
echo ok
