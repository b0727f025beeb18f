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
    std::string      method;                 // see Engine::method
    std::vector<int> steps;                  // ascending; empty: the file's own K
    int              n_predict         = -1; // -1: 32, and 256 for a visible trace
    int              n_batch           = 8;  // questions side by side, at most the session's streams
    int              n_latency_samples = 16; // questions answered once more, alone, for the latency; 0: none
};

struct EvaluateEvents {
    // After each batch, with the share of the work that is done; false ends the evaluation. So does Session::cancel().
    std::function<bool(double share)> progress = [](double) { return true; };
    // With the predictions of a batch as soon as they are there, not timed yet. Nothing of a batch that was cut off.
    std::function<void(const Evaluation & batch)> answered = [](const Evaluation &) {};
};

// An evaluation that was ended early holds what was answered until then, see Evaluation::n_unanswered and ::interrupted.
// Throws Error: usage for no examples and for a K the method cannot take, format for a gold answer that no text can
// be read as.
Evaluation evaluate(Session & session, const AnswerReader & reader, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateEvents & events = {});

} // namespace penelope
