// penelope run: answers one prompt from -p, -f or stdin, or the questions of a file.
#include "answer_output.h"
#include "commands.h"
#include "inspect.h"
#include "interrupt.h"
#include "model_setup.h"
#include "output.h"
#include "prompt_input.h"
#include "step_printer.h"

#include "infer/prompt.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t group_size = 8; // questions packed into one graph

struct Run {
    const Options &   options;
    Terminal &        terminal;
    Session &         session;
    PromptWriter &    writer;
    InspectionFiles & files;
    int               deepest; // latent steps of the inspection files
    bool              json;
    bool              watch;

    std::vector<int32_t> tokens(const PromptInput & prompt) const { return writer.tokens(prompt.text); }

    void inspect(const PromptInput & prompt) const { files.add(session, tokens(prompt), prompt.id, deepest); }
};

void stop_if_cancelled(const Answer & answer) {
    if (answer.finish_reason == FinishReason::cancelled) {
        throw Error(ErrorKind::cancelled, "interrupted: the answer is not complete");
    }
}

void print_json(const Run & run, const Answer & answer, uint64_t seed, const OrderedJson & id) {
    OrderedJson object;
    if (!id.is_null()) {
        object["id"] = id;
    }
    object.update(answer_json(answer, run.session.engine(), seed));
    run.terminal.line(dump_json(object));
}

void run_single(const Run & run, const PromptInput & prompt, const GenerateOptions & generate) {
    TokenCallback on_token;
    bool          ends_line = true;
    if (!run.json) {
        on_token = [&](std::string_view text, int32_t) {
            if (!text.empty()) {
                run.terminal.write(text);
                ends_line = text.back() == '\n';
            }
            return true;
        };
    }
    StepPrinter      steps(run.terminal);
    ReasoningPrinter thoughts(run.terminal);
    const Answer answer = run.session.generate(run.tokens(prompt), generate, thoughts.before(steps.before(on_token)),
                                               run.watch ? steps.callback() : StepCallback(),
                                               run.json ? ReasoningCallback() : thoughts.callback());
    thoughts.finish();
    steps.finish();
    if (!run.json && (!ends_line || answer.text.empty())) {
        run.terminal.write("\n");
    }
    stop_if_cancelled(answer);
    if (run.json) {
        print_json(run, answer, generate.sampling.seed, nullptr);
    }
    run.terminal.note(stats_line(answer) + " | seed " + std::to_string(generate.sampling.seed));
}

// One prompt at several K: one object a line, or one line of text for each.
void run_sweep(const Run & run, const PromptInput & prompt, const std::vector<int> & steps,
               const GenerateOptions & generate) {
    for (const std::vector<Answer> & answers : run.session.generate_sweep({ run.tokens(prompt) }, steps, generate)) {
        const Answer & answer = answers.front();
        stop_if_cancelled(answer);
        if (run.json || !prompt.id.is_null()) {
            print_json(run, answer, generate.sampling.seed, prompt.id);
        } else {
            run.terminal.line("K=" + std::to_string(answer.n_steps) + ": " + answer.text);
        }
        run.terminal.note(stats_line(answer));
    }
}

void print_failure(const Run & run, const PromptInput & prompt, const Error & error) {
    OrderedJson object;
    object["id"] = prompt.id;
    object.update(error_json(error));
    run.terminal.line(dump_json(object));
}

