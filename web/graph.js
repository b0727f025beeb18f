// A puzzle drawn as threads of letters. Says what people do with it: begin at another letter, lead an arrow elsewhere.
class PuzzleGraph {
  // on: { start(letter), arrow(from, to) }
  constructor(box, on) {
    this.box = box;
    this.on = on;
    this.puzzle = null;
    this.focused = null; // the letter the keyboard is at
    this.svg = makeSvg("svg", { role: "group", tabindex: 0, "aria-label": "the puzzle: letters and arrows. Arrow keys move, " +
      "Enter begins the thread at a letter, typing a letter leads the arrow to it." });
    this.edgeLayer = makeSvg("g");
    this.nodeLayer = makeSvg("g");
    this.dragLine = makeSvg("path", { class: "dragging", hidden: "" });
    this.svg.append(this.edgeLayer, this.dragLine, this.nodeLayer);
    box.append(this.svg);
    this.svg.addEventListener("keydown", event => this.key(event));
    this.svg.addEventListener("pointermove", event => this.dragTo(event));
    this.svg.addEventListener("pointerup", event => this.drop(event));
    this.svg.addEventListener("pointercancel", () => this.drop(null));
    this.svg.addEventListener("focus", () => this.focusOn(this.focused || (this.puzzle && this.puzzle.start)));
    this.svg.addEventListener("blur", () => this.focusOn(null));
    if (window.ResizeObserver) new ResizeObserver(() => this.resized()).observe(box);
  }

  // keepPlaces: the letters stay where they are, so that a changed arrow is seen to change.
  set(puzzle, keepPlaces) {
    if (!keepPlaces || !this.chains) this.chains = puzzle.chains();
    this.puzzle = puzzle;
    this.focused = null;
    this.layout();
  }

  resized() {
    if (this.puzzle && Math.abs(this.box.clientWidth - this.width) > 2) this.layout();
  }

  // Threads run from left to right, in a narrow window downwards.
  layout() {
    this.width = this.box.clientWidth || 800;
    const down = this.width < 600, longest = Math.max(...this.chains.map(chain => chain.length)), n = this.chains.length;
    this.radius = down ? 15 : 18;
    const height = down ? longest * 50 + 30 : n * 96 + 10;
    this.at = new Map();
    this.chains.forEach((chain, row) => chain.forEach((letter, i) => {
      const along = (i + .5) / longest, wave = Math.sin(i * 1.15 + row * 2.1);
      const place = down ? [this.width * (row + .5) / n + wave * Math.min(26, this.width / n / 5), 15 + (height - 30) * along]
        : [this.width * along, (height - 10) * (row + .5) / n + 5 + wave * 17];
      this.at.set(letter, { x: place[0], y: place[1], row, i });
    }));
    this.down = down;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("width", this.width);
    this.svg.setAttribute("height", height);
    this.draw();
  }

  // From the rim of one letter to that of another; letters that are not neighbours are joined by a bow.
  line(from, to, gap = 0) {
    const dx = to.x - from.x, dy = to.y - from.y, far = Math.hypot(dx, dy) || 1, r = this.radius;
    const neighbours = from.row === to.row && Math.abs(from.i - to.i) === 1;
    const bend = neighbours ? .06 * far : Math.min(60, .22 * far);
    const cx = (from.x + to.x) / 2 - dy / far * bend, cy = (from.y + to.y) / 2 + dx / far * bend;
    const toward = (p, distance) => {
      const l = Math.hypot(cx - p.x, cy - p.y) || 1;
      return { x: p.x + (cx - p.x) / l * distance, y: p.y + (cy - p.y) / l * distance };
    };
    const a = toward(from, r), b = toward(to, r + 9 + gap), tip = toward(to, r + 2 + gap);
    return { path: `M${a.x} ${a.y}Q${cx} ${cy} ${b.x} ${b.y}`, b, tip };
  }

