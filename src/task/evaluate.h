// Answers the questions of a task with a session and scores them: exact match, parse rate, output tokens, latency, layer
// applications, at one or several K in one pass. Input: examples and a session; output: predictions and a score per K.
// Tokenizing and loading are outside the measured time.
#pragma once

#include "infer/session.h"
#include "task/task.h"

#include <functional>
#include <string>
#include <vector>

namespace penelope {

struct EvaluateOptions {
    std::string      method;         // see Engine::method
    std::vector<int> steps;          // ascending; empty: the file's own K
    int              n_predict = -1; // -1: 32, and 256 for a visible trace
    int n_batch = 8; // questions side by side, at most the session's streams; 1 gives latencies of single questions
};

struct Prediction {
    std::string id;
    int         n_steps = 0;
    std::string question, text, extracted, answer;
    bool        parsed = false, correct = false;
    int         n_tokens           = 0; // end token included
    double      latency_ms         = 0; // its share of the batch
    int         layer_applications = 0;
    std::string finish_reason;
};

struct Score {
    int    n_steps = 0;
    double em = 0, parsed = 0; // shares
    size_t n             = 0;
    double output_tokens = 0, latency_ms = 0; // means
    int    layer_applications = 0;            // of the longest question
};

struct Evaluation {
    std::string              method;
    std::vector<Score>       scores;         // one per K
    std::vector<Prediction>  predictions;    // by question, then K
    int                      best_steps = 0; // the smallest K with the best exact match
    std::vector<ChanceLevel> chance;
};

// Called after each batch with the questions done and all; false ends the evaluation with Error(cancelled).
using EvaluateProgress = std::function<bool(size_t n_done, size_t n_all)>;

// Throws Error(usage) for no examples, and for a gold answer that the task's extractor can never produce.
Evaluation evaluate(Session & session, const Task & task, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateProgress & progress = {});

// Scores by K from predictions.
std::vector<Score> score(const std::vector<Prediction> & predictions);

} // namespace penelope