// Answers prompts[first, last) side by side. Returns how many failed; each failure is an object of its own.
size_t run_group(const Run & run, const std::vector<PromptInput> & prompts, size_t first, size_t last,
                 const std::vector<int> & steps, const GenerateOptions & generate) {
    const PromptInput & head = prompts[first];
    if (last - first == 1 && head.parse_error) {
        print_failure(run, head, *head.parse_error);
        return 1;
    }
    try {
        if (steps.size() > 1) {
            run_sweep(run, head, steps, generate);
            run.inspect(head);
            return 0;
        }
        std::vector<std::vector<int32_t>> tokens;
        for (size_t i = first; i < last && !prompts[i].parse_error; ++i) {
            tokens.push_back(run.tokens(prompts[i]));
        }
        if (tokens.size() == last - first) {
            const std::vector<Answer> answers = run.session.generate_batch(tokens, generate);
            for (size_t i = first; i < last; ++i) {
                stop_if_cancelled(answers[i - first]);
                print_json(run, answers[i - first], generate.sampling.seed, prompts[i].id);
            }
            for (size_t i = first; i < last; ++i) {
                run.inspect(prompts[i]);
            }
            return 0;
        }
    } catch (const Error & error) {
        if (error.kind != ErrorKind::usage) {
            throw;
        }
        if (last - first == 1) {
            print_failure(run, head, error);
            return 1;
        }
    }
    // One question of the group does not fit or is none: ask them one by one to find it and to answer the others.
    size_t n_failed = 0;
    for (size_t i = first; i < last; ++i) {
        n_failed += run_group(run, prompts, i, i + 1, steps, generate);
    }
    return n_failed;
}

int run_batch(const Run & run, PromptSource & source, const std::vector<int> & steps,
              const GenerateOptions & generate) {
    const size_t group    = steps.size() > 1 ? 1 : group_size;
    size_t       n_failed = 0, n_done = 0;
    while (true) {
        const std::vector<PromptInput> prompts = source.next(group);
        if (prompts.empty()) {
            break;
        }
        n_failed += run_group(run, prompts, 0, prompts.size(), steps, generate);
        n_done += prompts.size();
        run.terminal.progress(std::to_string(n_done) +
                              (source.total() ? " of " + std::to_string(*source.total()) : "") + " questions");
    }
    run.terminal.progress("");
    if (n_failed > 0) {
        run.terminal.warning(std::to_string(n_failed) + " of " + std::to_string(n_done) +
                             " questions failed, see \"status\" in their lines");
    }
    return n_failed > 0 ? 1 : 0;
}

} // namespace

int cmd_run(const Options & options, Terminal & terminal) {
    options.required("model");
    const PromptOptions choice = prompt_choice(options);
    PromptSource        source(options, terminal);
    const bool          batch = options.given("batch");
    std::vector<int>    steps = options.steps("latent-steps");
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    GenerateOptions generate = generate_options(options, steps.size() == 1 ? steps[0] : -1);
    check_sampling(generate.sampling);
    if (!options.given("seed") && generate.sampling.temperature > 0) {
        generate.sampling.seed = random_seed();
    }
    if (options.flag("watch") && (batch || steps.size() > 1)) {
        throw UsageError("--watch: cannot be combined with --batch or several K",
                         "remove --batch and give -K one number");
    }

    // Refused before the model is loaded: the work would be lost.
    InspectionFiles files(options);

    const std::shared_ptr<const Engine> engine  = load_engine(options, terminal);
    const int                           deepest = steps.empty() ? -1 : steps.back();
    check_method_supported(*engine, generate.method, deepest, options.flag("ignore-mismatch"));
    files.check(*engine);
    PromptWriter writer    = prompt_writer(*engine, choice, terminal);
    const size_t n_streams = batch && steps.size() <= 1 ? std::min(group_size, source.total().value_or(group_size)) : 1;
    Session      session(engine, session_options(options, static_cast<int>(n_streams)));
    const CancelOnInterrupt watch = cancel_on_interrupt(session);
    if (writer.chat() != nullptr) {
        generate.reasoning = writer.chat()->reasoning_start();
    }

    const Run run{ options, terminal, session, writer, files, deepest, options.flag("json"), options.flag("watch") };
    int       code = 0;
    if (batch) {
        code = run_batch(run, source, steps, generate);
    } else {
        const PromptInput prompt = source.next(1).front();
        if (writer.looks_templated(prompt.text)) {
            terminal.warning("prompt is already templated and is templated again; use --raw");
        }
        if (steps.size() > 1) {
            run_sweep(run, prompt, steps, generate);
        } else {
            run_single(run, prompt, generate);
        }
        run.inspect(prompt);
    }
    files.finish();
    return code;
}

} // namespace penelope
