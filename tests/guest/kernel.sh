#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# kernel.sh O: get Debian's newest kernel for virtual machines into O/guest/kernel and build our module
# for it, O/guest/softpt.ko. Nothing is installed: packages are downloaded and unpacked. Without a
# network what is there already serves. Exits 77, saying why, if there is no kernel to be had.
set -eu
cd "$(dirname "$0")/../.."
qemu=$(qemu-system-x86_64 --version 2>/dev/null | sed -n '1s/.*version \([0-9.]*\).*/\1/p')
[[ $qemu == 7.2.* ]] || { echo "SKIP: the guest's PT comes from a plugin that follows CPUs of QEMU 7.2 only, not ${qemu:-none}"; exit 77; }
G=$(realpath -m "${1:?output folder}")/guest
mkdir -p "$G"
exec 9>"$G/lock"
flock 9

depends() { # NAME-OF-PACKAGE: what its newest version depends on
	apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: //p'
}

packages() {
	local image headers
	image=$(depends linux-image-cloud-amd64 | grep -m1 '^linux-image-')
	headers=${image/image/headers}
	echo "$image" "$headers" $(depends "$headers" | grep '^linux-')
}

download() { # PACKAGE...: unpack them into G/new
	rm -rf "$G/new" && mkdir -p "$G/new/debs"
	(cd "$G/new/debs" && apt-get download -q "$@") >"$G/download.log" 2>&1 || return
	for deb in "$G"/new/debs/*.deb; do
		dpkg -x "$deb" "$G/new"
	done
	rm -rf "$G/new/debs" "$G"/new/usr/share
}

wanted=$(packages) || wanted=
if [[ -z $wanted && ! -e $G/kernel/packages ]]; then
	echo "SKIP: apt knows no linux-image-cloud-amd64 here"
	exit 77
fi
versions=$(for p in $wanted; do apt-cache policy "$p" | sed -n "s/^ *Candidate:/$p/p"; done)
if [[ -n $wanted && $versions != "$(cat "$G/kernel/packages" 2>/dev/null)" ]]; then
	if download $wanted; then
		# It includes the common makefile by its place in an installed system.
		common=$(basename "$(echo "$G"/new/usr/src/linux-headers-*-common)")
		sed -i "1s|.*|include $G/kernel/usr/src/$common/Makefile|" \
			"$G"/new/usr/src/linux-headers-*-cloud-amd64/Makefile
		echo "$versions" >"$G/new/packages"
		rm -rf "$G/kernel" "$G/module"
		mv "$G/new" "$G/kernel"
	elif [[ ! -e $G/kernel/packages ]]; then
		cat "$G/download.log" >&2
		echo "SKIP: the kernel's packages cannot be downloaded"
		exit 77
	fi
fi

# The build leaves its files beside the sources.
mkdir -p "$G/module"
cp -up tests/guest/module/* tests/system/vmring.h "$G/module"
make -s -C "$G"/kernel/usr/src/linux-headers-*-cloud-amd64 M="$G/module" modules >"$G/module.log" 2>&1 ||
	{ cat "$G/module.log" >&2; exit 1; }
cp -u "$G/module/softpt.ko" "$G/softpt.ko"
