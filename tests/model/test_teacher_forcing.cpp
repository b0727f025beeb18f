// Latent steps that start from a gold memory: what they compute, and that their gradients are right on every
// architecture.
#include <doctest/doctest.h>

#include "graph/nodes.h"
#include "latent/gold_memory.h"
#include "support/difference.h"
#include "support/gradient_check.h"
#include "support/training.h"
#include "train/batch_graph.h"
#include "train/trained_model.h"

#include <algorithm>

using namespace penelope;
using penelope::test::all_examples;
using penelope::test::cpu;
using penelope::test::difference;
using penelope::test::GoldenCase;
using penelope::test::Gradients;
using penelope::test::gradients_of;
using penelope::test::largest;
using penelope::test::length_of;
using penelope::test::slope_along;
using penelope::test::train_options_of;

namespace {

// Results of one and two tokens; example b is forced for b % K steps, so that the first is free.
Minibatch forced_examples(const GoldenCase & golden, int n_steps) {
    Minibatch batch          = all_examples(golden, n_steps);
    batch.step_loss_weight   = 0.5;
    batch.n_step_target_rows = 2;
    for (size_t b = 0; b < batch.examples.size(); b++) {
        TokenizedExample & example = batch.examples[b];
        const int32_t      token   = example.target.front();
        for (int t = 0; t < n_steps; t++) {
            example.step_targets.push_back({ token + t });
            if (t % 2 == 1) {
                example.step_targets.back().push_back(token + t + 1);
            }
        }
        example.n_forced = int(b) % n_steps;
    }
    return batch;
}

Minibatch left_free(Minibatch batch) {
    for (TokenizedExample & example : batch.examples) {
        example.n_forced = 0;
    }
    return batch;
}

// Whether a gold memory depends on this parameter: it is then a constant for the gradient, but not for differences.
bool reaches_gold(const TrainedModel & model, const std::string & name) {
    if (name == "penelope.memory.anchor" || name == "penelope.memory.group") {
        return true;
    }
    const std::string block = "blk.";
    return name.rfind(block, 0) == 0 && std::stoi(name.substr(block.size())) < int(model.sidecar().interval_start);
}

void check_close(const Gradients & found, const Gradients & expected, double tolerance) {
    REQUIRE(found.size() == expected.size());
    for (const auto & [key, values] : expected) {
        const std::string & name = key;
        CAPTURE(name);
        CHECK(difference(found.at(name), values) <= tolerance * largest(values));
    }
}

} // namespace

TEST_CASE("the gradients of forced steps are those that differences show, on every architecture") {
    for (const std::string & name : test::kTrajectoryCases) {
        CAPTURE(name);
        const GoldenCase golden(name);
        TrainedModel     model(train_options_of(golden, "penelope"), cpu());
        BatchGraphCache  graphs(model.objective(), model.backbone(), cpu(), &model.optimizer());
        BatchGraphCache  losses(model.objective(), model.backbone(), cpu(), nullptr);
        const Minibatch  batch = forced_examples(golden, 3);
        REQUIRE(batch.n_forced() > 0);
        graphs.run(batch);
        size_t n_checked = 0, n_constant = 0;
        for (const auto & [key, gradient] : gradients_of(model)) {
            const std::string & parameter = key;
            CAPTURE(parameter);
            const double length = length_of({ { parameter, gradient } });
            n_constant += reaches_gold(model, parameter);
            if (length < 0.02 || reaches_gold(model, parameter)) {
                continue; // lost in the rounding of the loss, or no constant there
            }
            // A short step: delta nets bend the loss.
            CHECK(slope_along({ { parameter, gradient } }, model.optimizer(), 2e-3,
                              [&] { return losses.run(batch).total(batch); }) == doctest::Approx(length).epsilon(0.02));
            n_checked++;
        }
        CHECK(n_checked > 10);
        CHECK(n_constant >= 2);
    }
}

TEST_CASE("computing layers again changes no gradient of forced steps") {
    for (const std::string & name : test::kTrajectoryCases) {
        CAPTURE(name);
        const GoldenCase  golden(name);
        const Minibatch   batch  = forced_examples(golden, 3);
        TrainModelOptions choice = train_options_of(golden, "penelope");
        TrainedModel      plain(choice, cpu());
        BatchGraphCache   plain_graphs(plain.objective(), plain.backbone(), cpu(), &plain.optimizer());
        const BatchLoss   expected = plain_graphs.run(batch);

        choice.recompute        = true;
        choice.cache_transposes = false;
        TrainedModel    low(choice, cpu());
        BatchGraphCache low_graphs(low.objective(), low.backbone(), cpu(), &low.optimizer());
        CHECK(low_graphs.run(batch).total(batch) == doctest::Approx(expected.total(batch)).epsilon(1e-6));
        check_close(gradients_of(low), gradients_of(plain), 1e-5);
    }
}

