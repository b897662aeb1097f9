/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The call stream
 *
 * This layer takes the batches of a decoder and gives out which function called which. The caller
 * owns the loop:
 *
 *	while (ptd_decoder_next(d, &batch) == 0) {
 *		ptd_calls_batch(c, batch);
 *		while (ptd_calls_next(c, &call_batch) == 0)
 *			…;
 *	}
 *	ptd_calls_finish(c);
 *	while (ptd_calls_next(c, &call_batch) == 0)
 *		…;
 *
 * The stream consists of calls: a function is entered, or is left. On each stack of each thread
 * they nest: what is left is always the innermost function that is open, and all that was entered
 * is left, at the latest by ptd_calls_finish(). Each call says how it came about, and how sure
 * that is. libptdecode(3), CALLS, has the rules by which the layer knows.
 *
 * Depth 0 is the function of a stack's first instruction. Functions that were open before that
 * instruction are found when one returns to them. They are entered by PTD_CALL_BY_INFERENCE, with a
 * negative depth, and with the time of the stack's first instruction: they contain all that came
 * since, although it was given out before. No other call goes back in time.
 *
 * A gap ends all functions of the thread. If one returns behind the gap to a function that was
 * open before it, this is entered again by PTD_CALL_BY_RESUMPTION, likewise with a negative depth
 * and the time of the first instruction behind the gap. Depth 0 is the function of that instruction
 * from then on.
 *
 * A return may lead into a function that was left by a jump: some code pushes the address of a
 * return itself and jumps, instead of calling. That function is entered again in its place, by
 * PTD_CALL_BY_REOPENING, and has the depth that it had. A return to a function that is not open,
 * and was not left by a jump, is taken once for one to a function that was open before the first
 * instruction of the stack; from then on it is a gap.
 *
 * Code without a symbol is one function from the target of a call to the next such target.
 *
 * A program that logged its own calls (XRay, ovni) left these, and no instructions. For such an
 * input (ptd_info.logs_calls), ptd_decoder_next_logged() and ptd_calls_logged() take the places of
 * ptd_decoder_next() and ptd_calls_batch(). What was entered and not left, or left and not entered,
 * is completed by the same kinds of calls, so that they nest.
 */

#include "ptd/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ptd_calls;
struct ptd_decoder;

/* What a log says of its thread. */
enum ptd_logged_kind {
	PTD_LOGGED_ENTER,
	PTD_LOGGED_LEAVE,
	PTD_LOGGED_TAIL, /* left by a jump: what is entered next was called in its place */
	/* The same, but @symbol is the first function of a chain of such jumps: the function that
	 * is left was entered by one of them. */
	PTD_LOGGED_TAIL_CHAIN,
	PTD_LOGGED_POINT, /* entered, and left at once */
	_PTD_LOGGED_KINDS,
};

struct ptd_logged_call {
	uint64_t t;
	const struct ptd_object *object; /* that the function is in */
	uint32_t symbol;                 /* id of the function's symbol */
	uint8_t kind;                    /* enum ptd_logged_kind */
};

/*
 * Calls that a thread logged one after the other. They come in their order, and what is left was
 * entered, unless something was lost.
 */
struct ptd_logged {
	/* Whose calls they are, the symbols, and marks between the calls: @run of a mark is the
	 * index of a call. There are no runs. */
	struct ptd_batch batch;
	const struct ptd_logged_call *calls;
	size_t n_calls;
};

/* The bounds of the layer. */
enum {
	PTD_CALLS_DEPTH_MAX = 1 << 17,   /* functions open on one stack */
	PTD_CALLS_FRAMES_MAX = 1 << 22,  /* functions open on all stacks */
	PTD_CALLS_THREADS_MAX = 1 << 16, /* beyond it, the thread that ran longest ago is ended */
	PTD_CALLS_STACKS_MAX = 1 << 12,  /* of one process, on which no thread runs */
};

enum ptd_call_kind {
	PTD_CALL_ENTER,
	PTD_CALL_LEAVE,

	/*
	 * The thread goes on on another stack: a fiber's, a goroutine's. @stack is that stack,
	 * @function the innermost one open on it (NULL: none yet), and @depth its depth. The first
	 * stack of a thread begins without such a call.
	 *
	 * If @n_moved is not 0, the layer had taken the wrong one of several stacks that looked
	 * alike; n_moved functions were left since. The new stack's innermost @n_moved functions,
	 * which are the same, belong to the stack @moved_to, which the thread was on, from now on,
	 * and lie above what is open on it: their depths follow from that.
	 */
	PTD_CALL_SWITCH,
};

