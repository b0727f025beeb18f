#include "train/length_buckets.h"

#include "graph/device.h"

namespace penelope {

namespace {

constexpr size_t kPromptUnit = 32, kTargetUnit = 16; // powers of two

} // namespace

bool can_be_padded(const Minibatch & batch, const Backbone & model) {
    return !batch.has_teacher && n_recurrent(model) == 0;
}

Minibatch pad_to_bucket(Minibatch batch) {
    size_t n_prompt = 1, n_target = 1;
    for (const TokenizedExample & example : batch.examples) {
        n_prompt = std::max(n_prompt, GGML_PAD(example.prompt.size(), kPromptUnit));
        n_target = std::max(n_target, GGML_PAD(example.target.size(), kTargetUnit));
    }
    for (TokenizedExample & example : batch.examples) {
        example.n_left_pad  = int(n_prompt - example.prompt.size());
        example.n_right_pad = int(n_target - example.target.size());
        example.prompt.insert(example.prompt.begin(), size_t(example.n_left_pad), 0);
        example.target.resize(n_target, 0);
    }
    batch.is_padded = true;
    return batch;
}

Minibatch pad_for_device(Minibatch batch, const Backbone & model, const Backend & backend) {
    return backend.device().is_cpu || !can_be_padded(batch, model) ? std::move(batch) : pad_to_bucket(std::move(batch));
}

} // namespace penelope
