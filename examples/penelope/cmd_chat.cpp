// penelope chat: messages from a terminal or a pipe, answers as they come.
#include "answer_output.h"
#include "chat_help.h"
#include "chat_history.h"
#include "commands.h"
#include "conversation.h"
#include "interrupt.h"
#include "line_editor.h"
#include "model_setup.h"
#include "output.h"
#include "step_printer.h"
#include "word_wrap.h"

#include "base/atomic_file.h"
#include "base/format.h"
#include "base/trim.h"

#include <algorithm>
#include <optional>
#include <sstream>

namespace penelope {

namespace {

constexpr int exit_interrupted = 130;

constexpr float chat_temperature = 0.7f; // where messages go through a chat template

// The value of -K, which is a list for other commands.
int single_latent_steps(const Options & options) {
    const std::vector<int> steps = options.steps("latent-steps");
    if (steps.size() != 1) {
        throw UsageError("-K: expected one number or auto, found '" + options.text("latent-steps") + "'",
                         "give one number, or auto");
    }
    return steps.front();
}

class Chat {
  public:
    Chat(Terminal & terminal, Session & session, const PromptWriter & writer, GenerateOptions generate,
         const Options & options)
        : terminal_(terminal), session_(session), writer_(writer), generate_(std::move(generate)),
          conversation_(writer, session.options().n_ctx, reserved_answer_tokens(session, generate_)),
          json_(options.flag("json")), watch_(options.flag("watch")), has_seed_(options.given("seed")) {}

    int loop(const std::string & history);
    int ask_once(const std::string & message);

  private:
    static int reserved_answer_tokens(const Session & session, const GenerateOptions & generate) {
        const int n_ctx = session.options().n_ctx;
        return generate.n_predict >= 0 ? std::min(generate.n_predict, n_ctx / 2) : n_ctx / 4;
    }

    void ask(const std::string & message);
    void fail(const Error & error);
    void command(const std::string & line); // sets done_ on /exit
    void set(const std::string & name, const std::string & value);
    void show_stats();
    void reply(const std::optional<Answer> & earlier = std::nullopt);

