#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-own.sh, and with the kernel.
OWN_KERNEL=yes exec "$(dirname "$0")/test-own.sh"
