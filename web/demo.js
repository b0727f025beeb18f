// The demo: one puzzle, thought through before your eyes, with other ways to answer it beside it. For models of the thread
// task whose letters are tokens; hidden for all others.
const demo = {
  puzzle: null,
  steps: [],    // of the last answer, as the back end reports them
  lanes: {},    // answers by name
  at: 0,        // shown: 0 is the start, steps.length the answer
  timer: null,
  round: 0,     // of asking; answers to an earlier question are dropped
};
const kStepMs = 1100;
const reducedMotion = window.matchMedia && matchMedia("(prefers-reduced-motion: reduce)").matches;

function demoFits(props) {
  return props.task === "thread" && props.latent_steps.max > 0 && props.model.meta.n_vocab < 300;
}

const laneTexts = {
  latent: ["latent steps", "thinks in its memory, then writes the answer"],
  zero: ["no steps", "the same model, told to answer at once (K = 0)"],
  control: ["control", "trained just as long, but never with latent steps"],
  visible: ["visible steps", "writes every arrow it follows, token by token"],
};

function startDemo() {
  $("demo").hidden = false;
  document.body.classList.add("with-demo");
  demo.graph = new PuzzleGraph($("graph"), {
    start: letter => setPuzzle(demo.puzzle.withStart(letter), true),
    arrow: (from, to) => {
      const changed = demo.puzzle.withArrow(from, to);
      if (changed) setPuzzle(changed, true);
      else caption(`${from} \u2192 ${to} would make a circle without an end. Choose another letter.`);
    },
  });
  for (const [name, [title, about]] of Object.entries(laneTexts)) {
    const lane = make("div", "lane");
    lane.id = "lane-" + name;
    lane.append(make("h3", "", title), make("p", "about", about), make("p", "letter"), make("p", "cost"), make("div", "bar-of"), make("p", "written"));
    lane.querySelector(".bar-of").append(make("i"));
    lane.hidden = name === "control" && !backend.askControl || name === "visible" && !backend.askVisible;
    $("lanes").append(lane);
  }
  const hash = new URLSearchParams(location.hash.slice(1));
  if (hash.get("K") !== null) setSteps(hash.get("K"));
  setPuzzle(Puzzle.parse(hash.get("q") || "") || Puzzle.parse(examples.thread), false);
}

function setPuzzle(puzzle, keepPlaces) {
  demo.puzzle = puzzle;
  demo.graph.set(puzzle, keepPlaces);
  $("puzzleText").value = puzzle.text;
  $("puzzleText").setCustomValidity("");
  drawLetters();
  askDemo(true);
}

// Everything is asked again when the puzzle changed, the latent answer alone when K did.
async function askDemo(isNew) {
  const round = ++demo.round, k = +$("steps").value;
  pause();
  try {
    history.replaceState(null, "", "#q=" + encodeURIComponent(demo.puzzle.text).replace(/%20/g, "+") + "&K=" + k);
  } catch { /* some hosts forbid it */ }
  const ask = async (name, request, how) => {
    const lane = { steps: [], text: "", name };
    const whole = Object.assign({ model: props.model.id, messages: [{ role: "user", content: demo.puzzle.text }], temperature: 0, stream: true }, request);
    for await (const event of how(whole, undefined)) {
      if (round !== demo.round) return false;
      if (event.error) throw new Error(event.error.message);
      if (event.latent_step) lane.steps.push(event.latent_step);
      const choice = event.choices && event.choices[0];
      if (choice && choice.delta && choice.delta.content) lane.text += choice.delta.content;
      if (choice && choice.finish_reason) Object.assign(lane, event.timings);
    }
    if (round !== demo.round) return false;
    demo.lanes[name] = lane;
    drawLane(name);
    return true;
  };
  try {
    if (!await ask("latent", { latent_steps: k, latent_attention: true }, backend.ask)) return;
    demo.steps = demo.lanes.latent.steps;
    drawTimeline();
    showStep(isNew || demo.at > demo.steps.length ? 0 : demo.at);
    if (!reducedMotion) play();
    else showStep(demo.steps.length);
    if (isNew) {
      if (!await ask("zero", { latent_steps: 0 }, backend.ask)) return;
      if (backend.askControl && !await ask("control", { latent_steps: 0 }, backend.askControl)) return;
      if (backend.askVisible) await ask("visible", { latent_steps: 0, max_tokens: 64 }, backend.askVisible);
    }
  } catch (error) {
    if (round === demo.round) caption(error.message);
  }
  if (round === demo.round) $("demo").dataset.done = String(round);
}

// --- what is shown ------------------------------------------------------------------------------------------------

