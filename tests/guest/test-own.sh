#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Users who are in no group have decoded what their own programs ran, of what hardware recorded of everybody.
# Three users' programs take turns on the CPUs: what each of them gets is what was logged of his own program,
# and nothing of anybody else's, in no format; nothing of a program that has other rights than he, had them, or
# does not want to be read; and nothing of another's that has the number of one of his. With OWN_KERNEL=yes the
# kernel is recorded, too, and he has nothing of that.
#
# Emulated CPUs decode slowly. So in the guest only one snapshot is decoded; of the others the directory that
# ptdecode would have got comes to the host, and is decoded here.
source "$(dirname "$0")/../integration/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio setpriv cc
tests/guest/kernel.sh "$O" || exit

USERS="60001 60002 60003"
SECRETS=70000 # of root
FORMATS=(text calls functions summary sideband collapsed stacks latency:function=main html chrome fxt speedscope pprof callgrind)
for user in $USERS $SECRETS; do
	cc -O1 -g -D_GNU_SOURCE -DOWNER=$user -o "$T/file-$user" tests/targets/own.c || fail "cannot compile"
done

{
	cat tests/guest/recorder.sh
	echo "T=$T O=$O USERS=\"$USERS\" SECRETS=$SECRETS OWN_KERNEL=${OWN_KERNEL:-}"
	cat <<'EOS'
say() {
	echo "$(cut -d' ' -f1 /proc/uptime): $*"
}
as_user() { # UID COMMAND...
	local user=$1
	shift
	/usr/bin/setpriv --reuid=$user --regid=$user --clear-groups "$@"
}

# The decoder as its unit runs it. It executes this in the place of ptdecode.
mv $O/ptdecode $O/ptdecode.real
cat >$O/ptdecode <<END
#!/bin/sh
case "\$*" in
*"-f directory"*) tar -c . ;;
*) exec $O/ptdecode.real "\$@" ;;
esac
END
chmod 755 $O/ptdecode
mkdir -p /run/ptd/decoder
chown 992:990 /run/ptd/decoder
chmod 750 /run/ptd/decoder
(NOTIFY_SOCKET=/nobody as_unit ptd-decoder 992 ptd-decoder /run/ptd/decoder/socket ptd 2>>/out/decoder.log) &

# A shell of the user, which executes the lines that come, so that it is his before the programs are.
login() { # UID
	mkdir -p /home/$1 /out/$1
	mkfifo /home/$1/lines /home/$1/stay
	chmod 777 /out/$1
	mv $T/file-$1 /home/$1
	chown -R $1:$1 /home/$1
	chmod 700 /home/$1
	(cd /home/$1 && exec /usr/bin/setpriv --reuid=$1 --regid=$1 --clear-groups \
		sh -c 'while read -r line; do eval "$line"; done <lines' 2>>/out/shells.log) &
}
run() { # UID LINE
	echo "$2" >&$(($1 - 60001 + 5))
}
# The machine may be so slow that the collector does not answer in time: then nothing is his.
own() { # UID NAME FORMAT [OPTION]...
	local user=$1 name=$2 format=$3 i=0
	shift 3
	until as_user $user ptctl snapshot --own -f $format "$@" -o /out/$user/$name 2>/out/$user/$name.err; do
		i=$((i + 1))
		[ $i -lt 10 ] && grep -q "not known whether" /out/$user/$name.err ||
			fail "user $user, $name: $(cat /out/$user/$name.err)"
	done
	say "user $user, $name: $(cat /out/$user/$name.err)"
}
# ended NAME N: read so many lines of programs that have come to their ends: their users and processes. Nothing
# else runs meanwhile that would fill the rings.
mkfifo -m 666 /tmp/told
exec 9<>/tmp/told
ended() {
	local i=0 user pid
	while [ $i -lt $2 ]; do
		read -r user pid <&9
		echo $pid >/out/$user/$1.pid
		i=$((i + 1))
	done
}

# known N: whether ptd knows of so many processes that they are users', and there is none that it has not asked about
known() {
	ptctl metrics >/tmp/metrics
	[ "$(sed -n 's/^ptd_processes{owner="known"} //p' /tmp/metrics)" -ge $1 ] && grep -q '^ptd_processes{owner="unknown"} 0$' /tmp/metrics
}

# begin OPTION...: and wait until it is known whose the shells are
begin() {
	start_told $few_mtc SwitchSize=4M TaskSize=1M "$@"
	chmod 666 /run/ptd/control
	wait_for known 3
}

# One is decoded here.
echo 1 >$softpt/log
for user in $USERS; do
	login $user
