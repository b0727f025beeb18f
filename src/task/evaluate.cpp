#include "task/evaluate.h"

#include "base/error.h"
#include "base/format.h"
#include "method/method.h"
#include "task/answer_length.h"
#include "task/example_format.h"
#include "task/example_prompt.h"
#include "text/prompt_format.h"
#include "text/tokenizer.h"

#include <algorithm>
#include <numeric>

namespace penelope {

namespace {

constexpr int kWarmUps = 2; // questions answered before the timed ones

void check_answers(const AnswerReader & reader, const std::vector<Example> & examples) {
    if (examples.empty()) {
        throw Error(ErrorKind::usage, "evaluation: no examples", "give a file of questions with --data");
    }
    for (const Example & example : examples) {
        if (reader.gold(example).empty()) {
            const bool        is_generic = &reader.task() == &generic_task();
            const std::string why =
                is_generic ? "has no number" : std::string("is not a valid answer of task ") + reader.task().name;
            throw Error(ErrorKind::format,
                        "example " + in_quotes(example.id) + ": answer " + in_quotes(example.answer) + " " + why,
                        is_generic ? "--match exact compares answers of any kind" : "--task generic takes any answer");
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
    p.n_steps_taken      = answer.n_steps;
    p.step_cosine        = answer.step_cosine;
    p.depth              = depth_of(reader.task(), example);
    p.question           = example.question;
    p.text               = answer.text;
    p.extracted          = reader.read(answer.text);
    p.answer             = example.answer;
    p.gold               = reader.gold(example);
    p.parsed             = !p.extracted.empty();
    p.correct            = reader.is_correct(answer.text, example);
    p.n_tokens           = int(answer.tokens.size());
    p.layer_applications = answer.layer_applications;
    p.finish_reason      = finish_reason_name(answer.finish_reason);
    return p;
}

// The longest question comes last: what does not fit is refused before the others are asked.
void check_fits_context(const Method & method, Session & session, const Tokens & longest, int n_steps,
                        const std::string & id) {
    try {
        check_request(method, session.context(), { longest }, n_steps);
    } catch (const Error & error) {
        throw Error(error.kind, "question " + in_quotes(id) + ": " + error.message(), error.hint);
    }
}

// Questions of every length, spread over the list that is sorted by it.
std::vector<size_t> choose_latency_samples(const std::vector<size_t> & order, size_t n) {
    n = std::min(n, order.size());
    std::vector<size_t> chosen;
    for (size_t i = 0; i < n; i++) {
        chosen.push_back(order[(2 * i + 1) * order.size() / (2 * n)]);
    }
    return chosen;
}

// Answers that count as the same are the same to a guess.
std::vector<Example> canonical_answers(const AnswerReader & reader, std::vector<Example> examples) {
    if (&reader.task() != &generic_task()) {
        return examples; // written by the task itself
    }
    for (Example & example : examples) {
        example.answer = reader.gold(example);
    }
    return examples;
}

// The questions of one evaluation on their way through a session.
class Evaluator {
  public:
    Evaluator(Session & session, const AnswerReader & reader, const std::vector<Example> & examples,
              const EvaluateOptions & options, const EvaluateEvents & events);

    Evaluation run();

  private:
    bool answer_batch(size_t start, size_t n);
    bool measure_latency(size_t which, bool is_recorded);
    bool run_all();

    Session &                    session_;
    const AnswerReader &         reader_;
    const std::vector<Example> & examples_;
    const EvaluateEvents &       events_;
    const Method &               method_;
    const std::vector<int>       steps_;
    const bool                   is_auto_;
    const size_t                 n_batch_, n_latency_samples_;
    GenerateOptions              generate_;
    std::vector<Tokens>          prompts_;
    std::vector<size_t>          order_; // of the questions, by their length

    std::vector<std::vector<Prediction>> by_example_; // in each, one per K
};

Evaluator::Evaluator(Session & session, const AnswerReader & reader, const std::vector<Example> & examples,
                     const EvaluateOptions & options, const EvaluateEvents & events)
    : session_(session), reader_(reader), examples_(examples), events_(events),
      method_(session.engine().method(options.method)),
      steps_(options.steps.empty() ? std::vector<int>{ method_.default_steps() } : options.steps),
      is_auto_(steps_.back() == kAutoSteps),
      n_batch_(size_t(std::max(1, std::min(options.n_batch, session.options().n_streams)))),
      n_latency_samples_(size_t(options.n_latency_samples)), order_(examples.size()), by_example_(examples.size()) {
    if (!is_auto_) {
        check_steps(method_, steps_.back());
    }
    const bool visible  = method_.max_steps() == 0;
    generate_.method    = method_.name();
    generate_.n_predict = options.n_predict >= 0 ? options.n_predict : visible ? kTraceTokens : kAnswerTokens;

    const PromptFormat * prompt_format = session.engine().prompt_format();
    const ExamplePrompts example_prompts(session.engine().tokenizer(),
                                         prompt_format ? prompt_format->prompt_template
                                                       : format_of(examples.front().kind).prompt_template);
    for (const Example & example : examples) {
        prompts_.push_back(example_prompts.tokens(example));
    }
    // Neighbours in length share a graph shape more often and waste less on waiting for the longest answer.
    std::iota(order_.begin(), order_.end(), size_t(0));
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return prompts_[a].size() < prompts_[b].size(); });
    check_fits_context(method_, session, prompts_[order_.back()], is_auto_ ? method_.max_steps() : steps_.back(),
                       examples[order_.back()].id);
}

// Answers n questions side by side, at every K. False: they were cut off.
bool Evaluator::answer_batch(size_t start, size_t n) {
    std::vector<Tokens> batch;
    for (size_t i = 0; i < n; i++) {
        batch.push_back(prompts_[order_[start + i]]);
    }
    generate_.n_steps = is_auto_ ? kAutoSteps : -1;
    const std::vector<std::vector<Answer>> by_steps =
        is_auto_ ? std::vector<std::vector<Answer>>{ session_.generate_batch(batch, generate_) }
                 : session_.generate_sweep(batch, steps_, generate_);
    for (const std::vector<Answer> & answers : by_steps) {
        for (const Answer & answer : answers) {
            if (answer.finish_reason == FinishReason::cancelled) {
                return false;
            }
        }
    }
    Evaluation done;
    done.method        = method_.name();
    done.task          = reader_.task().name;
    done.default_steps = method_.default_steps();
    for (size_t i = 0; i < n; i++) {
        const size_t which = order_[start + i];
        for (size_t k = 0; k < by_steps.size(); k++) {
            by_example_[which].push_back(predict(reader_, examples_[which], steps_[k], by_steps[k][i]));
            done.predictions.push_back(by_example_[which].back());
        }
    }
    events_.answered(done);
    return true;
}

// Answers a question alone. Depths take turns, so that a machine that slows down does so for all of them.
bool Evaluator::measure_latency(size_t which, bool is_recorded) {
    for (size_t k = 0; k < steps_.size(); k++) {
        generate_.n_steps = steps_[k];
        session_.clear(); // a cached prompt would cost nothing
        const Answer answer = session_.generate(prompts_[which], generate_);
        if (answer.finish_reason == FinishReason::cancelled) {
            return false;
        }
        if (is_recorded) {
            by_example_[which][k].latency_ms = answer.timings.prompt_ms + answer.timings.decode_ms;
        }
    }
    return true;
}

// False: it was ended before everything was done.
bool Evaluator::run_all() {
    const std::vector<size_t> timed  = choose_latency_samples(order_, n_latency_samples_);
    const double              n_work = double(order_.size() + timed.size());
    for (size_t start = 0; start < order_.size(); start += n_batch_) {
        const size_t n = std::min(n_batch_, order_.size() - start);
        if (!answer_batch(start, n) || !events_.progress(double(start + n) / n_work)) {
            return false;
        }
    }
    for (size_t i = 0; i < timed.size() + (timed.empty() ? 0 : kWarmUps); i++) {
        const bool   warm = i >= kWarmUps;
        const size_t done = order_.size() + (warm ? i - kWarmUps + 1 : 0);
        if (!measure_latency(timed[warm ? i - kWarmUps : i % timed.size()], warm) ||
            !events_.progress(double(done) / n_work)) {
            return false;
        }
    }
    return true;
}

Evaluation Evaluator::run() {
    Evaluation result;
    try {
        result.interrupted = !run_all();
    } catch (const Error & error) {
        if (error.kind != ErrorKind::cancelled) {
            throw;
        }
        result.interrupted = true;
    }
    result.method        = method_.name();
    result.task          = reader_.task().name;
    result.default_steps = method_.default_steps();
    std::vector<Example> answered;
    for (size_t i = 0; i < examples_.size(); i++) {
        std::vector<Prediction> & predictions = by_example_[i];
        if (predictions.empty()) {
            result.n_unanswered++;
            continue;
        }
        answered.push_back(examples_[i]);
        std::move(predictions.begin(), predictions.end(), std::back_inserter(result.predictions));
    }
    result.scores = score(result.predictions);
    if (!answered.empty()) {
        result.chance = reader_.task().chance(canonical_answers(reader_, std::move(answered)));
    }
    return result;
}

} // namespace

Evaluation evaluate(Session & session, const AnswerReader & reader, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateEvents & events) {
    check_answers(reader, examples);
    return Evaluator(session, reader, examples, options, events).run();
}

} // namespace penelope
