// Back end of the page alone: the model runs in the browser, as WebAssembly. Files lie in the page, compressed and as
// base64, in elements <script type="text/plain" id="file-NAME">. server.js says what a back end has.
class BackendError extends Error {}

const backend = {
  isLocal: true,
  models: {},

  async bytes(name) {
    const element = $("file-" + name), text = atob(element.textContent.trim()), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    element.remove(); // its memory is no longer needed
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  },

  // A copy in the memory of the program, which uses it in place.
  async place(name) {
    const bytes = await backend.bytes(name), at = backend.program._malloc(bytes.length);
    backend.program.HEAPU8.set(bytes, at);
    return [at, bytes.length];
  },

  load(base, sidecar) {
    const model = backend.program._page_load(...base, ...sidecar);
    if (!model) throw new BackendError(backend.text(backend.program._page_error()));
    return model;
  },

  text(pointer) { return backend.program.UTF8ToString(pointer); },

  async connect() {
    if (!backend.models.own) {
      if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function") {
        throw new BackendError("this browser is too old to run the model: it needs WebAssembly and DecompressionStream");
      }
      backend.program = await createPenelope({ wasmBinary: await backend.bytes("wasm"), onEvent: text => backend.events.push(JSON.parse(text)) });
      const base = await backend.place("base");
      backend.models.own = backend.load(base, await backend.place("sidecar"));
      backend.models.control = backend.load(base, await backend.place("control"));
      backend.models.backbone = backend.load(base, [0, 0]);
    }
    return JSON.parse(backend.text(backend.program._page_props(backend.models.own)));
  },

  async *run(model, request) {
    await new Promise(resolve => setTimeout(resolve)); // the page is drawn first
    const { program } = backend, text = JSON.stringify(request), size = 4 * text.length + 1, at = program._malloc(size);
    program.stringToUTF8(text, at, size);
    backend.events = [];
    const failed = program._page_ask(model, at);
    program._free(at);
    if (failed) throw new BackendError(backend.text(program._page_error()));
    yield* backend.events;
  },
  ask(request) { return backend.run(backend.models.own, request); },
  askControl(request) { return backend.run(backend.models.control, request); },
  askVisible(request) { return backend.run(backend.models.backbone, request); },
};
