#include "train/method_training.h"

#include "base/error.h"
#include "base/format.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

constexpr uint32_t kDefaultKMax = 8; // default of --k-max

// CoT fine-tuning.

int no_latent_steps(const Task &) {
    return 0;
}

void no_shape(SidecarConfig &, const ModelConfig &, int) {}

std::unique_ptr<Objective> cot_objective(const SidecarConfig &, const ModuleNodes &) {
    return std::make_unique<CotObjective>();
}

// Penelope.

int six_steps(const Task &) {
    return 6;
}

// Default interval: the upper 5/16 of the layers. Module sizes are proportional to the model width.
void penelope_shape(SidecarConfig & c, const ModelConfig & base, int depth) {
    const int r      = std::max(1, int(std::lround(base.n_layer * 5.0 / 16.0)));
    c.interval_start = uint32_t(base.n_layer - r);
    c.interval_end   = uint32_t(base.n_layer);
    c.n_memory       = 8;
    c.n_readout      = 2;
    c.k_max          = std::max(kDefaultKMax, uint32_t(depth));
    c.time_width     = uint32_t(std::max(1, base.n_embd / 2));
    c.adapter_width  = uint32_t(std::max(1, base.n_embd / 8));
    c.transition     = "gru";
}

std::unique_ptr<Objective> penelope_objective(const SidecarConfig & config, const ModuleNodes & nodes) {
    return std::make_unique<PenelopeObjective>(assemble_modules(nodes), latent_shape(config));
}

// Coconut.

int coconut_latent_steps(const Task & task) {
    return task.protocol.n_thoughts;
}

void coconut_shape(SidecarConfig & c, const ModelConfig &, int depth) {
    c.k_max = std::max(kDefaultKMax, uint32_t(depth));
}

std::unique_ptr<Objective> coconut_objective(const SidecarConfig &, const ModuleNodes & nodes) {
    return std::make_unique<CoconutObjective>(coconut_modules(nodes));
}

// CODI.

void codi_shape(SidecarConfig & c, const ModelConfig & base, int depth) {
    c.k_max            = std::max(kDefaultKMax, uint32_t(depth));
    c.projection_width = uint32_t(base.n_embd);
}

std::unique_ptr<Objective> codi_objective(const SidecarConfig &, const ModuleNodes & nodes) {
    return std::make_unique<CodiObjective>(codi_modules(nodes));
}

MethodTraining cot() {
    MethodTraining m;
    m.name                 = "cot";
    m.is_cot_stage         = true;
    m.default_latent_steps = no_latent_steps;
    m.default_shape        = no_shape;
    m.objective            = cot_objective;
    return m;
}

MethodTraining penelope() {
    MethodTraining m;
    m.name                 = "penelope";
    m.has_curriculum       = true;
    m.supports_step_loss   = true;
    m.default_latent_steps = six_steps;
    m.default_shape        = penelope_shape;
    m.objective            = penelope_objective;
    return m;
}

MethodTraining coconut() {
    MethodTraining m;
    m.name                 = "coconut";
    m.resets_optimizer     = true; // as in the Coconut paper
    m.has_curriculum       = true;
    m.default_latent_steps = coconut_latent_steps;
    m.default_shape        = coconut_shape;
    m.objective            = coconut_objective;
    return m;
}

MethodTraining codi() {
    MethodTraining m;
    m.name                 = "codi";
    m.has_teacher          = true;
    m.answer_prefix        = "The answer is: ";
    m.default_latent_steps = six_steps;
    m.default_shape        = codi_shape;
    m.objective            = codi_objective;
    return m;
}

const std::vector<MethodTraining> & table() {
    static const std::vector<MethodTraining> entries{ cot(), penelope(), coconut(), codi() };
    return entries;
}

} // namespace

std::vector<std::string> trainable_methods() {
    std::vector<std::string> names;
    for (const MethodTraining & entry : table()) {
        names.emplace_back(entry.name);
    }
    return names;
}

const MethodTraining & method_training(const std::string & name) {
    for (const MethodTraining & entry : table()) {
        if (name == entry.name) {
            return entry;
        }
    }
    throw Error(ErrorKind::usage, "--method: unknown method " + in_quotes(name),
                "expected one of " + join(trainable_methods(), ", "));
}

} // namespace penelope
