#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-siege.sh for a minute.
SIEGE_SECONDS=60 exec "$(dirname "$0")/test-siege.sh"
