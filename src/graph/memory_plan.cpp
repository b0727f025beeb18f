#include "graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace penelope {

namespace {

// Hands out pieces of an endless range, the smallest gap that is large enough first.
class Gaps {
  public:
    explicit Gaps(size_t alignment) : alignment_(alignment) {}

    size_t take(size_t size) {
        size             = rounded(size);
        const auto found = by_size_.lower_bound({ size, 0 });
        if (found == by_size_.end()) {
            const size_t offset = end_;
            end_ += size;
            most_ = std::max(most_, end_);
            return offset;
        }
        const auto [gap, offset] = *found;
        erase(offset, gap);
        if (gap > size) {
            insert(offset + size, gap - size);
        }
        return offset;
    }

    void give(size_t offset, size_t size) {
        size        = rounded(size);
        auto behind = by_offset_.upper_bound(offset);
        if (behind != by_offset_.begin()) {
            const auto before = std::prev(behind);
            if (before->first + before->second == offset) {
                offset = before->first;
                size += before->second;
                erase(before->first, before->second);
            }
        }
        behind = by_offset_.find(offset + size);
        if (behind != by_offset_.end()) {
            size += behind->second;
            erase(offset + size - behind->second, behind->second);
        }
        if (offset + size == end_) {
            end_ = offset;
        } else {
            insert(offset, size);
        }
    }

    size_t most() const { return most_; }

  private:
    size_t rounded(size_t size) const { return (std::max<size_t>(size, 1) + alignment_ - 1) / alignment_ * alignment_; }

    void insert(size_t offset, size_t size) {
        by_offset_[offset] = size;
        by_size_.insert({ size, offset });
    }
    void erase(size_t offset, size_t size) {
        by_offset_.erase(offset);
        by_size_.erase({ size, offset });
    }

    size_t                              alignment_;
    size_t                              end_  = 0; // everything beyond is free
    size_t                              most_ = 0;
    std::map<size_t, size_t>            by_offset_;
    std::set<std::pair<size_t, size_t>> by_size_;
};

ggml_tensor * owner(ggml_tensor * tensor) {
    return tensor->view_src ? tensor->view_src : tensor;
}

bool has_memory(const ggml_tensor * tensor) {
    return tensor->data || tensor->buffer;
}

// How many leading operands of an operation may give their place to its result: those that every backend reads at an element
// (of a row it has gone over before) no later than it writes the result there.
int n_givers(ggml_op op) {
    switch (op) {
        case GGML_OP_FILL:
        case GGML_OP_SCALE:
        case GGML_OP_ADD:
        case GGML_OP_SUB:
        case GGML_OP_MUL:
        case GGML_OP_DIV:
        case GGML_OP_SQR:
        case GGML_OP_SQRT:
        case GGML_OP_LOG:
        case GGML_OP_UNARY:
        case GGML_OP_SILU_BACK:
        case GGML_OP_RMS_NORM_BACK: return GGML_MAX_SRC;
        case GGML_OP_ROPE:
        case GGML_OP_ROPE_BACK:
        case GGML_OP_RMS_NORM:
        case GGML_OP_SOFT_MAX:
        case GGML_OP_SOFT_MAX_BACK: return 1; // the softmax itself is read again after the result was begun
        default: return 0;
    }
}

bool same_layout(const ggml_tensor * a, const ggml_tensor * b) {
    return a->type == b->type && std::equal(a->ne, a->ne + GGML_MAX_DIMS, b->ne) &&
           std::equal(a->nb, a->nb + GGML_MAX_DIMS, b->nb);
}

struct Life {
    int    made   = -1; // node that makes it
    int    last   = 0;  // node that uses it last
    bool   kept   = false;
    bool   placed = false;
    size_t offset = 0;
    size_t size   = 0;
};

// What a graph's memory is planned from. Views live in their owners.
struct Lives {
    std::unordered_map<const ggml_tensor *, Life> of;
    std::vector<ggml_tensor *>                    first; // there before the first node runs, and without memory

