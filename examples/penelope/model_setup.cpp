#include "model_setup.h"

#include "base/format.h"
#include "constraint.h"
#include "gguf/reader.h"
#include "method/method.h"
#include "model/load.h"
#include "sidecar/sidecar.h"
#include "text/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

namespace penelope {

namespace {

// Shows a progress line if the work takes longer than half a second.
class DelayedProgress {
  public:
    DelayedProgress(Terminal & terminal, std::string text) : terminal_(terminal) {
        if (terminal.err_is_tty() && !terminal.quiet()) {
            thread_ = std::thread([this, text = std::move(text)] {
                std::unique_lock<std::mutex> lock(mutex_);
                if (!wake_.wait_for(lock, std::chrono::milliseconds(500), [this] { return done_; })) {
                    terminal_.progress(text);
                }
            });
        }
    }
    ~DelayedProgress() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            done_ = true;
        }
        wake_.notify_one();
        if (thread_.joinable()) {
            thread_.join();
        }
        terminal_.progress("");
    }
    DelayedProgress(const DelayedProgress &)             = delete;
    DelayedProgress & operator=(const DelayedProgress &) = delete;

  private:
    Terminal &              terminal_;
    std::mutex              mutex_;
    std::condition_variable wake_;
    bool                    done_ = false;
    std::thread             thread_;
};

// "FILE", "FILE:0.5", several separated by commas.
void add_loras(const std::string & text, std::vector<LoraFile> & out) {
    for (size_t start = 0; start <= text.size();) {
        const size_t      end  = std::min(text.find(',', start), text.size());
        const std::string part = text.substr(start, end - start);
        start                  = end + 1;
        const size_t colon     = part.rfind(':');
        LoraFile     lora{ part, 1.0f };
        if (colon != std::string::npos) {
            const char * first  = part.data() + colon + 1;
            const char * last   = part.data() + part.size();
            const auto   result = std::from_chars(first, last, lora.scale);
            if (result.ec != std::errc() || result.ptr != last || !std::isfinite(lora.scale)) {
                throw UsageError("--lora: '" + std::string(first) + "' is not a scale",
                                 "--lora FILE:SCALE, e.g. adapter.gguf:0.5");
            }
            lora.path = part.substr(0, colon);
        }
        if (lora.path.empty()) {
            throw UsageError("--lora: empty file name");
        }
        out.push_back(std::move(lora));
    }
}

std::shared_ptr<const Engine> load_with(LoadOptions load, const Options & options, Terminal & terminal) {
    load.base            = options.required("model");
    load.device          = options.text("device");
    load.split           = wanted_split(options);
    load.ignore_mismatch = options.flag("ignore-mismatch");
    load.use_mmap        = !options.flag("no-mmap");
    for (const std::string & value : options.list("lora")) {
        add_loras(value, load.loras);
    }
    std::shared_ptr<const Engine> engine;
    {
        const DelayedProgress progress(terminal,
                                       "loading " + std::filesystem::path(load.base).filename().string() + " ...");
        engine = Engine::load(load);
    }
    if (!load.loras.empty() && engine->prompt_format() == nullptr) {
        terminal.warning("--lora " + load.loras.front().path +
                         ": LoRA has no prompt template; the prompt is used as is");
    }
    const int n_threads =
        options.integer("threads") > 0 ? static_cast<int>(options.integer("threads")) : default_thread_count();
    const LayerSplit & split = engine->split();
    const std::string  device =
        split.is_split() ? split.name() : split.devices[0].name + " (" + split.devices[0].description + ")";
    terminal.note(engine->name() + " " + engine->type_name() + ", " + format_bytes(engine->weight_bytes()) + " on " +
                  device + ", " + std::to_string(n_threads) + (n_threads == 1 ? " thread" : " threads") +
                  ", loaded in " + format_duration(engine->load_ms()));
    if (split.is_split()) {
        for (const std::string & line : describe(split, layer_sizes(GgufReader::open(load.base)))) {
            terminal.note(line);
        }
    }
    return engine;
}

} // namespace

std::string wanted_split(const Options & options) {
    if (options.given("split") && options.text("split").empty()) {
        throw UsageError("--split: empty list", "e.g. --split CPU=10,RPC0=20");
    }
    if (options.given("split") && options.given("device") && options.text("device") != "auto") {
        throw UsageError("--split and --device: exclude each other", "--split already names the devices");
    }
    return options.text("split");
}

ggml_type parse_kv_type(const std::string & name) {
    return name == "f32"    ? GGML_TYPE_F32
           : name == "bf16" ? GGML_TYPE_BF16
           : name == "q8_0" ? GGML_TYPE_Q8_0
                            : GGML_TYPE_F16;
}

std::shared_ptr<const Engine> load_engine(const Options & options, Terminal & terminal) {
    LoadOptions load;
    load.sidecar = options.text("sidecar");
    return load_with(load, options, terminal);
}

