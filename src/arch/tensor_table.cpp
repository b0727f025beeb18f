#include "arch/tensor_table.h"

#include <cmath>
#include <cstring>

namespace penelope {

TensorPermutation TensorPermutation::rotary_pairs(int64_t head) {
    TensorPermutation order;
    order.kind = Kind::rotary_pairs;
    order.head = head;
    return order;
}

TensorPermutation TensorPermutation::tiled_heads(int64_t head, int64_t n_groups, int64_t per_group, int64_t first) {
    TensorPermutation order;
    order.kind      = n_groups > 1 && per_group > 1 ? Kind::tiled_heads : Kind::same;
    order.head      = head;
    order.n_groups  = n_groups;
    order.per_group = per_group;
    order.first     = first;
    return order;
}

int64_t TensorPermutation::hf_of_gguf(int64_t row) const {
    if (kind == Kind::rotary_pairs) {
        const int64_t i = row % head;
        return row - i + (i % 2) * (head / 2) + i / 2;
    }
    if (kind == Kind::tiled_heads && row >= first) {
        const int64_t h = (row - first) / head;
        return first + ((h % n_groups) * per_group + h / n_groups) * head + (row - first) % head;
    }
    return row;
}

int64_t TensorPermutation::gguf_of_hf(int64_t row) const {
    if (kind == Kind::rotary_pairs) {
        const int64_t i    = row % head;
        const int64_t half = head / 2;
        return row - i + 2 * (i % half) + i / half;
    }
    if (kind == Kind::tiled_heads && row >= first) {
        const int64_t h = (row - first) / head;
        return first + ((h % per_group) * n_groups + h / per_group) * head + (row - first) % head;
    }
    return row;
}

float gguf_value(ValueTransform value, float hf) {
    switch (value) {
        case ValueTransform::same: return hf;
        case ValueTransform::one_plus: return hf + 1.0f;
        case ValueTransform::minus_exp: return float(-std::exp(double(hf)));
    }
    return hf;
}

float hf_value(ValueTransform value, float gguf) {
    if (value == ValueTransform::same) {
        return gguf;
    }
    const float nearest =
        value == ValueTransform::one_plus ? float(double(gguf) - 1.0) : float(std::log(-double(gguf)));
    // Drop mantissa bits as long as gguf_value() still gives the same result.
    float best = nearest;
    if (nearest == 0.0f) {
        return nearest;
    }
    for (int n_cleared = 1; n_cleared <= 23; n_cleared++) {
        const uint32_t unit = uint32_t(1) << n_cleared;
        uint32_t       bits;
        std::memcpy(&bits, &nearest, sizeof(bits));
        const uint32_t down = bits & ~(unit - 1);
        bool           any  = false;
        for (const uint32_t rounded : { down, down + unit }) {
            float candidate;
            std::memcpy(&candidate, &rounded, sizeof(candidate));
            if (!any && std::isfinite(candidate) && gguf_value(value, candidate) == gguf) {
                best = candidate;
                any  = true;
            }
        }
        if (!any) {
            break;
        }
    }
    return best;
}

std::vector<int64_t> TensorSpec::checkpoint_shape() const {
    return hf_shape.empty() ? std::vector<int64_t>(ne.rbegin(), ne.rend()) : hf_shape;
}

TensorSpec & TensorTable::add(const std::string & gguf, const std::string & hf, std::vector<int64_t> ne,
                              TensorRole role, Node & node) {
    TensorSpec spec;
    spec.layer = layer_;
    spec.gguf  = gguf_prefix_ + gguf;
    spec.hf    = hf.empty() ? "" : hf_prefix_ + hf;
    spec.ne    = std::move(ne);
    spec.role  = role;
    spec.node  = &node;
    rows_.push_back(std::move(spec));
    return rows_.back();
}

TensorSpec & TensorTable::table(Node & node, const char * gguf, const char * hf, int64_t n_in, int64_t n_rows) {
    return add(std::string(gguf) + ".weight", std::string(hf) + ".weight", { n_in, n_rows }, TensorRole::table, node);
}

TensorSpec & TensorTable::projection(Linear & layer, const char * gguf, const char * hf, int64_t n_in, int64_t n_out) {
    TensorSpec & spec = matrix(layer, gguf, hf, n_in, n_out);
    spec.role         = TensorRole::projection;
    return spec;
}

TensorSpec & TensorTable::matrix(Linear & layer, const char * gguf, const char * hf, int64_t n_in, int64_t n_out) {
    TensorSpec & spec = add(std::string(gguf) + ".weight", std::string(hf) + ".weight", { n_in, n_out },
                            TensorRole::matrix, layer.weight);
    spec.linear       = &layer;
    return spec;
}

TensorSpec & TensorTable::bias(Linear & layer, const char * gguf, const char * hf, int64_t n_out) {
    TensorSpec & spec =
        add(std::string(gguf) + ".bias", std::string(hf) + ".bias", { n_out }, TensorRole::vector, layer.bias);
    spec.start = 0.0f;
    return spec;
}

TensorSpec & TensorTable::norm(Node & node, const char * gguf, const char * hf, int64_t n) {
    TensorSpec & spec =
        add(std::string(gguf) + ".weight", std::string(hf) + ".weight", { n }, TensorRole::vector, node);
    spec.value = norms_;
    return spec;
}

TensorSpec & TensorTable::vector(Node & node, const char * gguf, const char * hf, std::vector<int64_t> ne) {
    return add(gguf, hf, std::move(ne), TensorRole::vector, node);
}

} // namespace penelope
