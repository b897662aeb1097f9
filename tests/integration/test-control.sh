#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The recorder and its control socket: life, errors, what is left behind. No program is recorded
# here but a stand-in for QEMU that shows what it was started with.
. "$(dirname "$0")/lib/common.sh"
umask 022

ptctl=$O/ptctl
state=$T/state/snapshots

# expect STATUS TEXT CMD...: the exit status, and a text that the output has.
expect() {
	local status=$1 text=$2 out r
	shift 2
	out=$("$@" 2>&1 </dev/null)
	r=$?
	[[ $r -eq $status ]] || fail "$*: exit status $r instead of $status: $out"
	[[ $out == *"$text"* ]] || fail "$*: expected \"$text\", got: $out"
	[[ $r -eq 0 ]] || sed -n '/^pt[a-z]*: /p' <<<"$out" >>"$T/said"
}

call() {
	gdbus call --timeout $HUNG_S --address "unix:path=$T/run/control" --dest org.ptd \
		--object-path /org/ptd/Recorder1 --method "org.ptd.Recorder1.$1" "${@:2}"
}

echo "--- what is said about wrong usage"
expect 0 "Usage: ptd" "$O/ptd" --help
expect 0 "Usage: ptd" "$O/ptd" -h
expect 0 "ptd " "$O/ptd" --version
expect 2 "unexpected argument" "$O/ptd" x
expect 1 "is none of auto, emu, pt" "$O/ptd" --source x --runtime-dir "$T/r" --state-dir "$T/s"
[[ -e /sys/bus/event_source/devices/intel_pt ]] ||
	expect 1 "there is no Intel PT on this machine" "$O/ptd" --source pt --runtime-dir "$T/r" --state-dir "$T/s"
expect 1 "$T/none: cannot read it" "$O/ptd" --config "$T/none" --runtime-dir "$T/r" --state-dir "$T/s"
expect 0 "Usage: ptctl" "$ptctl" --help
expect 0 "--json             print the recorder's answer as JSON" "$ptctl" --help
for verb in status metrics record snapshot trigger pause resume list info rm keep reload; do
	for form in "$verb --help" "$verb -h" "help $verb"; do
		out=$("$ptctl" $form 2>&1) || fail "ptctl $form: exit status $?: $out"
		[[ $out == "Usage: ptctl "*" $verb"* && $out != *"--json] VERB"* ]] || fail "ptctl $form: $out"
	done
	# What the manual has of it, the help has, and the other way round.
	grep -qxF ".Cm $verb" ctl/ptctl.1 || fail "ptctl.1 does not have $verb"
done
for form in help -h; do
	[[ $("$ptctl" $form) == "$("$ptctl" --help)" ]] || fail "ptctl $form is not ptctl --help"
done
expect 0 "--pid PID" "$ptctl" snapshot -o DIR --pid 5 --help
expect 0 "Usage" "$ptctl" record -o DIR -h
expect 2 "unknown verb" "$ptctl" help bake
expect 2 "unexpected argument" "$ptctl" help list info
expect 2 "see ptctl snapshot --help" "$ptctl" snapshot --fast
for pid in 0 -1 x 5x "" 4294967297 99999999999999999999; do
	expect 2 "\"$pid\" is no process ID" "$ptctl" snapshot --pid "$pid"
done
expect 2 "which verb? Try: ptdecode --help" "$O/ptdecode"
expect 2 "the name of the recording is empty. Try: ptdecode --help" "$O/ptdecode" text ""
expect 2 "no such option: \"--fast\". Try: ptdecode --help" "$O/ptdecode" --fast
expect 2 "there is no -f: the verb is \"export fxt\". Try: ptdecode help fxt" "$O/ptdecode" -f fxt latest
printf 'some bytes' | tee "$T/in.pt" "$T/in.code" >"$T/in.out"
ln "$T/in.pt" "$T/in.link"
raw=("$O/ptdecode" --raw-pt "$T/in.pt" --raw-code "$T/in.code@0x1000")
for same in in.pt in.link in.code; do
	expect 1 "$T/$same: will not be written: it is read" "${raw[@]}" export addresses -o "$T/$same"
