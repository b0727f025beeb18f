#include "task/evaluate.h"

#include "base/error.h"
#include "base/format.h"
#include "method/method.h"
#include "task/example_format.h"
#include "task/example_prompt.h"
#include "text/tokenizer.h"
#include "text/wording.h"

#include <algorithm>
#include <numeric>

namespace penelope {

namespace {

constexpr int kAnswerTokens = 32;
constexpr int kTraceTokens  = 256;
constexpr int kWarmUps      = 2; // questions answered before the timed ones

void check_answers(const AnswerReader & reader, const std::vector<Example> & examples) {
    if (examples.empty()) {
        throw Error(ErrorKind::usage, "evaluation: no examples", "--data names a file of questions");
    }
    for (const Example & example : examples) {
        if (reader.gold(example).empty()) {
            throw Error(ErrorKind::format,
                        "example " + in_quotes(example.id) + ": answer " + in_quotes(example.answer) +
                            " is none that can be read as task " + reader.task().name,
                        "--task generic takes any answer, --match number only numbers");
        }
    }
}

int depth_of(const Task & task, const Example & example) {
    for (const auto & [name, value] : task.facets(example)) {
        if (name == "depth") {
            return std::stoi(value);
        }
    }
    return -1;
}

Prediction predict(const AnswerReader & reader, const Example & example, int n_steps, const Answer & answer) {
    Prediction p;
    p.id                 = example.id;
    p.n_steps            = n_steps;
    p.n_taken            = answer.n_steps;
    p.settled            = answer.settled;
    p.depth              = depth_of(reader.task(), example);
    p.question           = example.question;
    p.text               = answer.text;
    p.extracted          = reader.read(answer.text);
    p.answer             = example.answer;
    p.parsed             = !p.extracted.empty();
    p.correct            = reader.is_correct(answer.text, example);
    p.n_tokens           = int(answer.tokens.size());
    p.layer_applications = answer.layer_applications;
    p.finish_reason      = finish_reason_name(answer.finish_reason);
    return p;
}

// The longest question comes last: what does not fit is refused before the others are asked.
void check_room(const Method & method, Session & session, const Tokens & longest, int n_steps, const std::string & id) {
    try {
        check_request(method, session.context(), { longest }, n_steps);
    } catch (const Error & error) {
        throw Error(error.kind, "question " + in_quotes(id) + ": " + error.message(), error.hint);
    }
}

// Questions of every length, spread over the list that is sorted by it.
std::vector<size_t> choose_timed(const std::vector<size_t> & order, size_t n) {
    n = std::min(n, order.size());
    std::vector<size_t> chosen;
    for (size_t i = 0; i < n; i++) {
        chosen.push_back(order[(2 * i + 1) * order.size() / (2 * n)]);
    }
    return chosen;
}

} // namespace

Evaluation evaluate(Session & session, const AnswerReader & reader, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateProgress & progress) {
    check_answers(reader, examples);
    const Engine &   engine  = session.engine();
    const Method &   method  = engine.method(options.method);
    const Wording *  wording = engine.wording();
    std::vector<int> steps   = options.steps.empty() ? std::vector<int>{ method.default_steps() } : options.steps;
    const bool       visible = method.max_steps() == 0;
    const bool       is_auto = steps.back() == kAutoSteps;
    if (!is_auto) {
        check_steps(method, steps.back());
    }
    GenerateOptions generate;
    generate.method    = method.name();
    generate.n_predict = options.n_predict >= 0 ? options.n_predict : visible ? kTraceTokens : kAnswerTokens;

    const ExamplePrompts asked(engine.tokenizer(),
                               wording ? wording->prompt_template : format_of(examples.front().kind).prompt_template);
    std::vector<Tokens>  prompts;
    for (const Example & example : examples) {
        prompts.push_back(asked.tokens(example));
    }
    // Neighbours in length share a graph shape more often and waste less on waiting for the longest answer.
    std::vector<size_t> order(examples.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return prompts[a].size() < prompts[b].size(); });
    check_room(method, session, prompts[order.back()], is_auto ? method.max_steps() : steps.back(),
               examples[order.back()].id);

    const std::vector<size_t> timed   = choose_timed(order, size_t(options.n_timed));
    const size_t              n_batch = size_t(std::max(1, std::min(options.n_batch, session.options().n_streams)));
    const size_t              n_work  = order.size() + timed.size();
    const auto                report  = [&](size_t n_done) {
        if (progress && !progress(double(n_done) / double(n_work))) {
            throw Error(ErrorKind::cancelled, "evaluation: interrupted");
        }
    };
    std::vector<std::vector<Prediction>> by_example(examples.size()); // in each, one per K
    for (size_t start = 0; start < order.size(); start += n_batch) {
        const size_t        n = std::min(n_batch, order.size() - start);
        std::vector<Tokens> batch;
        for (size_t i = 0; i < n; i++) {
            batch.push_back(prompts[order[start + i]]);
        }
        generate.n_steps = is_auto ? kAutoSteps : -1;
        const std::vector<std::vector<Answer>> by_steps =
            is_auto ? std::vector<std::vector<Answer>>{ session.generate_batch(batch, generate) }
                    : session.generate_sweep(batch, steps, generate);
        for (size_t k = 0; k < by_steps.size(); k++) {
            for (size_t i = 0; i < n; i++) {
                const size_t which = order[start + i];
                by_example[which].push_back(predict(reader, examples[which], steps[k], by_steps[k][i]));
            }
        }
        report(start + n);
    }
    // Depths take turns, so that a machine that slows down does so for all of them.
    for (size_t i = 0; i < timed.size() + (timed.empty() ? 0 : kWarmUps); i++) {
        const bool   warm  = i >= kWarmUps;
        const size_t which = timed[warm ? i - kWarmUps : i % timed.size()];
        for (size_t k = 0; k < steps.size(); k++) {
            generate.n_steps = steps[k];
            session.clear(); // a cached prompt would cost nothing
            const Timings spent = session.generate(prompts[which], generate).timings;
            if (warm) {
                by_example[which][k].latency_ms = spent.prompt_ms + spent.decode_ms;
            }
        }
        report(order.size() + (warm ? i - kWarmUps + 1 : 0));
    }

    Evaluation result;
    result.method        = method.name();
    result.task          = reader.task().name;
    result.default_steps = method.default_steps();
    for (auto & predictions : by_example) {
        std::move(predictions.begin(), predictions.end(), std::back_inserter(result.predictions));
    }
    result.scores = score(result.predictions);
    result.chance = reader.task().chance(examples);
    return result;
}

} // namespace penelope
