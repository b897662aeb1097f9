# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts in this folder share; they source it. It makes a temporary directory $T, in which they
# work, and removes it at exit.
set -u
T=$(mktemp -d "${TMPDIR:-/tmp}/ptd-finding-XXXXXX")
trap 'rm -rf "$T"' EXIT
cd "$T" || exit 1

# changed TEXT...: what is seen is not what the script says any more.
changed() {
	echo "CHANGED: $*"
	exit 1
}

# missing TEXT...: the script cannot be run here.
missing() {
	echo "cannot be run: $*"
	exit 77
}

# npm_package PACKAGE@VERSION: unpack it in $T/package.
npm_package() {
	local file
	file=$(npm pack --silent "$1" 2>"$T/said" | tail -n 1)
	[[ -n $file ]] || missing "npm pack $1: $(tail -n 1 "$T/said")"
	tar xzf "$file" && rm "$file"
}

# debian_package NAME COMMAND [VERSION]...: unless the command is installed, unpack Debian's package, of the first
# of the versions that is to be had, in $T/root, and let PATH lead there.
debian_package() {
	local version
	command -v "$2" >/dev/null && return
	for version in "${@:3}" ""; do
		apt-get download "$1${version:+=$version}" >"$T/said" 2>&1 || continue
		dpkg -x "$1"_*.deb "$T/root"
		PATH=$T/root/usr/bin:$PATH
		return
	done
	missing "apt-get download $1: $(tail -n 1 "$T/said")"
}

# jitdump FILE: a line for the head, "head PID TIME FLAGS", one for each whole record, "ID SIZE TIME PID NAME", PID
# and NAME of the records of code only, and one for what is left, "cut BYTES OF".
jitdump() {
	python3 - "$1" <<-'EOT'
		import struct, sys
		data = open(sys.argv[1], "rb").read()
		if len(data) < 40: print("cut", len(data), 40); sys.exit()
		magic, version, at, mach, pad, pid, time, flags = struct.unpack_from("<IIIIIIQQ", data)
		assert magic == 0x4A695444 and version == 1
		print("head", pid, time, flags)
		while at < len(data):
		    id, size, time = struct.unpack_from("<IIQ", data, at) if at + 16 <= len(data) else (0, 16, 0)
		    if at + size > len(data) or size < 16: print("cut", len(data) - at, size); break
		    pid, name = "-", "-"
		    if id == 0:
		        pid = struct.unpack_from("<I", data, at + 16)[0]
		        name = data[at + 56:data.index(b"\0", at + 56)].decode(errors="replace")
		    print(id, size, time, pid, name)
		    at += size
	EOT
}