done
expect 1 "another output goes there" "${raw[@]}" export addresses -o "$T/in.out" --also "text -o $T/in.out"
[[ $(cat "$T/in.pt" "$T/in.code") == "some bytessome bytes" ]] || fail "ptdecode wrote to what it was to read"
rm "$T"/in.*
mkdir -p "$T/in.d/objects/x"
for same in data pieces objects/x/elf; do
	echo kept >"$T/in.d/$same"
	ln -s "in.d/$same" "$T/in.link"
	expect 1 "$T/in.d/$same: will not be written: it is read" "$O/ptdecode" summary -o "$T/in.d/$same" "$T/in.d"
	expect 1 "$T/in.link: will not be written: it is read" "$O/ptdecode" summary -o "$T/in.link" "$T/in.d"
	[[ $(cat "$T/in.d/$same") == kept ]] || fail "ptdecode wrote to $same of what it was to read"
	rm "$T/in.link"
done
rm -r "$T/in.d"
expect 2 "a verb is missing" "$ptctl"
expect 2 "unknown verb" "$ptctl" bake
expect 2 "unexpected argument" "$ptctl" status x
expect 125 "which program" "$ptctl" record
expect 3 "is it running?" "$ptctl" --socket "$T/run/control" status
[[ ! -e $T/r && ! -e $T/s ]] || fail "a ptd that did not start left directories"

echo "--- a start sweeps what an earlier one left"
mkdir -p "$state/.new-20200101T000000.000000Z-1/objects" "$T/state/store/0123"
touch "$state/.new-20200101T000000.000000Z-1/objects/x" "$T/state/store/0123/elf" "$T/state/store/4567" "$state/note"
start_ptd Nonsense=1 AuxSize=1M MaxUse=100%
[[ $(ls -A "$state") == note ]] || fail "not swept: $(ls -A "$state")"
[[ -z $(ls -A "$T/state/store") ]] || fail "the store was not swept"
grep -q 'ptd.conf:9: unknown setting "Nonsense", ignoring' "$T/ptd.log" || fail "no warning: $(cat "$T/ptd.log")"

! grep -q 'ptd.conf:11' "$T/ptd.log" || fail "MaxUse=100% was refused: $(cat "$T/ptd.log")"

echo "--- status, snapshot, list"
expect 0 "Source: emu, idle" "$ptctl" status
expect 0 '"source":"emu","recording":false' "$ptctl" status --json
id=$("$ptctl" snapshot 2>"$T/err") || fail "snapshot"
grep -q "0 B of PT in .*: nothing was being recorded" "$T/err" || fail "an idle snapshot does not say so: $(cat "$T/err")"
expect 0 "$id" "$ptctl" list
expect 0 "\"id\":\"$id\"" "$ptctl" --json list
expect 0 "id: $id" "$ptctl" info "$id"
"$ptctl" info --json "$id" | python3 -c 'import json, sys
assert json.load(sys.stdin)["format"] == "ptd-snapshot-1"' || fail "info --json"
expect 6 'there is no snapshot "x"' "$ptctl" info x
expect 2 "which snapshot" "$ptctl" info
expect 6 'there is no snapshot ""' "$ptctl" info ""
for verb in status list; do
	"$ptctl" --json $verb 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "$verb --json"
done
(cd "$state/$id" && sha256sum --quiet --strict -c SHA256SUMS) || fail "SHA256SUMS"
[[ $(stat -c %a "$state/$id" "$state/$id/data") == 750$'\n'640 ]] || fail "modes of a snapshot"
expect 0 '"pt_bytes":0,' "$ptctl" --json snapshot -o "$T/copy"
diff -r "$T/copy" "$state/$("$ptctl" list | tail -1 | cut -d' ' -f1)" || fail "the copy differs"
expect 1 "is not empty" "$ptctl" snapshot -o "$T/copy"
[[ $(ls "$state" | wc -l) == 3 ]] || fail "a refused -o took a snapshot all the same"

echo "--- who asked for it"
cp "$ptctl" "$T/"$'od\nd\033m'
PTD_SOCKET=$T/run/control "$T/"$'od\nd\033m' snapshot >"$T/answer" 2>&1 &
pid=$!
wait $pid || fail "snapshot: $(cat "$T/answer")"
odd=$(head -1 "$T/answer")
me=$(id -u)
grep -qxF "ptd: od?d?m (process $pid, user $me) asked for snapshot $odd" "$T/ptd.log" || fail "the log: $(cat "$T/ptd.log")"
"$ptctl" info "$odd" >"$T/answer"
for line in "taken_by_uid: $me" "taken_by_pid: $pid" "taken_by_comm: od?d?m"; do
	grep -qx " *${line//\?/[?]}" "$T/answer" || fail "info does not say $line: $(cat "$T/answer")"
