#include "eval_compare.h"

#include "eval_output.h"

#include "base/format.h"
#include "task/compare.h"
#include "task/evaluation_file.h"

#include <algorithm>
#include <charconv>

namespace penelope {

namespace {

// A prediction file, at the K of "a.jsonl@K=3" or at `steps` (-1: its default K).
struct Compared {
    std::vector<Evaluation> runs;
    Outcomes                outcomes;
};

Compared read_compared(const std::string & text, int steps) {
    const size_t at   = text.rfind("@K=");
    std::string  path = text;
    if (at != std::string::npos) {
        const char * first  = text.data() + at + 3;
        const char * last   = text.data() + text.size();
        const auto   result = std::from_chars(first, last, steps);
        if (result.ec != std::errc() || result.ptr != last || steps < 0) {
            throw UsageError("--compare: '" + text.substr(at + 3) + "' is not a number of latent steps",
                             "e.g. --compare a.jsonl@K=0 b.jsonl@K=5");
        }
        path = text.substr(0, at);
    }
    Compared compared{ read_evaluations(path), {} };
    compared.outcomes = outcomes_of(compared.runs, steps, path);
    return compared;
}

// "K=3", "K=3, 5" for runs that differ, "visible steps" where there is no K.
std::string steps_text(const Compared & compared) {
    if (std::all_of(compared.runs.begin(), compared.runs.end(),
                    [](const Evaluation & run) { return run.is_visible(); })) {
        return "visible steps";
    }
    const Outcomes &         outcomes = compared.outcomes;
    std::vector<std::string> parts;
    for (const int k : outcomes.steps) {
        parts.push_back(steps_label(k));
    }
    return "K=" + join(parts, ", ");
}

} // namespace

int compare_predictions(const Options & options, Terminal & terminal) {
    std::vector<std::string> files = options.list("compare");
    for (const std::string & file : options.list("with")) {
        files.push_back(file);
    }
    if (files.size() != 2) {
        throw UsageError("--compare: expected two prediction files, found " + std::to_string(files.size()),
                         "penelope eval --compare a.jsonl b.jsonl; a.jsonl@K=N selects a K");
    }
    const std::vector<int> steps = options.steps("latent-steps");
    if (steps.size() > 1) {
        throw UsageError("--compare: -K must be one number", "without -K each file is compared at its default K");
    }
    const int              k      = steps.empty() ? -1 : steps.front();
    const Compared         first  = read_compared(files[0], k);
    const Compared         second = read_compared(files[1], k);
    const PairedDifference d      = paired_bootstrap(first.outcomes.questions, second.outcomes.questions);
    if (options.flag("json")) {
        OrderedJson object = { { "status", "ok" }, { "K", { first.outcomes.steps, second.outcomes.steps } } };
        object.update(difference_json(d));
        terminal.line(dump_json(object));
    } else {
        terminal.line("second (" + steps_text(second) + ") minus first (" + steps_text(first) +
                      "): " + difference_text(d));
    }
    return 0;
}

} // namespace penelope
