// How well the model in training answers: the loss on held-out targets, and how many answers are exactly right when it writes
// them itself, greedily, through the same code as inference.
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
    size_t    limit      = 200;           // examples, the first of the file; 0: all
    int       batch_size = 8;             // side by side
    int       n_predict  = 0;             // new tokens at most; 0: as the protocol says for the method
    ggml_type kv_type    = GGML_TYPE_F32; // of what answers are written from
};

class Validator {
  public:
    // reader: how answers are read. Everything outlives the validator. stop: asked while a batch is answered and after
    // it; what is measured by then is thrown away and Error(cancelled) is thrown, on all ranks. The ranks share the
    // batches; all get the same results, which do not depend on how many ranks there are.
    Validator(const TrainedModel & model, const TrainingData & data, const AnswerReader & reader,
              const Backend & backend, const ValidationOptions & options, Collective & ranks,
              std::function<bool()> stop);

    size_t n_examples() const { return n_; }

    double loss(const Stage & stage); // mean over target tokens

    // The share of right answers at each depth, ascending.
    std::vector<double> exact(const std::vector<int> & depths);

    // Whether backbone and LoRA alone, asked without latent steps, write the first step of most examples that have any.
    bool writes_visible_steps();

    size_t n_bytes() const;

  private:
    // Calls `work` for every batch of this rank out of n examples: its number, its first example and the one after its
    // last.
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
    std::unique_ptr<WeightStore> tables_; // of the method last asked for
};

} // namespace penelope
