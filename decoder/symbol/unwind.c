/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/unwind.h"

#include <dwarf.h>
#include <errno.h>

#include "base/cursor.h"
#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/leb128.h"

#define REMEMBERED_MAX 16  /* rows that instructions put aside */
#define STACK_MAX      64  /* values of an expression */
#define OPERATIONS_MAX 512 /* of an expression; none of them goes back */

/* How the value that a register has in the caller is found. */
enum rule_kind {
	RULE_SAME, /* it is as it is */
	RULE_UNDEFINED,
	RULE_OFFSET,           /* it is in memory, at the CFA + number */
	RULE_VALUE_OFFSET,     /* it is the CFA + number */
	RULE_REGISTER,         /* it is in the register of that number */
	RULE_EXPRESSION,       /* it is in memory, where the expression says */
	RULE_VALUE_EXPRESSION, /* it is what the expression says */
};

struct rule {
	enum rule_kind kind;
	int64_t number;
	struct cursor expression;
};

/* How the canonical frame address is found, which is what RSP is in the caller. */
struct cfa_rule {
	bool is_known, is_expression;
	uint64_t base;   /* a register */
	uint64_t offset; /* from its value; wraps */
	struct cursor expression;
};

/* What holds at an address. */
struct row {
	struct cfa_rule cfa;
	struct rule regs[_UNWIND_REGS];
};

struct program {
	const struct ehframe_entry *entry;
	uint64_t address;      /* the row that holds here is looked for */
	uint64_t at;           /* the row that is being made holds from here on */
	struct row row, first; /* as the common instructions leave it */
	struct row remembered[REMEMBERED_MAX];
	size_t n_remembered;
};

/* --- numbers ---------------------------------------------------------------------------------- */

/* A number of @size bytes. */
static int get_sized(struct cursor *c, size_t size, bool is_signed, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (cursor_get(c, size, &number) < 0)
		return -EBADMSG;
	if (is_signed && size < 8 && number >> (8 * size - 1))
		number |= UINT64_MAX << (8 * size);
	*ret_number = number;
	return 0;
}

/* --- expressions ------------------------------------------------------------------------------ */

struct machine {
	const struct unwind_frame *frame;
	const struct unwind_memory *memory;
	uint64_t stack[STACK_MAX];
	size_t n;
};

static int push(struct machine *m, uint64_t value)
{
	if (m->n == STACK_MAX)
		return -EBADMSG;
	m->stack[m->n++] = value;
	return 0;
}

static int get_register(const struct unwind_frame *frame, uint64_t number, uint64_t *ret_value)
{
	if (number >= _UNWIND_REGS || !(frame->known >> number & 1))
		return -EBADMSG;
	*ret_value = frame->regs[number];
	return 0;
}

static int push_register(struct machine *m, struct cursor *c, uint64_t number)
{
	uint64_t value;
	int64_t offset;

	if (leb128_get_signed(c, &offset) < 0 || get_register(m->frame, number, &value) < 0)
		return -EBADMSG;
	return push(m, value + (uint64_t)offset);
}

/* An operation on the two topmost values. */
static int apply_two(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	if (m->n < 2)
		return -EBADMSG;
	b = m->stack[--m->n];
	a = m->stack[--m->n];
	switch (op) {
	case DW_OP_plus:
		return push(m, a + b);
	case DW_OP_minus:
		return push(m, a - b);
	case DW_OP_mul:
		return push(m, a * b);
	case DW_OP_and:
		return push(m, a & b);
	case DW_OP_or:
		return push(m, a | b);
	case DW_OP_xor:
		return push(m, a ^ b);
	case DW_OP_shl:
		return push(m, b < 64 ? a << b : 0);
	case DW_OP_shr:
		return push(m, b < 64 ? a >> b : 0);
	case DW_OP_eq:
		return push(m, a == b);
	case DW_OP_ne:
		return push(m, a != b);
	case DW_OP_ge:
		return push(m, (int64_t)a >= (int64_t)b);
	case DW_OP_gt:
		return push(m, (int64_t)a > (int64_t)b);
	case DW_OP_le:
		return push(m, (int64_t)a <= (int64_t)b);
	case DW_OP_lt:
		return push(m, (int64_t)a < (int64_t)b);
	default:
		return -EBADMSG;
	}
}

