// Data-parallel training: collective operations among several processes (ranks). Every rank has all weights, computes
// the gradients of its shard of each minibatch, and makes the same decisions from the same numbers. Only rank 0 writes
// files and prints.
//
// A rank that fails must not leave the others waiting: code that can throw runs inside on_all_ranks() or
// all_gather_results(), which pass errors to all ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace penelope {

class Optimizer;
struct RunState;
enum class CheckpointContents;

class Collective {
  public:
    virtual ~Collective() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;

    // Element-wise sum over the ranks, added in rank order: for a given number of ranks the result is bit-identical on
    // every rank and in every run.
    virtual void all_reduce_sum(float * values, size_t n) = 0;
    // The strings of all ranks in rank order.
    virtual std::vector<std::string> all_gather(const std::string & mine) = 0;
    // Copies the bytes of rank 0 to all ranks.
    virtual void broadcast(void * bytes, size_t n) = 0;
    // Bytes this rank has sent by all_reduce_sum() so far.
    virtual size_t bytes_sent() const = 0;

    bool is_root() const { return rank() == 0; }

    // Set when an error has reached all ranks: every rank throws and none waits for another.
    void mark_aborted() { aborted_ = true; }
    // All ranks have caught an error of the same kind and continue.
    void clear_aborted() { aborted_ = false; }
    bool aborted() const { return aborted_; }

  private:
    bool aborted_ = false;
};

// The collective of a run with one process.
std::unique_ptr<Collective> single_process();

// Runs `work` on every rank. If it throws on some ranks, all ranks throw: a failed rank its own error, the others the
// error of the lowest failed rank, prefixed with its number. A rank that was only cancelled throws the error of a
// failed rank, so that either all ranks are cancelled or none. Exchanges inside `work` must use the functions below.
void on_all_ranks(Collective & ranks, const std::function<void()> & work);

// The same; returns the result of every rank.
std::vector<std::string> all_gather_results(Collective & ranks, const std::function<std::string()> & work);

// The values of every rank in rank order.
std::vector<std::vector<float>> all_gather_floats(Collective & ranks, const std::vector<float> & mine);

// Every rank adds to its own n zeros; all ranks get the sums.
std::vector<double> all_reduce_results(Collective & ranks, size_t n,
                                       const std::function<void(std::vector<double> & mine)> & work);

// All-reduce (sum) of the gradients.
void all_reduce_gradients(Collective & ranks, Optimizer & optimizer);

// Copies the weights, or weights, moments and step count, of rank 0 to all ranks.
void broadcast_parameters(Collective & ranks, Optimizer & optimizer, CheckpointContents parts);

// Copies the run state of rank 0 to all ranks.
void broadcast_state(Collective & ranks, RunState & state);

} // namespace penelope