done
grep -q "^ptd: ptctl (process [0-9]*, user $me) opened for reading snapshot $odd$" "$T/ptd.log" || fail "the log: $(cat "$T/ptd.log")"

echo "--- keep, rm"
read -r second third <<<"$("$ptctl" snapshot 2>/dev/null) $("$ptctl" snapshot 2>/dev/null)"
expect 2 "which snapshot" "$ptctl" rm
expect 2 "which snapshot" "$ptctl" keep
expect 2 "see ptctl keep --help" "$ptctl" keep --fast "$second"
for verb in rm keep "keep --release"; do
	expect 6 'there is no snapshot "x"' "$ptctl" $verb x
	expect 6 'there is no snapshot "../snapshots"' "$ptctl" $verb ../snapshots
done
expect 6 'there is no snapshot "note"' "$ptctl" rm note
expect 0 "" "$ptctl" keep "$second" "$third"
expect 0 '"kept":true' "$ptctl" --json list
[[ $("$ptctl" list | grep -c ' kept ') == 2 ]] || fail "list does not show what is kept: $("$ptctl" list)"
expect 1 "snapshot $second is kept: \`ptctl keep --release\` takes that back" "$ptctl" rm "$second"
expect 0 "" "$ptctl" keep --release "$second"
[[ $("$ptctl" list | grep ' kept ') == "$third "* ]] || fail "list: $("$ptctl" list)"
expect 0 "" "$ptctl" rm "$second"
[[ ! -e $state/$second && -e $state/$third/manifest ]] || fail "rm: $(ls -A "$state")"
expect 6 "there is no snapshot" "$ptctl" info "$second"
grep -q "ptctl (process [0-9]*, user $me) asked to keep snapshot $second" "$T/ptd.log" || fail "the log: $(cat "$T/ptd.log")"
grep -q "ptctl (process [0-9]*, user $me) asked to keep no longer snapshot $second" "$T/ptd.log" || fail "the log: $(cat "$T/ptd.log")"
grep -q "ptctl (process [0-9]*, user $me) removed snapshot $second" "$T/ptd.log" || fail "the log: $(cat "$T/ptd.log")"
(cd "$state/$third" && sha256sum --quiet --strict -c SHA256SUMS) || fail "SHA256SUMS of one that is kept"
expect 1 "is kept" "$ptctl" rm latest
expect 0 "" "$ptctl" keep --release latest
expect 0 "" "$ptctl" rm latest
[[ ! -e $state/$third ]] || fail "rm latest: $(ls -A "$state")"

mkdir "$T/empty"
mkfifo "$T/said.pipe" # the limit is not to be on what is said
for to in cut empty; do
	# The disk is found to be full only when the copy has begun: ptd stands still until then.
	kill -STOP "$ptd_pid"
	(trap '' XFSZ && exec "$ptctl" snapshot -o "$T/$to") 2>"$T/said.pipe" & pid=$!
	cat "$T/said.pipe" >"$T/err" & reader=$!
	until ls -l "/proc/$pid/fd" | grep -q socket:; do sleep 0.05; done
	prlimit --pid "$pid" --fsize=0
	kill -CONT "$ptd_pid"
	wait "$pid"
	r=$?
	wait "$reader"
	[[ $r -eq 1 ]] && grep -q "$T/$to: cannot copy snapshot" "$T/err" || fail "-o $to: $(cat "$T/err")"
done
[[ ! -e $T/cut && ! -e $T/cut.part && -z $(ls -A "$T/empty") ]] || fail "half a copy was left"
expect 0 "" "$ptctl" snapshot -o "$T/empty"
(cd "$T/empty" && sha256sum --quiet --strict -c SHA256SUMS) || fail "SHA256SUMS of a copy"

