// Ranks as threads of one process: what they say, add up and throw together. How a minibatch is cut among them.
#include "train/batch_sampler.h"
#include "train/collective.h"
#include "train/file_hashes.h"

#include "support/errors.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

using namespace penelope;

namespace {

// A table that all ranks lay their message on, and leave when everyone has read it.
class Table {
  public:
    explicit Table(int n) : messages_(size_t(n)) {}

    std::vector<std::string> exchange(int rank, const std::string & mine) {
        std::unique_lock<std::mutex> lock(mutex_);
        messages_[size_t(rank)] = mine;
        wait_for_all(lock);
        const std::vector<std::string> all = messages_;
        wait_for_all(lock);
        return all;
    }

  private:
    void wait_for_all(std::unique_lock<std::mutex> & lock) {
        const int round = round_;
        if (++n_waiting_ == int(messages_.size())) {
            n_waiting_ = 0;
            round_++;
            changed_.notify_all();
        }
        changed_.wait(lock, [&] { return round_ != round; });
    }

    std::mutex               mutex_;
    std::condition_variable  changed_;
    std::vector<std::string> messages_;
    int                      n_waiting_ = 0, round_ = 0;
};

class ThreadRank : public Collective {
  public:
    ThreadRank(Table & table, int rank, int size) : table_(table), rank_(rank), size_(size) {}

    int                      rank() const override { return rank_; }
    int                      size() const override { return size_; }
    void                     all_reduce_sum(float *, size_t) override {}
    std::vector<std::string> all_gather(const std::string & mine) override { return table_.exchange(rank_, mine); }
    void                     broadcast(void *, size_t) override {}
    size_t                   bytes_sent() const override { return 0; }

