/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Counts to 1000 in one of two ways. Two files of it that are linked with the same build-id, one
 * with -DOTHER, have other code at the same addresses.
 */

#include <stdio.h>

static volatile unsigned sink;

static unsigned step(unsigned i)
{
#ifdef OTHER
	if (i % 7 == 3)
		sink += i;
	else if (i % 5 == 1)
		sink ^= i * 3;
	return i + 1;
#else
	for (unsigned k = 0; k < i % 4; k++)
		sink += k;
	return i % 3 == 0 ? i + 2 : i + 1;
#endif
}

int main(void)
{
	for (unsigned i = 0; i < 1000;)
		i = step(i);
	return 0;
}
