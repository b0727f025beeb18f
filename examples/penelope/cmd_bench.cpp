// penelope bench: speed of prefill, latent steps and decoding, without tokenizing and sampling.
#include "bench_setup.h"
#include "commands.h"
#include "forecast.h"
#include "measure.h"
#include "model_setup.h"
#include "output.h"

#include "base/format.h"
#include "method/decode.h"
#include "method/registry.h"
#include "model/backbone.h"
#include "sidecar/load_modules.h"
#include "train/method_training.h"

#include <cmath>

namespace penelope {

namespace {

constexpr int default_question = 60; // prompt tokens and answer tokens of a comparison of methods, unless given
constexpr int default_answer   = 4;

Tokens some_tokens(int n, int n_vocab) {
    Tokens tokens;
    for (int i = 0; i < n; ++i) {
        tokens.push_back(static_cast<int32_t>((static_cast<int64_t>(i) * 7919 + 13) % n_vocab));
    }
    return tokens;
}

class Bench {
  public:
    Bench(const Options & options, Terminal & terminal)
        : options_(options), terminal_(terminal), methods_(parse_methods(options.text("methods"))),
          engine_(bench_engine(options, methods_, terminal)) {}

    int run();

  private:
    Context & new_context(int n_rows);
    int       n_tokens(const char * option, int n_extra) const;
    void      add_prefill(const std::string & test, const Method & method, int n_steps, int n_prompt, double divisor);
    void      add_decode(int n_gen);
    void      add_answer(const Method & method, int n_steps, int n_prompt, int n_answer);
    void      add_methods();
    void      add_row_costs();

    void                     add_unit_traffic(OrderedJson & row, const BenchCase & test) const;
    LatentShape              latent_shape_here() const;
    int                      steps_of(const std::string & method) const;
    std::vector<OrderedJson> forecast() const;

    std::string type_text() const;
    OrderedJson row(const BenchCase & test) const;

