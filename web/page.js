// The page as a whole: the model it has, its settings, and the keys.
let props = null; // of the model, as GET /props gives them

const explained = {
  thread: "Its questions are tangled threads: ab leads from a to b, and ?C asks where the thread from C ends. Each step follows one piece of it.",
};

function note(text) { $("note").textContent = text || ""; }

async function connect() {
  try {
    props = await backend.connect();
  } catch (error) {
    if (error.reason === "key") {
      $("keyBox").hidden = false;
      $("facts").textContent = "the server wants a key";
    } else if (error.reason === "gone") {
      $("facts").textContent = "the server is gone; trying again ...";
      setTimeout(connect, 1000);
    } else {
      $("facts").textContent = error.message;
    }
    return;
  }
  const max = props.latent_steps.max;
  $("facts").textContent = [props.model.id, props.model.meta.type, props.device,
    max ? "thinks in up to " + max + " latent steps" : "no latent steps"].join(" \u00b7 ");
  const settings = props.default_generation_settings;
  $("temp").placeholder = String(+settings.temperature.toPrecision(6));
  $("limit").placeholder = settings.n_predict < 0 ? "no limit" : String(settings.n_predict);
  $("stepsBox").hidden = max === 0;
  $("compareBox").hidden = max === 0;
  $("compareText").textContent = "beside K\u00a0=\u00a00" + (props.visible_steps ? " and visible steps" : "");
  $("steps").max = $("demoSteps").max = max;
  const kept = store.get("steps");
  setSteps(kept !== null && +kept <= max ? +kept : props.latent_steps.default);
  $("hint").textContent = max === 0 ? "A conversation with " + props.model.id + "." :
    "Every question is answered by itself. Move the slider to choose how many latent steps the model takes; each is drawn as it happens: " +
    "a row for every memory and readout vector, a column for every step, the word it is nearest to, brighter the further it moved." +
    (explained[props.task] ? "\n\n" + explained[props.task] : "");
  if (!$("text").value && !messages.length && examples[props.task]) $("text").value = examples[props.task];
  note("");
  if (demoFits(props) && $("demo").hidden) startDemo();
}

function setSteps(value) {
  $("steps").value = value;
  $("demoSteps").value = $("steps").value;
  $("stepsOut").textContent = $("demoStepsOut").textContent = $("steps").value;
  store.set("steps", $("steps").value);
}

function theme(value) {
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
}

theme(store.get("theme"));
$("theme").onclick = () => {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--ground").trim() === "#161817";
  store.set("theme", dark ? "light" : "dark");
  theme(store.get("theme"));
};
$("send").onclick = () => running ? stop() : send();
$("clear").onclick = clear;
$("curl").onclick = () => copy(asCurl(), "curl");
$("python").onclick = () => copy(asPython(), "Python");
$("steps").oninput = () => {
  setSteps($("steps").value);
  if (demo.puzzle) askDemo(false);
};
$("key").onchange = connect;
$("text").oninput = grow;
$("chat").onclick = () => document.body.classList.toggle("with-chat");
document.addEventListener("keydown", event => {
  if (event.key === "Escape") stop();
  else if (event.key === "l" && event.ctrlKey) { event.preventDefault(); clear(); }
  else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    setSteps(+$("steps").value + (event.key === "ArrowUp" ? 1 : -1));
    if (demo.puzzle) askDemo(false);
  } else if (event.key === "Enter" && !event.shiftKey && event.target === $("text")) { event.preventDefault(); send(); }
});
document.body.classList.add(backend.isLocal ? "local" : "served");
connect();
