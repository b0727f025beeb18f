// The only file that knows MPI. Errors of MPI itself end all ranks, with its own message: that is MPI's default.
#include "mpi/join_ranks.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>

namespace penelope {

namespace {

constexpr size_t kChunk = size_t(1) << 22; // numbers summed at a time: bounds the memory, and counts are ints

class Mpi : public Collective {
  public:
    Mpi() {
        MPI_Init(nullptr, nullptr);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &size_);
    }

    ~Mpi() override {
        if (std::uncaught_exceptions() > n_exceptions_ && !aborted()) {
            std::fprintf(stderr, "error: rank %d: ended while the others were at work\n", rank_);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        MPI_Finalize();
    }

    int    rank() const override { return rank_; }
    int    size() const override { return size_; }
    size_t bytes_sent() const override { return bytes_sent_; }

    void all_reduce_sum(float * values, size_t n) override {
        for (size_t first = 0; first < n; first += kChunk) {
            reduce_chunk(values + first, int(std::min(kChunk, n - first)));
        }
    }

    std::vector<std::string> all_gather(const std::string & mine) override {
        const int        length = int(mine.size());
        std::vector<int> lengths(size_t(size_), 0), displs(size_t(size_), 0);
        MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
        int total = 0;
        for (size_t i = 0; i < lengths.size(); i++) {
            displs[i] = total;
            total += lengths[i];
        }
        std::string all(size_t(total), '\0');
        MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), displs.data(), MPI_CHAR,
                       MPI_COMM_WORLD);
        std::vector<std::string> messages;
        for (size_t i = 0; i < lengths.size(); i++) {
            messages.push_back(all.substr(size_t(displs[i]), size_t(lengths[i])));
        }
        return messages;
    }

    void broadcast(void * bytes, size_t n) override {
        char * next = static_cast<char *>(bytes);
        for (size_t left = n; left > 0;) {
            const size_t count = std::min(kChunk, left);
            MPI_Bcast(next, int(count), MPI_BYTE, 0, MPI_COMM_WORLD);
            next += count;
            left -= count;
        }
    }

  private:
    // Rank r adds up slice r of all ranks, then every rank gets every slice: 2 (size - 1) / size of the bytes leave
    // each rank, and no sum depends on how MPI would order it.
    void reduce_chunk(float * values, int n) {
        std::vector<int> counts(size_t(size_), 0), displs(size_t(size_), 0);
        for (int r = 0; r < size_; r++) {
            counts[size_t(r)] = n / size_ + (r < n % size_ ? 1 : 0);
            displs[size_t(r)] = r ? displs[size_t(r - 1)] + counts[size_t(r - 1)] : 0;
        }
        const int        own = counts[size_t(rank_)];
        std::vector<int> own_counts(size_t(size_), own), own_displs(size_t(size_), 0);
        for (int r = 0; r < size_; r++) {
            own_displs[size_t(r)] = r * own;
        }
        received_.resize(size_t(own) * size_t(size_));
        MPI_Alltoallv(values, counts.data(), displs.data(), MPI_FLOAT, received_.data(), own_counts.data(),
                      own_displs.data(), MPI_FLOAT, MPI_COMM_WORLD);
        float * slice = values + displs[size_t(rank_)];
        std::copy_n(received_.begin(), own, slice);
        for (int r = 1; r < size_; r++) {
            const float * other = received_.data() + own_displs[size_t(r)];
            for (int i = 0; i < own; i++) {
                slice[i] += other[i];
            }
        }
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, counts.data(), displs.data(), MPI_FLOAT,
                       MPI_COMM_WORLD);
        bytes_sent_ += (size_t(n - own) + size_t(own) * size_t(size_ - 1)) * sizeof(float);
    }

    int                rank_ = 0, size_ = 1;
    int                n_exceptions_ = std::uncaught_exceptions();
    size_t             bytes_sent_   = 0;
    std::vector<float> received_;
};

} // namespace

std::unique_ptr<Collective> join_ranks() {
    return started_by_launcher() ? std::make_unique<Mpi>() : single_process();
}

std::string mpi_version_text() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int  length = 0;
    MPI_Get_library_version(text, &length);
    const std::string whole(text, size_t(length));
    return whole.substr(0, whole.find_first_of(",\n")); // "Open MPI v4.1.4, package: ..."
}

} // namespace penelope