  draw() {
    this.edges = new Map();
    this.nodes = new Map();
    this.edgeLayer.replaceChildren();
    this.nodeLayer.replaceChildren();
    for (const pair of this.puzzle.pairs) {
      const from = this.at.get(pair[0]), to = this.at.get(pair[1]);
      if (from === to) continue;
      const { path, b, tip } = this.line(from, to), side = { x: (tip.y - b.y) * .6, y: (b.x - tip.x) * .6 };
      const group = makeSvg("g", { class: "edge" });
      const line = makeSvg("path", { class: "line", d: path }), glow = makeSvg("path", { class: "glow", d: path });
      const head = makeSvg("path", { class: "head",
        d: `M${tip.x} ${tip.y}L${b.x + side.x} ${b.y + side.y}L${b.x - side.x} ${b.y - side.y}Z` });
      const handle = makeSvg("circle", { class: "handle", cx: b.x, cy: b.y, r: 13 });
      handle.append(makeSvg("title"));
      handle.firstChild.textContent = `${pair[0]} \u2192 ${pair[1]}: drag the arrow to another letter`;
      handle.addEventListener("pointerdown", event => this.drag(event, pair[0]));
      group.append(glow, line, head, handle);
      this.edgeLayer.append(group);
      this.edges.set(pair[0], { group, line, glow });
    }
    for (const [letter, { x, y }] of this.at) {
      const isEnd = this.puzzle.next.get(letter) === letter;
      const group = makeSvg("g", { class: "node" + (isEnd ? " end" : ""), transform: `translate(${x} ${y})` });
      group.append(makeSvg("circle", { class: "ring", r: this.radius + 4 }), makeSvg("circle", { class: "disc", r: this.radius }),
        makeSvg("text", { dy: ".36em" }), makeSvg("title"));
      group.children[2].textContent = letter;
      group.children[3].textContent = isEnd ? `${letter}: a thread ends here` : `begin at ${letter}`;
      group.addEventListener("click", () => isEnd || this.on.start(letter));
      this.nodeLayer.append(group);
      this.nodes.set(letter, group);
    }
    this.paint(this.painted || {});
  }

  // held: the letter in the memory; seen: those before it; attention: a number from 0 to 1 for each letter's arrow;
  // answer: the letter that was written; isRight: of that
  paint(state) {
    this.painted = state;
    const seen = new Set(state.seen || []);
    for (const [letter, node] of this.nodes) {
      const on = (name, value) => node.classList.toggle(name, !!value);
      on("start", letter === this.puzzle.start);
      on("seen", seen.has(letter));
      on("held", letter === state.held);
      on("right", letter === state.answer && state.isRight);
      on("wrong", letter === state.answer && !state.isRight);
      on("focused", letter === this.focused);
    }
    for (const [from, edge] of this.edges) {
      const weight = state.attention ? state.attention.get(from) || 0 : 0;
      edge.glow.style.strokeWidth = (weight < .02 ? 0 : 3 + 15 * weight) + "px";
      edge.group.classList.toggle("seen", seen.has(from) && (seen.has(this.puzzle.next.get(from)) || state.held === this.puzzle.next.get(from)));
    }
  }

  // --- the pointer --------------------------------------------------------------------------------------------------

  point(event) {
    const box = this.svg.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }
  drag(event, from) {
    event.preventDefault();
    this.dragged = from;
    this.svg.setPointerCapture(event.pointerId);
    this.edges.get(from).group.classList.add("lifted");
    this.dragLine.removeAttribute("hidden");
    this.dragTo(event);
  }
  nearest(point) {
    for (const [letter, { x, y }] of this.at) if (Math.hypot(point.x - x, point.y - y) < this.radius + 14) return letter;
    return null;
  }
  dragTo(event) {
    if (!this.dragged) return;
    const point = this.point(event), from = this.at.get(this.dragged), over = this.nearest(point);
    this.dragLine.setAttribute("d", `M${from.x} ${from.y}L${point.x} ${point.y}`);
    for (const [letter, node] of this.nodes) {
      node.classList.toggle("target", letter === over && !!this.puzzle.withArrow(this.dragged, letter));
    }
  }
  drop(event) {
    if (!this.dragged) return;
    const from = this.dragged, over = event && this.nearest(this.point(event));
    this.dragged = null;
    this.dragLine.setAttribute("hidden", "");
    this.edges.get(from).group.classList.remove("lifted");
    for (const node of this.nodes.values()) node.classList.remove("target");
    if (over && over !== this.puzzle.next.get(from)) this.on.arrow(from, over);
  }

  // --- the keyboard -------------------------------------------------------------------------------------------------

  focusOn(letter) {
    this.focused = letter;
    this.paint(this.painted || {});
  }
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.puzzle) return;
    const moves = this.down ? { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }
      : { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const here = this.focused || this.puzzle.start;
    if (moves[event.key]) {
      const { row, i } = this.at.get(here), chain = this.chains[row + moves[event.key][1]];
      if (chain) this.focusOn(chain[Math.max(0, Math.min(chain.length - 1, i + moves[event.key][0]))]);
    } else if (event.key === "Enter") {
      if (this.puzzle.next.get(here) !== here) this.on.start(here);
    } else if (/^[A-Za-z]$/.test(event.key) && this.at.has(event.key)) {
      this.on.arrow(here, event.key);
      this.focusOn(here);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
