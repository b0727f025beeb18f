#include "model/row_inputs.h"

#include <algorithm>
#include <cmath>

namespace penelope {

std::string shape_key(const std::string & kind, const std::vector<Stretch> & stretches) {
    const auto text_of = [](const Stretch & s) {
        return std::to_string(s.count) + "," + std::to_string(s.n_kv) + (s.n_real < s.count ? "p" : "") +
               (s.n_queries > s.count ? "q" : "") + (s.row == 0 ? "s" : "");
    };
    std::string key = kind;
    for (size_t i = 0, n = 0; i < stretches.size(); i += n) {
        const std::string text = text_of(stretches[i]);
        for (n = 1; i + n < stretches.size() && text_of(stretches[i + n]) == text;) {
            n++;
        }
        key += ":" + std::to_string(n) + "x" + text;
    }
    return key;
}

std::vector<int> streams_of(const std::vector<Stretch> & stretches) {
    std::vector<int> streams;
    for (const Stretch & s : stretches) {
        streams.push_back(s.stream);
    }
    return streams;
}

namespace {

// Asking for streams that take no part costs a look at their mask: at least half of them should.
bool stand_abreast(const std::vector<Stretch> & stretches, int n_streams) {
    return stretches.size() > 1 && 2 * int(stretches.size()) >= n_streams &&
           std::all_of(stretches.begin(), stretches.end(), [&](const Stretch & s) {
               return s.count == stretches[0].count && s.n_kv == stretches[0].n_kv && s.n_queries <= s.count;
           });
}

} // namespace

RowInputs::RowInputs(Graph & g, const std::string & name, const std::vector<Stretch> & stretches, bool exact,
                     int n_streams)
    : graph_(g), name_(name) {
    if (n_streams > 0 && stand_abreast(stretches, n_streams)) {
        const int count = stretches[0].count, n_kv = stretches[0].n_kv;
        mask_                       = g.input(name + ".mask", GGML_TYPE_F16, n_kv, count, n_streams);
        rows_.abreast.count         = count;
        rows_.abreast.n_kv          = n_kv;
        rows_.abreast.mask          = ggml_reshape_4d(g.ctx(), mask_, n_kv, count, 1, n_streams);
        rows_.abreast.row_of_stream = g.input(name + ".row_of_stream", GGML_TYPE_I32, n_streams);
        rows_.abreast.stream_of_row = g.input(name + ".stream_of_row", GGML_TYPE_I32, int64_t(stretches.size()));
    }
    for (const Stretch & s : stretches) {
        const std::string number        = std::to_string(rows_.segments.size());
        const bool        hides_nothing = mask_ || (exact && s.count == 1 && s.n_kv == s.row + 1);
        const int         n_queries     = std::max(s.count, s.n_queries);
        Node mask = hides_nothing ? nullptr : g.input(name + ".mask." + number, GGML_TYPE_F16, s.n_kv, n_queries);
        rows_.segments.push_back({ n_rows_, s.count, s.stream, s.row, s.n_kv, mask, s.from, s.to,
                                   s.n_real < s.count ? g.input(name + ".n_real." + number, GGML_TYPE_F32, 1) : nullptr,
                                   n_queries });
        n_rows_ += s.count;
    }
    rows_.positions  = g.input(name + ".positions", GGML_TYPE_I32, n_rows_);
    rows_.cache_rows = g.input(name + ".cache_rows", GGML_TYPE_I64, n_rows_);
}

Rows RowInputs::part(Graph & g, int first, int count) {
    Rows      part;
    const int start = rows_.segments[size_t(first)].first;
    int       n     = 0;
    for (int i = first; i < first + count; i++) {
        Segment segment = rows_.segments[size_t(i)];
        segment.first -= start;
        n += segment.count;
        part.segments.push_back(segment);
    }
    // Not views of the whole: a view may start where a device cannot bind it.
    const std::string name = name_ + ".part." + std::to_string(parts_.size());
    part.positions         = g.input(name + ".positions", GGML_TYPE_I32, n);
    part.cache_rows        = g.input(name + ".cache_rows", GGML_TYPE_I64, n);
    parts_.push_back({ start, part });
    return part;
}

void RowInputs::fill_abreast(const std::vector<Stretch> & stretches) const {
    const ggml_fp16_t        seen = ggml_fp32_to_fp16(0.0f), hidden = ggml_fp32_to_fp16(-INFINITY);
    const Abreast &          abreast = rows_.abreast;
    std::vector<ggml_fp16_t> mask(size_t(ggml_nelements(mask_)), hidden);
    std::vector<int32_t>     row_of_stream(size_t(abreast.row_of_stream->ne[0]), 0), stream_of_row;
    for (const Stretch & s : stretches) {
        row_of_stream[size_t(s.stream)] = int32_t(stream_of_row.size());
        stream_of_row.push_back(s.stream);
        for (int r = 0; r < s.count; r++) {
            std::fill_n(mask.begin() + (ptrdiff_t(s.stream) * s.count + r) * s.n_kv, std::min(s.n_kv, s.row + r + 1),
                        seen);
        }
    }
    graph_.set(mask_, mask);
    graph_.set(abreast.row_of_stream, row_of_stream);
    graph_.set(abreast.stream_of_row, stream_of_row);
}

void RowInputs::fill(const std::vector<Stretch> & stretches, const SequenceCache * cache) const {
    const ggml_fp16_t        seen = ggml_fp32_to_fp16(0.0f), hidden = ggml_fp32_to_fp16(-INFINITY);
    std::vector<int32_t>     positions;
    std::vector<int64_t>     cache_rows;
    std::vector<ggml_fp16_t> mask;
    for (size_t i = 0; i < stretches.size(); i++) {
        const Stretch & s = stretches[i];
        for (int r = 0; r < s.count; r++) {
            positions.push_back(std::max(0, s.row + r - s.n_front));
            cache_rows.push_back(!cache         ? 0
                                 : r < s.n_real ? cache->cache_row(s.stream, s.row + r)
                                                : cache->spare_row(s.stream));
        }
        if (Node node = rows_.segments[i].n_real) {
            graph_.set(node, std::vector<float>{ float(s.n_real) });
        }
        if (Node node = rows_.segments[i].mask) {
            mask.assign(size_t(ggml_nelements(node)), hidden);
            for (int r = 0; r < s.count; r++) {
                // A row in front sees others in front, so that its weights are numbers.
                const int from = s.row + r < s.n_front ? 0 : s.n_front;
                std::fill_n(mask.begin() + ptrdiff_t(r) * s.n_kv + from, std::min(s.n_kv, s.row + r + 1) - from, seen);
            }
            graph_.set(node, mask);
        }
    }
    if (mask_) {
        fill_abreast(stretches);
    }
    const auto set = [&](const Rows & rows, int first) {
        graph_.set(rows.positions, positions.data() + first, ggml_nbytes(rows.positions));
        graph_.set(rows.cache_rows, cache_rows.data() + first, ggml_nbytes(rows.cache_rows));
    };
    set(rows_, 0);
    for (const Part & part : parts_) {
        set(part.rows, part.first);
    }
}

} // namespace penelope
