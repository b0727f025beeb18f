// --dry-run: parameter counts, stages, memory, and one example as the model would see it.
#include "train/trainer.h"

#include "sidecar/sidecar.h"
#include "train/length_buckets.h"

#include <algorithm>
#include <set>

namespace penelope {

TrainPlan Trainer::plan() {
    TrainPlan plan;
    for (const TrainableGroup & group : model_->groups()) {
        for (const ParameterGroup::Parameter & parameter : group.parameters.parameters) {
            const int64_t n = ggml_nelements(model_->optimizer().parameter(parameter.name));
            (is_lora_tensor(parameter.name)     ? plan.n_lora
             : is_module_tensor(parameter.name) ? plan.n_modules
                                                : plan.n_backbone) += n;
        }
    }
    const Stage & first = curriculum_.stages().front();
    plan.n_frozen       = model_->n_frozen();
    plan.stages         = curriculum_.stages();
    plan.n_train        = train_->size();
    plan.n_valid        = valid_ ? valid_->size() : 0;
    plan.n_dropped      = n_dropped_;
    plan.n_longest      = train_->longest(first.n_skip_steps).n_rows;

    const size_t sample = batch_sampler_->batch(1).front();
    plan.sample         = train_->tokenized(sample, first.n_skip_steps);
    plan.sample_prompt  = model_->tokenizer().decode(plan.sample.prompt, { true });
    plan.sample_target  = model_->tokenizer().decode(plan.sample.target, { true });

    // Upper bound of the memory: a minibatch of the longest example, at every stage.
    const size_t          longest = train_->longest(first.n_skip_steps).example;
    size_t                largest = 0;
    std::set<std::string> missing;
    for (const Stage & stage : curriculum_.stages()) {
        Minibatch all =
            minibatch(std::vector<size_t>(size_t(settings_.batch_size), longest), stage, settings_.step_loss);
        for (TokenizedExample & example : all.examples) {
            example.n_forced = settings_.teacher_forcing > 0 ? stage.n_steps : 0;
        }
        BatchGraph step(model_->objective(), model_->backbone(), pad_for_device(all, model_->backbone(), backend_),
                        backend_, &model_->optimizer());
        largest = std::max(largest, step.graph().plan(backend_));
        for (Node node : step.graph().unsupported_nodes(backend_)) {
            missing.insert(ggml_op_desc(node));
        }
    }
    plan.unsupported_nodes.assign(missing.begin(), missing.end());
    plan.graph_bytes     = largest;
    plan.weight_bytes    = model_->weight_bytes();
    plan.optimizer_bytes = model_->optimizer().n_bytes();
    return plan;
}

} // namespace penelope
