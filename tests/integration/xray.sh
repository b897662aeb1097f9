# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that have llvm-xray judge flight data recorder files; they source it after common.sh.

# xray SUBCOMMAND...: llvm-xray succeeds and complains of nothing.
xray() {
	llvm-xray-14 "$@" 2>"$T/xray.err" || { cat "$T/xray.err"; fail "llvm-xray $*"; }
	[[ ! -s $T/xray.err ]] || { cat "$T/xray.err"; fail "llvm-xray $*: it complains"; }
}

# judge DIR CALLS FUNCTIONS [VERSION]: the files in DIR, of version 1 or the newest, have the calls of the JSON CALLS
# and as many of each function as the JSON FUNCTIONS.
judge() {
	local dir=$1 file name version=${4:-5} map=$1/map.elf
	rm -rf "$T/judged"
	mkdir "$T/judged"
	xray extract -symbolize -o "$T/judged/map.yaml" "$map"
	for file in "$dir"/xray-log.*; do
		name=$T/judged/${file##*/}
		xray fdr-dump -verify "$file" >"$name.dump"
		xray convert -f yaml -symbolize -no-demangle -instr_map="$map" -o "$name.yaml" "$file"
		xray convert -f trace_event -symbolize -no-demangle -instr_map="$map" -o "$name.json" "$file"
		# Version 1 names the first function of a chain of tail calls, at which these stumble.
		[[ $version != 1 ]] || continue
		xray account -format=csv -instr_map="$map" -o "$name.csv" "$file"
		xray stack -instr_map="$map" "$file" >"$name.stack"
		xray graph -instr_map="$map" -o "$name.dot" "$file"
	done
	[[ $version == 1 ]] || xray stack -all-stacks -stack-format=flame -aggregation-type=count -aggregate-threads -instr_map="$map" \
		"$dir"/xray-log.* >"$T/judged/flame"
	python3 - "$T/judged" "$2" "$3" "$version" <<'EOF' || fail "$dir: llvm-xray sees something else"
import csv, collections, glob, json, re, sys

judged, version = sys.argv[1], int(sys.argv[4])
clean = lambda name: name.translate(str.maketrans('"\\;', "'/,"))
document = json.load(open(sys.argv[2]))
ours = [c for c in document["calls"] if "gap" not in c]
gaps = len(document["calls"]) - len(ours)

# The calls as the YAML has them: what is left is open, and the innermost.
record = re.compile(r"  - \{ type: 0, func-id: (\d+), function: (.*), cpu: \d+, thread: (\d+), (?:process: \d+, )?"
                    r"kind: function-([a-z-]+), tsc: (\d+), data: '' \}")
calls, events, ids = [], 0, collections.Counter()
for name in glob.glob(judged + "/*.yaml"):
    if name.endswith("/map.yaml"):
        continue
    open_now, chain = [], {}
    for line in open(name):
        if "kind: function" not in line:
            events += "kind: custom-event" in line
            continue
        func, function, tid, kind, tsc = record.fullmatch(line.rstrip("\n")).groups()
        function = function.strip("'").replace("''", "'")
        if kind == "enter":
            open_now.append((func, function, int(tsc)))
            ids[func] += 1
        else:
            assert kind in ("exit", "tail-exit"), line
            top, entered_as, t = open_now.pop()
            assert top == func or (version == 1 and kind == "tail-exit"), (name, line, top)
            calls.append((int(tid), entered_as, t, int(tsc), len(open_now)))
    assert not open_now, (name, open_now)

def depth_of(calls):
    lowest = collections.defaultdict(int)
    for c in calls:
        lowest[c["tid"]] = min(lowest[c["tid"]], c["depth"])
    return lowest

mask = 0xffff if version == 1 else 0xffffffff
expected = collections.Counter((c["tid"] & mask, clean(c["function"]), c["t"], c["t"] + c["duration"]) for c in ours)
found = collections.Counter(c[:4] for c in calls)
assert expected == found, (list((expected - found).items())[:5], list((found - expected).items())[:5])
# Where nothing is lost, the depth is that of the tree, from its lowest function on.
if gaps == 0:
    lowest = depth_of(ours)
    expected = collections.Counter((c["tid"] & mask, clean(c["function"]), c["t"], c["depth"] - lowest[c["tid"]]) for c in ours)
    found = collections.Counter((c[0], c[1], c[2], c[4]) for c in calls)
    assert expected == found, (list((expected - found).items())[:5], list((found - expected).items())[:5])
slices = sum(e["ph"] == "B" for name in glob.glob(judged + "/*.json") for e in json.load(open(name))["traceEvents"])
assert slices == len(ours), (slices, len(ours))

counted = collections.Counter()
if version != 1:
    for name in glob.glob(judged + "/*.csv"):
        for row in csv.reader(open(name)):
            if row[0] != "funcid":
                counted[row[0]] += int(row[1])
    assert counted == ids, "account"
functions = collections.Counter()
for row in json.load(open(sys.argv[3]))["functions"]:
    functions[clean(row["function"])] += row["calls"]
entered = collections.Counter(clean(c["function"]) for c in ours)
assert functions == entered, (functions - entered, entered - functions)
print(f"version {version}: {len(calls)} calls of {len(ids)} functions, {events} events, {gaps} gaps")
EOF
}
