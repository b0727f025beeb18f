// What a model does before its answer, drawn in the chat: latent steps as a table, a written chain of thought as text.

// A row for every memory and readout vector, a column for every step.
class Mind {
  constructor(box) {
    this.box = box;
    this.rows = [];
    this.last = null;
  }
  build(step) {
    const table = make("table");
    this.head = table.insertRow();
    this.head.append(make("th", "", ""));
    const add = (letter, count) => {
      for (let i = 0; i < count; i++) {
        const row = table.insertRow();
        row.append(make("th", "", letter + (i + 1)));
        this.rows.push({ row, part: letter === "m" ? "memory" : "readout", index: i });
      }
    };
    this.says = table.insertRow();
    this.says.append(make("th", "", "step"));
    this.says.hidden = true;
    add("m", step.memory.norm.length);
    add("r", step.readout.norm.length);
    this.box.append(table, make("p", "", "step: what the step says; m: memory; r: readout. Colour: distance moved; underline: the word changed."));
  }
  add(step) {
    if (!this.rows.length) this.build(step);
    this.head.append(make("th", "", step.t === 0 ? "start" : String(step.t)));
    // What the layers make of the first memory row is what a step is taught to say.
    const said = step.features ? step.features.top[0] : null;
    this.says.hidden = this.says.hidden && !said;
    const word = make("td", "new says", said ? show(said[0].text) : "");
    if (said) word.title = said.map(one => show(one.text) + "  " + one.logit.toFixed(2)).join("\n");
    this.says.append(word);
    for (const { row, part, index } of this.rows) {
      const here = step[part], best = here.top[index];
      const cell = make("td", "new", show(best[0].text));
      let far = 0;
      if (this.last) {
        far = moved(here.norm[index], this.last[part].norm[index], here.cosine[index]);
        if (this.last[part].top[index][0].token !== best[0].token) cell.style.borderBottomColor = "rgb(var(--cell))";
      }
      cell.style.background = "rgba(var(--cell), " + Math.min(.75, .08 + far * .9).toFixed(3) + ")";
      cell.title = best.map(one => show(one.text) + "  " + one.logit.toFixed(2)).join("\n") + "\nnorm " + here.norm[index].toFixed(2) +
        (this.last ? "\nmoved " + far.toFixed(3) + ", cosine " + here.cosine[index].toFixed(3) : "");
      row.append(cell);
    }
    this.last = step;
    this.box.scrollLeft = this.box.scrollWidth;
  }
}

// A chain of thought that is written out, above the answer: open until the answer begins.
class Thoughts {
  constructor(box) {
    this.box = make("details", "thoughts");
    this.body = make("div");
    this.box.append(make("summary", "", "thoughts"), this.body);
    this.box.hidden = true;
    this.box.open = true;
    this.text = "";
    box.append(this.box);
  }
  add(piece) {
    this.text += piece;
    this.body.textContent = this.text;
    this.box.hidden = false;
  }
}