TEST_CASE(
    "a minibatch of free examples is the minibatch without forcing, and a free example is not touched by others") {
    const GoldenCase golden("middle");
    TrainedModel     model(train_options_of(golden, "penelope"), cpu());
    BatchGraphCache  graphs(model.objective(), model.backbone(), cpu(), &model.optimizer());
    const Minibatch  forced = forced_examples(golden, 3), free = left_free(forced);
    CHECK(BatchGraph::key(free) != BatchGraph::key(forced));
    const BatchLoss expected  = graphs.run(free);
    const Gradients gradients = gradients_of(model);

    Minibatch plain          = all_examples(golden, 3);
    plain.step_loss_weight   = free.step_loss_weight;
    plain.n_step_target_rows = free.n_step_target_rows;
    for (size_t b = 0; b < plain.examples.size(); b++) {
        plain.examples[b].step_targets = free.examples[b].step_targets;
    }
    CHECK(graphs.run(plain).total(plain) == expected.total(free)); // to the bit
    CHECK(gradients_of(model) == gradients);

    const BatchLoss found = graphs.run(forced);
    for (size_t i = 0; i < free.examples[0].target.size(); i++) { // the first is free in both
        CHECK(found.tokens[i] == doctest::Approx(expected.tokens[i]).epsilon(1e-6));
    }
    CHECK(difference(found.tokens, expected.tokens).most > 1e-4);
}

TEST_CASE("a gold memory of the anchor tokens equals the memory at the boundary") {
    // With anchors that are embeddings of a token, step embeddings that are all the same and every step forced, each
    // step starts from the same memory and says its result at the same loss. Any difference between the places of the
    // two memories would show.
    for (const std::string & name : test::kTrajectoryCases) {
        CAPTURE(name);
        const GoldenCase golden(name);
        TrainedModel     model(train_options_of(golden, "penelope"), cpu());
        BatchGraphCache  graphs(model.objective(), model.backbone(), cpu(), nullptr);
        Minibatch        batch = all_examples(golden, 3);
        const int32_t    token = 5;
        const size_t     d = size_t(model.backbone().config.n_embd), m = model.sidecar().n_memory;
        batch.step_loss_weight   = 1;
        batch.n_step_target_rows = int(m);
        for (TokenizedExample & example : batch.examples) {
            example.step_targets.assign(3, std::vector<int32_t>(m, token));
            example.n_forced = 2;
        }
        const std::vector<float> table  = get_node(model.backbone().embedding);
        std::vector<float>       anchor = model.optimizer().values("penelope.memory.anchor");
        for (size_t row = 0; row < m; row++) {
            std::transform(table.begin() + ptrdiff_t(size_t(token) * d),
                           table.begin() + ptrdiff_t((size_t(token) + 1) * d), anchor.begin() + ptrdiff_t(row * d),
                           [&](float x) { return x * model.backbone().config.embedding_scale; });
        }
        std::vector<float> step = model.optimizer().values("penelope.memory.step");
        for (size_t t = 1; t < 3; t++) {
            std::copy_n(step.begin(), d, step.begin() + ptrdiff_t(t * d));
        }
        const auto losses_by_step = [&] {
            const BatchLoss                 loss = graphs.run(batch);
            const size_t                    n    = loss.step_targets.size() / 3;
            std::vector<std::vector<float>> all;
            for (size_t t = 0; t < 3; t++) {
                all.emplace_back(loss.step_targets.begin() + ptrdiff_t(t * n),
                                 loss.step_targets.begin() + ptrdiff_t((t + 1) * n));
            }
            return all;
        };
        model.optimizer().set_values("penelope.memory.step", step);
        CHECK(difference(losses_by_step()[1], losses_by_step()[0]).most > 1e-3); // another anchor, another memory
        model.optimizer().set_values("penelope.memory.anchor", anchor);
        const auto same = losses_by_step();
        CHECK(difference(same[1], same[0]) < 2e-4);
        CHECK(difference(same[2], same[0]) < 2e-4);
    }
}

TEST_CASE("gradients flow to the memory that is kept and not to the one that is replaced") {
    using namespace gradient_check;
    const auto build = [](Graph & g, const std::vector<Node> & leaves, Fills & fills) {
        GoldRows gold{};
        gold.own    = g.input("own", GGML_TYPE_F32, 1, 3);
        gold.forced = g.input("forced", GGML_TYPE_F32, 1, 3);
        fill(fills, gold.own, std::vector<float>{ 1, 0, 1 });
        fill(fills, gold.forced, std::vector<float>{ 0, 1, 0 });
        Node constant = g.input("constant", GGML_TYPE_F32, 4, 3);
        fill(fills, constant, random_values(12, 3));
        return replace_memory(g, gold, leaves[0], constant);
    };
    const std::vector<Leaf> leaves{ leaf({ 4, 3 }, 1) };
    check(leaves, build);
    const Result             result   = gradients(leaves, build);
    const std::vector<float> expected = random_values(12, 3);
    for (size_t i = 0; i < 12; i++) {
        CHECK(result.value[i] == (i / 4 == 1 ? expected[i] : leaves[0].values[i]));
        CHECK((result.gradients[0][i] == 0.0f) == (i / 4 == 1));
    }
}