done
exec 5<>/home/60001/lines 6<>/home/60002/lines 7<>/home/60003/lines
begin AuxSize=8M
run 60001 "/home/60001/file-60001 plain /home/60001/stay >/tmp/told & true"
ended decoded 1
own 60001 decoded addresses --pid $(cat /out/60001/decoded.pid) --last 100000
stop

begin AuxSize=16M
mkfifo /root/stay
chown 0:0 $T/file-$SECRETS
chmod 4755 $T/file-$SECRETS
chmod 755 $T
cp /home/60001/file-60001 /root/file-60001
say "they run"
for user in $USERS; do
	run $user "/home/$user/file-$user plain /home/$user/stay >/tmp/told & true"
done
ended plain 3
say "they have run"
# It is known to be his until it executes that.
mkdir -p /out/$SECRETS
mkfifo -m 666 /tmp/goes
exec 4<>/tmp/goes
run 60002 "(echo 60002 0 >/tmp/told; read -r go </tmp/goes; exec $T/file-$SECRETS plain /home/60002/stay >/tmp/told) & true"
ended waits 1
# Three shells, four programs that have computed, and that.
wait_for known 8
echo go >&4
ended setuid 1
run 60001 "/home/60001/file-60001 hide /home/60001/stay >/tmp/told & true"
ended hide 1
/root/file-60001 drop /root/stay >/tmp/told &
ended drop 1
# Another's process with the number of his. It is the next one that is made, if nobody else makes one.
again=$(cat /out/60003/plain.pid)
kill $again
run 60003 wait
while [ -e /proc/$again ]; do
	sleep 0.2
done
i=0
until [ "$(cat /out/60002/again.pid 2>/dev/null)" = $again ]; do
	i=$((i + 1))
	[ $i -lt 5 ] || fail "the number $again is not had again"
	echo $((again - 1)) >/proc/sys/kernel/ns_last_pid
	/usr/bin/setpriv --reuid=60002 --regid=60002 --clear-groups /home/60002/file-60002 plain /home/60002/stay >/tmp/told &
	ended again 1
done
say "all have run"
for user in $USERS; do
	own $user directory directory
done
stop

[ "$OWN_KERNEL" = yes ] || exit 0
echo 0 >/proc/sys/kernel/kptr_restrict
begin Trace=all AuxSize=8M
run 60001 "/home/60001/file-60001 plain /home/60001/stay >/tmp/told & true"
ended kernel 1
own 60001 kernel directory
stop
exit 0
EOS
} >"$T/script"
MEMORY=4096 tests/guest/boot.sh -l "$T/log" -o "$T/out" "$T/script" "$O"/{ptd,ptctl,ptd-decoder,ptdecode} "$T"/file-* 2>"$T/err" ||
	{ cat "$T/err" >&2; fail "the guest's script failed"; }
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

# same UID WHAT DIRECTORY [GAPS]: of the process of WHAT, what is decoded is what was logged since it executed the
# program, on all its stays, and without GAPS all of it. Whatever else is decoded is in the log, too, with gaps where
# it was not known in time that it is his.
whole= # instructions that each of the programs executes
same() {
	local pid name n stays all engine
	pid=$(cat "$T/out/$1/$2.pid")
	all=$("$O/tools/emulog" "$T/log/1" | awk -v name="$pid.$pid" '$1 == name { print $2 }')
	for engine in flow insn; do
		"$O/tools/pieces" -e $engine "$3" "$T/log/1" >"$T/pieces" ||
			"$O/tools/pieces" -e $engine -l "$3" "$T/log/1" >"$T/pieces" || fail "user $1, $2: $(grep -v ^gap "$T/pieces")"
		read -r name n _ _ stays _ < <(grep "^$pid\.$pid: " "$T/pieces")
		echo "user $1, $2, $engine: ${n:-0} instructions of $all in ${stays:-0} pieces; in all: $(tail -n 1 "$T/pieces")"
		[[ ${n:-0} -gt 900000 && $stays -ge 200 ]] || fail "too few of process $pid: $(grep -v ^gap "$T/pieces")"
		# Before it executed the program it was a shell's child for less than 6000 instructions; so the first one. The
		# last one's number is another's later.
		[[ -n $whole || $n -le $((all - 6000)) ]] || whole=$n
		[[ -n ${4:-} || $n == "$whole" ]] || fail "not $whole instructions: $(grep -v ^gap "$T/pieces")"
	done
	[[ $("$O/ptdecode" --pid "$pid" --last 1000000000 -f text "$3" 2>/dev/null | sed '/^#/d; q') == *_start* ]] ||
		fail "user $1, $2: does not begin with its program"
}

