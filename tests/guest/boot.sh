#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# boot.sh [-o OUT] [-l LOG | -p] [-t SECONDS] [-q QEMU-ARGUMENT]... SCRIPT [FILE]...
#
# Boot Debian's kernel in QEMU (software emulation, two Intel CPUs) with an initramfs of busybox, SCRIPT
# and the FILEs, which lie there under the same names as here (directories with all that is in them),
# programs with their shared libraries and linked into /bin; softpt.ko, loaded, gives it an intel_pt
# PMU. SCRIPT runs there as root, in bash if that is among the FILEs and in busybox's shell if not; what
# it prints is our output, what it leaves in /out comes to the directory OUT, and its exit status is
# ours. 125: the guest did not get to its end.
#
# With -l the packets are true of what the CPUs run (tests/system/unit.h), and the ground truth goes to the
# directory LOG/0, one log for each of the guest's threads, as tools/exact and tools/pieces read it; to
# LOG/N once the guest has written N to /sys/kernel/debug/softpt/log. With -p they are as true, and there
# is no log: it would be too large.
#
# In the guest (module/feed.c says more), for each CPU N, /sys/kernel/debug/softpt/cpuN/
#	play	bytes written to it are what the PT "hardware" writes now, to the AUX area of whoever
#		traces that CPU; they count as dropped if nobody does
#	rate	so many bytes of packets that count are made up each ms
#	stats	what was written and dropped; how long tracing was off between two times on; writing
#		to it sets the gaps to 0
# and parameters of the module: /sys/module/softpt/parameters/busy (1: opening gives EBUSY), the cap_*
# ones only when it is loaded (rmmod softpt; insmod /softpt.ko cap_topa_multiple_entries=0).
#
# The environment says where the build is (O=build) and may change MEMORY (MiB), CPUS, ACCEL (how QEMU
# emulates them) and APPEND (words for the kernel's command line).
set -eu
cd "$(dirname "$0")/../.."
O=$(realpath "${O:-build}")
G=$O/guest
out= log= pt= seconds=900 qemu=()
while getopts o:l:pt:q: option; do
	case $option in
	o) out=$OPTARG ;;
	l) log=$(realpath "$OPTARG") pt=yes ;;
	p) pt=yes ;;
	t) seconds=$OPTARG ;;
	q) qemu+=("$OPTARG") ;;
	*) exit 125 ;;
	esac
done
shift $((OPTIND - 1))
script=$1
shift
# What runs beside ptd, and what gives both the rights of their units.
for file; do
	[[ $(realpath -q -s "$file") != "$O/ptd" ]] || set -- "$@" "$O/ptd-collector" "$(command -v setpriv)"
done

W=$(mktemp -d "${TMPDIR:-/tmp}/ptd-guest-XXXXXX")
pid=
trap '[[ -z $pid ]] || kill -9 $pid 2>/dev/null; rm -rf "$W"' EXIT
R=$W/root
mkdir -p "$R"/{dev,proc,sys,tmp,run,root,out,etc,var,usr/bin,usr/sbin,usr/lib,usr/lib64}
for d in bin sbin lib lib64; do
	ln -s usr/$d "$R/$d"
done

for unit in ptd ptd-collector; do
	sed -n 's/^AmbientCapabilities=//p' "$(dirname "$0")/../../systemd/$unit.service" | tr A-Z a-z | tr ' ' '\n' |
		sed 's/^cap_/,+/' | tr -d '\n' >"$R/etc/$unit.caps"
done

