/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Symbol at
 *
 * What a unit test expects of a symbol source. A test that is disappointed fails with a message.
 */

#include <stdint.h>

struct symbol_source;

/*
 * Expect the symbol that covers @address to be called @name; "": no symbol covers it. The symbol
 * must begin at @address or below, and the answer must hold up to an address above it. @source may
 * be NULL, as that of an object without names is.
 */
void symbolat_expect(struct symbol_source *source, uint64_t address, const char *name);
