#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# endurance.sh for two minutes, and for 20. The log of all that would be too large: the short one compares.
"$(dirname "$0")/endurance.sh" || exit
N=0 LASTS=1200 MEMORY=4096 exec "$(dirname "$0")/endurance.sh"
