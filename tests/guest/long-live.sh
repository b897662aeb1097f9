#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-live.sh at 30 moments: the guest has room for as many snapshots.
N=30 MEMORY=4096 exec "$(dirname "$0")/test-live.sh"
