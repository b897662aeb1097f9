#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-endurance.sh for 20 minutes. The log of all that ran would be too large: the short one compares.
N=0 LASTS=1200 MEMORY=4096 exec "$(dirname "$0")/test-endurance.sh"
