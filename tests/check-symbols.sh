#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compare what the shared library $1 exports with the list $2, whose first line is "# NUMBERS", the first two numbers of
# the version that it is of. Print what either side lacks and fail, but for symbols that a version with other
# numbers, $3, has dropped.
set -eu
library=$1 list=$2 version=$3
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort)
[[ -n $exported ]] || { echo "$library: exports nothing"; exit 1; }
listed=$(grep -v '^#' "$list")
of=$(sed -n '1s/^# //p' "$list")
new=$(LC_ALL=C comm -23 <(echo "$exported") <(echo "$listed"))
gone=$(LC_ALL=C comm -13 <(echo "$exported") <(echo "$listed"))
[[ $(cut -d. -f1-2 <<<"$version") == "$of" ]] || gone=
[[ -z $new ]] || sed "s|.*|$library: exports &, which $list lacks|" <<<"$new"
[[ -z $gone ]] || sed "s|.*|$library: no longer exports &, though the version is still $of|" <<<"$gone"
[[ -z $new$gone ]]
