# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that run targets/churn; they source it after common.sh.

# make_libraries [ADDRESS [FLAG]...]: lib1.so … lib5.so for targets/churn, in $libraries. Each function lies on a page of
# its own, and no two are alike.
make_libraries() {
	local i address=${1:-0x2a0000000000}
	shift $(($# > 0))
	mkdir -p "$T/lib"
	cat >"$T/lib/library.c" <<-'END'
		#define F(n) \
			__attribute__((aligned(4096))) unsigned f##n(unsigned x) { \
				for (unsigned i = 0; i < N % 5 + n; i++) x = x & 1 ? x * (2 * N + 1) : x / 2 + n; \
				return x ^ (N << n); }
		F(0) F(1) F(2) F(3)
	END
	libraries=()
	for i in 1 2 3 4 5; do
		# All want the same address: QEMU prefers new ones.
		"${CC:-cc}" -O1 -DN="$i" "$@" -shared -fPIC -Wl,-Ttext-segment="$address" -o "$T/lib/lib$i.so" \
			"$T/lib/library.c" || fail "cc -shared"
		libraries+=("$T/lib/lib$i.so")
	done
}