function caption(text) { $("caption").textContent = text; }

// The letters the model reads, so that they can be coloured by attention.
function drawLetters() {
  const box = $("letters");
  box.replaceChildren();
  demo.letters = [];
  demo.puzzle.text.split(" ").forEach((word, i) => {
    const pair = make("span", "pair" + (word[0] === "?" ? " asked" : ""));
    for (const letter of word) {
      demo.letters.push(make("span", "", letter));
      pair.append(demo.letters[demo.letters.length - 1]);
    }
    demo.letters.push(null); // the space behind it
    box.append(pair, " ");
  });
}

// The attention of the first memory row in the first layer of a step, averaged over the heads: one number a position of
// the prompt. Position 0 is the beginning-of-text token, so letter i of the text is at i + 1.
function attentionOf(step) {
  if (!step || !step.attention) return null;
  const heads = step.attention[0].heads;
  return heads[0][0].map((_, position) => heads.reduce((sum, rows) => sum + rows[0][position], 0) / heads.length);
}

function showStep(at) {
  demo.at = Math.max(0, Math.min(demo.steps.length, at));
  const step = demo.steps[demo.at], isAnswer = !step, before = demo.steps.slice(1, demo.at + 1);
  const saidBy = s => s.features.top[0][0].text;
  const held = isAnswer ? null : demo.at === 0 ? demo.puzzle.start : saidBy(step);
  const seen = [demo.puzzle.start, ...before.slice(0, isAnswer ? undefined : -1).map(saidBy)];
  const weights = attentionOf(step), attention = new Map();
  demo.letters.forEach((node, i) => {
    if (node) node.style.setProperty("--look", weights ? Math.min(1, weights[i + 1]).toFixed(3) : "0");
  });
  if (weights) demo.puzzle.pairs.forEach((pair, i) => attention.set(pair[0], Math.min(1, weights[3 * i + 1] + weights[3 * i + 2])));
  const lane = demo.lanes.latent, answer = isAnswer ? lane.text.trim() : null;
  demo.graph.paint({ held, seen: demo.at === 0 ? [] : seen, attention, answer, isRight: answer === demo.puzzle.answer });
  [...$("timeline").children].forEach((dot, i) => {
    dot.classList.toggle("past", i < demo.at);
    dot.setAttribute("aria-current", i === demo.at ? "step" : "false");
  });
  drawInside(step || demo.steps[demo.steps.length - 1], demo.steps[(isAnswer ? demo.at - 1 : demo.at) - 1]);
  caption(describe(step, attention, answer));
  $("back").disabled = demo.at === 0;
  $("forward").disabled = isAnswer;
}

function describe(step, attention, answer) {
  const k = demo.steps.length - 1, { start, depth } = demo.puzzle;
  if (!step) {
    const needed = Math.max(0, depth - 1), right = answer === demo.puzzle.answer;
    return `The answer is written from the memory: ${answer || "nothing"}. ` + (right ? "That is right: the thread ends there."
      : `The thread ends at ${demo.puzzle.answer}. `) + (right || k >= needed ? "" :
      `It is ${depth} arrows long, and ${k} ${k === 1 ? "step is" : "steps are"} too few: a step follows one arrow and writing the answer one more.`);
  }
  if (step.t === 0) return `Start. The model has read the puzzle once. Its memory stands at ${start}, and not one word is written.`;
  const [from, weight] = [...attention].reduce((best, one) => one[1] > best[1] ? one : best, ["", 0]);
  const layers = step.attention ? step.attention.map(one => one.layer + 1) : [];
  const through = !layers.length ? "its layers" : layers.length === 1 ? "layer " + layers[0] :
    `layers ${layers.slice(0, -1).join(", ")} and ${layers[layers.length - 1]}`;
  return `Latent step ${step.t} of ${k}. The memory goes through ${through} once more` +
    (from ? `, looks at ${from} \u2192 ${demo.puzzle.next.get(from)} (${Math.round(weight * 100)} % of its attention)` : "") +
    ` and now holds ${show(step.features.top[0][0].text)}.`;
}

function drawTimeline() {
  const box = $("timeline");
  box.replaceChildren();
  for (let i = 0; i <= demo.steps.length; i++) {
    const isAnswer = i === demo.steps.length;
    const dot = make("button", isAnswer ? "last" : "", isAnswer ? "answer" : i === 0 ? "start" : String(i));
    dot.onclick = () => { pause(); showStep(i); };
    box.append(dot);
  }
}

