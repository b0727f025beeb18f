// Latent steps and decoding, one round at a time for all slots.
#include "base/clock.h"
#include "infer/trace.h"
#include "method/decode.h"
#include "serve/worker.h"

namespace penelope {

namespace {

Answer initial_answer(const Job & job) {
    Answer answer;
    answer.n_prompt = int(job.prompt.size());
    answer.method   = job.generate.method;
    answer.n_steps  = job.generate.n_steps;
    return answer;
}

} // namespace

// Reports the latent state after the current step if the job asked for a trace.
void Worker::report_trace(int stream, LatentSteps & steps) {
    Slot & s = slot(stream);
    if (!s.task.job->traces || s.task.index > 0) {
        return;
    }
    attempt({ stream }, &Slot::latent_ms, [&] {
        s.task.job->report(LatentEvent{ trace_step(context_, engine_->tokenizer(), steps, stream, s.previous_states,
                                                   s.task.job->generate.attention) });
    });
}

// One latent step for every question that needs another, whatever its step; the final pass for the others.
void Worker::latent_round() {
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
                report_trace(stream, *steps);
            }
        }
        Streams answering;
        for (int stream : ready) {
            Slot & s   = slot(stream);
            s.thinking = false;
            if (s.task.job->answers) {
                answering.push_back(stream);
            } else {
                end(stream, DoneEvent{ s.task.index, initial_answer(*s.task.job), s.n_cached, s.latent_ms });
            }
        }
        Prefill prefilled;
        if (!answering.empty() &&
            attempt(answering, &Slot::prompt_ms, [&, all = steps] { prefilled = all->finish(answering); })) {
            begin_answers(answering, prefilled);
        }
    }
}

void Worker::begin_answers(const Streams & streams, const Prefill & prefilled) {
    for (size_t i = 0; i < streams.size(); i++) {
        Slot &        s            = slot(streams[i]);
        const Job &   job          = *s.task.job;
        LatentSteps * steps        = method_of(streams[i]).steps(context_);
        Answer        initial      = initial_answer(job);
        initial.layer_applications = steps ? steps->layer_applications(streams[i]) : prefilled.layer_applications;
        initial.timings.load_ms    = engine_->load_ms();
        initial.timings.prompt_ms  = s.prompt_ms + s.latent_ms;
        GenerateOptions generate   = job.generate;
        generate.sampling.seed += uint64_t(s.task.index); // different samples for the answers of one job
        const bool begun = attempt({ streams[i] }, &Slot::prompt_ms, [&] {
            s.generation = std::make_unique<GenerationState>(env_, generate, prefilled.n_past[i], std::move(initial));
        });
        if (!begun) {
            continue;
        }
        s.decode_start = std::chrono::steady_clock::now();
        metrics_.prompt_us += uint64_t((s.prompt_ms + s.latent_ms) * 1000);
        metrics_.prompt_tokens += job.prompt.size();
        metrics_.cached_tokens += uint64_t(s.n_cached);
        if (s.generation->done()) {
            finish(streams[i]);
        } else {
            accept_logits(streams[i], prefilled.logits[i]);
        }
    }
}

void Worker::decode_round() {
    std::vector<NextToken> next;
    for (int i = 0; i < int(slots_.size()); i++) {
        if (slot(i).generation) {
            next.push_back({ i, slot(i).generation->row(), slot(i).generation->last_token() });
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
        accept_logits(next[i].stream, rows[i]);
    }
}

void Worker::accept_logits(int stream, const std::vector<float> & logits) {
    if (drop_if_cancelled(stream)) { // checked again: applying a grammar takes time
        return;
    }
    Slot & s = slot(stream);
    try {
        const std::string text = s.generation->accept_logits(logits.data());
        TextEvent         event{ s.task.index, text, {}, s.generation->new_reasoning(), s.generation->new_events() };
        if (!s.generation->answer().logprobs.empty()) {
            event.logprobs = s.generation->answer().logprobs.back();
        }
        metrics_.predicted_tokens++;
        s.task.job->report(std::move(event));
    } catch (const std::exception & error) {
        // Non-finite logits, or the grammar exceeded its limits: only this answer fails.
        return fail(stream, to_request_error(error));
    }
    if (s.generation->done()) {
        finish(stream);
    }
}

void Worker::finish(int stream) {
    Slot &                                          s      = slot(stream);
    Answer &                                        answer = s.generation->answer();
    const std::chrono::duration<double, std::milli> taken  = std::chrono::steady_clock::now() - s.decode_start;
    const size_t                                    n      = answer.tokens.size();
    set_decode_time(answer, taken.count());
    if (no_batch_invariance_ && engine_->method(answer.method).n_extra_rows(answer.n_steps) == 0 && n > 0) {
        // The last token was sampled but not evaluated, so it is not in the KV cache.
        s.cached.insert(s.cached.end(), answer.tokens.begin(), answer.tokens.end() - 1);
        context_.cache().save_checkpoint(stream, int(s.cached.size()), StateSlot::current);
    }
    metrics_.answers++;
    end(stream, DoneEvent{ s.task.index, std::move(answer), s.n_cached, s.latent_ms });
}

} // namespace penelope
