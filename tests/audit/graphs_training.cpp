#include "arch/qwen35/config.h"
#include "base/temporary_directory.h"
#include "empty_files.h"
#include "graphs.h"
#include "train/batch_graph.h"
#include "train/length_buckets.h"
#include "train/method_training.h"
#include "train/trained_model.h"

#include <numeric>

namespace penelope::audit {

namespace {

std::vector<int32_t> tokens(size_t n) {
    std::vector<int32_t> made(n);
    std::iota(made.begin(), made.end(), 1);
    return made;
}

// Two examples of different lengths, with what the method learns from.
Minibatch batch_for(const MethodTraining & training, int n_steps) {
    Minibatch batch;
    batch.n_steps = n_steps;
    for (size_t i = 0; i < 2; i++) {
        TokenizedExample example;
        example.prompt = tokens(11 + 12 * i);
        example.target = tokens(6 + i);
        if (training.has_teacher) {
            example.trace            = tokens(9 + i);
            example.distill_position = 1;
        }
        if (training.supports_step_loss) {
            example.step_targets.assign(size_t(n_steps), tokens(1 + i));
            example.n_forced = int(i); // the second goes on from a gold memory
        }
        batch.examples.push_back(example);
    }
    batch.has_teacher        = training.has_teacher;
    batch.distill_weight     = training.has_teacher ? 1 : 0;
    batch.n_step_target_rows = training.supports_step_loss && n_steps > 0 ? 2 : 0;
    batch.step_loss_weight   = batch.n_step_target_rows > 0 ? 0.5 : 0;
    return batch;
}

// An update, and the loss alone as validation takes it, at every depth.
void train(const TrainModelOptions & choice, const Backend & backend, const std::vector<int> & depths) {
    TrainedModel    model(choice, backend);
    BatchGraphCache updates(model.objective(), model.backbone(), backend, &model.optimizer());
    BatchGraphCache losses(model.objective(), model.backbone(), backend, nullptr);
    for (int k : depths) {
        const Minibatch batch = pad_for_device(batch_for(model.training(), k), model.backbone(), backend);
        updates.run(batch, model.loss_scale());
        model.optimizer().step(std::vector<double>(model.groups().size(), 1e-3), 1.0, model.loss_scale());
        losses.run(batch);
    }
}

// A few layers, a short vocabulary: what is trained or transposed as a whole is read by the host. Kinds of layers
// repeat every four.
ModelConfig shortened(ModelConfig config) {
    config.n_layer = 4;
    config.n_vocab = 4096;
    if (const auto * own = dynamic_cast<const Qwen35Config *>(config.arch_config.get())) {
        auto shorter = std::make_shared<Qwen35Config>(*own);
        shorter->is_recurrent.resize(size_t(config.n_layer));
        config.arch_config = std::move(shorter);
    }
    return config;
}

} // namespace

void audit_training(const AuditCase & asked, const AuditFunction & ask) {
    const TemporaryDirectory folder;
    const ModelConfig        whole = config_of(asked.shape);
    write_empty_backbone(whole, asked.type, folder.file("whole.gguf"));
    write_empty_backbone(shortened(whole), asked.type, folder.file("part.gguf"));
    const Backend backend(find_device(asked.device), 1);
    for (const std::string & method : trainable_methods()) {
        const MethodTraining & training = method_training(method);
        const std::vector<int> steps    = training.format() ? asked.steps : std::vector<int>{ 0 };
        const std::vector<int> deepest{ steps.back() };
        const std::string      kind = "training " + method;
        TrainModelOptions      choice;
        choice.method  = method;
        choice.dropout = 0.05f;
        // From a file, because drawing the first values of modules takes longer than all questions.
        const auto start_from = [&](const std::string & base, bool has_pairs) {
            choice.base = base;
            if (training.format()) {
                choice.init = folder.file("init.gguf");
                write_empty_sidecar(base, method, "F32", has_pairs, choice.init);
            }
        };
        start_from(folder.file("whole.gguf"), true);
        choice.cache_transposes = false;
        ask(kind, [&] { train(choice, backend, steps); });
        choice.recompute = true;
        ask(kind + ", layers computed again", [&] { train(choice, backend, deepest); });

        start_from(folder.file("part.gguf"), true);
        choice.recompute        = false;
        choice.cache_transposes = true;
        ask(kind + ", transposes kept", [&] { train(choice, backend, deepest); });
        start_from(folder.file("part.gguf"), false);
        choice.full = true;
        ask(kind + ", all weights", [&] { train(choice, backend, deepest); });
    }
}

} // namespace penelope::audit
