// Scores models on the test questions of `penelope learn`. Each result is kept in scores/ of the run folder, so that an
// interrupted run does not score a model twice.
#pragma once

#include "graph/device.h"
#include "learn/verdict.h"
#include "task/answer_reader.h"
#include "task/evaluate.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

// The files of a model: a backbone and perhaps a sidecar or a LoRA.
struct ModelFiles {
    std::string base, sidecar, lora;
};

std::shared_ptr<const Engine> load_files(const ModelFiles & files, const Backend & backend);

struct ScoringJob {
    std::string      name; // also of its files in scores/
    ModelFiles       files;
    std::vector<int> steps        = {};    // K, ascending, or kAutoSteps; empty: the default of the files
    bool             swap_latents = false; // answer from the memory of another question
    int              n_predict    = 32;
    int              n_context    = 0; // tokens; 0: by the model
    int              n_latency    = 8; // questions whose latency is measured
};

class Scorer {
  public:
    // progress(name, share): called after each batch; stop(): ends the work. All arguments but the folder must outlive
    // the scorer.
    Scorer(std::string folder, const Backend & backend, const AnswerReader & reader,
           std::function<void(const std::string &, double)> progress, std::function<bool()> stop);

    // Throws Error(cancelled) when stopped.
    Evaluation run(const ScoringJob & job, const std::vector<Example> & questions) const;

    // Seconds a question takes, measured on a few of them.
    double seconds_per_question(const ScoringJob & job, const std::vector<Example> & questions) const;

  private:
    Evaluation evaluate_job(const ScoringJob & job, const std::vector<Example> & questions) const;

    std::string                                      folder_;
    const Backend &                                  backend_;
    const AnswerReader &                             reader_;
    std::function<void(const std::string &, double)> progress_;
    std::function<bool()>                            stop_;
};

// The predictions at K as one line; n_layer: of the backbone, which every token of the answer passes.
ScoredLine scored_line(const Evaluation & evaluation, int n_steps, int n_layer);

// n of the questions, spread evenly over the list.
std::vector<Example> spread_sample(const std::vector<Example> & questions, size_t n);

} // namespace penelope
