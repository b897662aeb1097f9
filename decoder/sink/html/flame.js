// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The flame graph: a box for each function below each sequence of callers, as wide as what it cost.

const BOX_HEIGHT = 18;

class Flame extends Chart {
	constructor(report) {
		super(report, byId("flame-stage"), 1e-9);
		this.threadPicker = byId("flame-thread");
		this.thread = -1;
		this.boxes = [];
		this.threadPicker.addEventListener("change", () => this.open(Number(this.threadPicker.value)));
	}
	// The page is shown for the first time.
	begin() {
		if (this.root)
			return;
		const options = this.model.threads.map((root, i) => element("option", { value: i }, this.model.threadName(root.thread)));
		this.threadPicker.append(element("option", { value: -1 }, `all (${options.length}), merged`), ...options);
		this.open(-1);
	}
	open(thread) {
		const metric = this.report.metric;
		this.thread = thread;
		this.root = this.model.flame(thread, metric);
		this.selected = null;
		this.place(metric);
		this.extent.end = Math.max(this.root.cost(metric), 1);
		this.extent.least = Math.min(this.extent.end, 10);
		this.extent.all();
		this.tellFound();
	}
	setMetric() {
		if (this.root)
			this.open(this.thread);
	}
	// Each node begins where the one before it, of the same caller, ends.
	place(metric) {
		const work = [this.root];
		this.root.x = 0;
		this.depth = 0;
		while (work.length > 0) {
			const node = work.pop();
			let x = node.x;
			this.depth = Math.max(this.depth, node.depth);
			for (const child of node.children) {
				child.x = x;
				x += child.cost(metric);
				work.push(child);
			}
		}
	}
	nameOf(node) {
		if (node.f >= 0)
			return this.model.nameOf(node.f);
		return node.thread ? this.model.threadName(node.thread) : "all threads";
	}
	draw(context) {
		const { width, height } = this.surface, metric = this.report.metric, colours = this.report.colours;
		context.fillStyle = colours.surface;
		context.fillRect(0, 0, width, height);
		if (!this.root)
			return;
		this.setHeight((this.depth + 1) * BOX_HEIGHT + 8);
		context.font = FONT;
		context.textBaseline = "middle";
		this.boxes = [];
		const scroll = this.stage.scrollTop, work = [this.root];
		while (work.length > 0) {
			const node = work.pop();
			const y = node.depth * BOX_HEIGHT - scroll;
			const left = Math.max(this.xOf(node.x), 0), right = Math.min(this.xOf(node.x + node.cost(metric)), width);
			if (right <= 0 || left >= width || y > height)
				continue;
			if (y > -BOX_HEIGHT)
				this.drawBox(context, node, left, y, Math.max(right - left, 0.5));
			// What is less than half a pixel wide has nothing to show below it.
			for (const child of node.children) {
				if (this.xOf(child.x) > width)
					break;
				if ((child.cost(metric) / this.extent.size) * width < 0.5)
					break;
				work.push(child);
			}
		}
	}
	drawBox(context, node, x, y, width) {
		const colours = this.report.colours, f = this.model.functionOf(node.f);
		const isDim = this.isSearching && !this.isFound(node.f);
		const gap = width > 3 ? 1 : 0;
		context.fillStyle = node.f < 0 ? colours.raised : isDim ? colours.dim : colours.of(f);
		if (this.isFound(node.f))
			context.fillStyle = colours.match;
		context.fillRect(x, y, width - gap, BOX_HEIGHT - 1);
		if (node === this.selected) {
			context.strokeStyle = colours.accent;
			context.lineWidth = 2;
			context.strokeRect(x + 1, y + 1, Math.max(width - gap - 2, 1), BOX_HEIGHT - 3);
		}
		const text = width > 28 ? fitText(this.nameOf(node), width - 8) : "";
		if (text) {
			context.fillStyle = isDim || node.f < 0 ? colours.text : colours.boxText;
			context.fillText(text, x + 4, y + BOX_HEIGHT / 2);
		}
		this.boxes.push({ node, x, y, width });
	}
	hit(event) {
		const box = this.boxes.find((b) => event.offsetX >= b.x && event.offsetX <= b.x + b.width &&
			event.offsetY >= b.y && event.offsetY < b.y + BOX_HEIGHT);
		return box ? box.node : null;
	}
	rowsOf(node) {
		const model = this.model, rows = [], f = model.functionOf(node.f);
		for (const metric of model.metrics) {
			const whole = this.root.cost(metric), key = metric === "time" ? "Time" : "Instructions";
			rows.push([key, `${model.formatCost(node.cost(metric), metric)} (${formatShare(node.cost(metric), whole)})`]);
			rows.push(["– of its own", model.formatCost(node.self(metric), metric)]);
		}
		if (node.f >= 0)
			rows.push(["Calls", formatCount(node.calls)]);
		if (f)
			rows.push(["Object", f.object], ["Address", f.address]);
		if (node.tBelow > 0 || node.iBelow > 0)
			rows.push(["In callees that are left out", model.formatCost(model.hasTime ? node.tBelow : node.iBelow,
				model.metrics[0])]);
		return rows;
	}
	hover(event) {
		const node = this.hit(event);
		this.canvas.style.cursor = node ? "pointer" : "default";
		if (node)
			this.report.card.show(event, this.nameOf(node), this.rowsOf(node));
		else
			this.report.card.hide();
	}
	select(node) {
		this.selected = node;
		this.surface.ask();
		if (!node)
			return;
		const top = node.depth * BOX_HEIGHT;
		if (top < this.stage.scrollTop || top + BOX_HEIGHT > this.stage.scrollTop + this.stage.clientHeight)
			this.stage.scrollTop = Math.max(top - this.stage.clientHeight / 2, 0);
		this.report.details.show(this.nameOf(node), this.rowsOf(node), this.model.functionOf(node.f),
			[["Zoom", () => this.zoomTo(node)]]);
	}
	zoomTo(node) {
		if (node)
			this.extent.show(node.x, node.x + node.cost(this.report.metric));
		this.select(node);
	}
	// The node of a function that costs most.
	selectFunction(f) {
		this.begin();
		const metric = this.report.metric, work = [this.root];
		let found = null;
		while (work.length > 0) {
			const node = work.pop();
			if (node.f === f.i + 1 && (!found || node.cost(metric) > found.cost(metric)))
				found = node;
			work.push(...node.children);
		}
		this.zoomTo(found);
	}
	search(found, isSearching) {
		super.search(found, isSearching);
		this.tellFound();
	}
	tellFound() {
		const metric = this.report.metric;
		byId("flame-found").textContent = this.isSearching && this.root
			? `found: ${formatShare(this.model.matchedCost(this.root, this.found, metric), this.root.cost(metric))} of all` : "";
	}
	sibling(by) {
		const all = this.selected.parent?.children ?? [];
		return all[all.indexOf(this.selected) + by] ?? this.selected;
	}
	key(event) {
		const selected = this.selected;
		if (event.key.startsWith("Arrow") && !selected)
			this.select(this.root);
		else if (event.key === "ArrowDown")
			this.select(selected.children[0] ?? selected);
		else if (event.key === "ArrowUp")
			this.select(selected.parent ?? selected);
		else if (event.key === "ArrowLeft")
			this.select(this.sibling(-1));
		else if (event.key === "ArrowRight")
			this.select(this.sibling(1));
		else
			return super.key(event);
		return true;
	}
}
