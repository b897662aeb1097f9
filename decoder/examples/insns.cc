/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The same in C++: print the first thousand instructions of a recording, with their symbols; then
 * how many instructions each function executed.
 *
 *	c++ -std=c++17 insns.cc $(pkg-config --cflags --libs ptdecode) -o insns
 *	./insns INPUT OUTPUT
 *
 * A sink is an object of a class; the table of operations leads to its methods.
 */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <ptd/decode.h>
#include <ptd/sink.h>

namespace {

constexpr unsigned n_shown_max = 1000;

class count {
    public:
	/* No exception may leave it: the caller is C. */
	void write(const ptd_batch &batch, ptd_output *output)
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
					ptd_output_printf(
					    output, "%llx %s\n",
					    static_cast<unsigned long long>(ptd_run_ip(&run, k)),
					    f.name);
			}
		}
	}

	void finish(ptd_output *output) const
	{
		for (const function &f : functions)
			if (f.n_insns > 0)
				ptd_output_printf(output, "%12llu %s\n", f.n_insns, f.name);
	}

	static ptd_sink_ops operations()
	{
		ptd_sink_ops ops = {};

		ops.size = sizeof(ops);
		ops.name = "count";
		ops.open = [](const ptd_sink_config *, ptd_output *, void **ret_state) {
			*ret_state = new count;
			return 0;
		};
		ops.write = [](void *state, const ptd_batch *batch, const void *, size_t,
			       ptd_output *output) {
			static_cast<count *>(state)->write(*batch, output);
			return 0;
		};
		ops.finish = [](void *state, const ptd_stats *, ptd_output *output) {
			static_cast<const count *>(state)->finish(output);
			return 0;
		};
		ops.free = [](void *state) { delete static_cast<count *>(state); };
		return ops;
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
	void operator()(ptd_sink *sink) const
	{
		ptd_sink_free(sink);
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
	const ptd_sink_ops ops = count::operations();
	const ptd_batch *batch;
	ptd_options options = {};
	ptd_decoder *d = nullptr;
	ptd_sink *s = nullptr;
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
	r = ptd_sink_open(&ops, argv[2], ptd_decoder_info(d), nullptr, &s);
	const owned<ptd_sink> sink(s);
	if (r < 0) {
		std::fprintf(stderr, "%s: %s\n", argv[2], std::strerror(-r));
		return 1;
	}

	while ((r = ptd_decoder_next(d, &batch)) == 0 && (r = ptd_sink_batch(s, batch)) == 0)
		;
	if (ptd_decoder_message(d))
		std::fprintf(stderr, "%s\n", ptd_decoder_message(d));
	if (r == PTD_END)
		r = ptd_sink_finish(s, ptd_decoder_stats(d));
	return r < 0 ? 1 : 0;
}
