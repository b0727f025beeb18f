#include "learn/recipe.h"

#include "base/error.h"
#include "base/format.h"
#include "train/setting_table.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

// Models up to this size are trained whole; of larger ones a LoRA.
constexpr int64_t kFullParameters = 20'000'000;

constexpr int64_t kFewestUpdates   = 20;
constexpr double  kMostEpochs      = 40;  // more passes over the data no longer help
constexpr int64_t kFewUpdates      = 600; // ... unless the data is small: then as many updates as this
constexpr int64_t kValidations     = 6;
constexpr double  kValidationShare = 0.1;                      // of the time of a stage
constexpr size_t  kFewestQuestions = 16, kMostQuestions = 100; // of a validation
constexpr double  kSmallBatchTokens = 4096;                    // tokens of a batch of a small model ...
constexpr double  kLoraBatchTokens  = 1024;                    // ... and of a LoRA of a large one
constexpr int     kFewestExamples = 4, kMostExamples = 32;
constexpr size_t  kAnswerSlack = 4; // tokens an answer may be longer than those of the data

bool is_full(const LearnModelFacts & model) {
    return model.is_new || model.n_parameters <= kFullParameters;
}

int batch_size(const RecipeInput & in) {
    const double tokens = is_full(in.model) ? kSmallBatchTokens : kLoraBatchTokens;
    const double mean   = std::max(1.0, in.data.n_mean);
    const int    n      = int(std::clamp<double>(tokens / mean, kFewestExamples, kMostExamples));
    return std::min(n, int(std::max<size_t>(1, in.data.n_examples)));
}

// Updates that fit into the time of the stage, but no more than the data is good for.
int64_t n_updates(const RecipeInput & in, int batch) {
    const double per_epoch = std::ceil(double(in.data.n_examples) / batch);
    const double most      = std::max(double(kFewUpdates), kMostEpochs * per_epoch);
    const double by_time   = in.seconds * (1 - kValidationShare) / in.speed.update_seconds;
    return std::max(kFewestUpdates, int64_t(std::min(most, by_time)));
}

void set_visible(const RecipeInput & in, TrainSettings & s) {
    const bool is_bridge = in.stage == LearnStage::bridge; // goes on from weights that have learned
    if (is_bridge) {
        s.targets = "results";
    }
    s.model.method  = "cot";
    s.backbone_lr   = in.model.is_new && !is_bridge ? 2e-3 : is_full(in.model) ? 5e-4 : 1e-3;
    s.model.beta2   = 0.99;
    s.model.dropout = 0;
}

// A latent step is the whole model on the embeddings of the last result, one row for each of its tokens: what the model
// does when it writes results is then what it does in a step, and new modules can be fitted to it. Deeper K and what is
// not learned yet come more often. docs/experiments.md has the measurements.
void set_latent(const RecipeInput & in, TrainSettings & s) {
    SidecarConfig & c = s.model.sidecar;
    s.model.method    = "penelope";
    c.interval_start  = 0;
    c.interval_end    = uint32_t(in.model.n_layer);
    c.n_memory        = uint32_t(std::clamp<size_t>(in.data.n_result_tokens, 1, 16));
    c.n_readout       = 1;
    s.k_schedule      = "deep";
    s.step_loss       = 0.5;
    s.teacher_forcing = 0.5;
    s.fit_modules     = true;
    s.adaptive        = true;
    // A fitted map of a large model has small entries: gentle rates keep it.
    s.backbone_lr   = is_full(in.model) ? 5e-4 : 3e-4;
    s.module_lr     = is_full(in.model) ? 1e-3 : 3e-5;
    s.model.beta2   = 0.99;
    s.model.dropout = 0;
}

} // namespace

const char * stage_name(LearnStage stage) {
    switch (stage) {
        case LearnStage::visible: return "visible";
        case LearnStage::bridge: return "bridge";
        case LearnStage::latent: return "latent";
        case LearnStage::control: return "control";
    }
    return "";
}

