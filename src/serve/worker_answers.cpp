// The latent steps of all questions, and the tokens of all answers, a round at a time.
#include "base/clock.h"
#include "infer/trace.h"
#include "method/decode.h"
#include "serve/worker.h"

namespace penelope {

namespace {

Answer blank_answer(const Job & job) {
    Answer answer;
    answer.n_prompt = int(job.prompt.size());
    answer.method   = job.generate.method;
    answer.n_steps  = job.generate.n_steps;
    return answer;
}

} // namespace

// Reports what a stream holds after the step it stands at, if somebody wants to see it.
void Worker::look(int stream, LatentSteps & steps) {
    Slot & s = slot(stream);
    if (!s.task.job->traces || s.task.index > 0) {
        return;
    }
    attempt({ stream }, &Slot::latent_ms, [&] {
        std::vector<StateTensor> now  = steps.look(stream);
        TraceStep                step = trace_step(context_, engine_->tokenizer(), steps.step(stream), now, s.seen);
        s.task.job->report(LatentEvent{ std::move(step) });
        s.seen = std::move(now);
    });
}

// One step for every question that needs another, whatever step it stands at; the final pass for those that do not.
void Worker::think_round() {
    std::map<LatentSteps *, std::pair<Streams, Streams>> by_method; // to advance, to finish
    for (int i = 0; i < int(slots_.size()); i++) {
        if (slot(i).busy() && slot(i).thinking) {
            LatentSteps * steps = method_of(i).steps(context_);
            const bool    more  = steps->step(i) < slot(i).task.job->generate.n_steps;
            (more ? by_method[steps].first : by_method[steps].second).push_back(i);
        }
    }
    for (auto & [steps, groups] : by_method) {
        const Streams &onward = groups.first, &ready = groups.second;
        if (!onward.empty() && attempt(onward, &Slot::latent_ms, [&, all = steps] { all->advance(onward); })) {
            metrics_.latent_steps += onward.size();
            for (int stream : onward) {
                look(stream, *steps);
            }
        }
        Streams answering;
        for (int stream : ready) {
            Slot & s   = slot(stream);
            s.thinking = false;
            if (s.task.job->answers) {
                answering.push_back(stream);
            } else {
                end(stream, DoneEvent{ s.task.index, blank_answer(*s.task.job), s.n_kept, s.latent_ms });
            }
        }
        Filled filled;
        if (!answering.empty() &&
            attempt(answering, &Slot::prompt_ms, [&, all = steps] { filled = all->finish(answering); })) {
            begin_answers(answering, filled);
        }
    }
}

void Worker::begin_answers(const Streams & streams, const Filled & filled) {
    for (size_t i = 0; i < streams.size(); i++) {
        Slot &        s          = slot(streams[i]);
        const Job &   job        = *s.task.job;
        LatentSteps * steps      = method_of(streams[i]).steps(context_);
        Answer        blank      = blank_answer(job);
        blank.layer_applications = steps ? steps->layer_applications(streams[i]) : filled.layer_applications;
        blank.timings.load_ms    = engine_->load_ms();
        blank.timings.prompt_ms  = s.prompt_ms + s.latent_ms;
        GenerateOptions generate = job.generate;
        generate.sampling.seed += uint64_t(s.task.index); // each answer of a job draws for itself
        const bool begun = attempt({ streams[i] }, &Slot::prompt_ms, [&] {
            s.growing = std::make_unique<GrowingAnswer>(facts_, generate, filled.n_rows[i], std::move(blank));
        });
        if (!begun) {
            continue;
        }
        s.decode_start = std::chrono::steady_clock::now();
        metrics_.prompt_us += uint64_t((s.prompt_ms + s.latent_ms) * 1000);
        metrics_.prompt_tokens += job.prompt.size();
        metrics_.kept_tokens += uint64_t(s.n_kept);
        if (s.growing->done()) {
            finish(streams[i]);
        } else {
            take(streams[i], filled.logits[i]);
        }
    }
}

void Worker::decode_round() {
    std::vector<NextToken> next;
    for (int i = 0; i < int(slots_.size()); i++) {
        if (slot(i).growing) {
            next.push_back({ i, slot(i).growing->row(), slot(i).growing->last_token() });
        }
    }
    if (next.empty()) {
        return;
    }
    const Stopwatch                 watch;
    std::vector<std::vector<float>> rows;
    try {
        rows = decode(context_, next);
    } catch (const std::exception & error) {
        const RequestError problem = to_request_error(error);
        for (const NextToken & token : next) {
            fail(token.stream, problem);
        }
        return;
    }
    metrics_.decode_us += uint64_t(watch.elapsed_ms() * 1000);
    metrics_.decode_calls++;
    for (size_t i = 0; i < next.size(); i++) {
        take(next[i].stream, rows[i]);
    }
}

void Worker::take(int stream, const std::vector<float> & logits) {
    if (drop_if_gone(stream)) { // by now: following a grammar takes its time, and each answer of a job has one
        return;
    }
    Slot & s = slot(stream);
    try {
        const std::string text = s.growing->take(logits.data());
        TextEvent         event{ s.task.index, text, {}, s.growing->new_reasoning() };
        if (!s.growing->answer().logprobs.empty()) {
            event.logprobs = s.growing->answer().logprobs.back();
        }
        metrics_.predicted_tokens++;
        s.task.job->report(std::move(event));
    } catch (const std::exception & error) {
        // These logits were not finite, or the grammar took too much; the others are not concerned.
        return fail(stream, to_request_error(error));
    }
    if (s.growing->done()) {
        finish(stream);
    }
}

void Worker::finish(int stream) {
    Slot &                                          s      = slot(stream);
    Answer &                                        answer = s.growing->answer();
    const std::chrono::duration<double, std::milli> taken  = std::chrono::steady_clock::now() - s.decode_start;
    const size_t                                    n      = answer.tokens.size();
    set_decode_time(answer, taken.count());
    if (loose_ && engine_->method(answer.method).n_extra_rows(answer.n_steps) == 0 && n > 0) {
        // The last token was drawn but never computed.
        s.cached.insert(s.cached.end(), answer.tokens.begin(), answer.tokens.end() - 1);
        context_.cache().keep(stream, int(s.cached.size()), Hold::tip);
    }
    metrics_.answers++;
    end(stream, DoneEvent{ s.task.index, std::move(answer), s.n_kept, s.latent_ms });
}

} // namespace penelope