put() { # FILE: with all that it needs
	local path lib
	path=$(realpath -s "$1")
	mkdir -p "$R${path%/*}"
	cp -a "$path" "$R${path%/*}"
	[[ ! -L $1 ]] || put "$(realpath "$1")"
	[[ ! -d $1 ]] || return 0
	[[ ! -x $1 || -e $R/bin/${1##*/} ]] || ln -s "$path" "$R/bin/${1##*/}"
	for lib in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do
		mkdir -p "$R${lib%/*}"
		[[ -e $R$lib ]] || cp -L "$lib" "$R$lib"
	done
}
for file; do
	put "$file"
done
cp "$(command -v busybox)" "$R/bin/busybox"
cp "$script" "$R/script"
echo "$seconds" >"$R/seconds"
cp "$G/softpt.ko" "$R"
drivers=$(echo "$G"/kernel/lib/modules/*/kernel/drivers)
cp "$drivers"/virtio/virtio{_ring,,_pci_modern_dev,_pci_legacy_dev,_pci}.ko "$drivers/block/virtio_blk.ko" \
	"$R/usr/lib"

cat >"$R/init" <<'EOF'
#!/bin/busybox sh
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t debugfs debug /sys/kernel/debug
mkdir /dev/shm
chmod 1777 /tmp
stty -F /dev/ttyS0 -onlcr
echo root:x:0:0:root:/root:/bin/sh >>/etc/passwd
echo root:x:0: >>/etc/group
for m in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
	insmod /usr/lib/$m.ko
done
insmod /softpt.ko || echo "init: softpt.ko cannot be loaded"
ifconfig lo up
# Until the kernel has measured its TSC for good, the conversion of it to time may change.
for i in $(seq 100); do
	[ "$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)" = tsc ] && break
	sleep 0.1
done
shell=/bin/sh
[ ! -x /bin/bash ] || shell=/bin/bash
cd /root
echo init: to the script
late() {
	echo "init: the script does not end"
	for task in /proc/[0-9]*/task/*; do
		grep -q . $task/maps || continue
		echo "$task $(cat $task/comm): $(cat $task/wchan)"
		cat $task/stack
	done
	echo w >/proc/sysrq-trigger
	echo l >/proc/sysrq-trigger
}
(sleep $(($(cat /seconds) - 15)); late) 2>/dev/null &
setsid $shell /script </dev/null >/dev/ttyS0 2>&1
echo $? >/out/.status
tar -C /out -cf /dev/vda .
sync
reboot -f
EOF
chmod +x "$R/init"
(cd "$R" && find . | cpio -o -H newc --quiet) >"$W/initramfs"
truncate -s 4G "$W/out"
if [[ -n $pt ]]; then
	[[ -z $log ]] || mkdir -p "$log"
	rings=$((${CPUS:-2} << 22))
	truncate -s $rings "$W/rings"
	qemu+=(-object "memory-backend-file,id=rings,share=on,mem-path=$W/rings,size=$rings"
		-device ivshmem-plain,memdev=rings -plugin "$O/ptd-emu-system.so,shm=$W/rings${log:+,log=$log}")
fi

mkfifo "$W/monitor.in" "$W/monitor.out"
exec 8<>"$W/monitor.in" 9<>"$W/monitor.out"

# The watchdog and the clocks are told that an emulated CPU may be late.
start() {
	: >"$W/console"
	started=$SECONDS
	qemu-system-x86_64 -machine q35 -accel "${ACCEL:-tcg,thread=multi}" -smp "${CPUS:-2}" \
		-cpu max,vendor=GenuineIntel,family=6,model=85,la57=off -m "${MEMORY:-1024}" \
		-nodefaults -no-user-config -display none -no-reboot \
		-serial stdio -serial "file:$W/console" -chardev "pipe,id=monitor,path=$W/monitor" -mon monitor \
		-kernel "$G"/kernel/boot/vmlinuz-* -initrd "$W/initramfs" \
		-drive "file=$W/out,format=raw,if=none,id=out,cache=unsafe" -device virtio-blk-pci,drive=out \
		-append "console=ttyS1 panic=-1 mitigations=off tsc=reliable nowatchdog no_timer_check ${APPEND:-}" \
		"${qemu[@]}" </dev/null &
	pid=$!
}

# stop WHY
stop() {
	echo "boot.sh: $1" >&2
	echo "info registers -a" >&8
	timeout 3 cat <&9 | grep -aE '^CPU#|RIP=' >&2 || echo "boot.sh: QEMU's monitor does not answer" >&2
	kill -9 $pid
}

start
for again in again again ''; do
	while kill -0 $pid 2>/dev/null && ! grep -q '^init: to the script' "$W/console"; do
		if ((SECONDS - started > 180)); then
			stop "the kernel does not boot"
			break
		fi
		sleep 0.2
	done
	grep -q '^init: to the script' "$W/console" && break
	wait $pid 2>/dev/null || true
	tail -n 30 "$W/console" >&2
	[[ -n $again ]] || break
	start
done
# The guest counts its seconds from there on, too.
started=$SECONDS
while kill -0 $pid 2>/dev/null; do
	if ((SECONDS - started > seconds)); then
		stop "the script has not ended after $seconds s"
		break
	fi
	sleep 0.2
done
wait $pid 2>/dev/null || echo "boot.sh: QEMU's exit status is $?" >&2
pid=
[[ -n $out ]] || out=$W/results
mkdir -p "$out"
tar -C "$out" -xf "$W/out" 2>/dev/null || true
status=$(cat "$out/.status" 2>/dev/null || echo 125)
rm -f "$out/.status"
[[ $status != 125 ]] || tail -n 200 "$W/console" >&2
exit "$status"
