// `penelope learn`: from a file of examples to a trained and scored model with a verdict.
//
// The run folder has data/ (the split), a run folder of the trainer for each stage (visible/, latent/, control/),
// scores/ (predictions on the test questions), report.html, model.gguf (the file the verdict prefers) and learn.json:
// what was asked for, measured and finished. The same call goes on where an interrupted one stopped.
#pragma once

#include "graph/device.h"
#include "learn/learn_plan.h"
#include "learn/verdict.h"
#include "train/trainer.h"

#include <functional>
#include <string>
#include <vector>

namespace penelope {

struct LearnOptions {
    std::string data;                 // file or directory
    std::string base;                 // backbone GGUF; empty with from_scratch
    std::string out;                  // run folder
    std::string from_scratch;         // shape of a new backbone; empty: none
    double      seconds      = 3600;  // for everything, scoring included
    bool        is_paper     = false; // --protocol paper: the paper's objective, its number of updates
    bool        with_latent  = true;
    bool        with_control = true;
    uint64_t    seed         = 0;
    bool        force        = false; // replaces the run in the folder
};

struct LearnEvents {
    std::function<void(const std::string & line)> note    = [](const std::string &) {};
    std::function<void(const LearnPlan & plan)>   planned = [](const LearnPlan &) {};

    std::function<void(LearnStage stage, const TrainSettings & settings)> stage_started = [](LearnStage,
                                                                                             const TrainSettings &) {};
    // ms_left: of the whole run.
    std::function<void(LearnStage stage, const UpdateReport & report, double ms_left)> updated =
        [](LearnStage, const UpdateReport &, double) {};
    std::function<void(LearnStage stage, const ValidationReport & report)> validated      = [](LearnStage,
                                                                                          const ValidationReport &) {};
    std::function<void(LearnStage stage, const TrainResult & result)>      stage_finished = [](LearnStage,
                                                                                          const TrainResult &) {};
    // what: name of the scores; share: fraction done.
    std::function<void(const std::string & what, double share)> scoring = [](const std::string &, double) {};
    std::function<bool()>                                       stop    = [] { return false; };
};

// A row of the final table.
struct ScoreRow {
    std::string name; // "base", "visible", "latent K=4", "latent auto", "control", "swapped memory", "majority"
    ScoredLine  line;
    bool        is_chosen = false; // the row the verdict is about
};

struct LearnResult {
    bool                     interrupted = false;
    std::vector<std::string> notes; // e.g. why nothing latent was tried
    std::vector<ScoreRow>    rows;
    // Plain text: perplexity on the test windows instead of rows; 0: none.
    double                   perplexity_before = 0, perplexity_after = 0;
    Verdict                  verdict;
    std::string              model_path, report_path; // empty: not written
    std::vector<std::string> commands;                // to chat, serve, quantize and share the model
    double                   seconds = 0;             // of all calls
};

// Throws Error for data and options that are not valid, and for a folder with another run, naming what differs.
LearnResult learn(const LearnOptions & options, const Backend & backend, const LearnEvents & events);

} // namespace penelope