/* An operation on the topmost value. */
static int apply_one(struct machine *m, struct cursor *c, uint8_t op)
{
	uint64_t *top, number;

	if (m->n == 0)
		return -EBADMSG;
	top = &m->stack[m->n - 1];
	switch (op) {
	case DW_OP_dup:
		return push(m, *top);
	case DW_OP_drop:
		m->n--;
		return 0;
	case DW_OP_deref:
		return m->memory->read(m->memory->userdata, *top, top, sizeof(*top)) ? 0 : -EBADMSG;
	case DW_OP_plus_uconst:
		if (leb128_get_unsigned(c, &number) < 0)
			return -EBADMSG;
		*top += number;
		return 0;
	default:
		return apply_two(m, op);
	}
}

static int apply(struct machine *m, struct cursor *c, uint8_t op)
{
	uint64_t number;
	int64_t signed_number;

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		return push(m, (uint64_t)op - DW_OP_lit0);
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		return push_register(m, c, (uint64_t)op - DW_OP_breg0);
	if (op >= DW_OP_const1u && op <= DW_OP_const8s) {
		const unsigned int i = op - DW_OP_const1u;

		return get_sized(c, (size_t)1 << i / 2, i % 2, &number) ?: push(m, number);
	}
	switch (op) {
	case DW_OP_constu:
		return leb128_get_unsigned(c, &number) ?: push(m, number);
	case DW_OP_consts:
		return leb128_get_signed(c, &signed_number) ?: push(m, (uint64_t)signed_number);
	case DW_OP_bregx:
		return leb128_get_unsigned(c, &number) ?: push_register(m, c, number);
	case DW_OP_nop:
		return 0;
	default:
		return apply_one(m, c, op);
	}
}

/* @cfa is on the stack at first, unless it is what is being found. */
static int evaluate(struct cursor c, const struct unwind_frame *frame,
		    const struct unwind_memory *memory, const uint64_t *cfa, uint64_t *ret_value)
{
	struct machine m = { .frame = frame, .memory = memory };
	uint8_t op;
	int r = cfa ? push(&m, *cfa) : 0;

	for (size_t i = 0; r == 0 && cursor_get(&c, 1, &op) == 0; i++)
		r = i < OPERATIONS_MAX ? apply(&m, &c, op) : -EBADMSG;
	if (r < 0 || m.n == 0)
		return -EBADMSG;
	*ret_value = m.stack[m.n - 1];
	return 0;
}

/* --- instructions ----------------------------------------------------------------------------- */

/* Set the rule of a register. That of one which is not needed is dropped. */
static void set_rule(struct program *p, uint64_t number, struct rule rule)
{
	if (number < _UNWIND_REGS)
		p->row.regs[number] = rule;
}

static int get_expression(struct cursor *c, struct cursor *ret_expression)
{
	uint64_t size;

	if (leb128_get_unsigned(c, &size) < 0 || size > cursor_left(c))
		return -EBADMSG;
	return cursor_get_sub(c, (size_t)size, ret_expression);
}

static int get_offset(struct cursor *c, bool is_signed, uint64_t *ret_offset)
{
	int64_t number;

	if (!is_signed)
		return leb128_get_unsigned(c, ret_offset);
	if (leb128_get_signed(c, &number) < 0)
		return -EBADMSG;
	*ret_offset = (uint64_t)number;
	return 0;
}

/* A rule with an offset in units of the data factor. */
static int set_factored(struct program *p, struct cursor *c, uint64_t number, bool is_signed,
			enum rule_kind kind)
{
	uint64_t offset;

	if (get_offset(c, is_signed, &offset) < 0)
		return -EBADMSG;
	set_rule(p, number,
		 (struct rule){ .kind = kind,
				.number = (int64_t)(offset * (uint64_t)p->entry->data_factor) });
	return 0;
}

/* Instructions that set the rule of the CFA. */
static int set_cfa(struct program *p, struct cursor *c, uint8_t op)
{
	const uint64_t factor = (uint64_t)p->entry->data_factor;
	struct cfa_rule cfa = p->row.cfa;
	int64_t factored = 0;
	int r = 0;

	if (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_register)
		r = leb128_get_unsigned(c, &cfa.base);
	if (r == 0 && (op == DW_CFA_def_cfa || op == DW_CFA_def_cfa_offset))
		r = leb128_get_unsigned(c, &cfa.offset);
	if (r == 0 && (op == DW_CFA_def_cfa_sf || op == DW_CFA_def_cfa_offset_sf)) {
		r = leb128_get_signed(c, &factored);
		cfa.offset = (uint64_t)factored * factor;
	}
	if (op == DW_CFA_def_cfa_expression)
		r = get_expression(c, &cfa.expression);
	cfa.is_known = true;
	cfa.is_expression = op == DW_CFA_def_cfa_expression;
	p->row.cfa = cfa;
	return r;
}

