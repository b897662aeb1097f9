#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The lint of includes: a tree that keeps to its table passes, and each way to break it is seen. And the
# README names each folder.
. "$(dirname "$0")/lib/common.sh"
lint=$PWD/tests/check-layers.sh

# plant FILE LINE...: a tree of two rooms, in which FILE has these lines.
plant() {
	rm -rf "$T/tree"
	mkdir -p "$T"/tree/{include/base,util,record,decoder/upper,decoder/lower,daemon,ctl,tests/judge}
	printf '%s\n' '# folder may include' 'include/base' 'decoder/lower base' \
		'decoder/upper base decoder/lower' >"$T/tree/tests/layers"
	echo '#include "base/base.h"' >"$T/tree/decoder/lower/l.h"
	printf '%s\n' '#include "base/base.h"' '#include "decoder/lower/l.h"' >"$T/tree/decoder/upper/u.c"
	[[ $# == 0 ]] || { mkdir -p "$T/tree/${1%/*}" && printf '%s\n' "${@:2}" >"$T/tree/$1"; }
}

# refused TEXT: the lint fails and says TEXT.
refused() {
	local out
	out=$(cd "$T/tree" && sh "$lint") && fail "accepted, although: $1"
	[[ $out == *"$1"* ]] || fail "expected '$1', got '$out'"
	echo "seen: $1"
}

plant
(cd "$T/tree" && sh "$lint") || fail "a tree that keeps to the table is refused"

plant decoder/lower/l.c '#include "decoder/upper/u.h"'
refused "decoder/lower/l.c:1: decoder/lower may not include decoder/upper/"

plant include/base/base.h '#include "decoder/lower/l.h"'
refused "include/base/base.h:1: base may not include decoder/lower/"

plant decoder/attic/a.c '#include "base/base.h"'
refused "decoder/attic/a.c:1: decoder/attic has no row in tests/layers"

plant decoder/lower/l.c '#include "decoder/upper/u.h"'
echo 'decoder/lower decoder/upper' >>"$T/tree/tests/layers"
refused "These folders include each other in a circle:
  decoder/"

plant decoder/lower/l.h '#include <intel-pt.h>'
echo '<intel-pt.h> decoder/lower' >>"$T/tree/tests/layers"
refused "decoder/upper/u.c: decoder/upper may not see <intel-pt.h>, through decoder/lower/l.h"

plant decoder/upper/v.c '#include <intel-pt.h>'
echo '<intel-pt.h> decoder/lower' >>"$T/tree/tests/layers"
refused "decoder/upper/v.c: decoder/upper may not see <intel-pt.h>, through <intel-pt.h>"

plant decoder/lower/l.c '#include <intel-pt.h>'
echo '<intel-pt.h> decoder/lower' >>"$T/tree/tests/layers"
(cd "$T/tree" && sh "$lint") || fail "a library that only its folder sees is refused"

# The README's map names each folder: in full, or by its last name in the row of the folder above.
while read -r folder _; do
	grep -q "^|.*\`$folder\`" README.md || grep -q "^|.*\`${folder%/*}\`.*\`${folder##*/}\`" README.md ||
		fail "README.md: no line for $folder in \"Where things are\""
done < <(grep -v -e '^[#<]' -e ^tests/ tests/layers)
