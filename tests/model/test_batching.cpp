// Sequences side by side, joining and leaving, with kept beginnings, on any streams: each gets to the last bit what it
// gets alone.
#include <doctest/doctest.h>

#include "base/rng.h"
#include "convert/convert.h"
#include "infer/session.h"
#include "method/decode.h"
#include "method/latent_steps.h"
#include "support/golden.h"

#include <algorithm>
#include <cstring>

using namespace penelope;
using penelope::test::GoldenCase;

namespace {

constexpr int kWritten = 4; // tokens of every answer
constexpr int kStreams = 5;

using Logits = std::vector<float>;

// The bytes, because -0 is no 0 here and NaN is itself.
bool same_bits(const Logits & a, const Logits & b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

int32_t best(const Logits & logits) {
    return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::shared_ptr<const Engine> load(const std::string & base, const std::string & sidecar) {
    LoadOptions options;
    options.base            = base;
    options.sidecar         = sidecar;
    options.device          = "CPU";
    options.ignore_mismatch = true;
    return Engine::load(options);
}

SessionOptions session_options(int n_streams, int n_threads) {
    SessionOptions options;
    options.n_threads       = n_threads;
    options.n_streams       = n_streams;
    options.n_ctx           = 512;
    options.n_batch         = 128;
    options.batch_invariant = true;
    return options;
}

struct Question {
    Tokens              prompt;
    int                 n_steps = 0;
    std::vector<Logits> alone; // of the first token and the kWritten that follow
};

// Some share a beginning, some are longer than a tile of attention, some than a batch.
std::vector<Question> questions(const Method & method, int n) {
    Rng                   rng(7);
    const auto            draw = [&](int most) { return int32_t(rng.below(uint32_t(most))); };
    std::vector<Question> all;
    const Tokens          front = [&] {
        Tokens tokens;
        for (int i = 0; i < 100; i++) {
            tokens.push_back(draw(400));
        }
        return tokens;
    }();
    for (int i = 0; i < n; i++) {
        Question  one;
        const int lengths[] = { 1, 2, 7, 40, 66, 90, 130, 190 };
        if (i % 3 == 0) {
            one.prompt.assign(front.begin(), front.begin() + 40 + draw(60));
        }
        for (int left = lengths[i % 8]; left > 0; left--) {
            one.prompt.push_back(draw(400));
        }
        one.n_steps = draw(method.max_steps() + 1);
        all.push_back(std::move(one));
    }
    return all;
}

void answer_alone(const std::shared_ptr<const Engine> & engine, const Method & method, Question & question,
                  int n_threads) {
    Session session(engine, session_options(1, n_threads));
    Prefill prefilled = method.prefill(session.context(), { { question.prompt, 0, 0 } }, question.n_steps);
    question.alone.push_back(prefilled.logits[0]);
    for (int row = prefilled.n_past[0]; int(question.alone.size()) <= kWritten; row++) {
        question.alone.push_back(decode(session.context(), { { 0, row, best(question.alone.back()) } })[0]);
    }
}

// A slot of the service, reduced to what decides about numbers.
struct Slot {
    Question * question = nullptr;
    Tokens     cached;
    int        row       = 0;
    size_t     n_written = 0;
    bool       thinking  = false;
};

void check_together(const std::shared_ptr<const Engine> & engine, const Method & method, std::vector<Question> & all,
                    int n_threads) {
    Session           session(engine, session_options(kStreams, n_threads));
    Context &         context = session.context();
    LatentSteps *     steps   = method.steps(context);
    std::vector<Slot> slots{ size_t(kStreams) };
    size_t            next = 0, n_done = 0;
    Rng               rng(11);
    const auto        take = [&](Slot & slot, const Logits & logits) {
        CAPTURE(slot.n_written);
        CAPTURE(slot.question->prompt.size());
        CHECK(same_bits(logits, slot.question->alone[slot.n_written]));
        if (++slot.n_written == slot.question->alone.size()) {
            slot.question = nullptr;
            n_done++;
        }
    };
    while (n_done < all.size()) {
        // New ones, those of a single row apart from the others as the service has them.
        std::vector<Prompt> fresh[2];
        for (int i = 0; i < kStreams; i++) {
            Slot & slot = slots[size_t(i)];
            if (!slot.question && next < all.size() && rng.below(2) == 0) {
                slot.question     = &all[next++];
                slot.n_written    = 0;
                slot.thinking     = true;
                const Tokens & to = slot.question->prompt;
                const int      n =
                    context.cache().restore_checkpoint(i, bitexact_prefix(slot.cached, to, context.options()));
                fresh[int(to.size()) - n == 1].push_back({ to, i, n });
                slot.cached = to;
            }
        }
        std::vector<int>     ready;
        std::vector<Prefill> prefilled;
        for (const std::vector<Prompt> & prompts : fresh) {
            if (steps && !prompts.empty()) {
                steps->start(prompts);
            } else if (!prompts.empty()) {
                prefilled.push_back(method.prefill(context, prompts, 0));
                for (const Prompt & prompt : prompts) {
                    ready.push_back(prompt.stream);
                }
            }
        }
        std::vector<int> onward;
        for (int i = 0; steps && i < kStreams; i++) {
            const Slot & slot = slots[size_t(i)];
            if (slot.question && slot.thinking) {
                (steps->step(i) < slot.question->n_steps ? onward : ready).push_back(i);
            }
        }
        if (!onward.empty()) {
            steps->advance(onward);
        }
        if (steps && !ready.empty()) {
            prefilled.push_back(steps->finish(ready));
        }
        size_t at = 0;
        for (const Prefill & part : prefilled) {
            for (size_t k = 0; k < part.logits.size(); k++, at++) {
                const int stream = ready[at];
                Slot &    slot   = slots[size_t(stream)];
                slot.thinking    = false;
                slot.row         = part.n_past[k];
                context.cache().save_checkpoint(
                    stream, int(slot.question->prompt.size()),
                    method.n_extra_rows(slot.question->n_steps) == 0 ? StateSlot::current : StateSlot::prompt_end);
                take(slot, part.logits[k]);
            }
        }
        std::vector<NextToken> tokens;
        for (int i = 0; i < kStreams; i++) {
            Slot & slot = slots[size_t(i)];
            if (slot.question && !slot.thinking) {
                tokens.push_back({ i, slot.row++, best(slot.question->alone[slot.n_written - 1]) });
            }
        }
        if (!tokens.empty()) {
            const auto rows = decode(context, tokens);
            for (size_t k = 0; k < tokens.size(); k++) {
                take(slots[size_t(tokens[k].stream)], rows[k]);
            }
        }
    }
}

void check_method(const std::shared_ptr<const Engine> & engine, const std::string & name, int n_threads) {
    CAPTURE(name);
    const Method &        method = engine->method(name);
    std::vector<Question> all    = questions(method, 18);
    for (Question & one : all) {
        answer_alone(engine, method, one, n_threads);
    }
    check_together(engine, method, all, n_threads);
}

} // namespace

TEST_CASE("what runs beside changes no bit") {
    for (const char * name : { "last", "middle", "qwen2", "qwen3", "qwen35", "gemma3" }) {
        CAPTURE(name);
        const GoldenCase golden(name);
        const auto       engine = load(golden.backbone(), golden.sidecar());
        for (const char * method : { "penelope", "cot", "plain" }) {
            check_method(engine, method, 1);
        }
    }
}

TEST_CASE("nor do other methods, types and several threads") {
    const GoldenCase golden("last");
    check_method(load(golden.backbone(), golden.coconut_sidecar()), "coconut", 2);
    check_method(load(golden.backbone(), golden.codi_sidecar()), "codi", 2);
    for (const char * type : { "F16", "BF16", "Q8_0" }) {
        CAPTURE(type);
        QuantizeOptions quantize;
        quantize.in_path  = golden.backbone();
        quantize.out_path = golden.file(std::string(type) + ".gguf");
        quantize.type     = type;
        quantize_file(quantize);
        check_method(load(quantize.out_path, golden.sidecar()), "penelope", 2);
    }
}

TEST_CASE("a stable prefix of a hybrid ends where it changes no bit, and is found again") {
    const GoldenCase golden("qwen35");
    const auto       engine = load(golden.backbone(), golden.sidecar());
    Rng              rng(3);
    Tokens           prompt;
    while (prompt.size() < 110) {
        prompt.push_back(int32_t(rng.below(400)));
    }
    Session whole(engine, session_options(1, 1)), split(engine, session_options(1, 1));
    int     n = 0;
    for (int n_stable_prefix : { 9, 16, 18, 29, 37, 63, 64, 67, 81, 99 }) {
        for (int n_tokens : { n_stable_prefix + 3, n_stable_prefix + 11 }) {
            CAPTURE(n_stable_prefix);
            CAPTURE(n_tokens);
            const Tokens tokens(prompt.begin(), prompt.begin() + n_tokens);
            Prompt       rest{ tokens, 0, 0 };
            Context &    context = split.context();
            const int    end     = chunk_end(context, rest, n_stable_prefix);
            CHECK(end <= n_tokens);
            context.cache().clear(0);
            if (end < n_tokens) {
                CHECK(end > n_stable_prefix - 12);
                CHECK(end <= n_stable_prefix);
                prefill_chunk(context, { Tokens(tokens.begin(), tokens.begin() + end), 0, 0 }, n);
                context.cache().save_checkpoint(0, end, StateSlot::current);
                // The next turn has the prefix and other text.
                Tokens next(tokens.begin(), tokens.begin() + n_stable_prefix);
                next.resize(size_t(n_stable_prefix) + 30, 5);
                if (n_stable_prefix >= 16) { // fewer rows are not worth keeping
                    CHECK(context.cache().restore_checkpoint(0, bitexact_prefix(tokens, next, context.options())) ==
                          end);
                }
                rest.n_cached = end;
            }
            const Logits alone = prefill(whole.context(), { { tokens, 0, 0 } }, n)[0];
            CHECK(same_bits(prefill(context, { rest }, n)[0], alone));
        }
    }
}

TEST_CASE("a graph is built for a shape and moved to any streams") {
    const GoldenCase golden("last");
    const auto       engine = load(golden.backbone(), golden.sidecar());
    Session          session(engine, session_options(kStreams, 1));
    Context &        context      = session.context();
    const Tokens     prompts[]    = { golden.prompt_ids(0), golden.prompt_ids(1) };
    int              applications = 0;
    const auto       read         = [&](int a, int b) {
        prefill(context, { { prompts[0], a, 0 }, { prompts[1], b, 0 } }, applications);
        return decode(context, { { a, int(prompts[0].size()), 5 }, { b, int(prompts[1].size()), 6 } });
    };
    const auto    first   = read(0, 1);
    const int64_t n_built = context.n_built();
    for (const auto & [a, b] : std::vector<std::pair<int, int>>{ { 4, 2 }, { 1, 0 }, { 3, 4 }, { 0, 1 } }) {
        const auto again = read(a, b);
        CHECK(same_bits(again[0], first[0]));
        CHECK(same_bits(again[1], first[1]));
    }
    CHECK(context.n_built() == n_built);
}

TEST_CASE("far back, one row looks in the same order whoever looks further") {
    // Two threads, because ggml would share out the places among them.
    const GoldenCase golden("last");
    LoadOptions      options;
    options.base          = golden.backbone();
    options.device        = "CPU";
    const auto     engine = Engine::load(options);
    const Tokens   text(505, 7), short_text(70, 9);
    SessionOptions wide = session_options(2, 2);
    Session        alone(engine, session_options(1, 2)), both(engine, wide);
    int            applications = 0;
    prefill(alone.context(), { { text, 0, 0 } }, applications);
    prefill(both.context(), { { text, 1, 0 }, { short_text, 0, 0 } }, applications);
    for (int row = 505; row < 511; row++) {
        const Logits one = decode(alone.context(), { { 0, row, 3 } })[0];
        const Logits two = decode(both.context(), { { 0, row - 400, 4 }, { 1, row, 3 } })[1];
        CHECK(same_bits(one, two));
    }
}

TEST_CASE("a sequence that is cleared holds nothing, and the others what they held") {
    const GoldenCase g("last");
    const auto       engine = load(g.backbone(), g.sidecar());
    Session          session(engine, session_options(2, 1));
    SequenceCache &  cache = session.context().cache();
    engine->method("penelope").prefill(session.context(), { { g.prompt_ids(0), 0, 0 }, { g.prompt_ids(1), 1, 0 } }, 2);
    const int  n     = int(g.prompt_ids(1).size());
    const auto other = cache.bytes(0, 1, n);
    REQUIRE(std::any_of(other.begin(), other.end(), [](uint8_t byte) { return byte != 0; }));
    cache.clear(0);
    const auto cleared = cache.bytes(0, 0, cache.n_rows());
    CHECK(std::all_of(cleared.begin(), cleared.end(), [](uint8_t byte) { return byte == 0; }));
    CHECK(cache.bytes(0, 1, n) == other);
}
