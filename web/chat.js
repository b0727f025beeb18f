// Asking and answering, as a conversation or question by question.
let messages = [], running = null;

const examples = {
  listops: "Evaluate: [MAX 3 [MIN 4 7] [MED 2 9 5]]",
  thread: "Bt aC rz DD bH oM VD JJ WX Fr zJ IF uu Na tu io MT PW vi HP ZN jg dB XV CI Td gb ?Z",
};

function body(extra) {
  const all = {
    model: props ? props.model.id : "penelope",
    messages: messages.concat([]),
    stream: true,
  };
  // What is left empty is for the server to decide (serve --temp, -n).
  if ($("temp").value !== "") all.temperature = +$("temp").value;
  if ($("limit").value !== "") all.max_tokens = +$("limit").value;
  if (props && props.latent_steps.max) all.latent_steps = +$("steps").value;
  return Object.assign(all, extra);
}

// The message that is added to the conversation; null when nothing came.
async function answerIn(box, title, request, signal) {
  const way = make("div", "way"), head = make("h2"), mind = make("div", "mind"), text = make("div", "text busy"), figures = make("div", "figures");
  head.append(make("b", "", title));
  way.append(head, mind);
  const thoughts = new Thoughts(way);
  way.append(text, figures);
  box.append(way);
  const drawn = new Mind(mind);
  let whole = "";
  try {
    for await (const event of backend.ask(request, signal)) {
      if (event.error) throw new Error(event.error.message);
      if (event.latent_step) drawn.add(event.latent_step);
      const choice = event.choices && event.choices[0];
      // The words of a latent step are in the table already.
      if (choice && choice.delta && choice.delta.reasoning_content && !event.latent_step) {
        thoughts.add(choice.delta.reasoning_content);
        scroll();
      }
      if (choice && choice.delta && choice.delta.content) {
        if (!whole) thoughts.box.open = false;
        whole += choice.delta.content;
        text.textContent = whole;
        scroll();
      }
      if (choice && choice.finish_reason && event.timings) {
        const t = event.timings;
        figures.textContent = [t.layer_applications + " layers in a row before the answer", t.prompt_ms.toFixed(1) + " ms to the first token",
          t.predicted_n + " tokens", choice.finish_reason].join(" \u00b7 ");
      }
    }
  } catch (error) {
    if (error.name === "AbortError") {
      figures.textContent = "stopped";
    } else {
      figures.append(make("span", "error", error.message));
      if (error.reason === "gone") connect();
      if (error.reason === "key") $("keyBox").hidden = false;
    }
  }
  text.classList.remove("busy");
  way.dataset.done = "1";
  scroll();
  if (!whole && !thoughts.text) return null;
  const message = { role: "assistant", content: whole };
  if (thoughts.text) message.reasoning_content = thoughts.text;
  return message;
}

function scroll() { const main = document.querySelector("main"); main.scrollTop = main.scrollHeight; }

async function send() {
  const question = $("text").value.trim();
  if (!question || running || !props) return;
  $("hint").hidden = true;
  $("text").value = "";
  grow();
  messages.push({ role: "user", content: question });
  $("log").append(make("div", "question", question));
  const box = make("div", "ways");
  $("log").append(box);
  running = new AbortController();
  $("send").textContent = "stop";
  const latent = props.latent_steps.max > 0, k = +$("steps").value;
  let said;
  if (!latent) {
    said = await answerIn(box, props.model.id, body(), running.signal);
  } else {
    // Questions of a latent model stand alone.
    messages = messages.slice(-1);
    const all = [answerIn(box, "K = " + k, body({ latent_trace: true }), running.signal)];
    if ($("compare").checked) {
      if (k > 0) all.push(answerIn(box, "K = 0", body({ latent_steps: 0, latent_trace: true }), running.signal));
      const visible = body({ cot: true });
      delete visible.latent_steps;
      if (props.visible_steps) all.push(answerIn(box, "visible steps", visible, running.signal));
    }
    said = (await Promise.all(all))[0];
  }
  if (latent) messages = [];
  else if (said) messages.push(said);
  else messages.pop();
  running = null;
  $("send").textContent = "send";
  $("text").focus();
}

function stop() { if (running) running.abort(); }

function grow() { const t = $("text"); t.style.height = "auto"; t.style.height = t.scrollHeight + 2 + "px"; }

function clear() {
  stop();
  messages = [];
  for (const node of [...$("log").children]) if (node !== $("hint")) node.remove();
  $("hint").hidden = false;
}

// --- copying ------------------------------------------------------------------------------------------------------

function example() {
  const last = [...document.querySelectorAll(".question")].pop();
  const request = body({ messages: [{ role: "user", content: $("text").value.trim() || (last ? last.textContent : "Hello") }] });
  delete request.stream;
  return request;
}
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  note("copied as " + what);
  setTimeout(() => note(""), 2000);
  document.body.dataset.copied = text;
}
function asCurl() {
  const key = $("key").value ? " \\\n  -H 'Authorization: Bearer '$API_KEY" : "";
  return "curl " + location.origin + "/v1/chat/completions \\\n  -H 'Content-Type: application/json'" + key + " \\\n  -d '" +
    JSON.stringify(example()).replace(/'/g, "'\\''") + "'";
}
function asPython() {
  const request = example(), extra = "latent_steps" in request ? ",\n    extra_body={\"latent_steps\": " + request.latent_steps + "}" : "";
  const sampling = ["temperature", "max_tokens"].filter(name => name in request).map(name => ",\n    " + name + "=" + request[name]).join("");
  return "from openai import OpenAI\n\nclient = OpenAI(base_url=" + JSON.stringify(location.origin + "/v1") + ", api_key=\"" +
    ($("key").value ? "YOUR KEY" : "none") + "\")\nanswer = client.chat.completions.create(\n    model=" + JSON.stringify(request.model) +
    ",\n    messages=[{\"role\": \"user\", \"content\": " + JSON.stringify(request.messages[0].content) + "}]" + sampling + extra +
    ",\n)\nprint(answer.choices[0].message.content)\n";
}
