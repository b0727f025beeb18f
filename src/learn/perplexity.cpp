// Perplexity before and after training on plain text.
#include "learn/score_run.h"

#include "base/error.h"
#include "task/example_format.h"
#include "train/setting_table.h"
#include "train/validation.h"

#include <cmath>

namespace penelope {

double perplexity(const ModelFiles & files, bool is_full, const std::vector<Example> & windows, const Backend & backend,
                  const std::function<bool()> & stop) {
    TrainModelOptions choice       = default_settings().model;
    choice.base                    = files.base;
    choice.init                    = files.lora;
    choice.method                  = "cot";
    choice.full                    = is_full;
    choice.dropout                 = 0;
    const ExampleFormat & format   = format_of(windows.front().kind);
    choice.sidecar.prompt_template = format.prompt_template;
    choice.sidecar.answer_prefix   = format.answer_prefix;
    const TrainedModel model(choice, backend);
    const TrainingData data(windows, model.tokenizer(), { format.prompt_template, format.answer_prefix });
    const AnswerReader reader(generic_task(), format.answer_prefix, Match::exact, windows);
    const std::unique_ptr<Collective> one = single_process();
    ValidationOptions                 all;
    all.limit = 0;
    Validator validator(model, data, reader, backend, all, *one, stop);
    return std::exp(validator.loss(Stage{}));
}

} // namespace penelope
