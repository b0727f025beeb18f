#include "graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

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

} // namespace

MemoryPlan::MemoryPlan(ggml_cgraph * graph, const std::vector<ggml_tensor *> & inputs,
                       ggml_backend_buffer_type_t type) {
    const int                                     n_nodes = ggml_graph_n_nodes(graph);
    std::unordered_map<const ggml_tensor *, Life> lives;
    std::vector<ggml_tensor *>                    first = inputs; // what is there before the first node runs
    std::unordered_map<const ggml_tensor *, bool> is_node;
    for (int i = 0; i < n_nodes; i++) {
        is_node[ggml_graph_node(graph, i)] = true;
    }
    const auto use = [&](ggml_tensor * tensor, int i) {
        Life & life = lives[owner(tensor)];
        life.last   = i;
        life.kept   = life.kept || (tensor->flags & GGML_TENSOR_FLAG_OUTPUT);
    };
    for (ggml_tensor * input : inputs) {
        use(input, 0);
    }
    for (int i = 0; i < n_nodes; i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        use(node, i);
        for (ggml_tensor * source : node->src) {
            if (!source) {
                continue;
            }
            use(source, i);
            ggml_tensor * root = owner(source);
            if (!is_node.count(root) && !has_memory(root)) {
                is_node[root] = true;
                first.push_back(root);
            }
        }
    }

    Gaps       gaps(ggml_backend_buft_get_alignment(type));
    const auto put = [&](ggml_tensor * tensor, size_t offset, size_t size) {
        Life & life = lives[tensor];
        life.placed = true;
        life.offset = offset;
        life.size   = size;
        places_.push_back({ tensor, offset });
    };
    std::vector<std::vector<const ggml_tensor *>> ending(
        static_cast<size_t>(n_nodes)); // by the node that uses them last
    const auto end_at_last_use = [&](const ggml_tensor * tensor) {
        if (!lives[tensor].kept) {
            ending[size_t(lives[tensor].last)].push_back(tensor);
        }
    };
    for (ggml_tensor * tensor : first) {
        if (!tensor->view_src && !has_memory(tensor) && !lives[tensor].placed) {
            const size_t size = ggml_backend_buft_get_alloc_size(type, tensor);
            put(tensor, gaps.take(size), size);
            end_at_last_use(tensor);
        }
    }
    for (int i = 0; i < n_nodes; i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        if (node->view_src) {
            views_.push_back(node);
        } else if (!has_memory(node) && !lives[node].placed) {
            const size_t size = ggml_backend_buft_get_alloc_size(type, node);
            // An operand that nobody needs afterwards gives its place: of several the one made last, which is the
            // intermediate result when the node before is fused with this one.
            ggml_tensor * giver = nullptr;
            for (int k = 0; k < n_givers(node->op); k++) {
                ggml_tensor * source = node->src[k];
                if (source && same_layout(node, source)) {
                    ggml_tensor * root    = owner(source);
                    const Life &  life    = lives[root];
                    const auto    n_reads = std::count_if(std::begin(node->src), std::end(node->src),
                                                          [&](ggml_tensor * s) { return s && owner(s) == root; });
                    const bool    whole   = source == root || source->view_offs == 0;
                    if (life.placed && !life.kept && life.last == i && n_reads == 1 && whole && life.size == size &&
                        (!giver || life.made > lives[giver].made)) {
                        giver = root;
                    }
                }
            }
            if (giver) {
                put(node, lives[giver].offset, size);
                lives[giver].size = 0; // its memory has a new owner
            } else {
                put(node, gaps.take(size), size);
            }
            lives[node].made = i;
            end_at_last_use(node);
        }
        for (const ggml_tensor * tensor : ending[size_t(i)]) {
            if (lives[tensor].size > 0) {
                gaps.give(lives[tensor].offset, lives[tensor].size);
            }
        }
    }
    n_bytes_ = gaps.most();
}

void MemoryPlan::place(ggml_backend_buffer_t buffer) const {
    char * base = static_cast<char *>(ggml_backend_buffer_get_base(buffer));
    for (const Place & place : places_) {
        ggml_backend_tensor_alloc(buffer, place.tensor, base + place.offset);
    }
    for (ggml_tensor * view : views_) {
        ggml_backend_view_init(view);
    }
}

} // namespace penelope