/* How a function was entered, or why it was left. */
enum ptd_call_how {
	PTD_CALL_BY_CALL,      /* entered */
	PTD_CALL_BY_TAIL,      /* a jump out of a function: that is left, and its target entered */
	PTD_CALL_BY_SIGNAL,    /* entered: a signal handler; left: by its sigreturn */
	PTD_CALL_BY_INTERRUPT, /* entered: kernel code, by an interrupt or fault; left: its end */
	PTD_CALL_BY_SYSCALL,   /* entered: kernel code, by a system call; left: its end */

	PTD_CALL_BY_INFERENCE,  /* entered: it was open before the first instruction */
	PTD_CALL_BY_RESUMPTION, /* entered: it was open before a gap, and still is */
	PTD_CALL_BY_START,      /* entered: the function of the first instruction of a stack, or
				 * behind a gap; open before it, unless that is its first, too */

	PTD_CALL_BY_RETURN,    /* left */
	PTD_CALL_BY_UNWINDING, /* left: longjmp() or an exception went past it */
	PTD_CALL_BY_GAP,       /* left, or not: the trace is broken here */
	PTD_CALL_BY_END,       /* left: the trace, the thread or its program (exec) ended */
	PTD_CALL_BY_REOPENING, /* entered: it had been left by a jump, which was a call, since what
				* it jumped to returned into it */
	PTD_CALL_BY_INLINING,  /* entered: it was inlined, and this is an execution of it; left by
				* PTD_CALL_BY_RETURN */
	PTD_CALL_BY_REENTRY,   /* entered: the code of what was inlined, but not where it begins:
				* the execution before goes on, or was not seen to begin */
	_PTD_CALL_HOWS,
};

/* What the name of a function ends with that was inlined. */
#define PTD_INLINED_MARK " (inlined)"

/* It belongs to the layer and stays where and as it is until that is freed. */
struct ptd_function {
	uint32_t id;                     /* dense, from 0 */
	uint32_t symbol;                 /* its id; PTD_NO_SYMBOL: it has none */
	const struct ptd_object *object; /* the decoder's */
	/* Its symbol's; "FILE+0xADDRESS" without one; of what was inlined, its name and
	 * PTD_INLINED_MARK. */
	const char *name;
	uint64_t address; /* of its first instruction, as linked; of the first of several places */
	bool is_inlined;  /* see ptd_calls_inline(); it has no symbol */
};

struct ptd_call {
	uint8_t kind; /* enum ptd_call_kind */
	uint8_t how;  /* enum ptd_call_how; 0 of PTD_CALL_SWITCH */

	/*
	 * Several activations or stacks could be the ones that went on, and this follows from a
	 * choice among them. Which function was entered or left, and when, is as sure as ever; its
	 * depth, the time since it was entered, and the stack, are not.
	 */
	bool ambiguous;

	int32_t depth;
	/*
	 * Number of the stack: dense, from 0. A stack that has ended is empty, and another one gets
	 * its number, so that an array by these numbers does not grow with the trace.
	 */
	uint32_t stack;
	uint32_t n_moved, moved_to; /* of PTD_CALL_SWITCH */
	uint32_t run; /* the call stands before the run, or logged call, at this index; see below */
	const struct ptd_function *function;
	uint64_t t;
	uint64_t n_insns; /* that the thread had executed since its first one that was decoded */
	uint64_t from;    /* address of the call, jump or return; 0: something else ended it */
	uint64_t to;      /* address of the next instruction; 0: none is known */

	/*
	 * Of PTD_CALL_LEAVE: since the function was entered, and of that not in the functions that
	 * it called. A stack's instructions and their functions' are those executed on that stack.
	 * The time counts on while the thread does not run, or is on another stack.
	 */
	uint64_t t_total, t_self;
	uint64_t n_insns_total, n_insns_self;
};

/* A thread as it executes one program. It belongs to the layer until that is freed. */
struct ptd_call_thread {
	uint32_t id; /* dense, from 0 */
	uint32_t pid;
	uint32_t tid;
	uint32_t space;
	uint32_t cpu;     /* where it was last */
	const char *comm; /* its last name */
	uint64_t t_first; /* of its first instruction and last one */
	uint64_t t_last;
	uint64_t n_insns;
	bool ended; /* all that it had entered is left, and it comes no more */
};

/*
 * The calls of one thread, in their order. @batch is the batch in which they happened, the one of
 * ptd_calls_batch() or of ptd_calls_logged(). It is NULL if the calls do not belong to it: if these
 * are what is left when a thread ends. Then @run of each is 0.
 */
struct ptd_call_batch {
	const struct ptd_batch *batch;
	const struct ptd_call_thread *thread;
	const struct ptd_call *calls;
	size_t n_calls;
};

