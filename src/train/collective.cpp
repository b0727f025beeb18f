#include "train/collective.h"

#include "base/error.h"
#include "base/json.h"
#include "train/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <exception>

namespace penelope {

namespace {

class SingleProcess : public Collective {
  public:
    int                      rank() const override { return 0; }
    int                      size() const override { return 1; }
    void                     all_reduce_sum(float *, size_t) override {}
    std::vector<std::string> all_gather(const std::string & mine) override { return { mine }; }
    void                     broadcast(void *, size_t) override {}
    size_t                   bytes_sent() const override { return 0; }
};

// First byte of a message; then the result, or the error as JSON.
constexpr char kDone = '+', kFailed = '-';

std::string failed(ErrorKind kind, const std::string & message, const std::string & hint) {
    return kFailed + dump_json(Json{ { "kind", int(kind) }, { "message", message }, { "hint", hint } });
}

bool is_cancelled(const std::string & message) {
    return parse_json(message.substr(1), "error of a rank").at("kind").get<int>() == int(ErrorKind::cancelled);
}

// The lowest failed rank; if none failed, the lowest cancelled one; else the number of ranks.
size_t find_failed(const std::vector<std::string> & all) {
    size_t cancelled = all.size();
    for (size_t rank = 0; rank < all.size(); rank++) {
        if (all[rank][0] != kFailed) {
            continue;
        }
        if (!is_cancelled(all[rank])) {
            return rank;
        }
        cancelled = std::min(cancelled, rank);
    }
    return cancelled;
}

[[noreturn]] void throw_error_of(size_t rank, const std::string & message) {
    const Json error = parse_json(message.substr(1), "error of a rank");
    throw Error(ErrorKind(error.at("kind").get<int>()),
                "rank " + std::to_string(rank) + ": " + error.at("message").get<std::string>(),
                error.at("hint").get<std::string>());
}

using BufferKind = Optimizer::BufferKind;

void broadcast_values(Collective & ranks, Optimizer & optimizer, BufferKind part) {
    for (int group = 0; group < optimizer.n_groups(); group++) {
        std::vector<float> values = optimizer.read(group, part);
        ranks.broadcast(values.data(), values.size() * sizeof(float));
        optimizer.write(group, part, values);
    }
}

} // namespace

std::unique_ptr<Collective> single_process() {
    return std::make_unique<SingleProcess>();
}

std::vector<std::string> all_gather_results(Collective & ranks, const std::function<std::string()> & work) {
    if (ranks.size() == 1) {
        return { work() };
    }
    std::string        mine;
    std::exception_ptr own;
    const auto         keep = [&](ErrorKind kind, const std::string & message, const std::string & hint) {
        own = std::current_exception();
        if (ranks.aborted()) { // an exchange inside `work` has already told all ranks
            std::rethrow_exception(own);
        }
        mine = failed(kind, message, hint);
    };
    try {
        mine = kDone + work();
    } catch (const Error & error) {
        keep(error.kind, error.message(), error.hint);
    } catch (const std::bad_alloc &) {
        keep(ErrorKind::memory, "out of memory: an allocation failed", "");
    } catch (const std::exception & error) {
        keep(ErrorKind::io, error.what(), "");
    }
    std::vector<std::string> all  = ranks.all_gather(mine);
    const size_t             rank = find_failed(all);
    if (rank < all.size()) {
        ranks.mark_aborted();
        if (own && is_cancelled(mine) == is_cancelled(all[rank])) {
            std::rethrow_exception(own);
        }
        throw_error_of(rank, all[rank]);
    }
    for (std::string & message : all) {
        message.erase(0, 1);
    }
    return all;
}

void on_all_ranks(Collective & ranks, const std::function<void()> & work) {
    all_gather_results(ranks, [&] {
        work();
        return std::string();
    });
}

std::vector<std::vector<float>> all_gather_floats(Collective & ranks, const std::vector<float> & mine) {
    const std::vector<std::string> parts = all_gather_results(
        ranks, [&] { return std::string(reinterpret_cast<const char *>(mine.data()), mine.size() * sizeof(float)); });
    std::vector<std::vector<float>> all;
    for (const std::string & bytes : parts) {
        all.emplace_back(bytes.size() / sizeof(float));
        std::memcpy(all.back().data(), bytes.data(), bytes.size());
    }
    return all;
}

std::vector<double> all_reduce_results(Collective & ranks, size_t n,
                                       const std::function<void(std::vector<double> & mine)> & work) {
    const std::vector<std::string> parts = all_gather_results(ranks, [&] {
        std::vector<double> mine(n, 0.0);
        work(mine);
        return std::string(reinterpret_cast<const char *>(mine.data()), n * sizeof(double));
    });
    std::vector<double>            sums(n, 0.0), part(n);
    for (const std::string & bytes : parts) {
        std::memcpy(part.data(), bytes.data(), n * sizeof(double));
        for (size_t i = 0; i < n; i++) {
            sums[i] += part[i];
        }
    }
    return sums;
}

void all_reduce_gradients(Collective & ranks, Optimizer & optimizer) {
    if (ranks.size() == 1) {
        return;
    }
    for (int group = 0; group < optimizer.n_groups(); group++) {
        optimizer.modify(group, BufferKind::gradients,
                         [&](float * values, size_t n) { ranks.all_reduce_sum(values, n); });
    }
}

void broadcast_parameters(Collective & ranks, Optimizer & optimizer, CheckpointContents parts) {
    if (ranks.size() == 1) {
        return;
    }
    broadcast_values(ranks, optimizer, BufferKind::weights);
    if (parts == CheckpointContents::weights_and_moments) {
        broadcast_values(ranks, optimizer, BufferKind::first_moments);
        broadcast_values(ranks, optimizer, BufferKind::second_moments);
        int64_t n_steps = optimizer.step_count();
        ranks.broadcast(&n_steps, sizeof(n_steps));
        optimizer.set_step_count(n_steps);
    }
}

void broadcast_state(Collective & ranks, RunState & state) {
    ranks.broadcast(&state.update, sizeof(state.update));
    ranks.broadcast(&state.validated, sizeof(state.validated));
    ranks.broadcast(&state.progress, sizeof(state.progress));
    ranks.broadcast(&state.best, sizeof(state.best));
    ranks.broadcast(&state.seconds, sizeof(state.seconds));
    size_t n_depths = state.depths.size();
    ranks.broadcast(&n_depths, sizeof(n_depths));
    state.depths.resize(n_depths);
    ranks.broadcast(state.depths.data(), n_depths * sizeof(DepthRecord));
    size_t n = state.settings.size();
    ranks.broadcast(&n, sizeof(n));
    state.settings.resize(n);
    ranks.broadcast(state.settings.data(), n);
}

} // namespace penelope
