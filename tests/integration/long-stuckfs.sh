#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-stuckfs.sh with more snapshots.
STUCK_SNAPSHOTS=12 exec "$(dirname "$0")/test-stuckfs.sh"
