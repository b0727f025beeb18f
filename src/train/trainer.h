// A training run from settings to the finished file: minibatches by curriculum, updates, validation, checkpoints, and
// at the end the choice of K. It can be stopped after any update and resumed bit-identically.
#pragma once

#include "train/batch_sampler.h"
#include "train/checkpoint.h"
#include "train/collective.h"
#include "train/resume_check.h"
#include "train/run_folder.h"
#include "train/settings.h"
#include "train/step_targets.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penelope {

struct UpdateReport {
    int64_t  update, n_updates;
    Stage    stage;
    double   loss;      // mean over the supervised target tokens
    double   step_loss; // mean over the step targets; negative: no step loss
    double   backbone_lr, module_lr;
    double   grad_norm;         // global norm before clipping
    double   tokens_per_second; // target tokens
    double   ms;
    uint64_t peak_memory;
    double   ms_left;
    double   epochs;
    // Fraction of step targets each latent step predicts, over examples without teacher forcing; negative: none. See
    // train/step_score.h.
    std::vector<double> steps_right;
    // With --adaptive: gold steps and running accuracy of the examples that have so many.
    std::vector<std::pair<size_t, double>> depths = {};
};

struct ValidationReport {
    int64_t update;
    Stage   stage;
    double  loss;
    double  exact;
    size_t  n_examples;
    bool    is_best;
};

struct TrainEvents {
    std::function<void(const UpdateReport &)>     updated   = [](const UpdateReport &) {};
    std::function<void(const ValidationReport &)> validated = [](const ValidationReport &) {};
    std::function<bool()>                         stop      = [] { return false; }; // checked after each update
};

struct TrainResult {
    bool                interrupted = false;
    int64_t             update      = 0;
    BestScore           best;
    int                 k_default = 0;
    std::vector<double> exact; // on validation by K = 0, 1, ...; empty without validation data
    // whether backbone and LoRA alone write visible steps; unset without validation data
    std::optional<bool> visible_steps;
    std::string         model_path;
};

// --dry-run: what the run would do.
struct TrainPlan {
    int64_t                  n_lora = 0, n_modules = 0, n_backbone = 0, n_frozen = 0; // parameters
    std::vector<Stage>       stages;
    size_t                   n_train = 0, n_valid = 0, n_dropped = 0;
    size_t                   n_longest    = 0; // tokens of the longest example
    size_t                   weight_bytes = 0, optimizer_bytes = 0, graph_bytes = 0;
    std::vector<std::string> unsupported_nodes; // operations the device does not support
    TokenizedExample         sample;            // first example of the first minibatch
    std::string              sample_prompt, sample_target;
};

struct FirstGradients {
    double loss;
    float  scale; // loss scale of the gradients
};

class Trainer {
  public:
    // The run folder must exist. Throws Error for invalid settings, files and data, and when memory is short. All
    // arguments must outlive the trainer. Constructed on every rank; ranks communicate only in run().
    Trainer(const TrainSettings & settings, const Backend & backend, Collective & ranks);

    // Returns the same on all ranks; only rank 0 calls events and writes to the run folder.
    TrainResult run(const TrainEvents & events, bool resume);
    TrainPlan   plan();

    // Computes loss and gradients of the first examples in file order at the first stage; the optimizer has the
    // gradients.
    FirstGradients first_gradients();

    TrainedModel &        model() { return *model_; }
    const TrainSettings & settings() const { return settings_; } // resolved
    const TaskChoice &    task() const { return task_; }

  private:
    Minibatch   minibatch(const std::vector<size_t> & examples, const Stage & stage, double step_loss_weight) const;
    Minibatch   local_shard(const Minibatch & batch) const;
    bool        train_to_end(const TrainEvents & events);
    bool        run_update(int64_t update, const TrainEvents & events);
    void        validate(const TrainEvents & events);
    void        save_last();
    void        save_best();
    RunState    load_last(const std::string & settings);
    bool        restore_best();
    void        check_same_settings();
    void        build_curriculum();
    void        resume();
    void        resume_from(const std::string & settings);
    TrainResult finish(const TrainEvents & events);
    void        write_model(const TrainResult & outcome, const OrderedJson & results);
    double      ms_left(int64_t update, double ms) const;
    bool        is_due(int64_t every) const;
    void        check_lengths();

    TrainSettings                    settings_;
    TaskChoice                       task_{};
    const Backend &                  backend_;
    Collective &                     ranks_;
    RunFolder                        folder_;
    std::unique_ptr<TrainedModel>    model_;
    std::unique_ptr<TrainingData>    train_, valid_; // valid_ may be null
    std::unique_ptr<AnswerReader>    reader_;        // of valid_
    Curriculum                       curriculum_;
    std::unique_ptr<StepTargets>     step_targets_;
    std::unique_ptr<BatchSampler>    batch_sampler_;
    std::unique_ptr<DepthSampler>    sampler_; // null: use batch_sampler_
    std::unique_ptr<BatchGraphCache> graphs_;
    std::unique_ptr<Validator>       validator_;
    FileSums                         sums_;
    RunState                         state_;
    int64_t                          saved_update_ = -1, saved_validated_ = -1; // of state_, in the last checkpoint
    size_t                           n_dropped_ = 0;
    double                           mean_ms_   = 0; // moving average of the time of an update
};

} // namespace penelope