  private:
    Table & table_;
    int     rank_, size_;
};

template <typename Work> void on_ranks(int n, Work work) {
    Table                    table(n);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < n; rank++) {
        threads.emplace_back([&table, &work, rank, n] {
            ThreadRank self(table, rank, n);
            work(self);
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
}

} // namespace

TEST_CASE("numbers are added up on every rank") {
    std::vector<std::vector<double>> sums(3);
    on_ranks(3, [&](Collective & ranks) {
        sums[size_t(ranks.rank())] = all_reduce_results(ranks, 2, [&](std::vector<double> & mine) {
            mine[0] = 1 << ranks.rank();
            mine[1] = ranks.rank() == 2 ? 0.5 : 0.0;
        });
    });
    for (const std::vector<double> & sum : sums) {
        CHECK(sum == std::vector<double>{ 7, 0.5 });
    }
}

TEST_CASE("when one rank fails, all throw its error") {
    std::vector<std::optional<Error>> errors(3);
    std::vector<char>                 aborted(3, 0);
    on_ranks(3, [&](Collective & ranks) {
        on_all_ranks(ranks, [] {}); // nothing failed yet
        errors[size_t(ranks.rank())].emplace(test::error_of([&] {
            on_all_ranks(ranks, [&] {
                if (ranks.rank() == 1) {
                    throw Error(ErrorKind::io, "file: is gone", "look for it");
                }
            });
        }));
        aborted[size_t(ranks.rank())] = ranks.aborted();
    });
    for (size_t rank = 0; rank < 3; rank++) {
        CHECK(errors[rank]->kind == ErrorKind::io);
        CHECK(errors[rank]->message() == (rank == 1 ? "file: is gone" : "rank 1: file: is gone"));
        CHECK(errors[rank]->hint == "look for it");
        CHECK(aborted[rank]);
    }
}

TEST_CASE("a rank that failed throws its own error, the others the lowest") {
    std::vector<std::string> messages(3);
    on_ranks(3, [&](Collective & ranks) {
        messages[size_t(ranks.rank())] = test::error_of([&] {
                                             on_all_ranks(ranks, [&] {
                                                 if (ranks.rank() > 0) {
                                                     throw Error(ErrorKind::io, std::to_string(ranks.rank()));
                                                 }
                                             });
                                         }).message();
    });
    CHECK(messages == std::vector<std::string>{ "rank 1: 1", "1", "2" });
}

TEST_CASE("ranks that are cancelled while another fails fail with it, and go on together where all are cancelled") {
    std::vector<ErrorKind>   kinds(3);
    std::vector<std::string> after(3);
    on_ranks(3, [&](Collective & ranks) {
        const auto mine = size_t(ranks.rank());
        const auto fail = [&](ErrorKind first) {
            return test::error_of([&] {
                on_all_ranks(ranks, [&] {
                    on_all_ranks(ranks, [&] { // all know by the exchange inside
                        if (ranks.rank() < 2) {
                            throw Error(ranks.rank() == 0 ? first : ErrorKind::cancelled, "interrupted");
                        }
                    });
                });
            });
        };
        const ErrorKind cancelled = fail(ErrorKind::cancelled).kind;
        ranks.clear_aborted();
        after[mine] = test::error_of([&] {
                          on_all_ranks(ranks, [&] {
                              if (ranks.is_root()) {
                                  throw Error(ErrorKind::io, error_kind_name(cancelled));
                              }
                          });
                      }).message();
        ranks.clear_aborted();
        kinds[mine] = fail(ErrorKind::io).kind;
    });
    CHECK(after == std::vector<std::string>{ "cancelled", "rank 0: cancelled", "rank 0: cancelled" });
    CHECK(kinds == std::vector<ErrorKind>(3, ErrorKind::io));
}

TEST_CASE("one process by itself throws what was thrown") {
    const auto one = single_process();
    CHECK_THROWS_AS(on_all_ranks(*one, [] { throw std::bad_alloc(); }), std::bad_alloc);
    CHECK(all_gather_results(*one, [] { return std::string("x"); }) == std::vector<std::string>{ "x" });
}

TEST_CASE("a minibatch is cut into parts of about as many tokens, none empty") {
    const std::vector<size_t> costs = { 10, 50, 20, 30, 10, 40 };
    const auto                parts = balance_shards(costs, 2);
    CHECK(parts == std::vector<std::vector<size_t>>{ { 0, 1, 2 }, { 3, 4, 5 } });
    for (size_t n = 1; n <= costs.size(); n++) {
        std::vector<int> seen(costs.size(), 0);
        for (const std::vector<size_t> & part : balance_shards(costs, n)) {
            CHECK(!part.empty());
            CHECK(std::is_sorted(part.begin(), part.end()));
            for (size_t i : part) {
                seen[i]++;
            }
        }
        CHECK(seen == std::vector<int>(costs.size(), 1));
    }
}

TEST_CASE("a file that several ranks have is hashed by one of them") {
    const test::TempDir      dir;
    const std::string        shared = dir.write("shared", "same"), own = dir.write("own", "other");
    std::mutex               mutex;
    std::vector<std::string> hashed;
    const auto               hash = [&](const std::string & path) {
        const std::lock_guard<std::mutex> lock(mutex);
        hashed.push_back(path);
        return "hash of " + path;
    };
    on_ranks(3, [&](Collective & ranks) {
        const std::string                 second = ranks.rank() == 2 ? own : shared; // rank 2 has another file there
        const std::vector<std::string>    found  = hash_files(ranks, { shared, "", second }, hash);
        const std::lock_guard<std::mutex> lock(mutex);
        CHECK(found == std::vector<std::string>{ "hash of " + shared, "", "hash of " + second });
    });
    CHECK(hashed.size() == 3);
    CHECK(std::count(hashed.begin(), hashed.end(), shared) == 2);
    CHECK(std::count(hashed.begin(), hashed.end(), own) == 1);
}

TEST_CASE("a file that one rank cannot read ends all") {
    const test::TempDir dir;
    const std::string   there = dir.write("there", "x");
    std::mutex          mutex;
    int                 n_failed = 0;
    on_ranks(2, [&](Collective & ranks) {
        try {
            hash_files(ranks, { ranks.rank() == 1 ? dir.file("missing") : there });
        } catch (const Error & error) {
            const std::lock_guard<std::mutex> lock(mutex);
            n_failed++;
            CHECK(error.kind == ErrorKind::not_found);
        }
    });
    CHECK(n_failed == 2);
}