/* A function that is open. */
struct ptd_frame {
	const struct ptd_function *function;
	uint8_t how;    /* it was entered; PTD_CALL_BY_GAP: it was open before a gap, and nothing
			 * has returned to it since: whether it is still open is not known */
	bool ambiguous; /* as in struct ptd_call */
	int32_t depth;
	uint64_t t;  /* when it was entered */
	uint64_t ip; /* innermost frame: the instruction executed last; else the one to which the
		      * next inner frame returns; 0: not known */
};

/* How often what happened. */
struct ptd_calls_stats {
	uint64_t n_entered[_PTD_CALL_HOWS]; /* by enum ptd_call_how */
	uint64_t n_left[_PTD_CALL_HOWS];
	uint64_t n_switches;
	uint64_t n_choices;  /* of one among several stacks or activations that looked alike */
	uint64_t n_decided;  /* of these: later returns fitted only one of them */
	uint64_t n_wrong;    /* returns that did not fit the one that had been chosen */
	uint64_t n_too_deep; /* calls beyond the bounds, which are part of the function that made
			      * them */
	uint64_t n_threads_ended; /* because there were too many */
	uint64_t n_stacks_ended;  /* likewise */
};

/*
 * Make a layer. @info is borrowed until the layer is freed, and may be NULL.
 *
 * Return: 0 or -ENOMEM.
 */
int ptd_calls_new(const struct ptd_info *info, struct ptd_calls **ret_calls);

/*
 * Before the first batch: give out the functions, too, that compilers inlined into others, where
 * the debug information that @decoder finds says so. It is borrowed until the layer is freed. Each
 * is a function of its own, apart from the one that was compiled for calls, and open only inside
 * the one that it was inlined into; ptd_calls_stack() does not show it.
 *
 * What is said of such calls is derived from addresses. A compiler mixes the instructions of a
 * function with those around it, copies and drops them. How often an inlined function was executed
 * is exact at -O1 of gcc; with more optimization it can be more or less than the source code says.
 * That one was left may be known, and given out, only later in the thread's time; the call has the
 * time at which it was.
 */
void ptd_calls_inline(struct ptd_calls *calls, struct ptd_decoder *decoder);

/*
 * Take the next batch of the stream. It is borrowed until the next call of this function or
 * ptd_calls_finish(), and ptd_calls_next() follows what happens in it; the decoder, to which it
 * belongs, is freed after the layer.
 *
 * Return: 0; or -ENOMEM, behind which only ptd_calls_free() may be called.
 */
int ptd_calls_batch(struct ptd_calls *calls, const struct ptd_batch *batch);

/* Take the next calls of a log, likewise. */
int ptd_calls_logged(struct ptd_calls *calls, const struct ptd_logged *logged);

/*
 * The stream is over: end all threads.
 *
 * Return: 0 or -ENOMEM.
 */
int ptd_calls_finish(struct ptd_calls *calls);

/*
 * Get the next calls. @ret_batch belongs to the layer and is valid until the next
 * call of any function but ptd_calls_stack().
 *
 * Return: 0; PTD_END (decode.h): there are no more for now; or -ENOMEM.
 */
int ptd_calls_next(struct ptd_calls *calls, const struct ptd_call_batch **ret_batch);

/* Return: the threads by their id. They stay where they are; the array may move. */
const struct ptd_call_thread *const *ptd_calls_threads(const struct ptd_calls *calls,
						       size_t *ret_n);

/* Return: the functions by their id. They stay where they are; the array may move. */
const struct ptd_function *const *ptd_calls_functions(const struct ptd_calls *calls, size_t *ret_n);

/*
 * Get the functions that are open on the stack on which the thread is, the innermost first. Behind
 * those that are known to be open come those that were open before the last gap. The array
 * belongs to the layer and is valid until the next call of any function. After ptd_calls_finish()
 * it is what was open at the end.
 *
 * Return: 0 or -ENOMEM.
 */
int ptd_calls_stack(struct ptd_calls *calls, uint32_t thread, const struct ptd_frame **ret_frames,
		    size_t *ret_n);

/* Return: the counts so far, which belong to the layer. */
const struct ptd_calls_stats *ptd_calls_stats(const struct ptd_calls *calls);

/* Return: "call", "tail call", "signal", …: how a function was entered or left, in words. */
const char *ptd_call_how_name(enum ptd_call_how how);

/* Free the layer, which may be NULL. Return: NULL. */
struct ptd_calls *ptd_calls_free(struct ptd_calls *calls);

#ifdef __cplusplus
}
#endif
