#include "convert/tensor_stream.h"

#include "base/error.h"
#include "base/format.h"
#include "gguf/finite.h"
#include "gguf/quantize_support.h"
#include "gguf/writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

namespace penelope {

namespace {

constexpr size_t  k_slab_bytes     = size_t(16) << 20; // of output; two of them exist at a time
constexpr int64_t k_chunk_elements = 64 * 1024;        // of one thread's work: the F32 rows stay in its cache

struct Slab {
    int64_t              first = 0;
    int64_t              n     = 0;
    std::vector<uint8_t> bytes;
};

[[noreturn]] void fail(const TensorJob & job, const std::string & what) {
    throw Error(ErrorKind::format, "tensor " + in_quotes(job.name) + ": " + what);
}

bool fits_f16(const float * values, int64_t n) {
    constexpr float first_infinite = 65520.0f; // rounds up past the largest F16, 65504
    bool            fits           = true;
    for (int64_t i = 0; i < n; i++) {
        fits &= values[i] < first_infinite && values[i] > -first_infinite;
    }
    return fits;
}

void require_rounding(const TensorJob & job, const float * values, int64_t n) {
    const QuantizeSupport rounding = quantize_support(job.type);
    const std::string     type     = to_upper(ggml_type_name(job.type));
    if (rounding == QuantizeSupport::none ||
        (rounding == QuantizeSupport::needs_imatrix && job.importance == nullptr)) {
        throw Error(
            ErrorKind::unsupported,
            "tensor " + in_quotes(job.name) + ": " + type +
                (rounding == QuantizeSupport::none ? " cannot be made" : " can be made with an importance matrix only"),
            "give another type with --type, such as Q4_K_M");
    }
    if (rounding != QuantizeSupport::any && !fits_f16(values, n)) {
        fail(job, "holds values too large for " + type);
    }
}

void convert_rows(const TensorJob & job, int64_t first, int64_t n, std::vector<float> & scratch, uint8_t * out) {
    const int64_t width  = job.ne[0];
    const int64_t count  = n * width;
    const float * values = job.f32 ? job.f32 + first * width : nullptr;
    if (!values) {
        scratch.resize(size_t(count));
        job.read(first, n, scratch.data());
        values = scratch.data();
    }
    if (!all_finite(values, size_t(count))) {
        fail(job, "NaN or infinite value");
    }
    switch (job.type) {
        case GGML_TYPE_F32: std::memcpy(out, values, size_t(count) * sizeof(float)); return;
        case GGML_TYPE_F16:
            if (!fits_f16(values, count)) {
                fail(job, "holds a value too large for F16");
            }
            ggml_fp32_to_fp16_row(values, reinterpret_cast<ggml_fp16_t *>(out), count);
            return;
        case GGML_TYPE_BF16: ggml_fp32_to_bf16_row_ref(values, reinterpret_cast<ggml_bf16_t *>(out), count); return;
        default: {
            require_rounding(job, values, count);
            const size_t size = ggml_quantize_chunk(job.type, values, out, 0, n, width, job.importance);
            if (!ggml_validate_row_data(job.type, out, size)) {
                fail(job, std::string("holds values too large for ") + ggml_type_name(job.type));
            }
        }
    }
}

Slab make_slab(const TensorJob & job, int64_t first, int64_t n, int n_threads,
               const std::function<bool()> & cancelled) {
    Slab slab{ first, n, std::vector<uint8_t>(size_t(n) * job.row_size()) };

    const int64_t        chunk_rows = std::max<int64_t>(1, k_chunk_elements / job.ne[0]);
    std::atomic<int64_t> next{ 0 };
    std::atomic<bool>    stop{ false };
    const auto           work = [&] {
        std::vector<float> scratch;
        try {
            for (int64_t row; !stop && (row = next.fetch_add(chunk_rows)) < n;) {
                throw_if_cancelled(cancelled);
                convert_rows(job, first + row, std::min(chunk_rows, n - row), scratch,
                                       slab.bytes.data() + size_t(row) * job.row_size());
            }
        } catch (...) {
            stop = true;
            throw;
        }
    };
    std::vector<std::future<void>> helpers;
    const int64_t                  n_chunks = (n + chunk_rows - 1) / chunk_rows;
    for (int i = 1; i < std::min<int64_t>(n_threads, n_chunks); i++) {
        helpers.push_back(std::async(std::launch::async, work));
    }
    work();
    for (auto & helper : helpers) {
        helper.get();
    }
    if (job.release) {
        job.release(first, n);
    }
    return slab;
}

} // namespace

int64_t TensorJob::n_rows() const {
    int64_t n = 1;
    for (size_t i = 1; i < ne.size(); i++) {
        n *= ne[i];
    }
    return n;
}

size_t TensorJob::row_size() const {
    return ggml_row_size(type, ne[0]);
}

size_t TensorJob::size() const {
    return row_size() * size_t(n_rows());
}

void throw_if_cancelled(const std::function<bool()> & cancelled) {
    if (cancelled && cancelled()) {
        throw Error(ErrorKind::cancelled, "interrupted: nothing was written");
    }
}

void declare_tensors(GgufWriter & writer, const std::vector<TensorJob> & jobs) {
    for (const auto & job : jobs) {
        writer.add_tensor(job.name, job.type, job.ne);
    }
}

void stream_tensors(GgufWriter & writer, const std::vector<TensorJob> & jobs, const StreamOptions & options) {
    const int n_threads =
        options.n_threads > 0 ? options.n_threads : std::max(1, int(std::thread::hardware_concurrency()));

    StreamProgress progress{ 0, jobs.size(), 0, 0, "" };
    for (const auto & job : jobs) {
        progress.bytes_total += job.size();
    }
    const auto report = [&](const TensorJob & job, size_t i_tensor, uint64_t bytes) {
        progress.i_tensor = i_tensor;
        progress.name     = job.name;
        progress.bytes_done += bytes;
        if (options.progress) {
            options.progress(progress);
        }
        throw_if_cancelled(options.cancelled);
    };

    // One slab is written while the next is computed; it may belong to the next tensor.
    std::future<Slab> computing;
    const TensorJob * owner   = nullptr;
    size_t            i_owner = 0;
    const auto        drain   = [&] {
        if (!computing.valid()) {
            return;
        }
        const Slab slab = computing.get();
        writer.write_chunk(owner->name, slab.bytes.data(), slab.bytes.size());
        report(*owner, i_owner, slab.bytes.size());
    };

    writer.begin_data();
    for (size_t i = 0; i < jobs.size(); i++) {
        const TensorJob & job       = jobs[i];
        const int64_t     slab_rows = std::max<int64_t>(1, int64_t(k_slab_bytes / job.row_size()));
        for (int64_t first = 0; first < job.n_rows(); first += slab_rows) {
            const int64_t n = std::min(slab_rows, job.n_rows() - first);
            if (job.raw) {
                drain();
                const size_t size   = size_t(n) * job.row_size();
                const auto * source = static_cast<const uint8_t *>(job.raw) + size_t(first) * job.row_size();
                const bool   valid  = job.type == GGML_TYPE_F32
                                          ? all_finite(reinterpret_cast<const float *>(source), size_t(n * job.ne[0]))
                                          : ggml_validate_row_data(job.type, source, size);
                if (!valid) {
                    fail(job, "NaN or infinite value");
                }
                writer.write_chunk(job.name, source, size);
                if (job.release) {
                    job.release(first, n);
                }
                report(job, i, size);
                continue;
            }
            std::future<Slab> following;
            if (n * job.ne[0] <= k_chunk_elements) {
                drain();
                const Slab slab = make_slab(job, first, n, 1, options.cancelled);
                writer.write_chunk(job.name, slab.bytes.data(), slab.bytes.size());
                report(job, i, slab.bytes.size());
                continue;
            }
            following = std::async(std::launch::async, make_slab, std::cref(job), first, n, n_threads,
                                   std::cref(options.cancelled));
            drain();
            computing = std::move(following);
            owner     = &job;
            i_owner   = i;
        }
    }
    drain();
}

TensorJob memory_job(std::string name, std::vector<int64_t> ne, ggml_type type, const float * values) {
    TensorJob job{ std::move(name), std::move(ne), type };
    job.f32 = values;
    return job;
}

} // namespace penelope
