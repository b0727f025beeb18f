// Answers the questions of a task with a session and scores them: exact match, parse rate, output tokens, latency, layer
// applications, at one or several K in one pass. Input: examples and a session; output: predictions and a score per K.
// Latency is that of single questions, measured apart from the scoring, which answers many side by side and shares work
// between depths. Tokenizing and loading are outside the measured time.
#pragma once

#include "infer/session.h"
#include "task/answer_reader.h"
#include "task/score.h"

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

// Called after each batch with the share of the work that is done; false ends the evaluation with Error(cancelled).
using EvaluateProgress = std::function<bool(double share)>;

// Throws Error: usage for no examples and for a K the method cannot take, format for a gold answer that no text can
// be read as.
Evaluation evaluate(Session & session, const AnswerReader & reader, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateProgress & progress = {});

} // namespace penelope