// The rows of the memory and the readout at this step: the tokens they are nearest to, how long they are, how far they moved.
function drawInside(step, before) {
  const table = $("inside");
  table.replaceChildren();
  const head = table.insertRow();
  for (const name of ["", "nearest tokens", "norm", "moved"]) head.append(make("th", "", name));
  const row = (name, title, top, norm, far) => {
    const line = table.insertRow(), tokens = make("td", "tokens");
    line.append(make("th", "", name));
    line.title = title;
    const best = top[0].logit, sum = top.reduce((all, one) => all + Math.exp(one.logit - best), 0);
    for (const one of top.slice(0, 3)) {
      const token = make("span", "", /^<\|end/.test(one.text) ? "end" : show(one.text).slice(0, 3));
      token.style.setProperty("--look", (Math.exp(one.logit - best) / sum).toFixed(3));
      token.title = `logit ${one.logit.toFixed(2)}`;
      tokens.append(token);
    }
    line.append(tokens, make("td", "", norm), make("td", "", far));
  };
  const said = step.features ? step.features.top : null;
  if (said) said.forEach((top, i) => row("result " + (i + 1), "what the layers made of memory row " + (i + 1), top, "", ""));
  for (const part of ["memory", "readout"]) {
    step[part].norm.forEach((norm, i) => row(part + (step[part].norm.length > 1 ? " " + (i + 1) : ""), part + " row " + (i + 1), step[part].top[i],
      norm.toFixed(1), before && step.t > 0 ? moved(norm, before[part].norm[i], step[part].cosine[i]).toFixed(2) : ""));
  }
  $("spent").textContent = `${step.layer_applications} layer applications so far`;
}

function drawLane(name) {
  const lane = demo.lanes[name], box = $("lane-" + name), parts = lane.text.trim().split("\n");
  const answer = (parts[parts.length - 1] || "").replace(/^#* ?/, "").trim(), right = answer === demo.puzzle.answer;
  // Until the last letter stands there: every token after the first is a pass through all layers. The end token is not read on.
  const nTokens = Math.max(1, lane.predicted_n - 1);
  lane.cost = lane.layer_applications + (nTokens - 1) * props.model.meta.n_layer;
  box.querySelector(".letter").textContent = answer.slice(0, 6) || "\u2205";
  box.classList.toggle("right", right);
  box.classList.toggle("wrong", !right);
  box.querySelector(".letter").append(make("span", "verdict", right ? "right" : "wrong"));
  box.querySelector(".cost").textContent = `${lane.cost} layer applications, ${nTokens} ${nTokens === 1 ? "token" : "tokens"} written`;
  box.querySelector(".written").textContent = parts.length > 1 ? parts.slice(0, -1).join(" ") : "";
  if (name === "latent") box.querySelector("h3").textContent = lane.steps.length === 2 ? "1 latent step" : lane.steps.length - 1 + " latent steps";
  const most = Math.max(...Object.values(demo.lanes).map(one => one.cost || 0));
  for (const one of Object.values(demo.lanes)) $("lane-" + one.name).querySelector(".bar-of i").style.width = 100 * (one.cost || 0) / most + "%";
}

// --- play and pause -----------------------------------------------------------------------------------------------

function play() {
  if (demo.at >= demo.steps.length) showStep(0);
  clearInterval(demo.timer);
  demo.timer = setInterval(() => {
    showStep(demo.at + 1);
    if (demo.at >= demo.steps.length) pause();
  }, kStepMs);
  $("play").textContent = "pause";
  $("play").setAttribute("aria-pressed", "true");
}
function pause() {
  clearInterval(demo.timer);
  demo.timer = null;
  $("play").textContent = "play";
  $("play").setAttribute("aria-pressed", "false");
}

$("play").onclick = () => demo.timer ? pause() : play();
$("back").onclick = () => { pause(); showStep(demo.at - 1); };
$("forward").onclick = () => { pause(); showStep(demo.at + 1); };
$("newPuzzle").onclick = () => setPuzzle(Puzzle.random(4 + Math.floor(Math.random() * 5)), false);
$("puzzleText").onchange = () => {
  const typed = Puzzle.parse($("puzzleText").value);
  $("puzzleText").setCustomValidity(typed ? "" : "Pairs of letters and a question such as ?Z, every letter with one arrow, and no circles.");
  if (typed) setPuzzle(typed, false);
  else $("puzzleText").reportValidity();
};
$("demoSteps").oninput = () => {
  setSteps($("demoSteps").value);
  askDemo(false);
};
$("demo").addEventListener("keydown", event => {
  if (event.key !== " " || /^(BUTTON|INPUT|TEXTAREA|SUMMARY)$/.test(event.target.tagName)) return;
  event.preventDefault();
  $("play").click();
});
