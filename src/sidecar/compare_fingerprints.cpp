// Whether two samples are of the same weights. All decisions are made from sums over the samples: one run has 256
// numbers or fewer.
#include "base/rng.h"
#include "gguf/quantize_support.h"
#include "sidecar/weight_fingerprint.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

namespace penelope {

namespace {

constexpr size_t k_block = 32;    // numbers that share a tolerance
constexpr float  k_slack = 1.05f; // rounding to nearest is not quite what all types do
constexpr float  k_unseen =
    0.004f; // of a block's largest number: as 8 bits round, which a finer file may have gone through before
constexpr double k_floor   = 0.008;    // of a run's root mean square: the same for distances
constexpr float  k_largest = 65504.0f; // of F16: rounding larger ones would make anything of them
constexpr double k_nudge   = 0.1;      // moves numbers off the grid of their type, to see how it rounds others

// Between what quantized and what merged files gave: docs/format.md.
constexpr double k_more_numbers    = 0.13;
constexpr double k_more_in_quarter = 0.28;
constexpr double k_more_distance   = 1.25;

using Values = std::vector<float>;

// Numbers as the type would keep them, where that can be tried out.
Values rounded(const Values & values, ggml_type type) {
    const int64_t n = int64_t(values.size());
    if (type == GGML_TYPE_F32 || quantize_support(type) != QuantizeSupport::any || n % ggml_blck_size(type) != 0) {
        return values;
    }
    std::vector<uint8_t> bytes(ggml_row_size(type, n));
    Values               out(values.size());
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, 1, n, nullptr);
    ggml_get_type_traits(type)->to_float(bytes.data(), out.data(), n);
    return out;
}

double mean_square(const Values & values) {
    double sum = 0;
    for (const float value : values) {
        sum += double(value) * value;
    }
    return sum / double(values.size());
}

double mean_square_difference(const Values & a, const Values & b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) {
        sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    }
    return sum / double(a.size());
}

// Numbers that the type could have made these from: uniform around each, as wide as the type rounds numbers like them.
Values before_rounding(const Values & values, ggml_type type, Rng & rng) {
    const float nudge = float(k_nudge * std::sqrt(mean_square(values)));
    Values      moved = values, out = values;
    for (float & value : moved) {
        value += nudge * float(rng.normal());
    }
    const Values kept = rounded(moved, type);
    for (size_t first = 0; first < values.size(); first += k_block) {
        const size_t last = std::min(values.size(), first + k_block);
        double       sum  = 0;
        for (size_t i = first; i < last; i++) {
            sum += (double(kept[i]) - moved[i]) * (double(kept[i]) - moved[i]);
        }
        const float half = float(std::sqrt(3 * sum / double(last - first))); // variance of a uniform number: half^2 / 3
        for (size_t i = first; i < last; i++) {
            out[i] += half * (2 * rng.uniform_float() - 1);
        }
    }
    return out;
}

float largest_difference(const float * a, const float * b, size_t n) {
    float largest = 0;
    for (size_t i = 0; i < n; i++) {
        largest = std::max(largest, std::fabs(a[i] - b[i]));
    }
    return largest;
}

struct Counts {
    size_t n_a = 0, n_b = 0, n = 0; // numbers of a, put through b's type, that are not b's; the other way round; all

    std::vector<double> shares; // of each run

    void add(size_t more_a, size_t more_b, size_t more) {
        n_a += more_a;
        n_b += more_b;
        n += more;
        shares.push_back(double(std::min(more_a, more_b)) / double(more));
    }

    double share() const { return n == 0 ? 1 : double(std::min(n_a, n_b)) / double(n); }

    double share_in_quarter() const {
        std::vector<double> sorted = shares;
        std::sort(sorted.rbegin(), sorted.rend());
        sorted.resize((sorted.size() + 3) / 4);
        return std::accumulate(sorted.begin(), sorted.end(), 0.0) / double(sorted.size());
    }
};

void count(const Values & a, ggml_type type_a, const Values & b, ggml_type type_b, Counts & counts) {
    const Values a_in_b = rounded(a, type_b), b_in_a = rounded(b, type_a);
    size_t       n_a = 0, n_b = 0;
    for (size_t first = 0; first < a.size(); first += k_block) {
        const size_t size    = std::min(size_t(k_block), a.size() - first);
        float        largest = 0;
        for (size_t i = first; i < first + size; i++) {
            largest = std::max(largest, std::fabs(a[i]));
        }
        const float finer = std::min(largest_difference(&a[first], &a_in_b[first], size),
                                     largest_difference(&b[first], &b_in_a[first], size));
        const float near  = std::max(k_slack * finer, k_unseen * largest);
        for (size_t i = first; i < first + size; i++) {
            n_a += !(std::fabs(a_in_b[i] - b[i]) <= near);
            n_b += !(std::fabs(b_in_a[i] - a[i]) <= near);
        }
    }
    counts.add(n_a, n_b, a.size());
}

