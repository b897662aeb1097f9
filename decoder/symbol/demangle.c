/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* libiberty bounds its recursion and so refuses longer names anyway. */
#define MANGLED_MAX 1024

struct text {
	char *text;
	size_t n;
	jmp_buf too_long;
};

/*
 * A mangled name of 400 bytes can stand for a readable one of a terabyte, since it may refer to its
 * own parts. libiberty gives this callback no way to say stop, so it jumps out. Neither demangler
 * holds a lock while it calls back, nor memory, except the few bytes of a Rust identifier in
 * punycode, which are lost then.
 */
static void append_text(const char *bytes, size_t size, void *userdata)
{
	struct text *text = userdata;

	if (size >= DEMANGLE_MAX - text->n)
		longjmp(text->too_long, 1);
	memcpy(text->text + text->n, bytes, size);
	text->n += size;
}

size_t demangle(const char *name, size_t size, char ret_text[static DEMANGLE_MAX])
{
	const int options = DMGL_PARAMS | DMGL_ANSI;
	struct text text = { .text = ret_text };
	char mangled[MANGLED_MAX];

	if (size < 3 || size >= sizeof(mangled) || name[0] != '_' ||
	    (name[1] != 'Z' && name[1] != 'R'))
		return 0;
	memcpy(mangled, name, size);
	mangled[size] = '\0';

	if (setjmp(text.too_long) != 0)
		return 0;
	/* Rust goes first: its older names are C++ names with a hash, which would be shown. */
	if (!rust_demangle_callback(mangled, options, append_text, &text)) {
		text.n = 0;
		if (!cplus_demangle_v3_callback(mangled, options, append_text, &text))
			return 0;
	}
	ret_text[text.n] = '\0';
	return text.n;
}