# canaries UID FILE...: nothing in the files is of another user than UID, or what he may not see.
canaries() {
	local user=$1 other file found
	shift
	for file; do
		for other in $USERS $SECRETS; do
			found=hidden_$other
			[[ $other == "$user" ]] || found="STRING-$other|symbol_$other|file-$other|$found"
			! { cat "$file"; zcat -f "$file" 2>/dev/null; } | grep -aqE "$found" ||
				fail "$file, which user $user has: of user $other: $(grep -aoE ".{0,60}($found)" "$file" | head -n 3)"
		done
	done
}

unpack() { # UID NAME
	mkdir -p "$T/$1/$2"
	tar -C "$T/$1/$2" -xf "$T/out/$1/$2" || fail "user $1: no directory"
}

echo "--- each has his own instructions, all of them"
for user in $USERS; do
	unpack $user directory
	same $user plain "$T/$user/directory"
done
# It waits behind its last instruction.
pid=$(cat "$T/out/60001/decoded.pid")
[[ $(stat -c %s "$T/out/60001/decoded") == 800000 ]] || fail "not 100000 instructions were decoded in the guest"
"$O/tools/emulog" "$T/log/1" "$pid.$pid" | tail -c 800000 | cmp - "$T/out/60001/decoded" || fail "what was decoded in the guest"

echo "--- nothing else, in no format"
for user in $USERS; do
	for format in "${FORMATS[@]}"; do
		"$O/ptdecode" -f "$format" -o "$T/$user/$format" "$T/$user/directory" 2>"$T/$user/said"
		[[ $? == [03] ]] || fail "$format: $(cat "$T/$user/said")"
		canaries $user "$T/$user/$format" "$T/$user/said"
	done
	# Nor in what ptdecode reads, but for the file of the program itself, which has both functions.
	find "$T/$user/directory" -type f ! -path "*/objects/*" ! -name SHA256SUMS -exec cat {} + >"$T/$user/files"
	canaries $user "$T/$user/files" "$T/out/$user/directory.err"
	! grep -vE "[0-9]+/[0-9]+ .*(COMM|FORK|EXIT|MMAP|SWITCH.*pid/tid: +-1/-1)" "$T/$user/sideband" | grep . ||
		fail "the user sees when others run"
	! grep -q 2147483647 "$T/$user/sideband" || fail "the user sees when others run"
	grep -q "SWITCH.*IN" "$T/$user/sideband" || fail "user $user: no switch of his own"
	grep -aq "symbol_$user" "$T/$user/text" || fail "user $user: nothing of his own"
done
# Of one that his shell began he has what it ran until it executed the program that is not his, and nothing of what begins
# then. The child of a shell may be asked about before, too.
for what in 60001/drop $SECRETS/setuid; do
	pid=$(cat "$T/out/$what.pid")
	for user in $USERS; do
		"$O/ptdecode" --pid "$pid" --last 1000000000 -f text "$T/$user/directory" 2>/dev/null | sed '/^#/d' >"$T/some"
		n=$(wc -l <"$T/some")
		if [[ $user/$what == 60002/$SECRETS/setuid ]]; then
			echo "user $user has $n instructions of $what, from before it was that"
			[[ $n -gt 0 && $n -lt 50000 ]] && ! grep -E "_dl_start|_dl_main|_dl_map_object|file-" "$T/some" ||
				fail "user $user, $what: $(tail -n 20 "$T/some")"
		else
			[[ $n == 0 ]] || fail "user $user has something of $what: $(head -n 20 "$T/some")"
		fi
	done
done
again=$(cat "$T/out/60003/plain.pid")
! "$O/ptdecode" -f text "$T/60003/directory" 2>/dev/null | grep -q "symbol_60002" || fail "the process with the same number"

[[ ${OWN_KERNEL:-} == yes ]] || { echo ok; exit; }
echo "--- nothing of the kernel"
unpack 60001 kernel
# The kernel, of which it is not known where it returned to, makes gaps.
same 60001 kernel "$T/60001/kernel" gaps
for format in "${FORMATS[@]}"; do
	"$O/ptdecode" -f "$format" -o "$T/60001/$format" "$T/60001/kernel" 2>"$T/60001/said"
	[[ $? == [03] ]] || fail "$format: $(cat "$T/60001/said")"
	canaries 60001 "$T/60001/$format" "$T/60001/said"
	! zcat -f "$T/60001/$format" | grep -aqE "\[kernel|entry_SYSCALL|ffffffff[89a-e][0-9a-f]{7}" ||
		fail "$format: $(grep -aoE ".{0,60}(\[kernel|entry_SYSCALL|ffffffff[89a-e][0-9a-f]{7})" "$T/60001/$format" | head -n 3)"
done
[[ ! -e $T/60001/kernel/kcore_dir ]] || fail "it has the kernel's code"
echo ok