echo "--- a snapshot by its id, and the latest"
first=$id latest=$("$ptctl" list | tail -1 | cut -d' ' -f1)
[[ $first != "$latest" ]] || fail "there is only one snapshot, nothing tested"
expect 0 "id: $latest" "$ptctl" info latest
grep -q "opened for reading snapshot $latest$" "$T/ptd.log" || fail "the log does not name it: $(cat "$T/ptd.log")"
decode() { "$O/ptdecode" summary "$@"; }
expect 0 "PT: none, nothing was recorded" decode --state-dir "$T/state" "$first"
expect 0 "Instructions: 0" env PTD_STATE_DIR="$T/state" "$O/ptdecode" summary latest
expect 0 "Instructions: 0" env PTD_STATE_DIR="$T/state" "$O/ptdecode" summary
expect 0 "Instructions: 0" "$ptctl" snapshot --then 'summary --rows=3'
# Which one it is can be seen where they cannot be decoded.
for n in 1-1 20200101-3 2026-2; do
	mkdir -p "$T/others/snapshots/$n"
	touch "$T/others/snapshots/$n"/{data,manifest}
done
for how in "env PTD_STATE_DIR=$T/others $O/ptdecode text" "env PTD_STATE_DIR=$T/none $O/ptdecode text --state-dir $T/others"; do
	expect 1 "$T/others/snapshots/2026-2: " $how 2026-2
	expect 1 "$T/others/snapshots/20200101-3: " $how latest
done
expect 1 "nix: No such file or directory" decode --state-dir "$T/state" nix
expect 1 "1-1: there is no file of that name, and no such snapshot in $state" decode --state-dir "$T/state" 1-1
expect 1 "latest: there is no file of that name, and no such snapshot in $T/none/snapshots" decode --state-dir "$T/none" latest
(cd "$T" && cp -r "$state/$first" LOCAL-1 && expect 0 "Instructions: 0" decode --state-dir "$T/none" LOCAL-1) || exit 1
(cd "$T" && touch latest && expect 1 "latest: not a perf.data file" decode --state-dir "$T/state" latest) || exit 1

echo "--- ptdecode says which output cannot be written"
expect 1 "/dev/full: cannot write: No space left on device" "$O/ptdecode" summary -o /dev/full "$state/$first"
expect 1 "standard output: cannot write: No space left on device" bash -c "'$O/ptdecode' summary '$state/$first' >/dev/full"
expect 1 "$T/none/out: cannot write: No such file or directory" "$O/ptdecode" summary -o "$T/none/out" "$state/$first"
expect 1 "$T/none: No such file or directory" "$O/ptdecode" summary "$T/none"
expect 1 "$T/small: cannot write: more than the 10 bytes of --max-output" "$O/ptdecode" --max-output 10 summary \
	-o "$T/small" "$state/$first"

echo "--- ptdecode reads and writes descriptors that it was given"
head -c 64 /dev/zero | tee "$T/fd.code" >"$T/fd.pt"
"$O/ptdecode" --raw-pt "$T/fd.pt" --raw-code "$T/fd.code@0x1000" summary -o "$T/by.path" --also "text -o $T/by.path.text"
r=$?
"$O/ptdecode" --raw-pt /dev/fd/7 --raw-code /dev/fd/8@0x1000 summary -o /dev/fd/9 --also 'text -o /dev/fd/11' \
	7<"$T/fd.pt" 8<"$T/fd.code" 9>"$T/by.fd" 11>"$T/by.fd.text"
[[ $? == 3 && $r == 3 ]] || fail "a stream without a PSB: exit status $r, and by its descriptor another"
diff "$T/by.path" "$T/by.fd" && diff "$T/by.path.text" "$T/by.fd.text" || fail "descriptors are not what paths are"
"$O/ptdecode" summary /dev/fd/7 7<"$state/$first" >"$T/by.fd" || fail "a directory's descriptor: $?"
"$O/ptdecode" summary "$state/$first" | diff - "$T/by.fd" || fail "a directory's descriptor is not what its path is"

echo "--- what is asked of ptctl in vain"
expect 0 "ptctl " "$ptctl" --version
expect 2 "Try: ptctl --help" "$ptctl" --fast
expect 1 "cannot write the output: No space left on device" bash -c "'$ptctl' status >/dev/full"
expect 2 'unexpected argument "x"' "$ptctl" list x
expect 2 'unexpected argument "x"' "$ptctl" snapshot x
expect 1 "there is no hardware to give to others" "$ptctl" pause
expect 1 "there is no hardware to give to others" "$ptctl" resume
expect 1 "there is no CPU 900: there are " "$ptctl" snapshot --cpu 0,900
expect 1 '"1-" is no list of CPUs' "$ptctl" snapshot --cpu 1-
expect 125 "see ptctl record --help" "$ptctl" record --fast true

