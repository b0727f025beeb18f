#include "task/evaluate.h"

#include "base/error.h"
#include "base/format.h"
#include "latent/sidecar.h"
#include "method/method.h"
#include "task/text_layout.h"
#include "text/tokenizer.h"

#include <algorithm>
#include <map>

namespace penelope {

namespace {

constexpr int kAnswerTokens = 32;
constexpr int kTraceTokens  = 256;

void check_answers(const Task & task, const std::vector<Example> & examples) {
    if (examples.empty()) {
        throw Error(ErrorKind::usage, "evaluation: no examples");
    }
    for (const Example & example : examples) {
        if (task.extract(example.answer).empty()) {
            throw Error(ErrorKind::format,
                        "example " + in_quotes(example.id) + ": answer " + in_quotes(example.answer) +
                            " is none the extractor of " + task.name + " can give",
                        "is this data of another task?");
        }
    }
}

Prediction predict(const Task & task, const Example & example, const Answer & answer, size_t n_together) {
    Prediction p;
    p.id                 = example.id;
    p.n_steps            = answer.n_steps;
    p.question           = example.question;
    p.text               = answer.text;
    p.extracted          = task.extract(answer.text);
    p.answer             = example.answer;
    p.parsed             = !p.extracted.empty();
    p.correct            = is_correct(task, answer.text, example);
    p.n_tokens           = int(answer.tokens.size());
    p.latency_ms         = (answer.timings.prompt_ms + answer.timings.decode_ms) / double(n_together);
    p.layer_applications = answer.layer_applications;
    p.finish_reason      = finish_reason_name(answer.finish_reason);
    return p;
}

} // namespace

std::vector<Score> score(const std::vector<Prediction> & predictions) {
    std::map<int, Score> by_steps;
    for (const Prediction & p : predictions) {
        Score & s = by_steps[p.n_steps];
        s.n_steps = p.n_steps;
        s.n++;
        s.em += p.correct;
        s.parsed += p.parsed;
        s.output_tokens += p.n_tokens;
        s.latency_ms += p.latency_ms;
        s.layer_applications = std::max(s.layer_applications, p.layer_applications);
    }
    std::vector<Score> scores;
    for (auto & [steps, s] : by_steps) {
        for (double * sum : { &s.em, &s.parsed, &s.output_tokens, &s.latency_ms }) {
            *sum /= double(s.n);
        }
        scores.push_back(s);
    }
    return scores;
}

Evaluation evaluate(Session & session, const Task & task, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateProgress & progress) {
    check_answers(task, examples);
    const Engine &        engine  = session.engine();
    const Method &        method  = engine.method(options.method);
    const SidecarConfig * sidecar = engine.sidecar();
    std::vector<int>      steps   = options.steps.empty() ? std::vector<int>{ method.default_steps() } : options.steps;

    GenerateOptions generate;
    generate.method    = method.name();
    const bool visible = method.max_steps() == 0;
    generate.n_predict = options.n_predict >= 0 ? options.n_predict : visible ? kTraceTokens : kAnswerTokens;
    if (visible) {
        steps = { 0 };
    }

    std::vector<Tokens> prompts;
    for (const Example & example : examples) {
        prompts.push_back(engine.tokenizer().encode(
            prompt_text(sidecar ? sidecar->prompt_template : default_prompt_template, example.question),
            { true, false }));
    }
    // Neighbours in length share a graph shape more often and waste less on waiting for the longest answer.
    std::vector<size_t> order(examples.size());
    for (size_t i = 0; i < order.size(); i++) {
        order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return prompts[a].size() < prompts[b].size(); });

    const size_t n_batch = size_t(std::max(1, std::min(options.n_batch, session.options().n_streams)));
    std::vector<std::vector<Prediction>> by_example(examples.size());
    for (size_t start = 0; start < order.size(); start += n_batch) {
        const size_t        n = std::min(n_batch, order.size() - start);
        std::vector<Tokens> batch;
        for (size_t i = 0; i < n; i++) {
            batch.push_back(prompts[order[start + i]]);
        }
        for (const std::vector<Answer> & answers : session.generate_sweep(batch, steps, generate)) {
            for (size_t i = 0; i < n; i++) {
                const size_t which = order[start + i];
                by_example[which].push_back(predict(task, examples[which], answers[i], n));
            }
        }
        if (progress && !progress(start + n, order.size())) {
            throw Error(ErrorKind::cancelled, "evaluation: interrupted");
        }
    }

    Evaluation result;
    result.method = method.name();
    for (auto & predictions : by_example) {
        std::move(predictions.begin(), predictions.end(), std::back_inserter(result.predictions));
    }
    result.scores     = score(result.predictions);
    const auto best   = std::max_element(result.scores.begin(), result.scores.end(),
                                         [](const Score & a, const Score & b) { return a.em < b.em; });
    result.best_steps = best->n_steps;
    result.chance     = task.chance(examples);
    return result;
}

} // namespace penelope