    const Options &                       options_;
    Terminal &                            terminal_;
    std::vector<BenchMethod>              methods_;
    std::shared_ptr<const Engine>         engine_;
    std::vector<std::unique_ptr<Context>> contexts_;
    std::vector<BenchCase>                cases_;
};

Context & Bench::new_context(int n_rows) {
    if (n_rows > engine_->config().n_ctx_train) {
        throw Error(ErrorKind::usage,
                    "bench: " + std::to_string(n_rows) + " tokens exceed the model's context of " +
                        std::to_string(engine_->config().n_ctx_train),
                    "use a smaller --prompt or --gen");
    }
    ContextOptions context;
    context.n_ctx     = n_rows;
    context.kv_type   = parse_kv_type(options_.text("kv-type"));
    context.n_threads = static_cast<int>(options_.integer("threads"));
    contexts_.push_back(std::make_unique<Context>(engine_->backbone(), engine_->split().devices, context));
    return *contexts_.back();
}

// Value of the option. The default is reduced to fit a short context, with n_extra tokens to spare.
int Bench::n_tokens(const char * option, int n_extra) const {
    const int wanted = static_cast<int>(std::min<int64_t>(options_.integer(option), INT32_MAX - 1));
    const int most   = std::max(1, engine_->config().n_ctx_train - n_extra);
    if (options_.given(option) || wanted <= most) {
        return wanted;
    }
    terminal_.warning(std::string("--") + option + ": " + std::to_string(most) + " tokens instead of " +
                      std::to_string(wanted) + ", limited by the model's context of " +
                      std::to_string(engine_->config().n_ctx_train));
    return most;
}

// Prefill of one prompt, latent steps included.
void Bench::add_prefill(const std::string & test, const Method & method, int n_steps, int n_prompt, double divisor) {
    Context &    context = new_context(n_prompt + method.n_extra_rows(n_steps) + 1);
    const Tokens prompt  = some_tokens(n_prompt, engine_->config().n_vocab);
    check_request(method, context, { prompt }, n_steps);
    BenchCase bench{ test, method.name(), n_steps, n_prompt };
    bench.divisor = divisor;
    bench.context = &context;
    bench.run     = [&context, &method, prompt, n_steps] {
        return method.prefill(context, fresh_prompts({ prompt }), n_steps).layer_applications;
    };
    cases_.push_back(std::move(bench));
}

// Decodes n_gen tokens one by one, starting with an empty context.
void Bench::add_decode(int n_gen) {
    Context & context = new_context(n_gen);
    BenchCase bench{ "tg" + std::to_string(n_gen), "plain", 0, n_gen };
    bench.is_decode = true;
    bench.context   = &context;
    bench.run       = [&context, tokens = some_tokens(n_gen, engine_->config().n_vocab),
                 n_layer = engine_->config().n_layer] {
        for (size_t i = 0; i < tokens.size(); ++i) {
            decode(context, { { 0, static_cast<int>(i), tokens[i] } });
        }
        return n_layer * static_cast<int>(tokens.size());
    };
    cases_.push_back(std::move(bench));
}

// A whole answer: prefill gives the first token, the others are decoded.
void Bench::add_answer(const Method & method, int n_steps, int n_prompt, int n_answer) {
    Context &    context = new_context(n_prompt + method.n_extra_rows(n_steps) + n_answer + 1);
    const Tokens prompt  = some_tokens(n_prompt, engine_->config().n_vocab);
    check_request(method, context, { prompt }, n_steps);
    BenchCase bench{ "answer", method.name(), n_steps, n_answer };
    bench.context = &context;
    bench.run     = [&context, &method, prompt, n_steps, n_answer, n_layer = engine_->config().n_layer] {
        const Prefill prefilled = method.prefill(context, fresh_prompts({ prompt }), n_steps);
        for (int i = 1; i < n_answer; ++i) {
            decode(context, { { 0, prefilled.n_past[0] + i - 1, prompt[static_cast<size_t>(i) % prompt.size()] } });
        }
        return prefilled.layer_applications + (n_answer - 1) * n_layer;
    };
    cases_.push_back(std::move(bench));
}

void Bench::add_methods() {
    const int n_prompt = options_.given("prompt") ? static_cast<int>(options_.integer("prompt")) : default_question;
    const int n_answer = options_.given("gen") ? static_cast<int>(options_.integer("gen")) : default_answer;
    for (const BenchMethod & choice : methods_) {
        const Method & method = engine_->method(choice.name);
        if (choice.visible()) {
            add_answer(method, 0, n_prompt, std::max(1, choice.count));
            continue;
        }
        add_prefill("latent", method, choice.count, n_prompt, 1.0);
        // Also with K=0: the difference is the cost of the steps, in time and in bytes sent.
        if ((options_.flag("phases") || options_.given("rpc")) && choice.count > 0) {
            add_prefill("latent", method, 0, n_prompt, 1.0);
        }
        add_answer(method, choice.count, n_prompt, std::max(1, n_answer));
    }
}

// Time of a layer on 1, 2, 4, ... rows. Latent steps are cheap where eight rows cost little more than one.
void Bench::add_row_costs() {
    const Method & plain = engine_->method("plain");
    for (const int n_rows : { 1, 2, 4, 8, 16 }) {
        add_prefill("rows" + std::to_string(n_rows), plain, 0, n_rows, engine_->config().n_layer);
    }
}

// Interval, memory and readout of the sidecar, else the defaults of penelope train.
LatentShape Bench::latent_shape_here() const {
    const SidecarConfig * own = engine_->sidecar();
    if (own && own->interval_end > own->interval_start) {
        return latent_shape(*own);
    }
    SidecarConfig defaults;
    method_training("penelope").default_shape(defaults, engine_->config(), 0);
    return latent_shape(defaults);
}

int Bench::steps_of(const std::string & method) const {
    for (const BenchMethod & choice : methods_) {
        if (choice.name == method) {
            return choice.count;
        }
    }
    return method_training(method).default_latent_steps(generic_task());
}

std::vector<OrderedJson> Bench::forecast() const {
    LayerCosts costs;
    for (const BenchCase & test : cases_) {
        if (test.test.rfind("rows", 0) == 0) {
            costs[test.n_tokens] = test.mean();
        }
    }
    const LatentShape shape   = latent_shape_here();
    const int         n_layer = engine_->config().n_layer, n_interval = shape.end - shape.start;
    const int         k = steps_of("penelope"), k_coconut = steps_of("coconut");
    const double      ours = penelope_forecast(costs, shape, k), theirs = coconut_forecast(costs, n_layer, k_coconut);
    terminal_.note(forecast_text(costs, shape, n_layer, k, k_coconut));
    const auto row = [&](const char * method, int n_steps, double ms, int applications) {
        return OrderedJson{ { "test", "forecast" },
                            { "method", method },
                            { "K", n_steps },
                            { "ms", ms },
                            { "sd", 0.0 },
                            { "tokens_per_second", 0.0 },
                            { "layer_applications", applications },
                            { "threads", cases_.back().context->backend().n_threads() },
                            { "device", engine_->split().name() },
                            { "model", engine_->name() },
                            { "type", type_text() },
                            { "memory_bytes", 0 } };
    };
    return { row("penelope", k, ours, n_interval * (k + 1)),
             row("coconut", k_coconut, theirs, n_layer * (k_coconut + 1)) };
}

std::string Bench::type_text() const {
    return to_upper(engine_->type_name());
}

// Shorter headings, and sizes with units.
OrderedJson human_readable(const OrderedJson & row) {
    OrderedJson out;
    for (const auto & [key, value] : row.items()) {
        if (key == "tokens_per_second") {
            out["tok/s"] = value;
        } else if (key == "layer_applications") {
            out["layers"] = value;
        } else if (key == "sent_bytes" || key == "received_bytes") {
            out[key == "sent_bytes" ? "sent" : "received"] = format_bytes(value.get<uint64_t>());
        } else if (key == "unit_sent_bytes" || key == "unit_received_bytes") {
            out[key == "unit_sent_bytes" ? "sent/unit" : "received/unit"] =
                format_bytes(uint64_t(std::max<int64_t>(0, value.get<int64_t>())));
        } else if (key == "memory_bytes") {
            out["caches"] = format_bytes(value.get<uint64_t>());
        } else {
            out[key] = value;
        }
    }
    return out;
}

// Bytes sent to RPC devices per decoded token or latent step. A step is the difference to the same prompt with K=0.
void Bench::add_unit_traffic(OrderedJson & row, const BenchCase & test) const {
    std::string unit = test.is_decode ? "token" : "run";
    double      sent = double(test.traffic.sent), received = double(test.traffic.received);
    int         n_units = test.is_decode ? test.n_tokens : 1;
    for (const BenchCase & other : cases_) {
        if (test.test == "latent" && test.n_steps > 0 && other.test == test.test && other.method == test.method &&
            other.n_steps == 0) {
            unit    = "step";
            n_units = test.n_steps;
            sent -= double(other.traffic.sent);
            received -= double(other.traffic.received);
        }
    }
    row["unit"]                = unit;
    row["unit_sent_bytes"]     = std::llround(sent / n_units);
    row["unit_received_bytes"] = std::llround(received / n_units);
}

OrderedJson Bench::row(const BenchCase & test) const {
    const double ms = test.mean();
    OrderedJson  row{ { "test", test.test },
                     { "method", test.method },
                     { "K", test.n_steps },
                     { "ms", ms },
                     { "sd", test.sd() },
                     { "tokens_per_second", ms > 0 ? test.n_tokens / (ms * test.divisor) * 1000.0 : 0.0 },
                     { "layer_applications", test.layer_applications },
                     { "threads", test.context->backend().n_threads() },
                     { "device", engine_->split().name() },
                     { "model", engine_->name() },
                     { "type", type_text() },
                     { "memory_bytes", test.context->n_bytes() } };
    if (options_.given("rpc")) {
        row["sent_bytes"]     = test.traffic.sent;
        row["received_bytes"] = test.traffic.received;
        add_unit_traffic(row, test);
    }
    return row;
}

int Bench::run() {
    if (!methods_.empty()) {
        add_methods();
    } else {
        const int n_prompt = n_tokens("prompt", 1); // plus the first new token
        const int n_gen    = n_tokens("gen", 0);
        if (n_prompt > 0) {
            add_prefill("pp" + std::to_string(n_prompt), engine_->method("plain"), 0, n_prompt, 1.0);
        }
        if (n_gen > 0) {
            add_decode(n_gen);
        }
    }
    if (options_.flag("phases")) {
        add_row_costs();
    }
    if (cases_.empty()) {
        throw UsageError("bench: nothing to measure", "give --prompt, --gen or --methods");
    }
    run_cases(cases_, static_cast<int>(options_.integer("repetitions")), terminal_);

    std::vector<OrderedJson> rows;
    for (const BenchCase & test : cases_) {
        rows.push_back(row(test));
    }
    if (options_.flag("phases")) {
        for (OrderedJson & line : forecast()) {
            rows.push_back(std::move(line));
        }
    }
    const TableFormat format = options_.flag("json") ? TableFormat::json : parse_table_format(options_.text("format"));
    for (size_t i = 0; i < rows.size(); ++i) {
        if (format == TableFormat::json) {
            rows[i]["samples_ms"] = i < cases_.size() ? cases_[i].ms : std::vector<double>{};
        } else if (format == TableFormat::markdown) {
            rows[i] = human_readable(rows[i]);
        }
    }
    if (options_.flag("json")) {
        terminal_.line(dump_json(OrderedJson{ { "status", "ok" }, { "rows", rows } }));
    } else {
        terminal_.write(format_table(rows, format));
    }
    terminal_.note("mean and standard deviation of " + std::to_string(options_.integer("repetitions")) +
                   " runs after a warm-up run, without tokenizing and sampling; layers: sequential layer applications");
    return 0;
}

} // namespace

int cmd_bench(const Options & options, Terminal & terminal) {
    return Bench(options, terminal).run();
}

} // namespace penelope
