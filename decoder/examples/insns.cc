/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The same in C++: print the first thousand instructions of a recording, with their symbols; then
 * how many instructions each function executed.
 *
 *	c++ -std=c++17 insns.cc $(pkg-config --cflags --libs ptdecode) -o insns
 *	./insns INPUT OUTPUT
 */

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <ptd/decode.h>

namespace
{

constexpr unsigned n_shown_max = 1000;

class count
{
      public:
	void add(const ptd_batch &batch, std::FILE *output)
	{
		while (functions.size() < batch.n_symbols)
			functions.push_back({ batch.symbols[functions.size()]->name, 0 });
		functions[PTD_NO_SYMBOL].name = "[unknown]";
		for (size_t i = 0; i < batch.n_runs; i++) {
			const ptd_run &run = batch.runs[i];

			for (size_t k = 0; k < run.n; k++) {
				function &f = functions[run.block->insns[run.first + k].symbol];

				f.n_insns++;
				if (n_shown++ < n_shown_max)
					std::fprintf(
					    output, "%llx %s\n",
					    static_cast<unsigned long long>(ptd_run_ip(&run, k)),
					    f.name);
			}
		}
	}

	void finish(std::FILE *output) const
	{
		for (const function &f : functions)
			if (f.n_insns > 0)
				std::fprintf(output, "%12llu %s\n", f.n_insns, f.name);
	}

      private:
	struct function {
		const char *name; /* the decoder's */
		unsigned long long n_insns;
	};

	std::vector<function> functions; /* by symbol id */
	unsigned long long n_shown = 0;
};

struct deleter {
	void operator()(ptd_decoder *decoder) const
	{
		ptd_decoder_free(decoder);
	}
	void operator()(std::FILE *file) const
	{
		std::fclose(file);
	}
	void operator()(char *text) const
	{
		std::free(text);
	}
};

template <typename T> using owned = std::unique_ptr<T, deleter>;

} // namespace

int main(int argc, char **argv)
{
	count counted;
	const ptd_batch *batch;
	ptd_options options = {};
	ptd_decoder *d = nullptr;
	char *text = nullptr;
	int r;

	if (argc != 3) {
		std::fprintf(stderr, "Usage: insns INPUT OUTPUT\n");
		return 2;
	}
	options.size = sizeof(options);
	options.input = argv[1];
	r = ptd_decoder_new(&options, &d, &text);
	const owned<ptd_decoder> decoder(d);
	const owned<char> message(text);
	if (r < 0) {
		std::fprintf(stderr, "%s\n", message ? message.get() : "out of memory");
		return 1;
	}
	const owned<std::FILE> output(std::fopen(argv[2], "w"));
	if (!output) {
		std::perror(argv[2]);
		return 1;
	}

	while ((r = ptd_decoder_next(d, &batch)) == 0)
		counted.add(*batch, output.get());
	if (ptd_decoder_message(d))
		std::fprintf(stderr, "%s\n", ptd_decoder_message(d));
	if (r == PTD_END)
		counted.finish(output.get());
	return r < 0 || std::fflush(output.get()) != 0 ? 1 : 0;
}
