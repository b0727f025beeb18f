// Several processes that train one model together. Every rank holds all weights, works on its share of each minibatch, and
// takes every decision the others take, because it decides on numbers that all of them hold. Rank 0 alone writes files and
// talks to the user.
//
// A rank that fails must not leave the others waiting: whatever can fail runs inside on_all_ranks(), between exchanges.
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

    // What all ranks hold, added element by element in the order of the ranks: for a given number of ranks the result is the
    // same to the last bit, on every rank and in every run.
    virtual void all_reduce_sum(float * values, size_t n) = 0;
    // What every rank says, in their order.
    virtual std::vector<std::string> all_gather(const std::string & mine) = 0;
    // Rank 0's bytes for all.
    virtual void broadcast(void * bytes, size_t n) = 0;
    // Bytes this rank has sent by all_reduce_sum() so far.
    virtual size_t bytes_sent() const = 0;

    bool is_root() const { return rank() == 0; }

    // Set when all ranks know that this is the end and throw: none will wait for another.
    void mark_aborted() { aborted_ = true; }
    // All have caught it, an error of one kind on every rank, and go on together.
    void clear_aborted() { aborted_ = false; }
    bool aborted() const { return aborted_; }

  private:
    bool aborted_ = false;
};

// One process by itself.
std::unique_ptr<Collective> single_process();

// Runs `work` on every rank; what it exchanges goes through the functions below, at the same places on all. When it
// failed on some, all ranks throw: those it failed on their own error, the others that of the lowest, with its number.
// A rank that was only cancelled while another failed throws that one's: either all are cancelled, or none.
void on_all_ranks(Collective & ranks, const std::function<void()> & work);

// The same, and gives what each rank made.
std::vector<std::string> all_gather_results(Collective & ranks, const std::function<std::string()> & work);

// What every rank has, in their order.
std::vector<std::vector<float>> all_gather_floats(Collective & ranks, const std::vector<float> & mine);

// The same for numbers: every rank fills its part of n zeros, and all get the sums.
std::vector<double> all_reduce_results(Collective & ranks, size_t n,
                                       const std::function<void(std::vector<double> & mine)> & work);

// The gradients of all ranks, added up in every one.
void all_reduce_gradients(Collective & ranks, Optimizer & optimizer);

// Every rank takes the weights of rank 0, or weights, moments and their count.
void broadcast_parameters(Collective & ranks, Optimizer & optimizer, CheckpointContents parts);

// Every rank takes the counts and settings of rank 0.
void broadcast_state(Collective & ranks, RunState & state);

} // namespace penelope
