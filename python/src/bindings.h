// What the files of the module share.
#pragma once

#include "infer/engine.h"
#include "infer/prompt.h"

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>

namespace penelope::python {

// A loaded model. Its PromptWriter is made when the first prompt comes.
class Model {
  public:
    explicit Model(std::shared_ptr<const Engine> engine) : engine_(std::move(engine)) {}

    const std::shared_ptr<const Engine> & engine() const { return engine_; }
    const PromptWriter &                  writer() const;

  private:
    std::shared_ptr<const Engine>       engine_;
    mutable std::mutex                  mutex_;
    mutable std::optional<PromptWriter> writer_;
};

void bind_errors(nanobind::module_ & m);
void bind_model(nanobind::module_ & m);
void bind_session(nanobind::module_ & m);
void bind_train(nanobind::module_ & m);
void bind_evaluate(nanobind::module_ & m);

} // namespace penelope::python