// Both samples, run by run, beside a pair of samples that were drawn to be of the same weights.
struct Comparison {
    Counts seen, drawn;
    double seen_distance = 0, drawn_distance = 0; // squared, in units of each run's mean square
    Rng    rng{ 0, stream_id("sample") };

    void add(const Values & a, ggml_type type_a, const Values & b, ggml_type type_b) {
        const double unit = mean_square(a);
        count(a, type_a, b, type_b, seen);
        const Values   around_a = before_rounding(a, type_a, rng), around_b = before_rounding(b, type_b, rng);
        const double   error_a = mean_square_difference(around_a, a), error_b = mean_square_difference(around_b, b);
        const Values & source  = error_a <= error_b ? around_a : around_b;
        const Values   drawn_a = rounded(source, type_a), drawn_b = rounded(source, type_b);
        count(drawn_a, type_a, drawn_b, type_b, drawn);
        if (!(unit > 0)) {
            return;
        }
        seen_distance += mean_square_difference(a, b) / unit;
        // Types with nearly the same grid round alike, unless an importance matrix is at work: what unlike ones differ
        // is forgiven.
        drawn_distance +=
            std::max(mean_square_difference(drawn_a, drawn_b), error_a + error_b) / unit + k_floor * k_floor;
    }
};

} // namespace

bool FingerprintDifference::same() const {
    const bool by_numbers = share - by_types <= k_more_numbers && in_quarter - by_types_in_quarter <= k_more_in_quarter;
    return (!share_counts || by_numbers) && distance <= k_more_distance;
}

std::string FingerprintDifference::describe() const {
    char text[128];
    if (share_counts && in_quarter - by_types_in_quarter > k_more_in_quarter && share - by_types <= k_more_numbers) {
        std::snprintf(text, sizeof(text),
                      "in some tensors %.0f %% of the numbers compared differ, where the types explain %.0f %%",
                      100 * in_quarter, 100 * by_types_in_quarter);
    } else if (share_counts && share - by_types > k_more_numbers) {
        std::snprintf(text, sizeof(text), "%.0f %% of the numbers compared differ, where the types explain %.0f %%",
                      100 * share, 100 * by_types);
    } else {
        std::snprintf(text, sizeof(text), "they lie %.2f times as far apart as the types explain", std::sqrt(distance));
    }
    return text;
}

FingerprintDifference compare_fingerprints(const WeightFingerprint & a, const WeightFingerprint & b) {
    FingerprintDifference difference;
    const auto            are_weights = [](const Values & values) {
        return std::all_of(values.begin(), values.end(), [](float value) { return std::fabs(value) <= k_largest; });
    };
    if (a.empty() || a.runs.size() != b.runs.size() || a.values.size() != b.values.size() || !are_weights(a.values) ||
        !are_weights(b.values)) {
        return difference;
    }
    const auto is_type = [](int32_t number) { return number >= 0 && number < GGML_TYPE_COUNT; };
    Comparison comparison;
    size_t     at = 0;
    for (size_t i = 0; i + 1 < a.runs.size(); i += 2) {
        const int64_t n = a.runs[i + 1];
        if (n != b.runs[i + 1] || n <= 0 || size_t(n) > a.values.size() - at || !is_type(a.runs[i]) ||
            !is_type(b.runs[i])) {
            return difference;
        }
        const auto run = [&](const WeightFingerprint & sample) {
            return Values(sample.values.begin() + long(at), sample.values.begin() + long(at) + n);
        };
        comparison.add(run(a), ggml_type(a.runs[i]), run(b), ggml_type(b.runs[i]));
        at += size_t(n);
    }
    difference.share               = comparison.seen.share();
    difference.by_types            = comparison.drawn.share();
    difference.in_quarter          = comparison.seen.share_in_quarter();
    difference.by_types_in_quarter = comparison.drawn.share_in_quarter();
    difference.distance     = comparison.drawn_distance > 0 ? comparison.seen_distance / comparison.drawn_distance : 0;
    difference.share_counts = !a.has_imatrix && !b.has_imatrix;
    return difference;
}

} // namespace penelope
