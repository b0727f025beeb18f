// What latent steps should say when they are forced, who is forced at which update, and what is counted as right.
#include <doctest/doctest.h>

#include "support/small_vocabulary.h"
#include "train/depth_sampler.h"
#include "train/step_score.h"
#include "train/step_targets.h"
#include "train/teacher_forcing.h"

#include <cmath>
#include <map>
#include <set>

using namespace penelope;

namespace {

Minibatch supervised(int n_examples, int n_steps) {
    Minibatch batch;
    batch.n_steps            = n_steps;
    batch.n_step_target_rows = 1;
    for (int i = 0; i < n_examples; i++) {
        TokenizedExample example{ { 1 }, { 2, 3 } };
        example.step_targets.assign(size_t(n_steps), { 4 });
        batch.examples.push_back(example);
    }
    return batch;
}

} // namespace

TEST_CASE("the share of free examples stays in the first half and rises to 1 over the second") {
    CHECK(free_share(0.7, 1, 1000) == doctest::Approx(0.3));
    CHECK(free_share(0.7, 500, 1000) == doctest::Approx(0.3));
    CHECK(free_share(0.7, 750, 1000) == doctest::Approx(0.65));
    CHECK(free_share(0.7, 1000, 1000) == 1.0);
    CHECK(free_share(0, 1, 1000) == 1.0);
}

TEST_CASE("forced examples draw any number of steps but the last, the same for the same update") {
    Minibatch             batch = supervised(2000, 4);
    std::map<int, size_t> drawn;
    force_memory(batch, 0.25, Rng(1, stream_id("forcing", 7)));
    for (const TokenizedExample & example : batch.examples) {
        drawn[example.n_forced]++;
    }
    REQUIRE(drawn.size() == 4);
    for (int g = 0; g < 4; g++) {
        CHECK(std::abs(double(drawn[g]) - 500) < 100);
    }
    Minibatch again = supervised(2000, 4);
    force_memory(again, 0.25, Rng(1, stream_id("forcing", 7)));
    for (size_t i = 0; i < 2000; i++) {
        REQUIRE(again.examples[i].n_forced == batch.examples[i].n_forced);
    }
    CHECK(batch.n_forced() == 3);

    // Nothing to force: one step, nothing to say, nobody to force.
    batch = supervised(50, 1);
    force_memory(batch, 0, Rng(1));
    CHECK(batch.n_forced() == 0);
    batch = supervised(50, 4);
    for (TokenizedExample & example : batch.examples) {
        example.step_targets.clear();
    }
    force_memory(batch, 0, Rng(1));
    CHECK(batch.n_forced() == 0);
    batch = supervised(50, 4);
    force_memory(batch, 1, Rng(1));
    CHECK(batch.n_forced() == 0);
}

TEST_CASE("a forced chain begins with its start, and shorter results end with end tokens") {
    const Tokenizer tokenizer(test::small_vocabulary());
    const int32_t   end  = *tokenizer.eos();
    const auto      text = [&](const std::string & s) { return tokenizer.encode(s); };
    const Example   example =
        parse_examples(R"({"question":"Q","steps":["3 + 9 = 12","12 - 5 = 7"],"answer":"7"})", "x.jsonl").front();
    StepTargets targets(generic_task(), tokenizer, 8);
    CHECK(targets.tokens(example, 3) == std::vector<std::vector<int32_t>>{ text("12"), text("7"), text("7") });
    // As one text: the answer is not said twice.
    const auto join = [](std::vector<int32_t> a, const std::vector<int32_t> & b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    };
    CHECK(targets.chain(example) == join(text("12"), text("7")));
    CHECK(targets.n_needed(example) == 2);
    targets.begin_with_start({ example });
    const auto ended = [&](const std::string & s) {
        std::vector<int32_t> tokens = text(s);
        tokens.push_back(end);
        return tokens;
    };
    CHECK(targets.tokens(example, 5) ==
          std::vector<std::vector<int32_t>>{ ended("3"), text("12"), ended("7"), ended("7"), ended("7") });
    CHECK(targets.n_needed(example) == 3);

    // A file may say the start, before the results.
    const Example given =
        parse_examples(R"({"question":"Q","steps":["3 + 9 = 12"],"step_results":["9","12"],"answer":"12"})", "x.jsonl")
            .front();
    CHECK(targets.tokens(given, 2) == std::vector<std::vector<int32_t>>{ ended("9"), text("12") });
    // Nothing is asked of an example without steps.
    const Example bare = parse_examples(R"({"question":"Q","answer":"12"})", "x.jsonl").front();
    CHECK(targets.tokens(bare, 2) == std::vector<std::vector<int32_t>>{ {}, {} });
    // A memory of one row holds the first token of each.
    StepTargets narrow(generic_task(), tokenizer, 1);
    narrow.begin_with_start({ example });
    CHECK(narrow.tokens(example, 2) == std::vector<std::vector<int32_t>>{ text("3"), text("1") });
}

