// Training against the PyTorch reference: the loss and the gradient of every trainable tensor, through all latent
// steps, and four updates of AdamW with clipping and schedule.
#include <doctest/doctest.h>

#include "support/difference.h"
#include "support/training.h"
#include "train/batch_graph.h"
#include "train/dump_gradients.h"
#include "train/trained_model.h"

#include <algorithm>
#include <cmath>

using namespace penelope;
using penelope::test::all_examples;
using penelope::test::check_gradients;
using penelope::test::codi_examples;
using penelope::test::cpu;
using penelope::test::GoldenCase;
using penelope::test::largest;
using penelope::test::lrs_of;
using penelope::test::train_options_of;

namespace {

// Relative to the largest element of a tensor's gradient: F32 against F32 in another order of summation.
constexpr double kTolerance = 1e-3;

const std::vector<std::string> & kCases = test::kTrajectoryCases;

} // namespace

TEST_CASE("loss and every gradient through the latent trajectory") {
    for (const std::string & name : kCases) {
        const GoldenCase golden(name);
        TrainedModel     model(train_options_of(golden, "penelope"), cpu());
        BatchGraphCache  graphs(model.objective(), model.backbone(), cpu(), &model.optimizer());
        for (int k : { 1, 6 }) {
            const std::string prefix = "grad.K" + std::to_string(k) + ".";
            CAPTURE(name);
            CAPTURE(k);
            const BatchLoss loss = graphs.run(all_examples(golden, k));
            CHECK(loss.mean == doctest::Approx(golden.tensor(prefix + "loss")[0]).epsilon(1e-5));
            check_gradients(model, golden.expected(), prefix, kTolerance);
        }
    }
}

TEST_CASE("loss and every gradient through Coconut's passes") {
    std::string name;
    SUBCASE("attention alone") {
        name = "last";
    }
    SUBCASE("delta nets and attention") {
        name = "qwen35";
    }
    const GoldenCase        golden(name);
    const SafetensorsReader expected = SafetensorsReader::open(golden.source("coconut.safetensors"));
    TrainModelOptions       choice;
    choice.base   = golden.backbone();
    choice.init   = golden.lora();
    choice.method = "coconut";
    TrainedModel model(choice, cpu());
    model.optimizer().set_values("coconut.token.rows", expected.read_f32("coconut.token.rows"));
    BatchGraphCache graphs(model.objective(), model.backbone(), cpu(), &model.optimizer());
    const BatchLoss loss = graphs.run(all_examples(golden, 2));
    CHECK(loss.mean == doctest::Approx(expected.read_f32("grad.K2.loss")[0]).epsilon(1e-5));
    check_gradients(model, expected, "grad.K2.", kTolerance);
}

TEST_CASE("the three losses and every gradient of CODI") {
    const GoldenCase        golden("last");
    const SafetensorsReader expected = SafetensorsReader::open(golden.source("codi.safetensors"));
    const Json              json     = read_json_file(golden.source("codi.json"));
    TrainModelOptions       choice;
    choice.base   = golden.backbone();
    choice.init   = golden.codi_sidecar();
    choice.method = "codi";
    TrainedModel model(choice, cpu());

    // The texts become the reference's tokens, and the row of the distillation is found.
    const Minibatch batch = codi_examples(golden, model.tokenizer(), 3);
    for (size_t i = 0; i < batch.examples.size(); i++) {
        const TokenizedExample & example = batch.examples[i];
        const Json &             known   = json["examples"][i];
        CHECK(example.prompt == known["prompt_ids"].get<std::vector<int32_t>>());
        CHECK(example.trace == known["cot_ids"].get<std::vector<int32_t>>());
        CHECK(example.target == known["answer_ids"].get<std::vector<int32_t>>());
        CHECK(example.distill_position == known["tap"].get<int>());
    }
    BatchGraphCache graphs(model.objective(), model.backbone(), cpu(), &model.optimizer());
    const BatchLoss loss = graphs.run(batch);
    CHECK(loss.mean == doctest::Approx(json["losses"]["student"].get<double>()).epsilon(1e-5));
    CHECK(loss.teacher == doctest::Approx(json["losses"]["teacher"].get<double>()).epsilon(1e-5));
    CHECK(loss.distance == doctest::Approx(json["losses"]["distillation"].get<double>()).epsilon(1e-4));
    CHECK(loss.total(batch) == doctest::Approx(expected.read_f32("grad.K3.loss")[0]).epsilon(1e-5));
    check_gradients(model, expected, "grad.K3.", kTolerance);
}

TEST_CASE("four updates of AdamW") {
    for (const std::string & name : kCases) {
        CAPTURE(name);
        const GoldenCase golden(name);
        const auto       recipe = golden.recipe();
        TrainedModel     model(train_options_of(golden, "penelope"), cpu());
        BatchGraphCache  graphs(model.objective(), model.backbone(), cpu(), &model.optimizer());
        const Minibatch  batch = all_examples(golden, recipe.n_steps);

        std::vector<std::vector<float>> first_gradients;
        for (int update = 1; update <= recipe.n_updates; update++) {
            CAPTURE(update);
            const BatchLoss loss = graphs.run(batch);
            CHECK(std::fabs(loss.mean - recipe.losses[size_t(update - 1)]) < 1e-4);
            if (update == 1) {
                for (const TrainableGroup & group : model.groups()) {
                    for (const auto & parameter : group.parameters.parameters) {
                        first_gradients.push_back(model.optimizer().gradient(parameter.name));
                    }
                }
            }
            const double       factor = recipe.rate_factors[size_t(update - 1)]; // the reference's own schedule
            const UpdateResult report = model.optimizer().step(lrs_of(model, recipe, factor), recipe.clip);
            CHECK(report.applied);
            CHECK(report.grad_norm == doctest::Approx(recipe.norms[size_t(update - 1)]).epsilon(1e-3));
        }

        // Adam's first steps are nearly the sign of the gradient, so an element whose gradient drowns in rounding may
        // go either way.
        const HfLayout form(model.backbone().config);
        size_t         n_tensor = 0;
        for (const TrainableGroup & group : model.groups()) {
            const double rate = group.lr_group == LrGroup::backbone ? recipe.lora_lr : recipe.module_lr;
            for (const auto & parameter : group.parameters.parameters) {
                CAPTURE(parameter.name);
                const auto gradient  = form.values(parameter.name, first_gradients[n_tensor++]);
                const auto found     = form.values(parameter.name, model.optimizer().values(parameter.name));
                const auto reference = golden.tensor("after." + form.name(parameter.name));
                REQUIRE(found.size() == reference.size());
                const double tiny  = kTolerance * largest(gradient);
                size_t       n_far = 0, n_clear = 0;
                for (size_t i = 0; i < found.size(); i++) {
                    if (std::fabs(gradient[i]) > tiny) {
                        n_clear++;
                        n_far += std::fabs(double(found[i]) - double(reference[i])) > 0.1 * rate;
                    }
                }
                CHECK(n_far == 0);
                CHECK((n_clear > 0 || largest(gradient) == 0.0));
            }
        }
    }
}
