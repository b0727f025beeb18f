// A training run from settings to the finished file: minibatches in curriculum order, updates, validation, checkpoints, and
// at the end the choice of depth. It can be stopped after any update and continued exactly.
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
    double   loss;      // mean over the target tokens of the minibatch that count
    double   step_loss; // mean over the tokens its latent steps should say; negative: none is asked for
    double   backbone_lr, module_lr;
    double   grad_norm;         // of all gradients, before clipping
    double   tokens_per_second; // target tokens
    double   ms;
    uint64_t peak_memory;
    double   ms_left;
    double   epochs;
    // Of what each latent step says, over examples that run on their own memory; negative: nobody was asked. See train/step_score.h.
    std::vector<double> steps_right;
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
    std::function<bool()>                         stop      = [] { return false; }; // asked after each update
};

struct TrainResult {
    bool                interrupted = false;
    int64_t             update      = 0;
    BestScore           best;
    int                 k_default = 0;
    std::vector<double> exact;         // on validation, by depth 0, 1, ...; empty without validation data
    std::optional<bool> visible_steps; // whether the LoRA alone writes them; unknown without validation data
    std::string         model_path;
};

// What a run would do, from the same objects it would use.
struct TrainPlan {
    int64_t                  n_lora = 0, n_modules = 0, n_backbone = 0, n_frozen = 0; // parameters
    std::vector<Stage>       stages;
    size_t                   n_train = 0, n_valid = 0, n_dropped = 0;
    size_t                   n_longest    = 0; // rows of the longest example
    size_t                   weight_bytes = 0, optimizer_bytes = 0, graph_bytes = 0;
    std::vector<std::string> unsupported_nodes; // the device cannot run
    TokenizedExample         sample;            // first of the first minibatch
    std::string              sample_prompt, sample_target;
};

struct FirstGradients {
    double loss;
    float  scale; // what the gradients are multiplied by
};

class Trainer {
  public:
    // The run folder has been created. Throws Error for defects of settings, files and data, and when memory is short.
    // Everything outlives the trainer. It is constructed on every rank; nothing is exchanged before run().
    Trainer(const TrainSettings & settings, const Backend & backend, Collective & ranks);

    // Gives the same on all ranks; only the first one reports to the events and writes to the run folder.
    TrainResult run(const TrainEvents & events, bool resume);
    TrainPlan   plan();

    // The loss of the first examples in file order at the first stage; their gradients are then in the optimizer.
    FirstGradients first_gradients();

    TrainedModel &        model() { return *model_; }
    const TrainSettings & settings() const { return settings_; } // with everything filled in
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
    std::unique_ptr<DepthSampler>    sampler_; // null: examples come in the order of batch_sampler_
    std::unique_ptr<BatchGraphCache> graphs_;
    std::unique_ptr<Validator>       validator_;
    FileSums                         sums_;
    RunState                         state_;
    int64_t                          saved_update_ = -1, saved_validated_ = -1; // of state_, in the last checkpoint
    size_t                           n_dropped_ = 0;
    double                           mean_ms_   = 0; // of an update, recent ones weighing most
};

} // namespace penelope
