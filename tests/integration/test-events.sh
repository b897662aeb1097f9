#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Events that a program notes in a trace of ovni while it is recorded (--ovni): each stands in the thread and in the
# function that noted it, in its order, and exactly where the program asked for the time; viewers show regions and points.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 node

start_ptd
record --timing events "$O/targets/events.c" "$T/ovni"
"$O/ptdecode" --ovni "$T/ovni" calls --json -o "$T/calls.json" --also "calls -o $T/calls" --also "text --no-bytes -o $T/text" \
	--also "summary --json -o $T/summary.json" --also "summary -o $T/summary" --also "export chrome -o $T/chrome" --also "export fxt -o $T/fxt" --also "html -o $T/html" \
	"$T/events" 2>"$T/err" || { cat "$T/err"; fail "ptdecode: status $?"; }
cat "$T/err"
node tests/tools/report.mjs "$T/html" >"$T/report" || fail "the report"

python3 - "$T" <<'EOF' || fail "the events"
import collections, json, re, sys
top = sys.argv[1]
load = lambda name: json.load(open(f"{top}/{name}", encoding="utf-8"))
expected = collections.defaultdict(list)
for line in open(f"{top}/events.out"):
    pid, tid, *event = line.rstrip("\n").split("\t")
    expected[int(tid)].append(tuple(event))
assert len(expected) == 4 and {len(events) for events in expected.values()} == {10}, expected

# What was called is listed before its caller: those behind the event that began before it contain it.
items = collections.defaultdict(list)
for row in load("calls.json")["calls"]:
    items[row["tid"]].append(row)
noted = collections.defaultdict(list)
for tid, rows in items.items():
    for i, row in enumerate(rows):
        if "event" not in row:
            continue
        around = [call for call in rows[i:] if "function" in call and call["t"] < row["t"] <= call["t"] + call["duration"]]
        around.sort(key=lambda call: -call["depth"])
        names = [call["function"] for call in around]
        at = names.index("note")
        assert all(re.search("clock_(gettime|ns)", name) for name in names[:at]), names
        noted[tid].append((row["kind"], row["event"], names[at + 1]))
        assert names[at + 1:at + 3] in (["inner", "outer"], ["begin_phase", "outer"], ["end_phase", "outer"], ["outer", "run"]), names
assert noted == expected, (noted, expected)
times = {tid: [row["t"] for row in rows if "event" in row] for tid, rows in items.items()}
assert all(t == sorted(t) for t in times.values()), times

# In the list of instructions, each is the only one behind its system call, and no other event is in the trace.
last, found = {}, collections.defaultdict(list)
for line in open(f"{top}/text", encoding="utf-8"):
    thread = re.search(r"[0-9]+/([0-9]+) +\[", line)
    if not thread:
        continue
    tid = int(thread[1])
    mark = line.startswith("#") and re.search(r"[0-9]: ([a-z]+): (.*)", line)
    if mark and mark[1] in ("begin", "end", "point"):
        assert last[tid][0] == "off" and "syscall" in last[tid][1] and "clock_gettime" in last[tid][1], (line, last[tid])
        last[tid] = ("event", "")
        found[tid].append(" ".join(mark.groups()))
    elif mark and mark[1] == "off":
        last[tid] = ("off", last[tid][1])
    elif not line.startswith("#"):
        last[tid] = ("insn", line)
assert found == {tid: [" ".join(event[:2]) for event in events] for tid, events in expected.items()}, found

# The text of the calls has the same between the beginning and the end of the function.
lines = open(f"{top}/calls", encoding="utf-8").read().splitlines()
assert sum(" // begin " in line or " // end " in line or " // point " in line for line in lines) == 40, lines
depth = [re.sub(r"^.{60}", "", line).strip() for line in lines if re.search("// (begin|point|end) ", line)]
summary = load("summary.json")
assert (summary["events"], summary["events_left_out"]) == (40, 5), summary
assert any(re.search("has nothing of 1 thread whose events are to be merged, such as [0-9]*/1$", text) for text in summary["missing"])
assert "Events: 40 that programs noted; 5 more, of times or threads" in open(f"{top}/summary").read()

# Viewers show regions. The one that ends first is cut in two where the other one ends.
def regions(times):
    t = dict(zip(range(10), times))
    spans = [("a phase", t[0], t[5]), ("outer", t[1], t[5]), ("outer", t[5], t[9]), ("inner", t[2], t[4]), ("inner", t[6], t[8])]
    return sorted(spans), sorted([("point 1", t[3]), ("point 2", t[7])])