echo "--- a second recorder is refused"
expect 1 "another ptd is using this state directory" "$O/ptd" --runtime-dir "$T/run2" --state-dir "$T/state"
expect 1 "Address already in use" "$O/ptd" --runtime-dir "$T/run" --state-dir "$T/state2"

echo "--- record: what is executed"
mkdir "$T/bin"
cat >"$T/bin/qemu-x86_64" <<'EOF'
#!/bin/bash
[[ $1 != -h ]] || { echo "-plugin FILE"; exit; }
for fd in "${2##*pool=}"; do [[ $(readlink "/proc/self/fd/$fd") == /memfd:ptd-pool* ]] || echo "no pool"; done
[[ $2 == "$PTD_EMU_SO,pool="* ]] || echo "wrong plugin: $2"
[[ $1 == -plugin && $3 == -0 ]] && shift 3 && printf '<%s>' "$@" && echo
case $* in
*killed*) kill -KILL $$ ;;
*abandoned*) kill -KILL "$PTD_PID" ;;
*stopped*) kill -STOP "$PTD_PID" ; { sleep 1; kill -KILL "$PTD_PID"; } & ;;
*forward*) trap 'echo got it; exit 9' USR1; kill -USR1 $PPID; sleep 5 & wait ;;
esac
exit 7
EOF
printf '#! /bin/echo  a b \n' >"$T/bin/script"
printf '#!%s\n' "$T/bin/script" >"$T/bin/script2"
printf '#!/no/such/interpreter\n' >"$T/bin/dangling"
printf '#!%s\n' "$T/bin/loop" >"$T/bin/loop"
printf 'echo hello\n' >"$T/bin/plain"
head -c 300 /bin/true >"$T/bin/x32" && printf '\1' | dd of="$T/bin/x32" bs=1 seek=4 conv=notrunc status=none
chmod +x "$T"/bin/*
touch "$T/bin/noexec" "$T/plugin.so"
stop_ptd
start_ptd
export PTD_EMU_SO=$T/plugin.so
# An emulator of ptctl's own, beside it, would be looked for first.
mkdir "$T/alone" && cp "$O"/ptctl "$O"/ptdecode "$T/alone" && ptctl=$T/alone/ptctl
run() { PATH=$T/bin:$PATH "$ptctl" record "$@"; }
expect 7 "<true><$(type -P true)><-x><a b>" run -- true -x "a b"
expect 7 "<true>" run true
# The list shows what ran, on one line whatever it is called.
read -r _ _ _ _ _ _ pid lost command <<<"$("$ptctl" list | tail -1)"
[[ $pid =~ ^[0-9]+$ && $lost == - && $command == true ]] || fail "list: $("$ptctl" list)"
expect 7 "" run -- true $'x\ny=z' $'\e[2J' $'\xff' ü "$(printf 'a%.0s' {1..300})"
row=$("$ptctl" list | tail -1)
[[ $row == *" - "*" true x?y=z ?[2J ? ü aaa"*a && ${#row} -lt 400 ]] || fail "list: $row"
"$ptctl" list --json | python3 -c 'import json, sys
last = json.load(sys.stdin)[-1]
assert last["command"].startswith("true x?y=z ?[2J ? \u00fc aaa"), last
assert last["pid"] > 0 and last["command_complete"] is True, last
assert [last[k] for k in ("objects_missing", "records_lost", "pt_dropped", "pt_overwritten")] == [0] * 4, last' ||
	fail "list --json"
id=$("$ptctl" list | tail -1 | cut -d' ' -f1)
expect 0 "command: true x?y=z" "$ptctl" info "$id"
expect 7 "</bin/echo></bin/echo><a b><$T/bin/script><arg>" run -- script arg
expect 7 "</bin/echo></bin/echo><a b><$T/bin/script><$T/bin/script2><arg>" run -- script2 arg
expect 126 "cannot execute its interpreter /no/such/interpreter" run -- dangling
expect 126 "too many scripts" run -- loop
expect 126 "neither an ELF program nor a script" run -- plain
expect 126 "x32: not recorded: it is no program for x86 that QEMU runs" run -- x32
expect 126 "x32: cannot execute it: Exec format error" run -- x32
expect 126 "noexec: cannot execute it: Permission denied" run -- noexec
expect 127 "no-such-program: cannot execute it: No such file" run -- no-such-program
expect 126 "cannot execute it: Permission denied" run -- /tmp
expect 137 "killed by signal 9" run -- true killed
expect 9 "got it" run -- true forward
expect 7 "<true>" env PATH="$T/bin:$PATH" timeout $HUNG_S bash -c "trap '' CHLD; exec $ptctl record true"
expect 7 "PT in $T/out" run -o "$T/out" -- true
[[ -s $T/out/data ]] || fail "record -o left no snapshot"
mkdir "$T/nothing"
expect 125 "is not empty" run -o "$T/out" true
expect 125 "qemu-x86_64 cannot record programs: No such file" env PATH="$T/nothing" "$ptctl" record -- /bin/true
printf '#!/bin/sh\necho "-cpu MODEL"\n' >"$T/nothing/qemu-x86_64"
chmod +x "$T/nothing/qemu-x86_64"
expect 125 "qemu-x86_64 cannot record programs: it loads no plugins" env PATH="$T/nothing" "$ptctl" record -- /bin/true
mv "$T/plugin.so" "$T/plugin.gone"
expect 125 "$T/plugin.so: cannot read the plugin for QEMU" run -- true
mv "$T/plugin.gone" "$T/plugin.so"
PTD_PID=$ptd_pid expect 124 "ptd went away: waiting 20 s for the next one" \
	env PATH="$T/bin:$PATH" timeout 18 "$ptctl" record true abandoned
{ wait "$ptd_pid"; } 2>/dev/null
ptd_pid=
start_ptd AuxSize=1M
# The same ptd is there when the snapshot is asked for, and ends before it answers.
PTD_PID=$ptd_pid expect 124 "ptd went away: waiting 20 s for the next one" \
	env PATH="$T/bin:$PATH" timeout 18 "$ptctl" record true stopped
{ wait "$ptd_pid"; } 2>/dev/null
ptd_pid=
start_ptd AuxSize=1M

if command -v gdbus >/dev/null; then
	echo "--- anybody's D-Bus client"
	expect 0 "TakeSnapshot" gdbus introspect --address "unix:path=$T/run/control" --dest org.ptd \
		--object-path /org/ptd/Recorder1
	expect 0 "'source': <'emu'>" call GetStatus
	expect 1 "org.ptd.Error.NoSuchSnapshot" call OpenSnapshot ../snapshots
	expect 1 "org.ptd.Error.NoSuchSnapshot" call OpenSnapshot note
	expect 1 "org.ptd.Error.NoSuchSnapshot" call WaitSnapshot nix
	expect 1 'there is no option "fast"' call TakeSnapshot "{'fast': <true>}"
	for i in {1..40}; do call TakeSnapshot '{}' >"$T/call.$i" 2>&1 & calls+=($!); done
	wait "${calls[@]}"
	ok=$(grep -l Z- "$T"/call.* | wc -l)
	busy=$(grep -l org.ptd.Error.Busy "$T"/call.* | wc -l)
	[[ $((ok + busy)) -eq 40 && $ok -ge 9 ]] || fail "of 40 calls $ok were taken and $busy refused: $(cat "$T"/call.*)"
	# Those who asked are gone; what they asked for is done all the same.
	until "$ptctl" status --json | grep -q '"pending":0,'; do sleep 0.1; done
	for taken in $(grep -ho '[0-9TZ.-]*Z-[0-9]*' "$T"/call.*); do
		[[ -s $state/$taken/SHA256SUMS ]] || fail "$taken was taken, but is not there"
	done
else
	echo "gdbus is not installed: the D-Bus errors are not tested"
fi

if [[ $(id -u) == 0 ]]; then
	echo "--- somebody who may not"
	nobody() { setpriv --reuid 65534 --regid "${gid:-65534}" --clear-groups "$@"; }
	cp "$ptctl" "$T/ptctl"
	chmod 755 "$T" "$T/run" "$T/ptctl"
	chmod 666 "$T/run/control" # a mistake that lets nobody in
	for verb in status snapshot list; do
		expect 3 "" nobody "$T/ptctl" --socket "$T/run/control" $verb
	done
	expect 125 "" nobody "$T/ptctl" --socket "$T/run/control" record -- /bin/true
	grep -q "refused a client of user 65534, who is not in group ptd" "$T/ptd.log" || fail "the log does not say who was refused"
	gid=$(getent group ptd | cut -d: -f3)
	[[ -z $gid ]] || expect 0 "Source: emu" nobody "$T/ptctl" --socket "$T/run/control" status
	chmod 660 "$T/run/control"
	expect 4 "Permission denied" nobody "$T/ptctl" --socket "$T/run/control" status
	expect 4 "the mode of the socket" nobody "$T/ptctl" --socket "$T/run/control" status
else
	echo "not root: that others are refused is not tested"
fi

echo "--- a reload"
# said TEXT: the log comes to have it.
said() {
	await grep -qF -- "$1" "$T/ptd.log" || fail "ptd did not say \"$1\": $(cat "$T/ptd.log")"
}
"$ptctl" snapshot >/dev/null 2>&1 && "$ptctl" snapshot >/dev/null 2>&1 || fail "snapshot"
sed -i -e 's/^AuxSize=1M/AuxSize=2M/' -e 's/^MaxUse=1T/MaxUse=1K/' "$T/ptd.conf"
echo SidebandMax=32M >>"$T/ptd.conf"
kill -HUP "$ptd_pid"
said "settings were read again"
said "MaxUse= was changed"
said "AuxSize= was changed: takes effect at restart"
! grep -q "KeepFree= was changed" "$T/ptd.log" || fail "what was not changed was said to be"
[[ $(ls "$state" | grep -c Z-) == 1 ]] || fail "not kept to the new MaxUse=: $(ls "$state")"
expect 0 '"sideband_max":33554432' "$ptctl" status --json
rm "$T/ptd.conf"
kill -HUP "$ptd_pid"
said "$T/ptd.conf: cannot read it"
said "the settings stay as they are"
expect 0 '"sideband_max":33554432' "$ptctl" status --json

echo "--- how messages are worded: no full stop at the end, no plural of one"
! grep -hE '[^.]\.$|(^|[^0-9.])1 [a-z]+ ?(snapshots|records|objects)|(^|[^0-9.])1 CPUs' "$T/ptd.log" "$T/said" ||
	fail "these messages are not worded as the others"
grep -q "removed snapshot .* MiB: " "$T/ptd.log" || fail "nothing was removed, nothing tested"

printf '%s\n' '[Recorder]' Source=emu SidebandMax=48M MaxUse=1K KeepFree=0 >"$T/ptd.conf"
expect 0 "" "$ptctl" reload
expect 0 '"sideband_max":50331648' "$ptctl" status --json
rm "$T/ptd.conf"
expect 1 "the settings cannot be read and stay as they are, the log of ptd says why" "$ptctl" reload
expect 0 '"sideband_max":50331648' "$ptctl" status --json
expect 2 "unexpected argument" "$ptctl" reload x

echo "--- a snapshot that is kept outlives the limits, and the recorder"
kept=$("$ptctl" list | tail -1 | cut -d' ' -f1)
expect 0 "" "$ptctl" keep "$kept"
for _ in 1 2 3; do "$ptctl" snapshot >/dev/null 2>&1 || fail "snapshot"; done
[[ $(ls "$state" | grep -c Z-) == 2 && -e $state/$kept ]] || fail "expected $kept and the newest: $(ls "$state")"

echo "--- the end leaves nothing"
"$ptctl" snapshot >/dev/null 2>&1 & late=$!
kill -TERM "$ptd_pid"
wait "$ptd_pid" || fail "ptd: exit status $? after SIGTERM: $(cat "$T/ptd.log")"
ptd_pid=
wait "$late"
[[ ! -e $T/run/control ]] || fail "the socket is still there"
[[ -z $(find "$T/state" -name '.new*') ]] || fail "left: $(find "$T/state" -name '.new*')"

echo "--- a killed one leaves whole snapshots, and its socket does not stop the next"
start_ptd AuxSize=1M
kill -KILL "$ptd_pid"
{ wait "$ptd_pid"; } 2>/dev/null
ptd_pid=
[[ -S $T/run/control ]] || fail "no socket left by kill -KILL, nothing tested"
start_ptd AuxSize=1M
expect 0 "Source: emu" "$ptctl" status

echo "--- socket activation"
if command -v systemd-socket-activate >/dev/null; then
	stop_ptd
	systemd-socket-activate -l "$T/activated" "$O/ptd" --runtime-dir "$T/none" --state-dir "$T/state" \
		2>"$T/activate.log" & ptd_pid=$!
	await test -S "$T/activated"
	expect 0 "Source: emu" "$ptctl" --socket "$T/activated" status
	stop_ptd
	[[ ! -e $T/none/control ]] || fail "it made a socket of its own as well"
fi
[[ -e $state/note ]] || fail "a file that is not ours was removed"
echo ok
