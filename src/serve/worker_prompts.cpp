// Prefill: long prompts in chunks, short ones batched.
#include "method/decode.h"
#include "serve/worker.h"

#include <algorithm>

namespace penelope {

std::vector<Prompt> Worker::prompts_of(const Streams & streams) {
    std::vector<Prompt> prompts;
    for (int stream : streams) {
        prompts.push_back(prompt_of(stream));
        slot(stream).cached.clear(); // set when prefill is complete
    }
    return prompts;
}

// One chunk for every slot with an unfinished prompt.
void Worker::prefill_round() {
    // Prompts of one method are batched, except those with a single row left: one row alone uses other kernels.
    std::map<std::pair<std::string, bool>, Streams> ready;
    for (int i = 0; i < int(slots_.size()); i++) {
        const Slot & s = slot(i);
        if (!s.busy() || s.thinking || s.generation) {
            continue;
        }
        const int n_tokens = int(s.task.job->prompt.size());
        if (const int end = next_chunk_end(i); end < n_tokens) {
            prefill_part(i, end);
        } else {
            ready[{ s.task.job->generate.method, n_tokens - s.n_prefilled == 1 }].push_back(i);
        }
    }
    for (const auto & [kind, streams] : ready) {
        prefill_batch(streams);
    }
}

// Larger batches are not faster and delay the first token of every prompt in them.
void Worker::prefill_batch(const Streams & streams) {
    constexpr int kEnoughRows = 128;
    Streams       group;
    int           n_rows = 0;
    for (int stream : streams) {
        group.push_back(stream);
        n_rows += int(slot(stream).task.job->prompt.size()) - slot(stream).n_prefilled;
        if (n_rows >= kEnoughRows || stream == streams.back() || prefills_one_by_one_) {
            method_of(stream).steps(context_) ? start(group) : prefill_plain(group);
            group.clear();
            n_rows = 0;
        }
    }
}

// End of the next chunk: at the chunk size, and at the end of the stable prefix, where a recurrent state is saved for
// the next turn of the conversation.
int Worker::next_chunk_end(int stream) {
    return chunk_end(context_, prompt_of(stream), slot(stream).task.job->generate.n_stable_prefix);
}

void Worker::prefill_part(int stream, int end) {
    Slot &     s = slot(stream);
    const bool is_stable_prefix =
        end < chunk_end(context_, prompt_of(stream)) || end == s.task.job->generate.n_stable_prefix;
    const Tokens part(s.task.job->prompt.begin(), s.task.job->prompt.begin() + end);
    s.cached.clear();
    const bool good = attempt({ stream }, &Slot::prompt_ms, [&] {
        int applications = 0;
        prefill_chunk(context_, { part, stream, s.n_prefilled }, applications);
    });
    if (good) {
        s.n_prefilled = end;
        s.cached      = part;
        if (is_stable_prefix) {
            context_.cache().save_checkpoint(stream, end, StateSlot::current);
        }
    }
}

void Worker::start(const Streams & streams) {
    LatentSteps & steps = *method_of(streams[0]).steps(context_);
    if (!attempt(streams, &Slot::prompt_ms, [&] { steps.start(prompts_of(streams)); })) {
        return;
    }
    for (int stream : streams) {
        Slot & s   = slot(stream);
        s.thinking = true;
        s.cached   = s.task.job->prompt;
        context_.cache().save_checkpoint(stream, int(s.cached.size()), StateSlot::prompt_end);
        s.previous_states.clear();
        report_trace(stream, steps);
    }
}

// For methods without latent steps.
void Worker::prefill_plain(const Streams & streams) {
    Prefill prefilled;
    if (attempt(streams, &Slot::prompt_ms,
                [&] { prefilled = method_of(streams[0]).prefill(context_, prompts_of(streams), 0); })) {
        for (int stream : streams) {
            slot(stream).cached = slot(stream).task.job->prompt;
            context_.cache().save_checkpoint(stream, int(slot(stream).cached.size()), StateSlot::current);
        }
        begin_answers(streams, prefilled);
    }
}

} // namespace penelope
