// node answers.js BUILD_FOLDER QUESTIONS.jsonl: answers every question with the back end of the page, on the files inside
// penelope.html. Writes a line {"way", "id", "text", "ms"} for each question and way to answer; loading is the way "load".
"use strict";
const fs = require("fs"), path = require("path"), vm = require("vm");
const [folder, questions] = process.argv.slice(2), web = path.join(__dirname, "..", "..", "web");
const page = fs.readFileSync(path.join(folder, "penelope.html"), "utf8");

// The part of a browser that the back end uses.
const elements = {};
for (const [, id, text] of page.matchAll(/<script type="text\/plain" id="([^"]+)">([^<]*)<\/script>/g)) elements[id] = { textContent: text, remove() {} };
const world = vm.createContext({ document: { getElementById: id => elements[id] }, console, atob, Blob, Response, DecompressionStream, WebAssembly,
  TextDecoder, setTimeout, performance, Uint8Array, process, require, __dirname: folder });
for (const file of [path.join(web, "common.js"), path.join(folder, "penelope.js"), path.join(web, "browser.js")]) {
  vm.runInContext(fs.readFileSync(file, "utf8"), world, file);
}
const backend = vm.runInContext("backend", world);

const ways = {
  latent: question => backend.ask({ latent_steps: 8, messages: [{ content: question }] }),
  watched: question => backend.ask({ latent_steps: 8, latent_attention: true, messages: [{ content: question }] }),
  visible: question => backend.askVisible({ latent_steps: 0, max_tokens: 64, messages: [{ content: question }] }),
};

(async () => {
  const out = (way, id, text, start) => console.log(JSON.stringify({ way, id, text, ms: performance.now() - start }));
  let start = performance.now();
  await backend.connect();
  out("load", "", "", start);
  for (const line of fs.readFileSync(questions, "utf8").trim().split("\n")) {
    const { id, question } = JSON.parse(line);
    for (const [way, ask] of Object.entries(ways)) {
      start = performance.now();
      let text = "";
      for await (const event of ask(question)) text += ((event.choices || [{}])[0].delta || {}).content || "";
      out(way, id, text, start);
    }
  }
  // What goes wrong is told, and the model goes on.
  for (const [request, reason] of [[{ latent_steps: 99, messages: [{ content: "ab bb ?a" }] }, /99/], [{ messages: [{ content: "" }] }, /./]]) {
    const problem = await backend.ask(request).next().then(() => null, error => error.message);
    if (!problem || !reason.test(problem)) throw new Error(JSON.stringify(request) + ": expected an error, found " + problem);
  }
})().catch(error => {
  console.error(error);
  process.exit(1);
});