/* Instructions that set the rule of a register, whose number comes first. */
static int set_register(struct program *p, struct cursor *c, uint8_t op)
{
	struct rule rule = {};
	uint64_t number, other;

	if (leb128_get_unsigned(c, &number) < 0)
		return -EBADMSG;
	switch (op) {
	case DW_CFA_offset_extended:
		return set_factored(p, c, number, false, RULE_OFFSET);
	case DW_CFA_offset_extended_sf:
		return set_factored(p, c, number, true, RULE_OFFSET);
	case DW_CFA_val_offset:
		return set_factored(p, c, number, false, RULE_VALUE_OFFSET);
	case DW_CFA_val_offset_sf:
		return set_factored(p, c, number, true, RULE_VALUE_OFFSET);
	case DW_CFA_restore_extended:
		if (number < _UNWIND_REGS)
			rule = p->first.regs[number];
		break;
	case DW_CFA_undefined:
		rule.kind = RULE_UNDEFINED;
		break;
	case DW_CFA_same_value:
		break;
	case DW_CFA_register:
		if (leb128_get_unsigned(c, &other) < 0)
			return -EBADMSG;
		rule = (struct rule){ .kind = RULE_REGISTER, .number = (int64_t)other };
		break;
	default: /* DW_CFA_expression, DW_CFA_val_expression */
		rule.kind = op == DW_CFA_expression ? RULE_EXPRESSION : RULE_VALUE_EXPRESSION;
		if (get_expression(c, &rule.expression) < 0)
			return -EBADMSG;
	}
	set_rule(p, number, rule);
	return 0;
}

/* Go on to a later address. */
static int advance(struct program *p, uint64_t n)
{
	const uint64_t step = n * p->entry->code_factor;

	if (step > UINT64_MAX - p->at)
		return -EBADMSG;
	p->at += step;
	return 0;
}

static int advance_sized(struct program *p, struct cursor *c, size_t size)
{
	uint64_t n;

	return get_sized(c, size, false, &n) ?: advance(p, n);
}

static int remember(struct program *p)
{
	if (p->n_remembered == REMEMBERED_MAX)
		return -EBADMSG;
	p->remembered[p->n_remembered++] = p->row;
	return 0;
}

static int recall(struct program *p)
{
	if (p->n_remembered == 0)
		return -EBADMSG;
	p->row = p->remembered[--p->n_remembered];
	return 0;
}

static int run_one(struct program *p, struct cursor *c, uint8_t op)
{
	const uint8_t low = op & 0x3f;
	uint64_t unused;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(p, low);
	case DW_CFA_offset:
		return set_factored(p, c, low, false, RULE_OFFSET);
	case DW_CFA_restore:
		if (low < _UNWIND_REGS)
			p->row.regs[low] = p->first.regs[low];
		return 0;
	default:
		break;
	}
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_advance_loc1:
		return advance_sized(p, c, 1);
	case DW_CFA_advance_loc2:
		return advance_sized(p, c, 2);
	case DW_CFA_advance_loc4:
		return advance_sized(p, c, 4);
	case DW_CFA_remember_state:
		return remember(p);
	case DW_CFA_restore_state:
		return recall(p);
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return set_cfa(p, c, op);
	case DW_CFA_GNU_args_size:
		return leb128_get_unsigned(c, &unused);
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_restore_extended:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_register:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		return set_register(p, c, op);
	default:
		return -EBADMSG;
	}
}

/* Run instructions up to the row that holds at the address. */
static int run(struct program *p, struct cursor c)
{
	struct row row = p->row;
	uint8_t op;
	int r = 0;

	while (r == 0 && p->at <= p->address) {
		row = p->row;
		if (cursor_get(&c, 1, &op) < 0)
			break;
		r = run_one(p, &c, op);
	}
	p->row = row;
	return r;
}

/* --- the caller ------------------------------------------------------------------------------- */

/* Return: whether a function that does not state where it put the register leaves it as it is. */
static bool is_preserved(size_t number)
{
	const uint32_t preserved = 1u << 3 | 1u << 6 | 0xfu << 12; /* RBX, RBP, R12 to R15 */

	return preserved >> number & 1;
}

