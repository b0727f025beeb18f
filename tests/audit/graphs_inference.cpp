#include "base/temporary_directory.h"
#include "convert/importance_matrix.h"
#include "empty_files.h"
#include "graphs.h"
#include "infer/session.h"
#include "method/latent_steps.h"
#include "method/method.h"
#include "sidecar/method_format.h"

#include <numeric>

namespace penelope::audit {

namespace {

Tokens tokens(size_t n) {
    Tokens made(n);
    std::iota(made.begin(), made.end(), 1);
    return made;
}

SessionOptions options(ggml_type kv_type, int n_streams = 1) {
    SessionOptions made;
    made.n_ctx     = 192;
    made.kv_type   = kv_type;
    made.n_streams = n_streams;
    made.n_threads = 1;
    return made;
}

GenerateOptions request(const std::string & method, int n_steps) {
    GenerateOptions made;
    made.method     = method;
    made.n_steps    = n_steps;
    made.n_predict  = 3;
    made.ignore_end = true;
    return made;
}

// Prompts of these lengths, one after the other, whole and in chunks.
void answer(const std::shared_ptr<const Engine> & engine, ggml_type kv_type, const std::string & method, int n_steps) {
    Session whole(engine, options(kv_type));
    for (size_t n : { size_t(1), size_t(7), size_t(40) }) {
        whole.generate(tokens(n), request(method, n_steps));
    }
    SessionOptions chunked = options(kv_type);
    chunked.n_batch        = 16;
    Session(engine, chunked).generate(tokens(41), request(method, n_steps));
}

void answer_batch(const std::shared_ptr<const Engine> & engine, ggml_type kv_type, const std::string & method,
                  int n_steps) {
    for (bool batch_invariant : { false, true }) {
        SessionOptions three  = options(kv_type, 3);
        three.batch_invariant = batch_invariant;
        Session session(engine, three);
        session.generate_batch({ tokens(5), tokens(23), tokens(40) }, request(method, n_steps));
        session.generate_batch({ tokens(17), tokens(17) }, request(method, n_steps));
    }
}

// As the service does: streams that stand at different steps, any of them together.
void step_by_step(const std::shared_ptr<const Engine> & engine, ggml_type kv_type, const std::string & method) {
    SessionOptions two  = options(kv_type, 2);
    two.batch_invariant = true;
    Session       session(engine, two);
    LatentSteps & steps = *engine->method(method).steps(session.context());
    steps.start({ { tokens(9), 0, 0 } });
    steps.advance({ 0 });
    steps.start({ { tokens(23), 1, 0 } });
    for (int k = 0; k < 2; k++) {
        steps.advance({ 0, 1 });
    }
    steps.finish({ 0 });
    steps.finish({ 0, 1 });
    steps.read_state(1);
    session.clear();
    session.generate(tokens(11), request(method, 2), {}, [](const TraceStep &) { return true; });
}

void look_inside(const std::shared_ptr<const Engine> & engine, ggml_type kv_type, const std::string & method) {
    Session session(engine, options(kv_type));
    session.dump(tokens(11), 2);
    if (method == "penelope") {
        session.trace(tokens(11), 2);
    }
}

void audit_method(const std::shared_ptr<const Engine> & engine, ggml_type kv_type, const std::string & method,
                  const std::vector<int> & steps, const AuditFunction & ask) {
    ask(method, [&] {
        for (int k : steps) {
            answer(engine, kv_type, method, k);
        }
    });
    ask(method + ", batch", [&] { answer_batch(engine, kv_type, method, 2); });
    ask(method + ", sweep", [&] {
        Session session(engine, options(kv_type, 2));
        session.generate_sweep({ tokens(9), tokens(30) }, steps, request(method, 0));
    });
    ask(method + ", a step at a time", [&] { step_by_step(engine, kv_type, method); });
    ask(method + ", states and trace", [&] { look_inside(engine, kv_type, method); });
}

} // namespace

void audit_inference(const AuditCase & asked, const AuditFunction & ask) {
    const TemporaryDirectory folder;
    LoadOptions              files;
    files.base            = folder.file("base.gguf");
    files.device          = asked.device;
    files.ignore_mismatch = true;
    write_empty_backbone(config_of(asked.shape), asked.type, files.base);
    ask("plain", [&] {
        const auto engine = Engine::load(files);
        for (ggml_type cache : asked.caches) {
            answer(engine, cache, "plain", 0);
            answer_batch(engine, cache, "plain", 0);
        }
        compute_imatrix(*engine, tokens(48), { 1, {}, {} });
    });
    for (const std::string & method : method_format_names()) {
        files.sidecar = folder.file(method + ".gguf");
        write_empty_sidecar(files.base, method, asked.type, true, files.sidecar);
        std::shared_ptr<const Engine> engine;
        ask("cot", [&] {
            engine = Engine::load(files);
            answer(engine, asked.caches.front(), "cot", 0);
        });
        if (!engine) {
            continue; // heard already
        }
        for (ggml_type cache : asked.caches) {
            const bool is_first = cache == asked.caches.front();
            audit_method(engine, cache, method, is_first ? asked.steps : std::vector<int>{ asked.steps.back() }, ask);
        }
        ask("layers on two devices", [&] {
            const int n_first = config_of(asked.shape).n_layer / 2, n_second = config_of(asked.shape).n_layer - n_first;
            LoadOptions spread = files;
            spread.split =
                asked.device + "=" + std::to_string(n_first) + "," + asked.other + "=" + std::to_string(n_second);
            engine = Engine::load(spread);
            answer(engine, asked.caches.front(), method, asked.steps.back());
            answer_batch(engine, asked.caches.front(), method, asked.steps.back());
            step_by_step(engine, asked.caches.front(), method);
        });
    }
}

} // namespace penelope::audit