TrainSettings recipe_settings(const RecipeInput & in) {
    TrainSettings s        = default_settings();
    s.model.seed           = in.seed;
    s.model.full           = is_full(in.model);
    const bool writes_text = in.stage == LearnStage::visible || in.stage == LearnStage::bridge;
    if (writes_text) {
        set_visible(in, s);
    } else {
        set_latent(in, s);
        s.latent_steps = in.stage == LearnStage::control ? 0 : -1;
    }
    s.batch_size           = batch_size(in);
    s.validation.n_predict = int((writes_text ? in.data.n_target : in.data.n_answer) + kAnswerSlack);
    s.validation.limit     = kFewestQuestions;
    s.eval_every           = 0;
    s.save_every           = 0;
    s.n_updates            = kProbeUpdates;
    if (in.speed.update_seconds <= 0) {
        s.fit_modules = false; // takes no part in the speed
        return s;
    }
    s.n_updates  = n_updates(in, s.batch_size);
    s.eval_every = std::max<int64_t>(1, (s.n_updates + kValidations - 1) / kValidations);
    s.save_every = s.eval_every;
    const double questions =
        kValidationShare * in.seconds / double(kValidations) / std::max(1e-6, in.speed.question_seconds);
    s.validation.limit = size_t(std::clamp<double>(questions, double(kFewestQuestions), double(kMostQuestions)));
    return s;
}

bool has_bridge(const LearnModelFacts &, const LearnDataFacts & data) {
    return data.n_steps > 0 && !data.is_text;
}

double bridge_share(const LearnModelFacts & model, const LearnDataFacts & data) {
    return has_bridge(model, data) ? 0.1 : 0.0;
}

double visible_share(const LearnModelFacts & model, const LearnDataFacts & data) {
    return data.n_steps == 0 || data.is_text ? 1.0 : model.is_new ? 0.4 : 0.3;
}

namespace {

struct ScratchShape {
    const char * name;
    int          n_layer, n_embd, n_head, n_ff, n_vocab;
};

constexpr double kBytesForWords = 300; // examples longer than this are read in words

constexpr ScratchShape scratch_shapes[] = {
    { "tiny", 3, 128, 4, 320, 512 },
    { "small", 6, 256, 8, 704, 2048 },
};

const ScratchShape & find_scratch(const std::string & name) {
    for (const ScratchShape & shape : scratch_shapes) {
        if (name == shape.name) {
            return shape;
        }
    }
    throw Error(ErrorKind::usage, "--from-scratch: unknown shape " + in_quotes(name),
                "expected one of " + join(scratch_names(), ", "));
}

} // namespace

std::vector<std::string> scratch_names() {
    std::vector<std::string> names;
    for (const ScratchShape & shape : scratch_shapes) {
        names.emplace_back(shape.name);
    }
    return names;
}

// Embeddings larger than usual stand out from what new layers add to them: lookups are learned in a third of the
// updates.
RandomBackbone scratch_shape(const std::string & name, double mean_bytes) {
    const ScratchShape & shape = find_scratch(name);
    RandomBackbone       backbone;
    ModelConfig &        c   = backbone.config;
    c.architecture           = "llama";
    c.name                   = name;
    c.n_layer                = shape.n_layer;
    c.n_embd                 = shape.n_embd;
    c.n_head                 = shape.n_head;
    c.n_head_kv              = shape.n_head;
    c.head_dim               = shape.n_embd / shape.n_head;
    c.n_ff                   = shape.n_ff;
    c.rope_base              = mean_bytes > kBytesForWords ? 1e6f : 1e4f; // lookups turn little over long texts
    c.rms_eps                = 1e-5f;
    c.tied                   = false;
    backbone.embedding_scale = 4;
    backbone.lookup_heads    = true;
    backbone.n_learned_vocab = mean_bytes > kBytesForWords ? shape.n_vocab : 0;
    return backbone;
}

int scratch_context(const LearnDataFacts & data) {
    const size_t longest = data.n_prompt + data.n_target;
    return int(std::max<size_t>(256, (longest + 127) / 64 * 64)); // room for memory and readout
}

} // namespace penelope