tracks, opened = {}, collections.defaultdict(list)
spans, points = collections.defaultdict(list), collections.defaultdict(list)
for event in load("chrome")["traceEvents"]:
    ns = round(event.get("ts", 0) * 1000)
    if event["ph"] == "M" and event["name"] == "thread_name" and event["args"]["name"].endswith(", events"):
        tracks[event["tid"]] = int(re.fullmatch("events.c ([0-9]+), events", event["args"]["name"])[1])
    tid = tracks.get(event.get("tid"))
    if tid is None or event["ph"] == "M":
        continue
    assert event["ph"] == "E" or event["cat"] == "event", event
    if event["ph"] == "B":
        opened[tid].append((event["name"], ns))
    elif event["ph"] == "E":
        spans[tid].append((*opened[tid].pop(), ns))
    else:
        points[tid].append((event["name"], ns))
assert set(tracks.values()) == set(expected) and not any(opened.values()), (tracks, opened)
for tid in expected:
    assert (sorted(spans[tid]), sorted(points[tid])) == regions(times[tid]), (spans[tid], points[tid], regions(times[tid]))
names = {"a phase", "outer", "inner", "point 1", "point 2"}
report = load("report")
for tid in expected:
    wanted, shown = regions(times[tid]), [s for s in report["noted"] if s[3] == tid]
    assert sorted((name, t, t + duration) for name, t, duration, _ in shown) == \
        sorted(wanted[0] + [(name, t, t) for name, t in wanted[1]]), (shown, wanted)
fxt = open(f"{top}/fxt", "rb").read()
assert all(name.encode() in fxt for name in names)
EOF

echo "--- parts, threads and mistakes"
tid=$(cut -f2 "$T/events.out" | tail -1)
"$O/ptdecode" --ovni "$T/ovni" --tid "$tid" calls "$T/events" >"$T/part" || fail "--tid: status $?"
[[ $(grep -cE '// (begin|end|point) ' "$T/part") == 10 ]] || fail "events of one thread: $(cat "$T/part")"
"$O/ptdecode" --ovni "$T/ovni" --symbol outer summary --json "$T/events" >"$T/part" || fail "--symbol: status $?"
grep -q '"events": 0,' "$T/part" && grep -q '"events_left_out": 0,' "$T/part" || fail "--symbol: $(grep events "$T/part")"
for threads in 1 2; do
	"$O/ptdecode" --threads $threads --ovni "$T/ovni" text --no-bytes "$T/events" 2>"$T/err" | cmp - "$T/text" || fail "--threads $threads"
	grep -q "has nothing of 1 thread" "$T/err" || fail "no complaint: $(cat "$T/err")"
done
"$O/ptdecode" summary "$T/events" | grep "Events" && fail "events without --ovni"
for input in "$T/events" "$T/nowhere"; do
	"$O/ptdecode" --ovni "$input" calls -o "$T/none" "$T/events" 2>"$T/err" && fail "--ovni $input"
	grep -qE "is no trace of ovni|No such file" "$T/err" || fail "--ovni $input: $(cat "$T/err")"
done
"$O/ptdecode" --ovni "$T/ovni" calls "$T/ovni" 2>"$T/err" && fail "--ovni with a trace of ovni"
grep -q "is no recording, with which events could be merged" "$T/err" || fail "--ovni with a trace of ovni: $(cat "$T/err")"
"$O/ptdecode" text --ovni "$T/ovni" --raw-pt "$T/text" 2>"$T/err"
[[ $? == 2 ]] && grep -q "ovni goes with a recording" "$T/err" || fail "--ovni with --raw-pt: $(cat "$T/err")"
truncate -s -3 "$T/ovni/loom.host/proc.$tid/thread.$tid/stream.obs"
"$O/ptdecode" --ovni "$T/ovni" calls -o "$T/cut" "$T/events" 2>"$T/err" || fail "a stream that is cut off: status $?"
grep -q "thread.$tid/stream.obs: byte [0-9]*: the file ends inside an event" "$T/err" || fail "a stream that is cut off: $(cat "$T/err")"
[[ $(grep -cE '// (begin|end|point) ' "$T/cut") == 40 ]] || fail "a stream that is cut off: $(grep -c // "$T/cut")"
