# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare a log of calls that has one stack for each thread with the rows of calls --json.

When a thread goes on on another stack, such as a fiber's or a goroutine's, such a log leaves all functions of the old stack
and enters all functions of the new one. A call is one piece in the log, or several, which are joined here.
"""
import collections
import heapq

# A call may end while its thread is on another stack: the log does not show the end. A function that turns out to have been
# open all the time, after the thread has been on another stack, is entered late.
ENDS_ELSEWHERE = {"end", "gap", "unwinding"}
ENTERED_LATE = {"inference", "resumption"}

Frame = collections.namedtuple("Frame", "name begin")


def n_equal(frames, names):
    n = 0
    while n < min(len(frames), len(names)) and frames[n].name == names[n]:
        n += 1
    return n


class Joiner:
    """The calls of all threads, joined from the pieces of their logs."""

    def __init__(self, rows, name_of):
        self.rows = {(name_of(row), row["t"], row["t"] + row["duration"]) for row in rows}
        self.begins = {(name, begin) for name, begin, _ in self.rows}
        self.ends = {(name, end) for name, _, end in self.rows}
        self.open = collections.defaultdict(list)      # by thread, the frames from the outermost one on
        self.leaving = {}                              # by thread, (t, frames) that it left last
        self.entering = collections.defaultdict(list)  # by thread, (name, t) that it entered at once
        self.waiting = []                              # (t, frames) of stacks on which no thread is
        self.left = {}                                 # by thread, the frames of the stack of these that it left last
        self.calls = []                                # (name, begin, end); end None: not seen

    def resume(self, thread, t, names):
        """The frames of the stack on which the thread goes on with these names; none if it is a new one."""
        left = self.left.pop(thread, None)
        if (names[0], t) in self.begins:
            return []
        best = None
        for number, (left_at, frames) in enumerate(self.waiting):
            n = n_equal(frames, names)
            if n == 0 or frames is left:
                continue
            # The other functions returned directly before the thread left the stack. Or they belong to the stack that the
            # thread was on until now: only now was it known which of several that looked alike that was.
            returned = all((*frame, left_at) in self.rows for frame in frames[n:])
            if (returned or left) and (best is None or (returned, n, -len(frames)) > best[:3]):
                best = returned, n, -len(frames), number
        if best is None:
            return []
        returned, n, _, number = best
        left_at, frames = self.waiting.pop(number)
        if returned:
            self.calls += [(*frame, left_at) for frame in frames[n:]]
        else:
            left.extend(frames[n:])
        return frames[:n]

    def settle_entries(self, thread):
        entered = self.entering.pop(thread, [])
        if not entered:
            return
        t = entered[0][1]
        # Only a thread that has nothing open may go on on another stack.
        known = self.resume(thread, t, [name for name, _ in entered]) if not self.open[thread] else []
        self.open[thread] += known + [Frame(*entry) for entry in entered[len(known):]]

    def settle_leaves(self, thread):
        t, frames = self.leaving.pop(thread, (0, []))
        if not frames:
            return
        if self.open[thread] or (frames[0].name, t) in self.ends:
            self.calls += [(*frame, t) for frame in frames]
        else:
            self.waiting.append((t, frames))
            self.left[thread] = frames

    def take(self, thread, t, kind, name):
        if kind == "enter":
            self.settle_leaves(thread)
            if self.entering[thread] and self.entering[thread][0][1] != t:
                self.settle_entries(thread)
            self.entering[thread].append((name, t))
            return
        self.settle_entries(thread)
        if self.leaving.get(thread, (t,))[0] != t:
            self.settle_leaves(thread)
        frame = self.open[thread].pop()
        assert frame.name == name, (thread, t, frame, name)
        self.leaving.setdefault(thread, (t, []))[1].insert(0, frame)

    def finish(self):
        for thread in list(self.leaving):
            self.settle_leaves(thread)
        assert not any(self.open.values()) and not any(self.entering.values())
        for t, frames in self.waiting:
            self.calls += [(*frame, t if (*frame, t) in self.rows else None) for frame in frames]
        return self.calls


def is_switching(rows):
    """Whether a thread has several stacks."""
    return len({(row["tid"], row["stack"]) for row in rows}) > len({row["tid"] for row in rows})


def check_joined(rows, logs, name_of):
    joiner = Joiner(rows, name_of)
    for t, thread, kind, name in heapq.merge(*logs, key=lambda step: step[0]):
        joiner.take(thread, t, kind, name)
    ours = collections.Counter((name_of(row), row["t"], row["t"] + row["duration"]) for row in rows)
    found = collections.Counter(joiner.finish())
    # Of stacks that look alike another one may have been taken: which end belongs to which begin is not compared then.
    rest, joined = ours - found, found - ours
    assert sum(rest.values()) == sum(joined.values()), (list(rest)[:5], list(joined)[:5])
    for index, how, hows, shown in ((1, "entered_by", ENTERED_LATE, "begin"), (2, "left_by", ENDS_ELSEWHERE, "end")):
        theirs, missing = (collections.Counter() for _ in range(2))
        for into, counter in ((missing, rest), (theirs, joined)):
            for call, n in counter.items():
                into[call[0], call[index]] += n
        missing, more = missing - theirs, theirs - missing
        allowed = collections.Counter((name_of(row), row["t"] + (row["duration"] if index == 2 else 0))
                                      for row in rows if row[how] in hows)
        assert missing <= allowed, (shown, list((missing - allowed).items())[:5])
        assert sorted(name for name, _ in missing.elements()) == sorted(name for name, _ in more.elements()), (shown, missing, more)
    return sum(rest.values())


def check(rows, logs, name_of, tid_mask=0xffffffff):
    """Assert that the steps of the logs, (t, tid, "enter" or "leave", name), make up the calls of the rows.

    Return: what was joined, as text; "" if each thread has one stack.
    """
    if is_switching(rows):
        n_pieces = sum(kind == "enter" for log in logs for _, _, kind, _ in log)
        n_apart = check_joined(rows, logs, name_of)
        return f" in {n_pieces} pieces, but for {n_apart} that were not joined"
    found, waiting = collections.Counter(), collections.defaultdict(list)
    for t, tid, kind, name in (step for log in logs for step in log):
        if kind == "enter":
            waiting[tid].append((name, t))
        else:
            entered, begin = waiting[tid].pop()
            assert entered == name, (tid, t, entered, name)
            found[tid, name, begin, t] += 1
    ours = collections.Counter((row["tid"] & tid_mask, name_of(row), row["t"], row["t"] + row["duration"]) for row in rows)
    assert found == ours, (list((ours - found).items())[:5], list((found - ours).items())[:5])
    return ""
