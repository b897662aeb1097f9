# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that have llvm-xray judge flight data recorder files; they source it after common.sh.

# xray SUBCOMMAND...: llvm-xray succeeds and complains of nothing.
xray() {
	llvm-xray "$@" 2>"$T/xray.err" || { cat "$T/xray.err"; fail "llvm-xray $*"; }
	[[ ! -s $T/xray.err ]] || { cat "$T/xray.err"; fail "llvm-xray $*: it complains"; }
}

# judge_xray DIR CALLS FUNCTIONS [VERSION]: the files in DIR, of version 1 or the newest, have the calls of the JSON CALLS
# and as many of each function as the JSON FUNCTIONS.
judge_xray() {
	local dir=$1 file name version=${4:-5} map=$1/map.elf
	rm -rf "$T/xray"
	mkdir "$T/xray"
	xray extract -symbolize -o "$T/xray/map.yaml" "$map"
	for file in "$dir"/xray-log.*; do
		name=$T/xray/${file##*/}
		xray fdr-dump -verify "$file" >"$name.dump"
		xray convert -f yaml -symbolize -no-demangle -instr_map="$map" -o "$name.yaml" "$file"
		xray convert -f trace_event -symbolize -no-demangle -instr_map="$map" -o "$name.json" "$file"
		# Version 1 names the first function of a chain of tail calls, at which these stumble.
		[[ $version != 1 ]] || continue
		xray account -format=csv -instr_map="$map" -o "$name.csv" "$file"
		xray stack -instr_map="$map" "$file" >"$name.stack"
		xray graph -instr_map="$map" -o "$name.dot" "$file"
	done
	# With -aggregate-threads it uses an iterator into a vector that has grown, and dies: where several threads have functions
	# in common that nothing calls, and four or more of these are known.
	[[ $version == 1 ]] || xray stack -all-stacks -stack-format=flame -aggregation-type=count -per-thread-stacks \
		-instr_map="$map" "$dir"/xray-log.* >"$T/xray/flame"
	python3 - "$T/xray" "$2" "$3" "$version" <<'EOF' || fail "$dir: llvm-xray sees something else"
import csv, collections, glob, json, re, sys
sys.path.insert(0, "tests/tools")
import pieces

judged, version = sys.argv[1], int(sys.argv[4])
# Names have 1024 bytes at most.
clean = lambda name: name.encode()[:1024].decode(errors="replace").translate(str.maketrans('"\\;', "'/,"))
document = json.load(open(sys.argv[2]))
ours = [c for c in document["calls"] if "gap" not in c]
gaps = len(document["calls"]) - len(ours)

# A stack shows the names demangled.
demangled = dict(re.findall(r"^- \{ id: (\d+), .* function-name: (.*) \}$", open(judged + "/map.yaml").read(), re.M))
demangled = {id: name.strip("'").replace("''", "'") for id, name in demangled.items()}

# The calls as the YAML has them: what is left is open, and the innermost.
record = re.compile(r"  - \{ type: 0, func-id: (\d+), function: (.*), cpu: \d+, thread: (\d+), (?:process: \d+, )?"
                    r"kind: function-([a-z-]+), tsc: (\d+), data: '' \}")
steps, depths, events, ids, stacks = [], [], 0, collections.Counter(), collections.Counter()
for name in glob.glob(judged + "/*.yaml"):
    if name.endswith("/map.yaml"):
        continue
    open_now, log = [], []
    steps.append(log)
    for line in open(name):
        if "kind: function" not in line:
            events += "kind: custom-event" in line
            continue
        func, function, tid, kind, tsc = record.fullmatch(line.rstrip("\n")).groups()
        function = function.strip("'").replace("''", "'")
        if kind == "enter":
            above = open_now[-1][2] if open_now else f"thread_{tid};"
            log.append((int(tsc), int(tid), "enter", function))
            depths.append((int(tid), function, int(tsc), len(open_now)))
            open_now.append((func, function, f"{above}{demangled[func]};"))
            ids[func] += 1
        else:
            assert kind in ("exit", "tail-exit"), line
            top, entered_as, stack = open_now.pop()
            stacks[stack] += 1
            assert top == func or (version == 1 and kind == "tail-exit"), (name, line, top)
            log.append((int(tsc), int(tid), "leave", entered_as))
    assert not open_now, (name, open_now)

def depth_of(calls):
    lowest = collections.defaultdict(int)
    for c in calls:
        lowest[c["tid"]] = min(lowest[c["tid"]], c["depth"])
    return lowest

mask = 0xffff if version == 1 else 0xffffffff
split = pieces.check(ours, steps, lambda row: clean(row["function"]), mask)
# Where nothing is lost, the depth is that of the tree, from its lowest function on.
if gaps == 0 and not split:
    lowest = depth_of(ours)
    expected = collections.Counter((c["tid"] & mask, clean(c["function"]), c["t"], c["depth"] - lowest[c["tid"]]) for c in ours)
    found = collections.Counter(depths)
    assert expected == found, (list((expected - found).items())[:5], list((found - expected).items())[:5])
slices = sum(e["ph"] == "B" for name in glob.glob(judged + "/*.json") for e in json.load(open(name))["traceEvents"])
assert slices == len(depths), (slices, len(depths))

counted, flame = collections.Counter(), collections.Counter()
if version != 1:
    for line in open(judged + "/flame"):
        stack, n = line.rstrip("\n").rsplit(" ", 1)
        flame[stack] += int(n)
    assert +flame == stacks, (list((flame - stacks).items())[:5], list((stacks - flame).items())[:5])
    for name in glob.glob(judged + "/*.csv"):
        for row in csv.reader(open(name)):
            if row[0] != "funcid":
                counted[row[0]] += int(row[1])
    assert counted == ids, "account"
functions = collections.Counter()
for row in json.load(open(sys.argv[3]))["functions"]:
    functions[clean(row["function"])] += row["calls"]
# What goes on behind a gap, behind a jump that was a call, or in other code of what was inlined, was counted when it began.
goes_on = {"resumption", "reopening", "reentry"}
entered = collections.Counter(clean(c["function"]) for c in ours if c["entered_by"] not in goes_on)
assert functions == entered, (functions - entered, entered - functions)
print(f"version {version}: {len(ours)} calls{split}, of {len(ids)} functions, {events} events, {gaps} gaps")
EOF
}
