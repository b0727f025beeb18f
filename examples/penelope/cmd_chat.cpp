// penelope chat: messages from a terminal or a pipe, answers as they come.
#include "answer_output.h"
#include "commands.h"
#include "conversation.h"
#include "interrupt.h"
#include "line_editor.h"
#include "model_setup.h"
#include "output.h"
#include "watch.h"

#include "base/atomic_file.h"
#include "base/format.h"

#include <optional>
#include <sstream>

namespace penelope {

namespace {

constexpr int exit_interrupted = 130;

constexpr const char * chat_help =
    "/help               this list\n"
    "/steps N            latent steps, or auto; the same as /set K N\n"
    "/watch              show or hide what every latent step says\n"
    "/set K N            latent steps          /set temp T    temperature, 0 is greedy\n"
    "/set seed S         seed of the sampler   /set n N       new tokens at most, -1 no limit\n"
    "/regen              answer the last message again\n"
    "/clear              forget the conversation\n"
    "/stats              cost of the last answer, settings, memory\n"
    "/save [--force] F   write the conversation to a file, one JSON object a line\n"
    "/exit               leave, as Ctrl-D does\n"
    "Ctrl-C stops an answer; twice leaves. Several lines: paste them, end a line with \\, or put them between lines of "
    "\"\"\".\n"
    "A message that starts with / can be sent with a space before it.\n";

// The value of -K, which is a list for other commands.
int one_number(const Options & options) {
    const std::vector<int> steps = options.steps("latent-steps");
    if (steps.size() != 1) {
        throw UsageError("-K: a chat answers once, '" + options.text("latent-steps") + "' is several numbers",
                         "give one number, or auto");
    }
    return steps.front();
}

class Chat {
  public:
    Chat(const Options & options, Terminal & terminal, Session & session)
        : terminal_(terminal), session_(session),
          generate_(generate_options(options, options.given("latent-steps") ? one_number(options) : -1)),
          conversation_(session.engine(), options.text("system"), options.flag("raw"), thinking_option(options)),
          json_(options.flag("json")), watch_(options.flag("watch")) {
        check_sampling(generate_.sampling);
        check_way(session.engine(), generate_.method, generate_.n_steps, options.flag("insist"));
    }

    int loop();

  private:
    void command(const std::string & line); // sets done_ on /exit
    void set(const std::string & name, const std::string & value);
    void show_stats();
    void reply();

    Terminal &      terminal_;
    Session &       session_;
    GenerateOptions generate_;
    Conversation    conversation_;
    Answer          last_;
    bool            json_;
    bool            watch_;
    bool            done_     = false;
    size_t          n_failed_ = 0;
};

// Generates and prints the answer to the last question. An error takes the question back.
void Chat::reply() {
    bool          ends_line = true;
    TokenCallback on_token;
    if (!json_) {
        on_token = [&](std::string_view text, int32_t) {
            if (!text.empty()) {
                terminal_.write(text);
                ends_line = text.back() == '\n';
            }
            return true;
        };
    }
    ThoughtAside thoughts(terminal_);
    if (const ChatTemplate * chat = conversation_.chat_template()) {
        expect_reasoning(*chat, conversation_.prompt().size(), generate_);
    }
    try {
        const InterruptWatch watch = watch_session(session_);
        StepWatch            steps(terminal_);
        last_ = session_.generate(conversation_.prompt(), generate_, thoughts.before(steps.before(on_token)),
                                  watch_ ? steps.callback() : StepCallback(),
                                  json_ ? ReasoningCallback() : thoughts.callback());
        thoughts.finish();
        steps.finish();
    } catch (const Error & error) {
        thoughts.finish();
        if (!ends_line) {
            terminal_.write("\n");
        }
        if (error.kind == ErrorKind::io) {
            throw; // there is nobody left to talk to
        }
        conversation_.drop_question();
        ++n_failed_;
        if (json_) {
            terminal_.line(dump_json(error_json(error)));
        } else {
            terminal_.error(error);
        }
        return;
    }
    conversation_.answer(last_);
    if (json_) {
        terminal_.line(dump_json(answer_json(last_, session_.engine(), generate_.sampling.seed)));
    } else if (!ends_line || last_.text.empty()) {
        terminal_.write("\n");
    }
    if (terminal_.in_is_tty() || terminal_.verbose()) {
        terminal_.note(stats_line(last_));
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
            check_way(session_.engine(), generate_.method, one_number(checked), true);
            generate_.n_steps = one_number(checked);
        } else if (name == "temp") {
            generate_.sampling.temperature = static_cast<float>(checked.number(option));
        } else if (name == "seed") {
            generate_.sampling.seed = static_cast<uint64_t>(checked.integer(option));
        } else {
            generate_.n_predict = static_cast<int>(checked.integer(option));
        }
        terminal_.note(name + " = " + value);
        return;
    }
    throw UsageError("/set: '" + name + "' is not a setting", "/set K, temp, seed or n, followed by a value");
}

void Chat::show_stats() {
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
        << conversation_.n_messages() << " messages | context of " << session_.options().n_ctx << " rows | "
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
        terminal_.write(chat_help);
    } else if (name == "/clear") {
        conversation_.clear();
        session_.clear();
        terminal_.note("forgotten");
    } else if (name == "/regen") {
        if (!conversation_.drop_answer()) {
            throw UsageError("/regen: there is no answer yet", "ask something first");
        }
        if (generate_.sampling.temperature > 0) {
            ++generate_.sampling.seed; // the same seed would give the same answer
        }
        reply();
    } else if (name == "/set") {
        set(first, second);
    } else if (name == "/steps") {
        set("K", first);
    } else if (name == "/watch") {
        watch_ = !watch_;
        terminal_.note(std::string("what latent steps say is ") + (watch_ ? "shown" : "hidden"));
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

int Chat::loop() {
    std::optional<InterruptHold> hold;
    if (terminal_.in_is_tty()) {
        hold.emplace(); // a press between two answers has to reach the editor
    }
    LineEditor editor(terminal_, "> ",
                      { "/help", "/exit", "/clear", "/regen", "/set", "/steps", "/watch", "/stats", "/save" });
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
        if (message.find_first_not_of(" \t\n") == std::string::npos) {
            continue;
        }
        if (message[0] != '/') {
            conversation_.ask(message);
            reply();
            continue;
        }
        try {
            command(message);
        } catch (const Error & error) {
            if (error.kind == ErrorKind::io && message.compare(0, 5, "/save") != 0) {
                throw;
            }
            ++n_failed_;
            terminal_.error(error);
        }
    }
    // A script wants to know; a person has seen it.
    return n_failed_ > 0 && !terminal_.in_is_tty() ? 1 : 0;
}

} // namespace

int cmd_chat(const Options & options, Terminal & terminal) {
    const std::shared_ptr<const Engine> engine = load_engine(options, terminal);
    Session                             session(engine, session_options(options, 1));
    Chat                                chat(options, terminal, session);
    if (terminal.in_is_tty()) {
        terminal.note("/help lists the commands, Ctrl-D leaves");
    }
    return chat.loop();
}

} // namespace penelope
