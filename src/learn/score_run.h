// The end of `penelope learn`: scores every model on the test questions, judges, and collects sample answers.
#pragma once

#include "learn/learn.h"
#include "learn/learn_data.h"
#include "learn/learn_state.h"
#include "learn/run_files.h"

#include <string>
#include <vector>

namespace penelope {

// One test question with the answers of every model, for the report.
struct SampleAnswer {
    std::string              question, gold;
    std::vector<std::string> gold_steps;
    std::string              base, visible, latent, control; // text as written; empty: not scored
    bool                     base_right = false, visible_right = false, latent_right = false, control_right = false;
    std::vector<std::string> latent_steps; // what each latent step says, decoded
};

struct ScoredRun {
    std::vector<ScoreRow>     rows;
    VerdictInput              input;
    Verdict                   verdict;
    std::string               note; // about the scores, may be empty
    std::vector<SampleAnswer> samples;
    // Exact match by number of gold steps; NaN: not scored.
    struct ByDepth {
        size_t n_steps = 0, n = 0;
        double visible = NAN, latent = NAN, control = NAN;
    };
    std::vector<ByDepth> by_depth;
};

struct ScoreRunInput {
    const LearnOptions &   options;
    const LearnData &      data;
    const LearnDataFacts & facts;
    const RunFiles &       files;
    const Backend &        backend;
    bool                   has_base, has_latent, has_control;
    int                    n_latent_steps = 0; // K of training
    int                    n_layer        = 0;
    double                 seconds        = 0; // that are left
};

// Chooses how many test questions the time allows if state.n_questions is 0, and sets it. Throws Error(cancelled).
ScoredRun score_run(const ScoreRunInput & input, LearnState & state, const LearnEvents & events);

// Perplexity of a model on these windows of plain text. files: a backbone and perhaps a LoRA.
double perplexity(const ModelFiles & files, bool is_full, const std::vector<Example> & windows, const Backend & backend,
                  const std::function<bool()> & stop);

} // namespace penelope
