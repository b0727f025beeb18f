// Validation during training: loss on held-out targets, and exact match of greedily generated answers, through the same
// code as inference.
#pragma once

#include "infer/decode_loop.h"
#include "method/method.h"
#include "task/answer_reader.h"
#include "train/batch_graph.h"
#include "train/collective.h"
#include "train/curriculum.h"
#include "train/trained_model.h"
#include "train/training_data.h"

#include <functional>
#include <memory>
#include <vector>

namespace penelope {

struct ValidationOptions {
    size_t    limit      = 200;           // number of examples from the start of the file; 0: all
    int       batch_size = 8;             // batch size
    int       n_predict  = 0;             // maximum number of new tokens; 0: default of the method
    ggml_type kv_type    = GGML_TYPE_F32; // type of the KV cache
};

class Validator {
  public:
    // reader parses answers. All arguments must outlive the validator. If stop() returns true, results are discarded
    // and all ranks throw Error(cancelled). The batches are divided among the ranks; the results are the same on all
    // ranks and do not depend on the number of ranks.
    Validator(const TrainedModel & model, const TrainingData & data, const AnswerReader & reader,
              const Backend & backend, const ValidationOptions & options, Collective & ranks,
              std::function<bool()> stop);

    size_t n_examples() const { return n_; }

    double loss(const Stage & stage); // mean over target tokens

    // Exact match at each K, given in ascending order.
    std::vector<double> exact(const std::vector<int> & depths);

    // Whether backbone and LoRA alone, without latent steps, write the first gold step of most examples.
    bool writes_visible_steps();

    size_t n_bytes() const;

  private:
    // Calls `work` for every batch of this rank with its index and its range [first, end) of the n examples.
    void   for_local_batches(size_t n, const std::function<void(size_t batch, size_t first, size_t end)> & work) const;
    size_t n_batches(size_t n) const;
    std::unique_ptr<Method> current_method();
    Context &               context(const Method & method);
    DecodeLoop              answer_loop(Context & where) const;

    const TrainedModel &         model_;
    const TrainingData &         data_;
    const AnswerReader &         reader_;
    const Backend &              backend_;
    ValidationOptions            options_;
    Collective &                 ranks_;
    std::function<bool()>        stop_;
    size_t                       n_;
    BatchGraphCache              graphs_;
    std::unique_ptr<Context>     context_;
    std::unique_ptr<WeightStore> tables_; // time tables of the current method
};

} // namespace penelope
