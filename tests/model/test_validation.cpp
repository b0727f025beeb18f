// A validation that is stopped gives no score: answers that were cut off are no wrong ones.
#include "base/error.h"
#include "support/training.h"
#include "train/collective.h"
#include "train/validation.h"

#include <doctest/doctest.h>

using namespace penelope;
using penelope::test::cpu;
using penelope::test::GoldenCase;
using penelope::test::train_options_of;

namespace {

constexpr int kDepth   = 3;
constexpr int kAnswers = 2;  // that the golden case knows
constexpr int kTokens  = 12; // of each

// Questions whose right answer is what the model says.
std::vector<Example> answered_examples(const GoldenCase & golden, const Tokenizer & tokenizer) {
    std::vector<Example> examples;
    for (size_t i = 0; i < kAnswers; i++) {
        const Tokens greedy   = golden.greedy(kDepth, i);
        std::string  question = golden.prompt(i);
        question.pop_back(); // the newline of the template
        examples.push_back({ std::to_string(i), question, { "a step" }, tokenizer.decode(greedy) });
    }
    return examples;
}

} // namespace

TEST_CASE("whenever a validation is stopped, it is cancelled and no score is given") {
    const GoldenCase                  golden("last");
    const TrainedModel                model(train_options_of(golden, "penelope"), cpu());
    const std::vector<Example>        examples = answered_examples(golden, model.tokenizer());
    const TrainingData                data(examples, model.tokenizer(), { "{question}\n", "" });
    const AnswerReader                reader(generic_task(), "", Match::exact, examples);
    const std::unique_ptr<Collective> alone = single_process();
    ValidationOptions                 options;
    options.batch_size = 1;
    options.n_predict  = kTokens;

    // Asks with a stop that comes at the first, the second, ... time it is looked for, until it is too late.
    const auto stop_anywhere = [&](const std::function<double(Validator &)> & ask) {
        int    n_stopped = 0;
        double score     = -1;
        while (score < 0) {
            int       n_supervised_targets = 0;
            Validator validator(model, data, reader, cpu(), options, *alone,
                                [&] { return ++n_supervised_targets > n_stopped; });
            try {
                score = ask(validator);
                CHECK(n_supervised_targets <= n_stopped);
            } catch (const Error & error) {
                REQUIRE(error.kind == ErrorKind::cancelled);
                n_stopped++;
            }
        }
        CHECK(n_stopped >= kAnswers);
        return score;
    };
    CHECK(stop_anywhere([](Validator & validator) { return validator.exact({ kDepth }).front(); }) == 1.0);
    stop_anywhere([](Validator & validator) { return double(validator.writes_visible_steps()); });
    stop_anywhere([](Validator & validator) { return validator.loss({ 1, 1, kDepth, kAnswerOnly, true }); });
}