    Terminal &           terminal_;
    Session &            session_;
    const PromptWriter & writer_;
    GenerateOptions      generate_;
    Conversation         conversation_;
    Answer               last_;
    bool                 json_;
    bool                 watch_;
    bool                 has_seed_;            // given, set or drawn
    bool                 warned_full_ = false; // that turns are dropped
    bool                 once_        = false; // one message, then the end
    bool                 done_        = false;
    size_t               n_failed_    = 0;
};

void Chat::fail(const Error & error) {
    if (once_) {
        throw Error(error); // nothing comes after it
    }
    ++n_failed_;
    if (json_) {
        terminal_.line(dump_json(error_json(error)));
    } else {
        terminal_.error(error);
    }
}

void Chat::ask(const std::string & message) {
    conversation_.ask(message);
    const bool fits = conversation_.prompt().size() < size_t(session_.options().n_ctx);
    if (conversation_.n_dropped_turns() > 0 && fits && !warned_full_) {
        warned_full_ = true;
        terminal_.warning("context of " + std::to_string(session_.options().n_ctx) +
                          " tokens is full: dropping the oldest turns (-c N sets a larger context, /clear empties it)");
    }
    reply();
}

// Generates and prints the answer to the last question. On an error the earlier answer is restored, or the question
// is dropped.
void Chat::reply(const std::optional<Answer> & earlier) {
    WordWrap   wrap([this](std::string_view text) { terminal_.write(text); }, [this] { return terminal_.columns(); });
    bool       ends_line = true;
    const bool wraps     = terminal_.out_is_tty();
    TokenCallback on_token;
    if (!json_) {
        on_token = [&](std::string_view text, int32_t) {
            if (wraps) {
                wrap.feed(text);
            } else if (!text.empty()) {
                terminal_.write(text);
            }
            ends_line = text.empty() ? ends_line : text.back() == '\n';
            return true;
        };
    }
    if (!has_seed_ && generate_.sampling.temperature > 0) {
        generate_.sampling.seed = random_seed();
        has_seed_               = true;
    }
    ReasoningPrinter thoughts(terminal_);
    if (const ChatTemplate * chat = writer_.chat()) {
        expect_reasoning(*chat, conversation_.prompt().size(), generate_);
    }
    const auto end_line = [&](bool had_text) {
        if (wraps) {
            wrap.finish();
        }
        if ((!wraps && !ends_line) || !had_text) {
            terminal_.write("\n");
        }
    };
    try {
        if (terminal_.in_is_tty()) {
            session_.reset_cancel(); // of a press that came when the answer before was already complete
        }
        const CancelOnInterrupt watch = cancel_on_interrupt(session_);
        StepPrinter             steps(terminal_);
        last_ = session_.generate(conversation_.prompt(), generate_, thoughts.before(steps.before(on_token)),
                                  watch_ ? steps.callback() : StepCallback(),
                                  json_ ? ReasoningCallback() : thoughts.callback());
        thoughts.finish();
        steps.finish();
    } catch (const Error & error) {
        thoughts.finish();
        if (!json_) {
            end_line(true);
        }
        if (error.kind == ErrorKind::io) {
            throw; // there is nobody left to talk to
        }
        if (earlier) {
            conversation_.answer(*earlier);
        } else {
            conversation_.drop_question();
        }
        fail(error);
        return;
    }
    conversation_.answer(last_);
    if (json_) {
        terminal_.line(dump_json(answer_json(last_, session_.engine(), generate_.sampling.seed)));
    } else {
        end_line(!last_.text.empty());
    }
    if (terminal_.in_is_tty() || terminal_.verbose()) {
        const bool sampled = generate_.sampling.temperature > 0;
        terminal_.note(stats_line(last_) + (sampled ? " | seed " + std::to_string(generate_.sampling.seed) : ""));
    }
}

void Chat::set(const std::string & name, const std::string & value) {
    // The rows of the option table know how to check and explain the values.
    static const std::pair<const char *, const char *> names[] = {
        { "K", "latent-steps" }, { "temp", "temp" }, { "seed", "seed" }, { "n", "predict" }
    };
    for (const auto & [shown, option] : names) {
        if (name != shown) {
            continue;
        }
        Options checked("chat");
        for (const OptionRow * row : command_options("chat")) {
            if (std::string(row->name) == option) {
                checked.set(*row, { value }, OptionSource::flag, "");
            }
        }
        if (name == "K") {
            check_method_supported(session_.engine(), generate_.method, single_latent_steps(checked), true);
            generate_.n_steps = single_latent_steps(checked);
        } else if (name == "temp") {
            generate_.sampling.temperature = static_cast<float>(checked.number(option));
        } else if (name == "seed") {
            generate_.sampling.seed = static_cast<uint64_t>(checked.integer(option));
            has_seed_               = true;
        } else {
            generate_.n_predict = static_cast<int>(checked.integer(option));
        }
        terminal_.note(join({ name, value }, " = "));
        return;
    }
    throw UsageError("/set: '" + name + "' is not a setting", "/set K, temp, seed or n, followed by a value");
}

void Chat::show_stats() {
    if (json_) {
        OrderedJson stats = { { "status", "ok" },
                              { "messages", conversation_.n_messages() },
                              { "turns_dropped", conversation_.n_dropped_turns() },
                              { "n_ctx", session_.options().n_ctx },
                              { "temp", generate_.sampling.temperature },
                              { "seed", generate_.sampling.seed },
                              { "n", generate_.n_predict },
                              { "weight_bytes", session_.engine().weight_bytes() },
                              { "cache_bytes", session_.memory_bytes() } };
        terminal_.line(dump_json(stats));
        return;
    }
    std::ostringstream out;
    if (!last_.method.empty()) {
        out << stats_line(last_) << "\n";
    }
    if (session_.engine().sidecar() != nullptr) {
        out << "K = "
            << (generate_.n_steps == kAutoSteps ? "auto"
                : generate_.n_steps < 0         ? "the sidecar's default"
                                                : std::to_string(generate_.n_steps))
            << " | ";
    }
    out << "temp = " << generate_.sampling.temperature << " | seed = " << generate_.sampling.seed
        << " | n = " << generate_.n_predict << "\n"
        << conversation_.n_messages() << " messages | context of " << session_.options().n_ctx << " tokens | "
        << format_bytes(session_.engine().weight_bytes()) << " weights, " << format_bytes(session_.memory_bytes())
        << " caches and buffers\n";
    terminal_.write(out.str());
}

void Chat::command(const std::string & line) {
    std::istringstream in(line);
    std::string        name, first, second;
    in >> name >> first >> second;
    if (name == "/exit" || name == "/quit") {
        done_ = true;
    } else if (name == "/help") {
        if (json_) {
            terminal_.line(dump_json(chat_help_json()));
        } else {
            terminal_.write(chat_help());
        }
    } else if (name == "/clear") {
        conversation_.clear();
        session_.clear();
        warned_full_ = false;
        terminal_.note("conversation cleared");
    } else if (name == "/regen") {
        const std::optional<Answer> earlier = conversation_.take_answer();
        if (!earlier) {
            throw UsageError("/regen: there is no answer yet", "ask something first");
        }
        if (generate_.sampling.temperature > 0) {
            ++generate_.sampling.seed; // the same seed would give the same answer
        }
        reply(earlier);
    } else if (name == "/set") {
        set(first, second);
    } else if (name == "/steps") {
        set("K", first);
    } else if (name == "/watch") {
        watch_ = !watch_;
        terminal_.note(std::string("latent steps: ") + (watch_ ? "shown" : "hidden"));
    } else if (name == "/stats") {
        show_stats();
    } else if (name == "/save") {
        const bool        force = first == "--force";
        const std::string word  = force ? first : name;
        const size_t      start = line.find_first_not_of(" \t", line.find(word) + word.size());
        if (start == std::string::npos) {
            throw UsageError("/save: the file name is missing", "/save FILE");
        }
        const std::string path = line.substr(start, line.find_last_not_of(" \t") + 1 - start);
        write_file(path, conversation_.transcript(), force);
        terminal_.note("saved " + path);
    } else {
        throw UsageError(name + ": unknown command", "/help lists them; a space before the / sends it as a message");
    }
}

int Chat::ask_once(const std::string & message) {
    if (is_blank(message)) {
        throw UsageError("--prompt: empty message", "give a message, or remove -p to chat interactively");
    }
    once_ = true;
    ask(message);
    return last_.finish_reason == FinishReason::cancelled ? interrupted_exit_code() : 0;
}

int Chat::loop(const std::string & history) {
    std::optional<InterruptDeferral> hold;
    if (terminal_.in_is_tty()) {
        hold.emplace(); // a press between two answers has to reach the editor
    }
    LineEditor editor(terminal_, "> ", chat_command_names(), ChatHistory(history));
    while (!done_) {
        std::string      message;
        const ReadStatus status = editor.read(message);
        if (status == ReadStatus::end) {
            break;
        }
        if (status == ReadStatus::interrupted) {
            if (interrupt_count() > 1) {
                return exit_interrupted;
            }
            terminal_.note("Ctrl-C again or Ctrl-D leaves");
            continue;
        }
        reset_interrupts();
        if (is_blank(message)) {
            continue;
        }
        try {
            if (message[0] != '/') {
                ask(message);
            } else {
                command(message);
            }
        } catch (const Error & error) {
            if (error.kind == ErrorKind::io && message.compare(0, 5, "/save") != 0) {
                throw;
            }
            fail(error);
        }
        if (!terminal_.in_is_tty() && last_.finish_reason == FinishReason::cancelled) {
            return interrupted_exit_code(); // an interrupted script should not go on
        }
    }
    // Scripts need the exit code; a person has seen the errors.
    return n_failed_ > 0 && !terminal_.in_is_tty() ? 1 : 0;
}

// A conversation needs a chat template, a prompt template in the files, or --raw.
void check_conversation(const PromptWriter & writer) {
    if (writer.no_template()) {
        throw Error(*writer.no_template());
    }
}

} // namespace

int cmd_chat(const Options & options, Terminal & terminal) {
    const PromptOptions choice   = prompt_choice(options);
    const int           n_steps  = options.given("latent-steps") ? single_latent_steps(options) : -1;
    GenerateOptions     generate = generate_options(options, n_steps);
    check_sampling(generate.sampling);
    const std::shared_ptr<const Engine> engine = load_engine(options, terminal);
    check_method_supported(*engine, generate.method, n_steps, options.flag("ignore-mismatch"));
    const PromptWriter writer(*engine, choice);
    check_conversation(writer);
    terminal.note(writer.description());
    if (!options.given("temp") && writer.chat() != nullptr) {
        generate.sampling.temperature = chat_temperature;
    }
    use_utf8_locale();
    Session session(engine, session_options(options, 1));
    Chat    chat(terminal, session, writer, std::move(generate), options);
    if (options.given("prompt")) {
        return chat.ask_once(options.text("prompt"));
    }
    if (terminal.in_is_tty()) {
        terminal.note("/help lists the commands, Ctrl-D leaves");
    }
    const std::string history = options.text("history");
    return chat.loop(history == "none" ? "" : history.empty() ? ChatHistory::default_path() : history);
}

} // namespace penelope
