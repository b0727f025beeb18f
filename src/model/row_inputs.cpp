#include "model/row_inputs.h"

#include <algorithm>
#include <cmath>

namespace penelope {

std::string shape_key(const std::string & kind, const std::vector<SeqRange> & ranges) {
    const auto text_of = [](const SeqRange & s) {
        return std::to_string(s.count) + "," + std::to_string(s.n_kv) + (s.n_valid < s.count ? "p" : "") +
               (s.n_queries > s.count ? "q" : "") + (s.row == 0 ? "s" : "");
    };
    std::string key = kind;
    for (size_t i = 0, n = 0; i < ranges.size(); i += n) {
        const std::string text = text_of(ranges[i]);
        for (n = 1; i + n < ranges.size() && text_of(ranges[i + n]) == text;) {
            n++;
        }
        key += ":" + std::to_string(n) + "x" + text;
    }
    return key;
}

std::vector<int> streams_of(const std::vector<SeqRange> & ranges) {
    std::vector<int> streams;
    for (const SeqRange & s : ranges) {
        streams.push_back(s.stream);
    }
    return streams;
}

namespace {

// Streams outside the batch cost time although they are masked: use it only if at least half of them are in the batch.
bool can_batch(const std::vector<SeqRange> & ranges, int n_streams) {
    return ranges.size() > 1 && 2 * int(ranges.size()) >= n_streams &&
           std::all_of(ranges.begin(), ranges.end(), [&](const SeqRange & s) {
               return s.count == ranges[0].count && s.n_kv == ranges[0].n_kv && s.n_queries <= s.count;
           });
}

} // namespace

RowInputs::RowInputs(Graph & g, const std::string & name, const ModelConfig & config,
                     const std::vector<SeqRange> & ranges, bool exact, int n_streams)
    : graph_(g), name_(name), window_(config.window) {
    if (n_streams > 0 && can_batch(ranges, n_streams)) {
        const int  count = ranges[0].count, n_kv = ranges[0].n_kv;
        const auto in_streams = [&](Node mask) { return ggml_reshape_4d(g.ctx(), mask, n_kv, count, 1, n_streams); };
        mask_                 = g.input(name + ".mask", GGML_TYPE_F16, n_kv, count, n_streams);
        rows_.batched.count   = count;
        rows_.batched.n_kv    = n_kv;
        rows_.batched.mask    = in_streams(mask_);
        rows_.batched.window_mask = rows_.batched.mask;
        if (hides(ranges[0])) {
            window_mask_              = g.input(name + ".window_mask", GGML_TYPE_F16, n_kv, count, n_streams);
            rows_.batched.window_mask = in_streams(window_mask_);
        }
        rows_.batched.row_of_stream = g.input(name + ".row_of_stream", GGML_TYPE_I32, n_streams);
        rows_.batched.stream_of_row = g.input(name + ".stream_of_row", GGML_TYPE_I32, int64_t(ranges.size()));
    }
    for (const SeqRange & s : ranges) {
        const std::string number        = std::to_string(rows_.segments.size());
        const bool        hides_nothing = mask_ || (exact && s.count == 1 && s.n_kv == s.row + 1);
        const int         n_queries     = std::max(s.count, s.n_queries);
        const auto        input         = [&](const char * kind) {
            return g.input(name + kind + number, GGML_TYPE_F16, s.n_kv, n_queries);
        };
        Node mask        = hides_nothing ? nullptr : input(".mask.");
        Node window_mask = !mask_ && hides(s) ? input(".window_mask.") : mask;
        Node valid_count = s.n_valid < s.count ? g.input(name + ".n_valid." + number, GGML_TYPE_F32, 1) : nullptr;
        rows_.segments.push_back({ s, n_rows_, mask, valid_count, window_mask });
        n_rows_ += s.count;
    }
    rows_.positions  = g.input(name + ".positions", GGML_TYPE_I32, n_rows_);
    rows_.cache_rows = g.input(name + ".cache_rows", GGML_TYPE_I64, n_rows_);
}

RowLayout RowInputs::subset(Graph & g, int first, int count) {
    RowLayout subset;
    const int start = rows_.segments[size_t(first)].first;
    int       n     = 0;
    for (int i = first; i < first + count; i++) {
        Segment segment = rows_.segments[size_t(i)];
        segment.first -= start;
        n += segment.count;
        subset.segments.push_back(segment);
    }
    // Inputs of their own, not views: a view may be unaligned for the device.
    const std::string name = name_ + ".subset." + std::to_string(subsets_.size());
    subset.positions       = g.input(name + ".positions", GGML_TYPE_I32, n);
    subset.cache_rows      = g.input(name + ".cache_rows", GGML_TYPE_I64, n);
    subsets_.push_back({ start, subset });
    return subset;
}

namespace {

const ggml_fp16_t kSeen = ggml_fp32_to_fp16(0.0f), kHidden = ggml_fp32_to_fp16(-INFINITY);

// What the row at `position` sees of rows [0, n_kv): itself and what is before it, from `first` on, within the window
// (0: none). Never nothing: a fully masked row would give NaN.
void show(ggml_fp16_t * row, int n_kv, int position, int first, int window) {
    const int end   = std::min(n_kv, position + 1);
    const int begin = window > 0 ? std::max(first, position + 1 - window) : first;
    std::fill(row + std::min(begin, end - 1), row + end, kSeen);
}

} // namespace

void RowInputs::fill_batched_mask(Node mask, const std::vector<SeqRange> & ranges, int window) const {
    std::vector<ggml_fp16_t> values(size_t(ggml_nelements(mask)), kHidden);
    for (const SeqRange & s : ranges) {
        for (int r = 0; r < s.count; r++) {
            show(values.data() + (ptrdiff_t(s.stream) * s.count + r) * s.n_kv, s.n_kv, s.row + r, 0, window);
        }
    }
    graph_.set(mask, values);
}

void RowInputs::fill_mask(Node mask, const SeqRange & s, int window) const {
    std::vector<ggml_fp16_t> values(size_t(ggml_nelements(mask)), kHidden);
    for (int r = 0; r < s.count; r++) {
        // A padding row attends to the padding before it.
        const int first = s.row + r < s.n_left_pad ? 0 : s.n_left_pad;
        show(values.data() + ptrdiff_t(r) * s.n_kv, s.n_kv, s.row + r, first, window);
    }
    graph_.set(mask, values);
}

void RowInputs::fill_batched(const std::vector<SeqRange> & ranges) const {
    const BatchedAttention & batched = rows_.batched;
    std::vector<int32_t>     row_of_stream(size_t(batched.row_of_stream->ne[0]), 0), stream_of_row;
    for (const SeqRange & s : ranges) {
        row_of_stream[size_t(s.stream)] = int32_t(stream_of_row.size());
        stream_of_row.push_back(s.stream);
    }
    fill_batched_mask(mask_, ranges, 0);
    if (window_mask_) {
        fill_batched_mask(window_mask_, ranges, window_);
    }
    graph_.set(batched.row_of_stream, row_of_stream);
    graph_.set(batched.stream_of_row, stream_of_row);
}

void RowInputs::fill(const std::vector<SeqRange> & ranges, const SequenceCache * cache) const {
    std::vector<int32_t> positions;
    std::vector<int64_t> cache_rows;
    for (size_t i = 0; i < ranges.size(); i++) {
        const SeqRange & s = ranges[i];
        for (int r = 0; r < s.count; r++) {
            positions.push_back(std::max(0, s.row + r - s.n_left_pad));
            cache_rows.push_back(!cache          ? 0
                                 : r < s.n_valid ? cache->cache_row(s.stream, s.row + r)
                                                 : cache->padding_row(s.stream));
        }
        const Segment & segment = rows_.segments[i];
        if (segment.valid_count) {
            graph_.set(segment.valid_count, std::vector<float>{ float(s.n_valid) });
        }
        if (segment.mask) {
            fill_mask(segment.mask, s, 0);
        }
        if (segment.window_mask && segment.window_mask != segment.mask) {
            fill_mask(segment.window_mask, s, window_);
        }
    }
    if (mask_) {
        fill_batched(ranges);
    }
    const auto set = [&](const RowLayout & rows, int first) {
        graph_.set(rows.positions, positions.data() + first, ggml_nbytes(rows.positions));
        graph_.set(rows.cache_rows, cache_rows.data() + first, ggml_nbytes(rows.cache_rows));
    };
    set(rows_, 0);
    for (const Subset & subset : subsets_) {
        set(subset.rows, subset.first);
    }
}

} // namespace penelope
