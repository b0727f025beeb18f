// The reading of prompts: long ones in chunks, short ones together.
#include "method/decode.h"
#include "serve/worker.h"

#include <algorithm>

namespace penelope {

std::vector<Prompt> Worker::prompts_of(const Streams & streams) {
    std::vector<Prompt> prompts;
    for (int stream : streams) {
        prompts.push_back(prompt_of(stream));
        slot(stream).cached.clear(); // until the rows stand
    }
    return prompts;
}

// One piece of work for every slot whose prompt is not read: a chunk of a long one, or its end.
void Worker::read_round() {
    // Prompts of one method go together, but those that have a single row: alone it would meet other kernels.
    std::map<std::pair<std::string, bool>, Streams> ready;
    for (int i = 0; i < int(slots_.size()); i++) {
        const Slot & s = slot(i);
        if (!s.busy() || s.thinking || s.growing) {
            continue;
        }
        const int n_tokens = int(s.task.job->prompt.size());
        if (const int end = part_end(i); end < n_tokens) {
            read_part(i, end);
        } else {
            ready[{ s.task.job->generate.method, n_tokens - s.n_read == 1 }].push_back(i);
        }
    }
    for (const auto & [kind, streams] : ready) {
        read_together(streams);
    }
}

// More rows than these at once are not computed faster, and the first answers would wait for the last prompts.
void Worker::read_together(const Streams & streams) {
    constexpr int kEnoughRows = 128;
    Streams       group;
    int           n_rows = 0;
    for (int stream : streams) {
        group.push_back(stream);
        n_rows += int(slot(stream).task.job->prompt.size()) - slot(stream).n_read;
        if (n_rows >= kEnoughRows || stream == streams.back() || reads_singly_) {
            method_of(stream).steps(context_) ? start(group) : fill(group);
            group.clear();
            n_rows = 0;
        }
    }
}

// Where the next piece of a prompt ends: at the end of a chunk, and where the next prompt of the conversation will
// differ, because a recurrent state is kept there.
int Worker::part_end(int stream) {
    const int n_lasting = slot(stream).task.job->generate.n_lasting;
    const int end       = chunk_end(context_, prompt_of(stream));
    return context_.cache().is_recurrent() && n_lasting > slot(stream).n_read ? std::min(n_lasting, end) : end;
}

void Worker::read_part(int stream, int end) {
    Slot &       s = slot(stream);
    const Tokens part(s.task.job->prompt.begin(), s.task.job->prompt.begin() + end);
    s.cached.clear();
    const bool good = attempt({ stream }, &Slot::prompt_ms, [&] {
        int applications = 0;
        prefill_chunk(context_, { part, stream, s.n_read }, applications);
    });
    if (good) {
        s.n_read = end;
        s.cached = part;
        if (end == s.task.job->generate.n_lasting) {
            context_.cache().keep(stream, end, Hold::tip);
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
        context_.cache().keep(stream, int(s.cached.size()), Hold::anchor);
        s.seen.clear();
        look(stream, steps);
    }
}

// For methods without latent steps.
void Worker::fill(const Streams & streams) {
    Filled filled;
    if (attempt(streams, &Slot::prompt_ms,
                [&] { filled = method_of(streams[0]).fill(context_, prompts_of(streams), 0); })) {
        for (int stream : streams) {
            slot(stream).cached = slot(stream).task.job->prompt;
            context_.cache().keep(stream, int(slot(stream).cached.size()), Hold::tip);
        }
        begin_answers(streams, filled);
    }
}

} // namespace penelope
