/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_copy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptd/record.h"

#define WINDOW (UINT64_C(1) << 22)

#define EXT       0x02
#define EXSTOP_IP 0xe2 /* behind EXT: an EXSTOP packet with an address */
#define MODE_TSX  0x20 /* the second byte of a MODE.TSX packet, without its flags */
#define UNKNOWN   0xd9 /* TRIG, which libipt 2.0.5 does not know */

static const uint8_t psb_packet[] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
				      2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };

int ipt_copy_init(struct ipt_copy *copy, const struct fileparts *pt, uint64_t window,
		  uint32_t errata, bool has_events)
{
	void *p;

	*copy = (struct ipt_copy){ .size = pt->size,
				   .n_at_once = window ?: WINDOW,
				   .errata = errata,
				   .has_events = has_events };
	window_init(&copy->window, pt, WINDOW_SIZE);
	p = mmap(NULL, pt->size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	copy->bytes = p;
	return 0;
}

void ipt_copy_deinit(struct ipt_copy *copy)
{
	if (copy->bytes)
		(void)munmap(copy->bytes, copy->size);
	window_deinit(&copy->window);
	vec_deinit(&copy->stand_ins);
	*copy = (struct ipt_copy){};
}

uint64_t ipt_copy_find_psb(struct ipt_copy *copy, uint64_t from)
{
	return window_find(&copy->window, from, psb_packet, sizeof(psb_packet));
}

struct packet ipt_copy_packet(struct ipt_copy *copy, uint64_t offset)
{
	struct packet_reader reader = {};
	struct packet packet;
	size_t n;
	const uint8_t *p = window_at(&copy->window, offset, PACKET_SIZE_MAX, &n);

	return packet_read(&reader, p, n, &packet) == 0 ? packet : (struct packet){};
}

static uint64_t page_of(uint64_t offset)
{
	return offset & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Give the memory of pages back that lie before @used. */
static void release(struct ipt_copy *copy, uint64_t used)
{
	const uint64_t end = page_of(used);

	if (end <= copy->released || end - copy->released < copy->n_at_once)
		return;
	(void)madvise(copy->bytes + copy->released, end - copy->released, MADV_DONTNEED);
	copy->released = end;
}

static int add_exstop(struct ipt_copy *copy, bool is_stand_in)
{
	copy->n_waiting++;
	return vec_push(&copy->stand_ins, is_stand_in);
}

/* Return: whether a FUP behind the packet is of it alone, and not of an interruption. */
static bool has_own_fup(struct ipt_copy *copy, const struct packet *packet)
{
	switch (packet->type) {
	case PACKET_BEP:
	case PACKET_TRIG:
		return packet->flag;
	case PACKET_CFE:
		return packet->flag &&
		       (packet->value == PTD_CFE_IRET || packet->value == PTD_CFE_VMENTRY ||
			packet->value == PTD_CFE_UIRET) &&
		       /* An overflow may have swallowed it. */
		       ipt_copy_packet(copy, copy->end + packet->size).type != PACKET_OVF;
	default:
		return false;
	}
}

/* Blank a packet that libipt does not know. One that is cut off says nothing. */
static int blank(struct ipt_copy *copy, const struct packet *packet, size_t size)
{
	uint8_t *p = copy->bytes + copy->end;

	memset(p, 0, size);
	if (size < packet->size || !has_own_fup(copy, packet))
		return 0;
	p[0] = EXT;
	p[1] = EXSTOP_IP;
	return add_exstop(copy, true);
}

/* A FUP: of what waits for one, or of a MODE.Exec that says that the interrupt flag was changed. */
static void take_fup(struct ipt_copy *copy)
{
	if (copy->has_mode && copy->n_waiting == 0)
		copy->bytes[copy->mode + 1] = MODE_TSX | copy->tsx;
	copy->n_waiting = 0;
	copy->is_status = false;
}

/* Take note of what the packet changes, and change it if it must be. @size: of it, as far as it is
 * there. */
static int take_packet(struct ipt_copy *copy, const struct packet *packet, size_t size)
{
	int r = 0;

	switch (packet->type) {
	case PACKET_PAD: /* perhaps of something else, which an erratum has spoiled */
		memset(copy->bytes + copy->end, 0, size);
		return 0;
	case PACKET_CFE:
	case PACKET_EVD:
	case PACKET_BBP:
	case PACKET_BIP:
	case PACKET_BEP:
	case PACKET_TRIG:
		r = blank(copy, packet, size);
		break;
	case PACKET_EXSTOP:
		if (packet->flag)
			r = add_exstop(copy, false);
		break;
	case PACKET_PSB:
	case PACKET_OVF:
		copy->stand_ins.n -= copy->n_waiting;
		copy->n_waiting = 0;
		copy->is_status = true;
		copy->tsx = 0;
		break;
	case PACKET_PSBEND:
	case PACKET_TIP_PGE:
		copy->is_status = false;
		break;
	case PACKET_MODE_TSX:
		copy->tsx = packet->value & PACKET_TSX_BEGIN;
		break;
	case PACKET_MODE_EXEC:
		copy->mode = copy->end;
		copy->has_mode = copy->has_events && !copy->is_status;
		return 0;
	case PACKET_FUP:
		take_fup(copy);
		break;
	default:
		if (packet_is_timing(packet))
			return 0;
	}
	copy->has_mode = false;
	return r;
}

/* Does what follows decide what becomes of packets that are there? But for a window at most. */
static bool is_open(const struct ipt_copy *copy)
{
	return copy->has_mode || copy->is_status || copy->n_waiting > 0;
}

/* Copy the next window. */
static int fill(struct ipt_copy *copy)
{
	const uint64_t begin = copy->end;
	int r = 0, status = 0;

	while (copy->end < copy->size && r == 0 &&
	       copy->end - begin < copy->n_at_once * (is_open(copy) ? 2 : 1)) {
		struct packet packet;
		size_t n;
		const uint8_t *p = window_at(&copy->window, copy->end, PACKET_SIZE_MAX + 1, &n);

		status = packet_read_mended(&copy->reader, copy->errata, p, n, &packet);
		if (copy->window.error || status == PACKET_BAD)
			break;
		if (status != PACKET_CUT)
			n = packet.size;
		memcpy(copy->bytes + copy->end, p, n);
		r = take_packet(copy, &packet, n);
		copy->end += n;
	}
	copy->is_bad = status == PACKET_BAD;
	if (copy->end < copy->size)
		copy->bytes[copy->end] = UNKNOWN;
	return copy->window.error ?: r;
}

int ipt_copy_begin(struct ipt_copy *copy, uint64_t offset, const uint8_t *psb, size_t n)
{
	assert(n <= offset);
	if (n > 0)
		memcpy(copy->bytes + (offset - n), psb, n);
	if (copy->released > offset - n)
		copy->released = page_of(offset - n);
	copy->end = offset;
	copy->reader = (struct packet_reader){};
	copy->has_mode = copy->is_status = false;
	copy->tsx = 0;
	copy->stand_ins.n = copy->n_taken = copy->n_waiting = 0;
	return fill(copy);
}

static void forget_taken(struct ipt_copy *copy)
{
	const size_t n = copy->stand_ins.n - copy->n_taken;

	if (n > 0)
		memmove(copy->stand_ins.items, copy->stand_ins.items + copy->n_taken,
			n * sizeof(*copy->stand_ins.items));
	copy->stand_ins.n = n;
	copy->n_taken = 0;
	/* Only broken packets can let libipt take one whose FUP has not come. */
	if (copy->n_waiting > n)
		copy->n_waiting = n;
}

int ipt_copy_go_on(struct ipt_copy *copy, uint64_t offset, uint64_t used)
{
	if (offset != copy->end || copy->is_bad)
		return -EBADMSG;
	release(copy, used);
	forget_taken(copy);
	return fill(copy);
}

bool ipt_copy_take_exstop(struct ipt_copy *copy)
{
	return copy->n_taken < copy->stand_ins.n && copy->stand_ins.items[copy->n_taken++];
}