std::shared_ptr<const Engine> load_engine(const Options & options, Terminal & terminal, const std::string & adapter) {
    LoadOptions load;
    if (is_sidecar(GgufReader::open(adapter))) {
        load.sidecar = adapter;
    } else {
        load.loras.push_back({ adapter, 1.0f });
    }
    return load_with(load, options, terminal);
}

void check_method_supported(const Engine & engine, const std::string & method, int n_steps, bool ignore_mismatch) {
    if (engine.sidecar() == nullptr && (n_steps > 0 || !method.empty())) {
        throw Error(ErrorKind::usage,
                    n_steps > 0 ? "-K " + std::to_string(n_steps) + ": latent steps need a sidecar"
                                : "--" + method + ": needs a sidecar",
                    n_steps > 0
                        ? "give one with --sidecar FILE"
                        : "give one with --sidecar FILE; a LoRA given with --lora writes its steps without --cot");
    }
    if (n_steps == kAutoSteps && engine.sidecar() == nullptr) {
        throw Error(ErrorKind::usage, "-K auto: latent steps need a sidecar", "give one with --sidecar FILE");
    }
    if (!method.empty() && !engine.sidecar()->visible_steps.value_or(false) && !ignore_mismatch) {
        throw Error(ErrorKind::usage, "--" + method + ": this sidecar's LoRA was not trained on CoT",
                    "use the LoRA of the CoT fine-tuning stage with --lora, or run it anyway with --ignore-mismatch");
    }
    if (n_steps >= 0) {
        check_steps(engine.method(method), n_steps);
    }
}

PromptOptions prompt_choice(const Options & options) {
    const PromptOptions choice{ options.text("chat-template"), options.flag("raw"), options.text("system"),
                                thinking_option(options) };
    if (choice.raw && choice.chat_template != "auto" && choice.chat_template != "none") {
        throw UsageError("--raw and --chat-template " + choice.chat_template + ": exclude each other", "give only one");
    }
    if (choice.raw && !choice.system.empty()) {
        throw UsageError("--raw and --system: exclude each other, a system message needs a template", "give only one");
    }
    return choice;
}

PromptWriter prompt_writer(const Engine & engine, const PromptOptions & choice, Terminal & terminal) {
    PromptWriter writer(engine, choice);
    if (writer.no_template() && !engine.tokenizer().chat_template().empty()) {
        terminal.warning(writer.no_template()->message() + "; the prompt is used as is (" + writer.no_template()->hint +
                         ")");
    } else {
        terminal.note(writer.description());
    }
    return writer;
}

CancelOnInterrupt cancel_on_interrupt(Session & session) {
    return CancelOnInterrupt([](void * object) { static_cast<Session *>(object)->cancel(); }, &session);
}

SessionOptions session_options(const Options & options, int n_streams) {
    SessionOptions session;
    session.n_ctx     = static_cast<int>(std::min<int64_t>(options.integer("ctx-size"), INT32_MAX));
    session.kv_type   = parse_kv_type(options.text("kv-type"));
    session.n_threads = static_cast<int>(options.integer("threads"));
    session.n_streams = n_streams;
    return session;
}

SamplingOptions sampling_options(const Options & options) {
    SamplingOptions sampling;
    sampling.temperature = static_cast<float>(options.number("temp"));
    sampling.top_k       = static_cast<int>(std::min<int64_t>(options.integer("top-k"), INT32_MAX));
    sampling.top_p       = static_cast<float>(options.number("top-p"));
    sampling.min_p       = static_cast<float>(options.number("min-p"));
    sampling.seed        = static_cast<uint64_t>(options.integer("seed"));

    sampling.repeat_penalty    = static_cast<float>(options.number("repeat-penalty"));
    sampling.presence_penalty  = static_cast<float>(options.number("presence-penalty"));
    sampling.frequency_penalty = static_cast<float>(options.number("frequency-penalty"));
    sampling.penalty_window    = static_cast<int>(std::min<int64_t>(options.integer("repeat-last-n"), INT32_MAX));
    return sampling;
}

uint64_t random_seed() {
    return std::random_device()();
}

GenerateOptions generate_options(const Options & options, int n_steps) {
    GenerateOptions generate;
    generate.method    = options.flag("cot") ? "cot" : "";
    generate.n_steps   = n_steps;
    generate.n_predict = static_cast<int>(options.integer("predict"));
    generate.sampling  = sampling_options(options);
    generate.stop      = options.list("stop");
    generate.grammar   = read_constraint(options);
    if (std::find(generate.stop.begin(), generate.stop.end(), "") != generate.stop.end()) {
        throw UsageError("--stop: empty text", "give the text to stop at");
    }
    return generate;
}

Thinking thinking_option(const Options & options) {
    const std::string wanted = options.text("reasoning");
    return wanted == "on" ? Thinking::on : wanted == "off" ? Thinking::off : Thinking::automatic;
}

void expect_reasoning(const ChatTemplate & chat, size_t n_prompt, GenerateOptions & generate) {
    generate.reasoning       = chat.reasoning_start();
    generate.n_stable_prefix = chat.rewrites_answer(true) ? static_cast<int>(n_prompt) - chat.n_generation_prompt() : 0;
}

} // namespace penelope
