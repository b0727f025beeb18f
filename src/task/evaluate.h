// Answers the questions of a task with a session and scores them: exact match, parse rate, output tokens, latency, layer
// applications, at one or several K in one pass. Input: examples and a session; output: predictions and a score per K.
// Latency is that of single questions, measured apart from the scoring, which answers many side by side and shares work
// between depths. Tokenizing and loading are outside the measured time.
#pragma once

#include "infer/session.h"
#include "task/task.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace penelope {

struct EvaluateOptions {
    std::string      method;         // see Engine::method
    std::vector<int> steps;          // ascending; empty: the file's own K
    int              n_predict = -1; // -1: 32, and 256 for a visible trace
    int              n_batch   = 8;  // questions side by side, at most the session's streams
    int              n_timed   = 16; // questions answered once more, alone, for the latency; 0: none
};

struct Prediction {
    std::string id;
    int         n_steps = 0;
    int         depth   = -1; // of the question, as the task counts it; negative: unknown
    std::string question, text, extracted, answer;
    bool        parsed = false, correct = false;
    int         n_tokens           = 0;  // end token included
    double      latency_ms         = -1; // negative: this question was not timed
    int         layer_applications = 0;
    std::string finish_reason;
};

// The questions of one depth.
struct DepthScore {
    int    depth;
    size_t n;
    double em;
};

struct Score {
    int                     n_steps = 0;
    double                  em = 0, parsed = 0; // shares
    size_t                  n             = 0;
    double                  output_tokens = 0;                // mean
    double                  latency_ms = NAN, latency_sd = 0; // mean and spread over the timed questions; NaN: none was
    int                     layer_applications = 0;           // of the longest question
    std::vector<DepthScore> by_depth;                         // ascending
};

struct Evaluation {
    std::string              method, task;
    std::vector<Score>       scores;            // one per K
    std::vector<Prediction>  predictions;       // by question, then K
    int                      default_steps = 0; // K of the file
    int                      best_steps    = 0; // the smallest K with the best exact match
    std::vector<ChanceLevel> chance;
};

// Called after each batch with the share of the work that is done; false ends the evaluation with Error(cancelled).
using EvaluateProgress = std::function<bool(double share)>;

// Throws Error: usage for no examples and for a K the method cannot take, format for a gold answer that the task's extractor
// can never produce.
Evaluation evaluate(Session & session, const Task & task, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateProgress & progress = {});

// Scores by K from predictions.
std::vector<Score> score(const std::vector<Prediction> & predictions);

// The score a run is judged by: at the K its file names, chosen before; where that was not measured, at the best K.
const Score & chosen_score(const Evaluation & evaluation);

} // namespace penelope
