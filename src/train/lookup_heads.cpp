#include "train/lookup_heads.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

constexpr float kConstant = 3.0f; // coordinate 0 of every embedding, in standard deviations
constexpr float kSharp    = 2.0f; // weights of the head that attends to the token before
constexpr float kMatch    = 1.6f; // weights that compare two codes
constexpr float kBefore   = 2.0f; // size of the code of the token before, in standard deviations of the embedding
constexpr float kFound    = 4.0f; // size of the code that was found
constexpr float kOutput   = 0.1f; // weight of that code in the logits
constexpr int   kFewest   = 8;    // coordinates of a head

// Coordinates of the residual stream: 0 is constant, then the code of the token, of the token before, and of the token
// found. n_code of each.
struct Places {
    size_t d, head, n_code, n_fast;

    size_t own(size_t i) const { return 1 + i; }
    size_t before(size_t i) const { return 1 + n_code + i; }
    size_t found(size_t i) const { return 1 + 2 * n_code + i; }
    size_t end() const { return 1 + 3 * n_code; }
    size_t slow(size_t i) const { return head - n_code + i; } // coordinates of a head that hardly rotate
};

Places places(const ModelConfig & c) {
    const size_t head = size_t(c.head_dim);
    return { size_t(c.n_embd), head, head / 4 * 2, head / 8 };
}

double embedding_deviation(const RandomBackbone & shape) {
    return shape.embedding_scale / std::sqrt(double(shape.config.n_embd));
}

void set_embedding(const Places & at, double deviation, std::vector<float> & rows) {
    for (size_t first = 0; first < rows.size(); first += at.d) {
        rows[first] = float(kConstant * deviation);
        std::fill_n(rows.begin() + ptrdiff_t(first + at.before(0)), 2 * at.n_code, 0.0f);
    }
}

// Rows of head 0.
void clear_head(const Places & at, std::vector<float> & values) {
    std::fill_n(values.begin(), at.head * at.d, 0.0f);
}

void set_layer_0(const RandomBackbone & shape, const Places & at, const std::string & part,
                 std::vector<float> & values) {
    if (part == "attn_q.weight" || part == "attn_k.weight") {
        clear_head(at, values);
        for (size_t i = 0; i < at.n_fast; i++) {
            const double fast          = std::pow(double(shape.config.rope_base), -2.0 * double(i) / double(at.head));
            const double turn          = part == "attn_q.weight" ? 0.0 : fast;
            values[(2 * i) * at.d]     = kSharp * float(std::cos(turn));
            values[(2 * i + 1) * at.d] = kSharp * float(std::sin(turn));
        }
    }
    if (part == "attn_v.weight") {
        clear_head(at, values);
        for (size_t i = 0; i < at.n_code; i++) {
            values[i * at.d + at.own(i)] = 1;
        }
    }
}

void set_layer_1(const Places & at, const std::string & part, std::vector<float> & values) {
    if (part != "attn_q.weight" && part != "attn_k.weight" && part != "attn_v.weight") {
        return;
    }
    clear_head(at, values);
    for (size_t i = 0; i < at.n_code; i++) {
        if (part == "attn_v.weight") {
            values[i * at.d + at.own(i)] = 1;
        } else {
            values[at.slow(i) * at.d + (part == "attn_q.weight" ? at.own(i) : at.before(i))] = kMatch;
        }
    }
}

// Weights that write to the residual stream leave the places of the codes alone; head 0 writes only there.
void set_writes(const Places & at, size_t n_in, int layer, bool is_attention, double deviation,
                std::vector<float> & values) {
    std::fill_n(values.begin(), at.end() * n_in, 0.0f);
    if (!is_attention || layer > 1) {
        return;
    }
    for (size_t row = 0; row < at.d; row++) {
        std::fill_n(values.begin() + ptrdiff_t(row * n_in), at.head, 0.0f);
    }
    for (size_t i = 0; i < at.n_code; i++) {
        values[(layer == 0 ? at.before(i) : at.found(i)) * n_in + i] =
            float((layer == 0 ? kBefore : kFound) * deviation);
    }
}

} // namespace

bool has_room_for_lookup_heads(const ModelConfig & c) {
    return c.n_layer >= 2 && c.head_dim >= kFewest && places(c).end() <= size_t(c.n_embd);
}

void set_lookup_heads(const RandomBackbone & shape, const std::string & tensor, const std::vector<float> & embedding,
                      std::vector<float> & values) {
    const Places at        = places(shape.config);
    const double deviation = embedding_deviation(shape);
    if (tensor == "token_embd.weight") {
        set_embedding(at, deviation, values);
    } else if (tensor == "output.weight") {
        for (size_t first = 0; first < values.size(); first += at.d) {
            for (size_t i = 0; i < at.n_code; i++) {
                values[first + at.found(i)] = kOutput * embedding[first + at.own(i)] / float(deviation);
            }
        }
    } else if (tensor.compare(0, 4, "blk.") == 0) {
        const size_t      dot   = tensor.find('.', 4);
        const int         layer = std::stoi(tensor.substr(4, dot - 4));
        const std::string part  = tensor.substr(dot + 1);
        if (part == "attn_output.weight" || part == "ffn_down.weight") {
            set_writes(at, values.size() / at.d, layer, part == "attn_output.weight", deviation, values);
        } else if (layer == 0) {
            set_layer_0(shape, at, part, values);
        } else if (layer == 1) {
            set_layer_1(at, part, values);
        }
    }
}

} // namespace penelope
