/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/html/page.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/sink/html/packed.h"
#include "decoder/sink/output.h"
#include "util/sha256.h"

/* The file of this name beside this one, as an array that ends where FILE_end is. */
#define FILE_OF_PAGE(name, file)                                                   \
	__asm__(".pushsection .rodata, \"a\", @progbits\n"                         \
		".global page_" #name ", page_" #name "_end\n"                     \
		".hidden page_" #name ", page_" #name "_end\n"                     \
		"page_" #name ": .incbin \"decoder/sink/html/" file "\"\n"         \
		"page_" #name "_end: .byte 0\n"                                    \
		".popsection\n");                                                  \
	extern const char page_##name[] __attribute__((__visibility__("hidden"))); \
	extern const char page_##name##_end[] __attribute__((__visibility__("hidden")))

FILE_OF_PAGE(html, "page.html");
FILE_OF_PAGE(style, "page.css");
FILE_OF_PAGE(model, "model.js");
FILE_OF_PAGE(view, "view.js");
FILE_OF_PAGE(flame, "flame.js");
FILE_OF_PAGE(timeline, "timeline.js");
FILE_OF_PAGE(tables, "tables.js");
FILE_OF_PAGE(report, "report.js");

/* Where the data stand in page.html. */
static const char data_mark[] = "@DATA@";

struct piece {
	const char *start, *end;
};

/* The scripts in the order in which they run. They are one element. */
static const struct piece scripts[] = {
	{ page_model, page_model_end },   { page_view, page_view_end },
	{ page_flame, page_flame_end },   { page_timeline, page_timeline_end },
	{ page_tables, page_tables_end }, { page_report, page_report_end },
};
static const struct piece styles[] = { { page_style, page_style_end } };

static void put_pieces(struct ptd_output *output, const struct piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)ptd_output_write(output, pieces[i].start,
				       (size_t)(pieces[i].end - pieces[i].start));
}

/* Write the source 'sha256-…' by which a policy allows the pieces. Return: 0 or negative errno. */
static int put_source(struct ptd_output *output, const struct piece *pieces, size_t n)
{
	_cleanup_(sha256_freep) struct sha256 *sha256 = NULL;
	struct packed packed = packed_begin(output);
	char hex[SHA256_HEX_SIZE];
	int r;

	r = sha256_new(&sha256);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = sha256_add(sha256, pieces[i].start, (size_t)(pieces[i].end - pieces[i].start));
	if (r == 0)
		r = sha256_finish(sha256, hex);
	if (r < 0)
		return r;
	ptd_output_printf(output, "'sha256-");
	for (size_t i = 0; i + 1 < SHA256_HEX_SIZE; i += 2) {
		const char digits[] = { hex[i], hex[i + 1], '\0' };

		packed_byte(&packed, (uint8_t)strtoul(digits, NULL, 16));
	}
	packed_end(&packed);
	ptd_output_printf(output, "'");
	return 0;
}

static int put_policy(struct ptd_output *output)
{
	int r;

	ptd_output_printf(output, "default-src 'none'; base-uri 'none'; form-action 'none'; "
				  "script-src ");
	r = put_source(output, scripts, ARRAY_LEN(scripts));
	if (r < 0)
		return r;
	ptd_output_printf(output, "; style-src ");
	return put_source(output, styles, ARRAY_LEN(styles));
}

/*
 * Write page.html from @start up to @mark, which stands in it. Return: what follows the mark.
 */
static const char *put_until(struct ptd_output *output, const char *start, const char *mark)
{
	const size_t size = strlen(mark);
	const char *found = memmem(start, (size_t)(page_html_end - start), mark, size);

	assert(found);
	(void)ptd_output_write(output, start, (size_t)(found - start));
	return found + size;
}

int page_put_head(struct ptd_output *output)
{
	const char *rest = put_until(output, page_html, "@POLICY@");
	const int r = put_policy(output);

	if (r < 0)
		return r;
	rest = put_until(output, rest, "@STYLE@");
	put_pieces(output, styles, ARRAY_LEN(styles));
	(void)put_until(output, rest, data_mark);
	return output->error;
}

int page_put_tail(struct ptd_output *output)
{
	const char *rest =
	    memmem(page_html, (size_t)(page_html_end - page_html), data_mark, strlen(data_mark));

	assert(rest);
	rest = put_until(output, rest + strlen(data_mark), "@SCRIPT@");
	put_pieces(output, scripts, ARRAY_LEN(scripts));
	(void)ptd_output_write(output, rest, (size_t)(page_html_end - rest));
	return output->error;
}
