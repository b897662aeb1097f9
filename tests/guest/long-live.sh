#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-live.sh at 30 moments.
N=30 exec "$(dirname "$0")/test-live.sh"
