// A session: answers, streamed or whole, batches, traces and logits. The Python class above it holds a lock around
// every call.
#include "bindings.h"
#include "worker.h"

#include "infer/session.h"
#include "text/tokenizer.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>

namespace nb = nanobind;

namespace penelope::python {

namespace {

using Tokens = std::vector<int32_t>;
using Array  = nb::ndarray<nb::numpy, float>;

// Takes the values over.
Array to_array(std::vector<float> && values, const std::vector<int64_t> & shape) {
    auto *                    owned = new std::vector<float>(std::move(values));
    const nb::capsule         owner(owned, [](void * p) noexcept { delete static_cast<std::vector<float> *>(p); });
    const std::vector<size_t> sizes(shape.begin(), shape.end());
    return Array(owned->data(), sizes.size(), sizes.data(), owner);
}

nb::dict to_dict(const Answer & answer) {
    nb::list logprobs;
    for (const std::vector<TokenLogprob> & token : answer.logprobs) {
        nb::list best;
        for (const TokenLogprob & one : token) {
            best.append(nb::make_tuple(one.token, one.logprob));
        }
        logprobs.append(best);
    }
    nb::dict d;
    d["text"]               = answer.text;
    d["reasoning"]          = answer.reasoning;
    d["tokens"]             = answer.tokens;
    d["finish_reason"]      = finish_reason_name(answer.finish_reason);
    d["method"]             = answer.method;
    d["latent_steps"]       = answer.n_steps;
    d["prompt_tokens"]      = answer.n_prompt;
    d["layer_applications"] = answer.layer_applications;
    d["prompt_ms"]          = answer.timings.prompt_ms;
    d["decode_ms"]          = answer.timings.decode_ms;
    d["logprobs"]           = logprobs;
    return d;
}

nb::list to_list(const std::vector<std::vector<TokenScore>> & rows) {
    nb::list all;
    for (const std::vector<TokenScore> & row : rows) {
        nb::list best;
        for (const TokenScore & score : row) {
            best.append(nb::make_tuple(score.text, score.token, score.logit));
        }
        all.append(best);
    }
    return all;
}

nb::dict to_dict(const TraceStep & step) {
    nb::dict d;
    d["step"]         = step.t;
    d["alpha"]        = step.alpha;
    d["memory_top"]   = to_list(step.memory_top);
    d["readout_top"]  = to_list(step.readout_top);
    d["features_top"] = to_list(step.features_top);
    return d;
}

ggml_type kv_type_of(const std::string & name) {
    for (const ggml_type type : { GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_BF16, GGML_TYPE_Q8_0 }) {
        if (name == ggml_type_name(type)) {
            return type;
        }
    }
    throw Error(ErrorKind::usage, "kv_type: '" + name + "' is not one of f16, f32, bf16, q8_0");
}

class PySession {
  public:
    PySession(const std::shared_ptr<Model> & model, int n_ctx, int n_threads, const std::string & kv_type,
              int n_streams) {
        SessionOptions options;
        options.n_ctx     = n_ctx;
        options.n_threads = n_threads;
        options.kv_type   = kv_type_of(kv_type);
        options.n_streams = n_streams;
        session_          = std::make_unique<Session>(model->engine(), options);
    }
    ~PySession() { session_->cancel(); } // an answer nobody waits for any more

    int n_ctx() const { return session_->options().n_ctx; }
    int n_threads() const { return session_->options().n_threads; }

    nb::dict generate(const Tokens & prompt, const GenerateOptions & options) {
        Answer answer;
        run([&] { answer = session_->generate(prompt, options); });
        return to_dict(answer);
    }

    nb::list generate_batch(const std::vector<Tokens> & prompts, const GenerateOptions & options) {
        std::vector<Answer> answers;
        run([&] { answers = session_->generate_batch(prompts, options); });
        nb::list all;
        for (const Answer & answer : answers) {
            all.append(to_dict(answer));
        }
        return all;
    }

    // The answer of a stream is written while its pieces are fetched.
    void start(Tokens prompt, GenerateOptions options) {
        session_->reset_cancel();
        pieces_.clear();
        worker_.start([this, prompt = std::move(prompt), options = std::move(options)] {
            stream_answer_ = session_->generate(prompt, options, [this](std::string_view text, int32_t) {
                const std::lock_guard<std::mutex> lock(mutex_);
                pieces_.emplace_back(text);
                arrived_.notify_one();
                return true;
            });
        });
    }

    // The next piece of the text; none: the answer has ended.
    std::optional<std::string> next() {
        while (true) {
            bool done = false;
            {
                const nb::gil_scoped_release release;
                done = worker_.wait(std::chrono::milliseconds(0));
                std::unique_lock<std::mutex> lock(mutex_);
                if (!done) {
                    arrived_.wait_for(lock, kSignalInterval, [this] { return !pieces_.empty(); });
                }
                if (!pieces_.empty()) {
                    std::string piece = std::move(pieces_.front());
                    pieces_.pop_front();
                    return piece;
                }
            }
            if (done) {
                return std::nullopt;
            }
            if (PyErr_CheckSignals() != 0) {
                throw nb::python_error();
            }
        }
    }

