#include "train/validation.h"

#include "base/error.h"
#include "method/plain.h"
#include "method/registry.h"
#include "train/length_buckets.h"

#include <algorithm>
#include <numeric>

namespace penelope {

Validator::Validator(const TrainedModel & model, const TrainingData & data, const AnswerReader & reader,
                     const Backend & backend, const ValidationOptions & options, Collective & ranks,
                     std::function<bool()> stop)
    : model_(model), data_(data), reader_(reader), backend_(backend), options_(options), ranks_(ranks),
      stop_(std::move(stop)), n_(options.limit ? std::min(options.limit, data.size()) : data.size()),
      graphs_(model.objective(), model.backbone(), backend, nullptr) {}

size_t Validator::n_batches(size_t n) const {
    return (n + size_t(options_.batch_size) - 1) / size_t(options_.batch_size);
}

void Validator::for_local_batches(size_t                                                              n,
                                  const std::function<void(size_t batch, size_t first, size_t end)> & work) const {
    for (size_t batch = size_t(ranks_.rank()); batch < n_batches(n); batch += size_t(ranks_.size())) {
        const size_t first = batch * size_t(options_.batch_size);
        work(batch, first, std::min(n, first + size_t(options_.batch_size)));
        if (stop_()) { // interrupted answers must not count as wrong
            throw Error(ErrorKind::cancelled, "interrupted");
        }
    }
}

double Validator::loss(const Stage & stage) {
    // Summed losses of the batches, then their numbers of target tokens.
    const size_t              n         = n_batches(n_);
    const std::vector<double> parts     = all_reduce_results(ranks_, 2 * n, [&](std::vector<double> & mine) {
        for_local_batches(n_, [&](size_t number, size_t first, size_t end) {
            Minibatch batch;
            batch.n_steps = stage.n_steps;
            for (size_t i = first; i < end; i++) {
                batch.examples.push_back(data_.tokenized(i, stage.n_skip_steps));
            }
            mine[number]     = graphs_.run(pad_for_device(batch, model_.backbone(), backend_)).mean * batch.n_targets();
            mine[n + number] = batch.n_targets();
        });
    });
    const auto                middle    = parts.begin() + ptrdiff_t(n);
    const double              n_targets = std::accumulate(middle, parts.end(), 0.0);
    return n_targets > 0 ? std::accumulate(parts.begin(), middle, 0.0) / n_targets : 0.0;
}

// The method with the current weights. The graphs of a context refer to the time tables, so both are rebuilt together.
std::unique_ptr<Method> Validator::current_method() {
    context_.reset();
    tables_ = std::make_unique<WeightStore>(backend_.device(), false);
    return get_method(model_.choice().method)
        .make({ model_.sidecar(), model_.modules(), backend_.device(), model_.tokenizer(), *tables_ });
}

// Sized for the longest prompt, the rows of the method and the answer.
Context & Validator::context(const Method & method) {
    if (!context_) {
        size_t longest = 0;
        for (size_t i = 0; i < n_; i++) {
            longest = std::max(longest, data_.prompt(i).size());
        }
        ContextOptions options;
        options.n_streams = options_.batch_size;
        options.n_ctx     = int(longest) + method.n_extra_rows(method.max_steps()) + options_.n_predict + 1;
        options.n_threads = backend_.n_threads();
        options.kv_type   = options_.kv_type;
        context_          = std::make_unique<Context>(model_.backbone(), backend_.device(), options);
    }
    return *context_;
}

DecodeLoop Validator::answer_loop(Context & where) const {
    return DecodeLoop(
        where, model_.tokenizer(), model_.backbone().config.n_vocab,
        []() { throw Error(ErrorKind::format, "validation: logits are not finite", "lower --lr"); }, stop_);
}

std::vector<double> Validator::exact(const std::vector<int> & depths) {
    std::vector<double> right = all_reduce_results(ranks_, depths.size(), [&](std::vector<double> & mine) {
        const std::unique_ptr<Method> method = current_method();
        Context &                     where  = context(*method);
        DecodeLoop                    loop   = answer_loop(where);
        GenerateOptions               greedy;
        greedy.n_predict = options_.n_predict;
        for_local_batches(n_, [&](size_t, size_t first, size_t end) {
            std::vector<Tokens> prompts;
            for (size_t i = first; i < end; i++) {
                prompts.push_back(data_.prompt(i));
            }
            size_t depth = 0;
            method->sweep(where, prompts, depths, [&](int, const Prefill & prefilled) {
                const std::vector<Answer> answers = loop.run(prefilled, std::vector<Answer>(prompts.size()), greedy);
                for (size_t i = 0; i < answers.size(); i++) {
                    mine[depth] += reader_.is_correct(answers[i].text, data_.example(first + i));
                }
                depth++;
            });
        });
    });
    for (double & share : right) {
        share /= double(std::max<size_t>(1, n_));
    }
    return right;
}

bool Validator::writes_visible_steps() {
    constexpr size_t    kProbeExamples = 16; // enough to see whether the model writes steps
    std::vector<size_t> with_steps;
    for (size_t i = 0; i < n_ && with_steps.size() < kProbeExamples; i++) {
        if (!data_.example(i).steps.empty()) {
            with_steps.push_back(i);
        }
    }
    const std::vector<double> n_written = all_reduce_results(ranks_, 1, [&](std::vector<double> & mine) {
        context_.reset();
        const PlainMethod method;
        Context &         where = context(method);
        DecodeLoop        loop  = answer_loop(where);
        GenerateOptions   greedy;
        greedy.n_predict = options_.n_predict;
        for_local_batches(with_steps.size(), [&](size_t, size_t first, size_t end) {
            std::vector<Tokens> prompts;
            for (size_t i = first; i < end; i++) {
                prompts.push_back(data_.prompt(with_steps[i]));
            }
            const Prefill prefilled = method.prefill(where, fresh_prompts(prompts), 0);
            size_t        which     = first;
            for (const Answer & answer : loop.run(prefilled, std::vector<Answer>(prompts.size()), greedy)) {
                // The answer may be truncated.
                const std::string step = data_.example(with_steps[which++]).steps.front() + "\n";
                mine[0] +=
                    !answer.text.empty() && step.compare(0, answer.text.size(), answer.text, 0, step.size()) == 0;
            }
        });
        context_.reset();
    });
    return 2 * n_written[0] > double(with_steps.size());
}

size_t Validator::n_bytes() const {
    return graphs_.n_bytes() + (context_ ? context_->n_bytes() : 0);
}

} // namespace penelope
