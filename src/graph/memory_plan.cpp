#include "graph/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace penelope {

namespace {

// Best-fit free list over an unbounded address range.
class FreeList {
  public:
    explicit FreeList(size_t alignment) : alignment_(alignment) {}

    size_t allocate(size_t size) {
        size             = rounded(size);
        const auto found = by_size_.lower_bound({ size, 0 });
        if (found == by_size_.end()) {
            const size_t offset = end_;
            end_ += size;
            peak_ = std::max(peak_, end_);
            return offset;
        }
        const auto [block, offset] = *found;
        erase(offset, block);
        if (block > size) {
            insert(offset + size, block - size);
        }
        return offset;
    }

    void release(size_t offset, size_t size) {
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

    size_t peak() const { return peak_; }

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
    size_t                              end_  = 0; // everything after it is free
    size_t                              peak_ = 0;
    std::map<size_t, size_t>            by_offset_;
    std::set<std::pair<size_t, size_t>> by_size_;
};

ggml_tensor * owner(ggml_tensor * tensor) {
    return tensor->view_src ? tensor->view_src : tensor;
}

bool has_memory(const ggml_tensor * tensor) {
    return tensor->data || tensor->buffer;
}

// How many of an operation's first operands may be overwritten by its result (in-place). Every backend must read an
// element of such an operand no later than it writes that element of the result.
int n_inplace_operands(ggml_op op) {
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
        case GGML_OP_SOFT_MAX_BACK:
            return 1; // the softmax (second operand) is still read after the first result is written
        default: return 0;
    }
}

bool same_layout(const ggml_tensor * a, const ggml_tensor * b) {
    return a->type == b->type && std::equal(a->ne, a->ne + GGML_MAX_DIMS, b->ne) &&
           std::equal(a->nb, a->nb + GGML_MAX_DIMS, b->nb);
}

struct LiveRange {
    int    defined_by = -1; // index of the node that computes it
    int    last       = 0;  // index of its last reader
    bool   is_output  = false;
    bool   allocated  = false;
    size_t offset     = 0;
    size_t size       = 0;
};

// Live ranges of all tensors of a graph. A view counts as a use of the tensor it points into.
struct LiveRanges {
    std::unordered_map<const ggml_tensor *, LiveRange> of;
    std::vector<ggml_tensor *>                         first; // live before the first node, and not allocated elsewhere

    void use(const ggml_tensor * tensor, const ggml_tensor * owned_by, int node) {
        LiveRange & range = of[owned_by];
        range.last        = node;
        range.is_output   = range.is_output || (tensor->flags & GGML_TENSOR_FLAG_OUTPUT);
    }
};

LiveRanges find_live_ranges(ggml_cgraph * graph, const std::vector<ggml_tensor *> & inputs) {
    const int                               n_nodes = ggml_graph_n_nodes(graph);
    LiveRanges                              ranges;
    std::unordered_set<const ggml_tensor *> known; // computed by a node, or in `first`
    for (int i = 0; i < n_nodes; i++) {
        known.insert(ggml_graph_node(graph, i));
    }
    const auto add_first = [&](ggml_tensor * tensor) {
        if (!tensor->view_src && !has_memory(tensor)) {
            ranges.first.push_back(tensor);
        }
    };
    for (ggml_tensor * input : inputs) {
        ranges.use(input, owner(input), 0);
        add_first(input);
        known.insert(input);
    }
    for (int i = 0; i < n_nodes; i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        ranges.use(node, owner(node), i);
        for (ggml_tensor * source : node->src) {
            if (source) {
                ranges.use(source, owner(source), i);
                if (known.insert(owner(source)).second) {
                    add_first(owner(source));
                }
            }
        }
    }
    return ranges;
}

// The operand whose `size` bytes the result of node i may reuse in place, because node i is its last reader. Of
// several, the one computed last: that is the intermediate result when a backend fuses the previous node with this one.
// Null: none.
const ggml_tensor * find_inplace_operand(const ggml_tensor * node, int i, size_t size, const LiveRanges & ranges) {
    const ggml_tensor * inplace_operand = nullptr;
    for (int k = 0; k < n_inplace_operands(node->op); k++) {
        ggml_tensor * source = node->src[k];
        if (!source || !same_layout(node, source)) {
            continue;
        }
        const ggml_tensor * root    = owner(source);
        const LiveRange &   range   = ranges.of.at(root);
        const bool          whole   = source == root || source->view_offs == 0;
        const auto          n_reads = std::count_if(std::begin(node->src), std::end(node->src),
                                                    [&](ggml_tensor * s) { return s && owner(s) == root; });
        if (range.allocated && !range.is_output && range.last == i && n_reads == 1 && whole && range.size == size &&
            (!inplace_operand || range.defined_by > ranges.of.at(inplace_operand).defined_by)) {
            inplace_operand = root;
        }
    }
    return inplace_operand;
}

} // namespace

MemoryPlan::MemoryPlan(ggml_cgraph * graph, const std::vector<ggml_tensor *> & inputs,
                       ggml_backend_buffer_type_t type) {
    const int                                     n_nodes = ggml_graph_n_nodes(graph);
    LiveRanges                                    ranges  = find_live_ranges(graph, inputs);
    FreeList                                      free_list(ggml_backend_buft_get_alignment(type));
    std::vector<std::vector<const ggml_tensor *>> last_used_by(size_t(n_nodes) + 1); // indexed by their last reader

    // Gives a tensor the memory of `inplace_operand`, or a block of the free list.
    const auto assign = [&](ggml_tensor * tensor, int defined_by, size_t size, const ggml_tensor * inplace_operand) {
        LiveRange & range = ranges.of[tensor];
        range.defined_by  = defined_by;
        range.allocated   = true;
        range.size        = size;
        range.offset      = inplace_operand ? ranges.of[inplace_operand].offset : free_list.allocate(size);
        if (inplace_operand) {
            ranges.of[inplace_operand].size = 0; // the result owns its memory now
        }
        if (!range.is_output) {
            last_used_by[size_t(range.last)].push_back(tensor);
        }
        allocations_.push_back({ tensor, range.offset });
    };
    for (ggml_tensor * tensor : ranges.first) {
        if (!ranges.of[tensor].allocated) { // an input may be listed twice
            assign(tensor, -1, ggml_backend_buft_get_alloc_size(type, tensor), nullptr);
        }
    }
    for (int i = 0; i < n_nodes; i++) {
        ggml_tensor * node = ggml_graph_node(graph, i);
        if (node->view_src) {
            views_.push_back(node);
        } else if (!has_memory(node) && !ranges.of[node].allocated) {
            const size_t size = ggml_backend_buft_get_alloc_size(type, node);
            assign(node, i, size, find_inplace_operand(node, i, size, ranges));
        }
        for (const ggml_tensor * tensor : last_used_by[size_t(i)]) {
            if (ranges.of[tensor].size > 0) {
                free_list.release(ranges.of[tensor].offset, ranges.of[tensor].size);
            }
        }
    }
    n_bytes_ = free_list.peak();
}

void MemoryPlan::assign_tensors(ggml_backend_buffer_t buffer) const {
    char * base = static_cast<char *>(ggml_backend_buffer_get_base(buffer));
    for (const Allocation & allocation : allocations_) {
        ggml_backend_tensor_alloc(buffer, allocation.tensor, base + allocation.offset);
    }
}

void MemoryPlan::assign_views() const {
    for (ggml_tensor * view : views_) {
        ggml_backend_view_init(view);
    }
}

} // namespace penelope