/* Find the value that register @number has in the caller. Return: 0, or -EBADMSG: not known. */
static int find_value(const struct rule *rule, size_t number, const struct unwind_frame *frame,
		      const struct unwind_memory *memory, uint64_t cfa, uint64_t *ret_value)
{
	uint64_t at = cfa + (uint64_t)rule->number;

	switch (rule->kind) {
	case RULE_SAME:
		return get_register(frame, number, ret_value);
	case RULE_REGISTER:
		return get_register(frame, (uint64_t)rule->number, ret_value);
	case RULE_VALUE_OFFSET:
		*ret_value = at;
		return 0;
	case RULE_VALUE_EXPRESSION:
		return evaluate(rule->expression, frame, memory, &cfa, ret_value);
	case RULE_EXPRESSION:
		if (evaluate(rule->expression, frame, memory, &cfa, &at) < 0)
			return -EBADMSG;
		break;
	case RULE_OFFSET:
		break;
	default:
		return -EBADMSG;
	}
	return memory->read(memory->userdata, at, ret_value, sizeof(*ret_value)) ? 0 : -EBADMSG;
}

static int find_cfa(const struct cfa_rule *rule, const struct unwind_frame *frame,
		    const struct unwind_memory *memory, uint64_t *ret_cfa)
{
	uint64_t base;

	if (!rule->is_known)
		return -EBADMSG;
	if (rule->is_expression)
		return evaluate(rule->expression, frame, memory, NULL, ret_cfa);
	if (get_register(frame, rule->base, &base) < 0)
		return -EBADMSG;
	*ret_cfa = base + rule->offset;
	return 0;
}

int unwind_frame(const struct ehframe_entry *entry, uint64_t address,
		 const struct unwind_frame *frame, const struct unwind_memory *memory,
		 struct unwind_frame *ret_caller)
{
	struct program p = { .entry = entry, .address = address, .at = entry->start };
	struct unwind_frame caller = {};
	uint64_t cfa;

	if (entry->return_register != UNWIND_RIP || run(&p, entry->common) < 0)
		return -EBADMSG;
	p.first = p.row;
	if (run(&p, entry->own) < 0)
		return -EBADMSG;
	/* So a thread's first function says that it has no caller. */
	if (p.row.regs[UNWIND_RIP].kind == RULE_UNDEFINED)
		return UNWIND_END;
	if (p.row.regs[UNWIND_RIP].kind == RULE_SAME ||
	    find_cfa(&p.row.cfa, frame, memory, &cfa) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < _UNWIND_REGS; i++) {
		const struct rule *rule = &p.row.regs[i];

		if (rule->kind == RULE_SAME && i == UNWIND_RSP)
			caller.regs[i] = cfa;
		else if ((rule->kind == RULE_SAME && !is_preserved(i)) ||
			 find_value(rule, i, frame, memory, cfa, &caller.regs[i]) < 0)
			continue;
		caller.known |= 1u << i;
	}
	if (!(caller.known >> UNWIND_RIP & 1))
		return -EBADMSG;
	*ret_caller = caller;
	return 0;
}

/* --- parts of functions ----------------------------------------------------------------------- */

/* Return: whether the stack pointer and the registers are the same in both, but for RIP. */
static bool is_same_row(const struct row *a, const struct row *b)
{
	if (a->cfa.is_expression || b->cfa.is_expression || a->cfa.base != b->cfa.base ||
	    a->cfa.offset != b->cfa.offset)
		return false;
	for (size_t i = 0; i < _UNWIND_REGS; i++)
		if (i != UNWIND_RIP && a->regs[i].kind != b->regs[i].kind)
			return false;
	return true;
}

bool unwind_begins_inside(const struct ehframe_entry *entry)
{
	struct program p = { .entry = entry, .address = entry->start, .at = entry->start };
	bool is_expression;

	/* The kernel leaves much on the stack where a handler of a signal returns to. */
	if (entry->is_signal || entry->return_register != UNWIND_RIP || run(&p, entry->common) < 0)
		return false;
	p.first = p.row;
	if (run(&p, entry->own) < 0 || is_same_row(&p.row, &p.first))
		return false;
	/* The PLT, too, begins with something on the stack. How much there is behind its beginning
	 * needs an expression. */
	is_expression = p.row.cfa.is_expression;
	p.row = p.first;
	p.at = entry->start;
	p.address = entry->end - 1;
	p.n_remembered = 0;
	return run(&p, entry->own) == 0 && p.row.cfa.is_expression == is_expression;
}
