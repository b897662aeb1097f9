// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The timeline: what each thread did when. Of what is narrower than a pixel, one span is drawn.

const AXIS_HEIGHT = 24, OVERVIEW_HEIGHT = 22, HEAD_HEIGHT = 20, LANE_HEIGHT = 14, ROW_HEIGHT = 17;
const TOP = AXIS_HEIGHT + OVERVIEW_HEIGHT;

class Timeline extends Chart {
	constructor(report) {
		super(report, byId("timeline-stage"), 20);
		this.tracks = this.model.tracks.filter((track) => track.n > 0);
		this.tracks.forEach((track, i) => {
			track.isFolded = i >= 30;
		});
		this.extent.end = this.model.end;
		this.extent.least = Math.min(20, this.model.end);
		this.extent.all();
		byId("timeline-fold").addEventListener("click", () => this.foldAll());
	}
	moved() {
		super.moved();
		this.report.tellExtent(this.extent);
	}
	foldAll() {
		const isFolded = this.tracks.some((track) => !track.isFolded);
		for (const track of this.tracks)
			track.isFolded = isFolded;
		this.surface.ask();
	}
	heightOf(track) {
		return HEAD_HEIGHT + LANE_HEIGHT + (track.isFolded ? 0 : track.calls.length * ROW_HEIGHT) + 6;
	}
	// Where each track stands, below the top of the first.
	*places() {
		let y = 0;
		for (const track of this.tracks) {
			const height = this.heightOf(track);
			yield { track, y, height };
			y += height;
		}
	}
	draw(context) {
		const { width, height } = this.surface, colours = this.report.colours;
		context.fillStyle = colours.surface;
		context.fillRect(0, 0, width, height);
		context.font = FONT;
		context.textBaseline = "middle";
		const scroll = this.stage.scrollTop - TOP;
		let bottom = 0;
		for (const { track, y, height: size } of this.places()) {
			if (y + size > scroll && y - scroll < height)
				this.drawTrack(context, track, y - scroll, size);
			bottom = y + size;
		}
		this.setHeight(bottom + TOP + 8);
		this.drawMarks(context);
		this.drawTop(context);
	}
	drawTrack(context, track, y, height) {
		const colours = this.report.colours, width = this.surface.width;
		context.fillStyle = colours.raised;
		context.fillRect(0, y, width, HEAD_HEIGHT - 2);
		if (track.gap)
			this.drawGaps(context, track.gap, y + HEAD_HEIGHT, height - HEAD_HEIGHT - 6);
		if (track.run)
			this.drawRow(context, track.run, y + HEAD_HEIGHT, 4, (i) => colours.ofCpu(track.run.value[i]), false);
		if (!track.isFolded)
			track.calls.forEach((row, i) => {
				const top = y + HEAD_HEIGHT + LANE_HEIGHT + i * ROW_HEIGHT;
				if (top > TOP - ROW_HEIGHT && top < this.surface.height)
					this.drawRow(context, row, top, ROW_HEIGHT - 1, (k) => this.colourOf(row, k), true);
			});
		for (const row of [track.mark, track.signal])
			if (row)
				this.drawPoints(context, row, y + HEAD_HEIGHT + 5);
		context.fillStyle = colours.text;
		context.fillText(`${track.isFolded ? "▸" : "▾"} ${this.model.trackName(track)}`, 8, y + HEAD_HEIGHT / 2 - 1);
	}
	colourOf(row, i) {
		const colours = this.report.colours, value = row.value[i];
		if (row.kind === KIND.noted)
			return this.isSearching ? colours.dim : colours.ofName(this.model.spanName(row, i));
		if (this.isFound(value))
			return colours.match;
		return this.isSearching ? colours.dim : colours.of(this.model.functionOf(value));
	}
	// @visit each span that is to be drawn, with its place; of those within one pixel, the first.
	visit(row, visit) {
		const { width } = this.surface, { from, to, size } = this.extent;
		for (let i = row.firstEndingAt(from); i < row.n && row.t[i] <= to;) {
			const left = Math.max(this.xOf(row.t[i]), -1), right = Math.min(this.xOf(row.end(i)), width + 1);
			const isNarrow = right - left < 1;
			visit(i, left, isNarrow ? 1 : right - left);
			i = isNarrow ? Math.max(row.firstEndingAt(from + ((Math.floor(left) + 1) / width) * size, i), i + 1) : i + 1;
		}
	}
	drawRow(context, row, y, height, colourOf, hasText) {
		const colours = this.report.colours;
		this.visit(row, (i, x, width) => {
			const space = width > 3 ? 1 : 0;
			context.fillStyle = colourOf(i);
			context.fillRect(x, y, width - space, height);
			if (row.count[i] > 1 && hasText) {
				context.fillStyle = colours.surface;
				context.fillRect(x, y + height - 3, width - space, 1);
			}
			if (this.selected && this.selected.row === row && this.selected.i === i) {
				context.strokeStyle = colours.accent;
				context.lineWidth = 2;
				context.strokeRect(x + 1, y + 1, Math.max(width - space - 2, 1), height - 2);
			}
			const text = hasText && width > 28 ? fitText(this.labelOf(row, i), width - 8) : "";
			if (text) {
				context.fillStyle = this.isSearching && !(row.kind === KIND.call && this.isFound(row.value[i])) ? colours.text : colours.boxText;
				context.fillText(text, Math.max(x, 0) + 4, y + height / 2 + 0.5);
			}
		});
	}
	labelOf(row, i) {
		return row.count[i] === 1 ? this.model.spanName(row, i) : `${formatCount(row.count[i])} × ${this.model.spanName(row, i)}`;
	}
	drawGaps(context, row, y, height) {
		const colours = this.report.colours;
		this.visit(row, (i, x, width) => {
			context.fillStyle = colours.gap;
			context.fillRect(x, y, width, height);
			const text = width > 40 ? fitText(this.model.spanName(row, i), width - 8) : "";
			if (text) {
				context.fillStyle = colours.gapText;
				context.fillText(text, Math.max(x, 0) + 4, y + 9);
			}
		});
	}
	drawPoints(context, row, y) {
		const colours = this.report.colours, isSignal = row.kind === KIND.signal;
		const size = isSignal ? 4 : 2.5;
		let end = -Infinity;
		this.visit(row, (i, x) => {
			context.fillStyle = isSignal ? colours.signal : colours.muted;
			context.beginPath();
			context.moveTo(x, y + 8);
			context.lineTo(x - size, y);
			context.lineTo(x + size, y);
			context.fill();
			const text = this.labelOf(row, i);
			if (isSignal && x > end) {
				context.fillText(text, x + 7, y + 4);
				end = x + 12 + text.length * CHARACTER;
			}
		});
	}
	// Texts of times that lie close together stand one above the other.
	drawMarks(context) {
		const colours = this.report.colours;
		this.model.moments().forEach(([t, text], i) => {
			const x = Math.min(this.xOf(t), this.surface.width - 1), bottom = this.surface.height - 20 * i;
			if (x < 0 || this.xOf(t) > this.surface.width + 1)
				return;
			const width = text.length * CHARACTER + 10, left = x + width > this.surface.width ? x - width : x;
			context.fillStyle = colours.accent;
			context.fillRect(x - 1, TOP, 2, this.surface.height);
			context.fillRect(left, bottom - 18, width, 18);
			context.fillStyle = colours.surface;
			context.fillText(text, left + 5, bottom - 9);
		});
		if (!this.measured)
			return;
		const [from, to] = this.measured.map((t) => this.xOf(t));
		context.globalAlpha = 0.15;
		context.fillStyle = colours.accent;
		context.fillRect(from, TOP, to - from, this.surface.height);
		context.globalAlpha = 1;
		context.fillText(this.model.formatDuration(this.measured[1] - this.measured[0]), from + 4, TOP + 10);
	}
	// For each pixel of the whole trace how deep the deepest stack is, from 0 to 1.
	depths(width) {
		if (this.depthsMade?.length === Math.ceil(width))
			return this.depthsMade;
		const depths = new Float32Array(Math.ceil(width)), scale = width / this.extent.end;
		let deepest = 1;
		for (const track of this.tracks)
			track.calls.forEach((row, number) => {
				deepest = Math.max(deepest, number + 1);
				for (let i = 0; i < row.n; i++) {
					const last = Math.min(row.end(i) * scale, depths.length - 1);
					for (let x = Math.floor(row.t[i] * scale); x <= last; x++)
						depths[x] = Math.max(depths[x], number + 1);
				}
			});
		return (this.depthsMade = depths.map((depth) => depth / deepest));
	}
	// The whole trace, with what of it is shown, and the times of that.
	drawTop(context) {
		const colours = this.report.colours, width = this.surface.width, { end, from, to } = this.extent;
		context.fillStyle = colours.surface;
		context.fillRect(0, 0, width, TOP);
		const scale = width / end;
		context.fillStyle = colours.muted;
		context.globalAlpha = 0.55;
		this.depths(width).forEach((depth, x) => {
			context.fillRect(x, (OVERVIEW_HEIGHT - 2) * (1 - depth), 1, (OVERVIEW_HEIGHT - 2) * depth);
		});
		context.fillStyle = colours.accent;
		context.globalAlpha = 0.2;
		context.fillRect(from * scale, 0, Math.max((to - from) * scale, 2), OVERVIEW_HEIGHT);
		context.globalAlpha = 1;
		context.fillRect(from * scale, OVERVIEW_HEIGHT - 2, Math.max((to - from) * scale, 2), 2);
		context.fillStyle = colours.line;
		context.fillRect(0, TOP - 1, width, 1);
		this.drawAxis(context);
	}
	drawAxis(context) {
		const colours = this.report.colours, { from, to, size } = this.extent;
		const raw = (size / this.surface.width) * 110, power = 10 ** Math.floor(Math.log10(raw));
		const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
		for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
			const x = this.xOf(t);
			context.fillStyle = colours.line;
			context.fillRect(x, OVERVIEW_HEIGHT + 14, 1, AXIS_HEIGHT - 14);
			context.fillStyle = colours.muted;
			context.fillText(this.model.data.clock === "ns" ? formatNs(t) : formatCount(t), x + 4, OVERVIEW_HEIGHT + 13);
		}
	}
	// What is at the pointer: a track's head, or a span.
	hit(event) {
		const near = (3 / this.surface.width) * this.extent.size, t = this.valueAt(event);
		if (event.offsetY < TOP)
			return null;
		const at = event.offsetY + this.stage.scrollTop - TOP;
		for (const { track, y, height } of this.places()) {
			const inside = at - y;
			if (inside < 0 || inside >= height)
				continue;
			if (inside < HEAD_HEIGHT)
				return { track };
			const row = track.calls[Math.floor((inside - HEAD_HEIGHT - LANE_HEIGHT) / ROW_HEIGHT)];
			const others = [track.signal, track.mark, track.gap, track.run];
			for (const found of inside < HEAD_HEIGHT + LANE_HEIGHT ? others : [row, track.gap]) {
				const i = found ? found.at(t, found.kind === KIND.gap || found.kind === KIND.run ? 0 : near) : -1;
				if (i >= 0)
					return { track, row: found, i };
			}
		}
		return null;
	}
	rowsOf({ track, row, i }) {
		const model = this.model, count = row.count[i], rows = [["Thread", model.trackName(track)]];
		rows.push(["Begins", model.exactTime(row.t[i])]);
		if (row.duration[i] > 0)
			rows.push(["Lasts", model.formatDuration(row.duration[i])]);
		if (count > 1)
			rows.push([row.isMixed[i] ? "Stands for" : "Times", `${formatCount(count)}${row.isMixed[i] ? ", of several kinds" : ""}`],
				["Together", model.formatDuration(row.busy[i])]);
		if (row.kind === KIND.call && model.hasTime)
			rows.push(["Instructions", formatCount(row.insns[i])]);
		const f = row.kind === KIND.call ? model.functionOf(row.value[i]) : null;
		if (f)
			rows.push(["Object", f.object], ["Address", f.address]);
		return rows;
	}
	hover(event) {
		const hit = this.hit(event);
		this.canvas.style.cursor = hit ? "pointer" : "default";
		if (hit?.row)
			this.report.card.show(event, this.model.spanName(hit.row, hit.i), this.rowsOf(hit));
		else
			this.report.card.hide();
	}
	press(event) {
		super.press(event);
		if (event.offsetY < OVERVIEW_HEIGHT)
			this.overview(event);
	}
	overview(event) {
		const middle = (event.offsetX / this.surface.width) * this.extent.end, half = this.extent.size / 2;
		this.extent.show(middle - half, middle + half);
	}
	dragged(event) {
		if (this.drag.y < OVERVIEW_HEIGHT) {
			this.overview(event);
			return true;
		}
		if (!event.shiftKey)
			return false;
		this.measured = [this.drag.at, this.valueAt(event)].sort((a, b) => a - b);
		this.report.details.say(`${this.model.formatDuration(this.measured[1] - this.measured[0])} measured; f zooms to it`);
		this.surface.ask();
		return true;
	}
	select(hit) {
		if (hit && !hit.row) {
			hit.track.isFolded = !hit.track.isFolded;
			this.surface.ask();
			return;
		}
		this.selected = hit;
		this.measured = null;
		this.surface.ask();
		if (!hit)
			return;
		const f = hit.row.kind === KIND.call ? this.model.functionOf(hit.row.value[hit.i]) : null;
		this.report.details.show(this.model.spanName(hit.row, hit.i), this.rowsOf(hit), f, [["Zoom", () => this.zoomTo(hit)]]);
	}
	zoomTo(hit) {
		if (this.measured) {
			this.extent.show(...this.measured);
			this.measured = null;
			return;
		}
		if (!hit?.row)
			return;
		const { row, i } = hit, margin = row.duration[i] * 0.1 + 5;
		this.extent.show(row.t[i] - margin, row.end(i) + margin);
		this.select(hit);
	}
	// Go to a time on a track: to the call of the function there, if it is shown call by call.
	goTo(track, t, duration, f) {
		track.isFolded = false;
		for (const row of track.calls) {
			const i = row.covering(t, t + duration, f.i + 1);
			if (i >= 0) {
				this.select({ track, row, i });
				this.scrollTo(track, row);
			}
		}
		this.extent.show(t - duration * 0.2, t + duration * 1.2);
	}
	scrollTo(track, row) {
		for (const { track: other, y } of this.places())
			if (other === track) {
				const top = y + HEAD_HEIGHT + LANE_HEIGHT + row.number * ROW_HEIGHT, { scrollTop, clientHeight } = this.stage;
				if (top < scrollTop || top > scrollTop + clientHeight - TOP - 2 * ROW_HEIGHT)
					this.stage.scrollTop = top - (clientHeight - TOP) / 2;
			}
	}
	// The first span that is shown, or the one beside the selected one.
	neighbour(by, rowsDown) {
		const from = this.selected;
		if (!from) {
			const track = this.tracks.find((one) => one.calls.length > 0), row = track?.calls[0];
			const i = row ? Math.min(row.firstEndingAt(this.extent.from), row.n - 1) : -1;
			return i >= 0 ? { track, row, i } : null;
		}
		if (rowsDown === 0)
			return { ...from, i: Math.min(Math.max(from.i + by, 0), from.row.n - 1) };
		const row = from.track.calls[from.row.number + rowsDown];
		const i = row ? row.firstEndingAt(Math.max(from.row.t[from.i], rowsDown > 0 ? this.extent.from : 0)) : -1;
		return i >= 0 && i < row.n && row.t[i] <= from.row.end(from.i) ? { track: from.track, row, i } : from;
	}
	step(by, rowsDown) {
		const next = this.neighbour(by, rowsDown);
		if (!next)
			return;
		this.select(next);
		this.scrollTo(next.track, next.row);
		const t = next.row.t[next.i];
		if (next.row.end(next.i) < this.extent.from || t > this.extent.to)
			this.extent.show(t - this.extent.size / 2, t + this.extent.size / 2);
	}
	key(event) {
		if (event.key === "ArrowLeft" || event.key === "ArrowRight")
			this.extent.pan(event.key === "ArrowLeft" ? -0.2 : 0.2);
		else if (event.key === "ArrowUp" || event.key === "ArrowDown")
			this.stage.scrollTop += event.key === "ArrowUp" ? -60 : 60;
		else if (event.key === "[" || event.key === "]")
			this.step(event.key === "[" ? -1 : 1, 0);
		else if (event.key === "{" || event.key === "}")
			this.step(0, event.key === "{" ? -1 : 1);
		else
			return super.key(event);
		return true;
	}
}
