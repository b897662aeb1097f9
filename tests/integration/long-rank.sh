#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-rank.sh with all faults.
export FAULTS="bounds head operator stale missing full digit overflow key lock" LEAST=8
exec "$(dirname "$0")/test-rank.sh"
