// Back end of the page when `penelope serve` sends it: the model answers over HTTP. browser.js has the other one.
//
// A back end has
//   connect()             props of the model, in the form of GET /props; throws BackendError
//   ask(request, signal)  the chunks of a streamed POST /v1/chat/completions, one object after another
//   askControl            like ask, of the same model trained without latent steps; null where there is none
//   askVisible            like ask, of the backbone, which writes its steps; null where there is none
//   isLocal               the model runs in the page: nothing to connect to, no address to copy
class BackendError extends Error {
  constructor(message, reason) {
    super(message);
    this.reason = reason; // "key": one is wanted; "gone": nobody answers; else something else
  }
}

const backend = {
  isLocal: false,
  askControl: null, // a server has one model
  askVisible: null,
  headers() {
    const all = { "Content-Type": "application/json" };
    if ($("key").value) all.Authorization = "Bearer " + $("key").value;
    return all;
  },
  async fetch(path, options) {
    let answer;
    try {
      answer = await fetch(path, Object.assign({ headers: backend.headers() }, options));
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new BackendError("the server is gone", "gone");
    }
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => null);
    throw new BackendError(problem && problem.error ? problem.error.message : "status " + answer.status, answer.status === 401 ? "key" : "");
  },
  async connect() {
    return (await backend.fetch("props")).json();
  },
  async *ask(request, signal) {
    const answer = await backend.fetch("v1/chat/completions", { method: "POST", body: JSON.stringify(request), signal });
    const reader = answer.body.getReader(), decoder = new TextDecoder();
    for (let held = ""; ;) {
      const { done, value } = await reader.read().catch(error => {
        throw error.name === "AbortError" ? error : new BackendError("the server is gone", "gone");
      });
      if (done) return;
      held += decoder.decode(value, { stream: true });
      for (let at; (at = held.indexOf("\n\n")) >= 0; held = held.slice(at + 2)) {
        const data = held.slice(0, at).split("\n").filter(line => line.startsWith("data: ")).map(line => line.slice(6)).join("\n");
        if (data && data !== "[DONE]") yield JSON.parse(data);
      }
    }
  },
};