    // The answer of the stream, cut off where it is if it has not ended.
    nb::dict finish() {
        {
            const nb::gil_scoped_release release;
            if (!worker_.wait(std::chrono::milliseconds(0))) {
                session_->cancel();
                while (!worker_.wait(std::chrono::seconds(1))) {
                }
            }
        }
        worker_.finish();
        return to_dict(stream_answer_);
    }

    // [prompts, n_vocab]
    Array logits(const std::vector<Tokens> & prompts, const GenerateOptions & options) {
        std::vector<float> all;
        run([&] {
            for (const std::vector<float> & row : session_->logits(prompts, options)) {
                all.insert(all.end(), row.begin(), row.end());
            }
        });
        const int64_t n_prompts = int64_t(prompts.size());
        const int64_t n_vocab   = int64_t(all.size()) / n_prompts;
        return to_array(std::move(all), { n_prompts, n_vocab });
    }

    // The latent states by name, and what each step says.
    nb::tuple trace(const Tokens & prompt, int n_steps) {
        std::vector<StateTensor> states;
        std::vector<TraceStep>   steps;
        run([&] {
            states = session_->dump(prompt, n_steps);
            steps  = session_->trace(prompt, n_steps);
        });
        nb::dict arrays;
        for (StateTensor & state : states) {
            arrays[state.name.c_str()] = to_array(std::move(state.data), state.shape);
        }
        nb::list all;
        for (const TraceStep & step : steps) {
            all.append(to_dict(step));
        }
        return nb::make_tuple(arrays, all);
    }

    void clear() { session_->clear(); }
    void cancel() { session_->cancel(); }

  private:
    void run(std::function<void()> task) {
        session_->reset_cancel();
        worker_.run(std::move(task), [this] { session_->cancel(); });
    }

    std::unique_ptr<Session> session_;
    Answer                   stream_answer_;
    std::mutex               mutex_;
    std::condition_variable  arrived_;
    std::deque<std::string>  pieces_; // of the stream, not fetched yet
    Worker                   worker_; // goes first: its task uses all of the above
};

} // namespace

void bind_session(nb::module_ & m) {
    m.attr("AUTO_STEPS") = kAutoSteps;
    nb::class_<GenerateOptions>(m, "GenerateOptions")
        .def(nb::init<>())
        .def_rw("method", &GenerateOptions::method)
        .def_rw("latent_steps", &GenerateOptions::n_steps)
        .def_rw("max_tokens", &GenerateOptions::n_predict)
        .def_rw("stop", &GenerateOptions::stop)
        .def_rw("logprobs", &GenerateOptions::n_logprobs)
        .def_rw("reasoning", &GenerateOptions::reasoning)
        .def_rw("n_stable_prefix", &GenerateOptions::n_stable_prefix)
        .def_rw("sampling", &GenerateOptions::sampling);
    nb::class_<SamplingOptions>(m, "SamplingOptions")
        .def_rw("temperature", &SamplingOptions::temperature)
        .def_rw("top_k", &SamplingOptions::top_k)
        .def_rw("top_p", &SamplingOptions::top_p)
        .def_rw("min_p", &SamplingOptions::min_p)
        .def_rw("seed", &SamplingOptions::seed)
        .def_rw("repeat_penalty", &SamplingOptions::repeat_penalty)
        .def_rw("presence_penalty", &SamplingOptions::presence_penalty)
        .def_rw("frequency_penalty", &SamplingOptions::frequency_penalty);
    nb::class_<PySession>(m, "Session")
        .def(nb::init<const std::shared_ptr<Model> &, int, int, const std::string &, int>(), nb::arg("model"),
             nb::arg("n_ctx"), nb::arg("n_threads"), nb::arg("kv_type"), nb::arg("n_streams"))
        .def_prop_ro("n_ctx", &PySession::n_ctx)
        .def_prop_ro("n_threads", &PySession::n_threads)
        .def("generate", &PySession::generate, nb::arg("prompt"), nb::arg("options"))
        .def("generate_batch", &PySession::generate_batch, nb::arg("prompts"), nb::arg("options"))
        .def("start", &PySession::start, nb::arg("prompt"), nb::arg("options"))
        .def("next", &PySession::next)
        .def("finish", &PySession::finish)
        .def("logits", &PySession::logits, nb::arg("prompts"), nb::arg("options"))
        .def("trace", &PySession::trace, nb::arg("prompt"), nb::arg("n_steps"))
        .def("clear", &PySession::clear)
        .def("cancel", &PySession::cancel);
}

} // namespace penelope::python
