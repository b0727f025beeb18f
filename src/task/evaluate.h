// Evaluation: answers questions with a session and measures exact match, parse rate, output tokens, latency and layer
// applications, at one or several K in one pass. Latency is measured in a separate pass with single questions, without
// loading and tokenizing, because scoring batches questions and shares work between K.
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
    std::vector<int> steps;                  // ascending; empty: default K of the file
    int              n_predict         = -1; // -1: 32, with visible steps 256
    int              n_batch           = 8;  // batch size, at most the streams of the session
    int              n_latency_samples = 16; // questions run once more one at a time; 0: none
};

struct EvaluateEvents {
    // Called after each batch with the fraction done; returning false ends the evaluation, as does Session::cancel().
    std::function<bool(double share)> progress = [](double) { return true; };
    // Called with the predictions of each complete batch, before latency is measured.
    std::function<void(const Evaluation & batch)> answered = [](const Evaluation &) {};
};

// An interrupted evaluation has the answers so far, see Evaluation::n_unanswered and ::interrupted.
// Throws Error(usage) for no examples or an unsupported K, Error(format) for a gold answer that is not valid.
Evaluation evaluate(Session & session, const AnswerReader & reader, const std::vector<Example> & examples,
                    const EvaluateOptions & options, const EvaluateEvents & events = {});

} // namespace penelope
