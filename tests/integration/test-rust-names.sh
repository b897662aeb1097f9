#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What test-names says, for a program in Rust.
exec "$(dirname "$0")/test-names.sh" rust