TEST_CASE("what the tasks say a chain starts from") {
    const auto start = [](const char * task, const std::string & question, const std::string & step) {
        Example example;
        example.question = question;
        example.steps    = { step };
        return chain_start(find_task(task), example);
    };
    CHECK(start("thread", "kQ aa Qa ?k", "kQ") == "k");
    CHECK(start("generic", "Q", "Tom, who has 3, gets 4") == " Tom");
    CHECK(start("generic", "Q", "12 * 4 = 48") == "12");
    CHECK(start("generic", "Q", "2+3=5") == "2");
    CHECK(start("generic", "Q", "-2 + 3 = 1") == " -2");
    CHECK(start("generic", "Q", "well-known names") == " well-known");
}

TEST_CASE("an answer is right when each of its tokens is likelier than not, and forced steps do not count") {
    Minibatch batch                 = supervised(3, 2);
    batch.examples[1].is_supervised = false;
    batch.examples[2].n_forced      = 1;
    BatchLoss loss;
    loss.tokens        = { 0.1f, 0.2f, 0.1f, 0.1f, 0.1f, 0.8f };
    loss.step_targets  = { 0.1f, 0.9f, 0.1f, 0.9f, 0.9f, 0.1f };
    const auto answers = right_answers(batch, loss);
    CHECK((answers[0].n_right == 1 && answers[0].n_supervised_targets == 1));
    CHECK((answers[1].n_right == 0 && answers[1].n_supervised_targets == 0));
    CHECK((answers[2].n_right == 0 && answers[2].n_supervised_targets == 1));
    const auto steps = right_steps(batch, loss);
    CHECK((steps[0].n_right == 1 && steps[0].n_supervised_targets == 2));
    CHECK((steps[1].n_right == 0 && steps[1].n_supervised_targets == 2));

    RightTable table(2, batch);
    table.add_answer(1, answers[0]);
    table.add_steps(steps);
    std::vector<double> values{ 99 };
    table.append_to(values);
    CHECK(values.size() == 1 + RightTable::n_values(2, batch));
    const RightTable read(2, batch, values, 1);
    CHECK(read.answers()[1].n_right == 1);
    CHECK(read.shares_of_steps() == std::vector<double>{ 0.5, 0.0 });
}

TEST_CASE("what is learned comes a tenth as often as what is not, and every example of a depth comes before one comes "
          "again") {
    std::vector<size_t> depths;
    for (size_t i = 0; i < 60; i++) {
        depths.push_back(1 + i % 3 * 2); // 1, 3, 5
    }
    DepthSampler             sampler(depths, 10, 5);
    std::vector<DepthRecord> records(3);
    CHECK(sampler.depths() == std::vector<size_t>{ 1, 3, 5 });
    CHECK(sampler.record_of(3) == 1);
    records[0].accuracy             = 1;
    records[1].accuracy             = 0.5;
    std::vector<DepthRecord> before = records;
    std::map<size_t, double> n_drawn;
    for (int64_t update = 1; update <= 400; update++) {
        for (size_t i : sampler.batch(update, records)) {
            n_drawn[depths[i]]++;
        }
    }
    CHECK(n_drawn[1] / n_drawn[5] == doctest::Approx(0.1).epsilon(0.2));
    CHECK(n_drawn[3] / n_drawn[5] == doctest::Approx(0.5).epsilon(0.15));
    CHECK(records[2].n_drawn == int64_t(n_drawn[5]));

    // Resumed from the records alone it draws the same.
    DepthSampler             again(depths, 10, 5);
    std::vector<DepthRecord> later = before;
    again.batch(1, later);
    std::vector<DepthRecord> copy = later;
    DepthSampler             fresh(depths, 10, 5);
    CHECK(fresh.batch(2, copy) == again.batch(2, later));

    std::vector<DepthRecord> even(3);
    DepthSampler             once(depths, 60, 5);
    std::map<size_t, int>    times;
    for (size_t i : once.batch(1, even)) {
        times[i]++;
    }
    for (const auto & [example, n] : times) {
        CHECK(n <= 1 + int(even[once.record_of(depths[example])].n_drawn) / 20);
    }
}

TEST_CASE("the running accuracy of a depth moves with what is asked") {
    DepthRecord record;
    record.add(0, 0);
    CHECK(record.accuracy == 0);
    for (int i = 0; i < 400; i++) {
        record.add(1, 1);
    }
    CHECK(record.accuracy > 0.99);
    DepthRecord on_all_ranks;
    on_all_ranks.add(2, 4);
    CHECK(on_all_ranks.accuracy == doctest::Approx(0.5 * (1 - std::pow(0.98, 4))));
}