    void use(const ggml_tensor * tensor, const ggml_tensor * owned_by, int node) {
        Life & life = of[owned_by];
        life.last   = node;
        life.kept   = life.kept || (tensor->flags & GGML_TENSOR_FLAG_OUTPUT);
    }
};

Lives find_lives(ggml_cgraph * graph, const std::vector<ggml_tensor *> & inputs) {
    const int                               n_nodes = ggml_graph_n_nodes(graph);
    Lives                                   lives;
    std::unordered_set<const ggml_tensor *> known; // made by a node, or among the first
    for (int i = 0; i < n_nodes; i++) {
        known.insert(ggml_graph_node(graph, i));
    }
    const auto add_first = [&](ggml_tensor * tensor) {
        if (!tensor->view_src && !has_memory(tensor)) {
            lives.first.push_back(tensor);
        }
    };
    for (ggml_tensor * input : inputs) {
        lives.use(input, owner(input), 0);
        add_first(input);
        known.insert(input);
    }
    for (int i = 0; i < n_nodes; i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        lives.use(node, owner(node), i);
        for (ggml_tensor * source : node->src) {
            if (source) {
                lives.use(source, owner(source), i);
                if (known.insert(owner(source)).second) {
                    add_first(owner(source));
                }
            }
        }
    }
    return lives;
}

// The operand that gives its place of `size` bytes to the result of node i, because nobody needs it afterwards: of several the
// one made last, which is the intermediate result when the node before is fused with this one. Null: none does.
const ggml_tensor * giver_of(const ggml_tensor * node, int i, size_t size, const Lives & lives) {
    const ggml_tensor * giver = nullptr;
    for (int k = 0; k < n_givers(node->op); k++) {
        ggml_tensor * source = node->src[k];
        if (!source || !same_layout(node, source)) {
            continue;
        }
        const ggml_tensor * root    = owner(source);
        const Life &        life    = lives.of.at(root);
        const bool          whole   = source == root || source->view_offs == 0;
        const auto          n_reads = std::count_if(std::begin(node->src), std::end(node->src),
                                                    [&](ggml_tensor * s) { return s && owner(s) == root; });
        if (life.placed && !life.kept && life.last == i && n_reads == 1 && whole && life.size == size &&
            (!giver || life.made > lives.of.at(giver).made)) {
            giver = root;
        }
    }
    return giver;
}

} // namespace

MemoryPlan::MemoryPlan(ggml_cgraph * graph, const std::vector<ggml_tensor *> & inputs,
                       ggml_backend_buffer_type_t type) {
    const int                                     n_nodes = ggml_graph_n_nodes(graph);
    Lives                                         lives   = find_lives(graph, inputs);
    Gaps                                          gaps(ggml_backend_buft_get_alignment(type));
    std::vector<std::vector<const ggml_tensor *>> ending(size_t(n_nodes) + 1); // by the node that uses them last

    // Puts a tensor where `giver` lay, or into a gap.
    const auto put = [&](ggml_tensor * tensor, int made, size_t size, const ggml_tensor * giver) {
        Life & life = lives.of[tensor];
        life.made   = made;
        life.placed = true;
        life.size   = size;
        life.offset = giver ? lives.of[giver].offset : gaps.take(size);
        if (giver) {
            lives.of[giver].size = 0; // its memory has a new owner
        }
        if (!life.kept) {
            ending[size_t(life.last)].push_back(tensor);
        }
        places_.push_back({ tensor, life.offset });
    };
    for (ggml_tensor * tensor : lives.first) {
        if (!lives.of[tensor].placed) { // an input may be named twice
            put(tensor, -1, ggml_backend_buft_get_alloc_size(type, tensor), nullptr);
        }
    }
    for (int i = 0; i < n_nodes; i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        if (node->view_src) {
            views_.push_back(node);
        } else if (!has_memory(node) && !lives.of[node].placed) {
            const size_t size = ggml_backend_buft_get_alloc_size(type, node);
            put(node, i, size, giver_of(node, i, size, lives));
        }
        for (const ggml_tensor * tensor : ending[size_t(i)]) {
            if (lives.of[tensor].size > 0) {
                gaps.give(lives.of[tensor].offset, lives.of[tensor].size);
            }
        }
    }
    n_bytes_ = gaps.most();
}

void MemoryPlan::place_owners(ggml_backend_buffer_t buffer) const {
    char * base = static_cast<char *>(ggml_backend_buffer_get_base(buffer));
    for (const Place & place : places_) {
        ggml_backend_tensor_alloc(buffer, place.tensor, base + place.offset);
    }
}

void MemoryPlan::place_views() const {
    for (ggml_tensor * view : views_) {
        ggml_backend_view_init(view);
    }
}

} // namespace penelope
