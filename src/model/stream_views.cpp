#include "model/stream_views.h"

#include <algorithm>

namespace penelope {

std::vector<StreamView> find_stream_views(const Graph & g, const SequenceCache & cache) {
    std::vector<StreamView> views;
    if (cache.n_streams() == 1) {
        return views;
    }
    g.headers().for_each([&](Node node) {
        const Node root = node->view_src;
        if (!root || !cache.owns(root)) {
            return;
        }
        // Skip tensors that span all streams: the targets of set_rows and batched attention.
        const size_t stream_bytes = root->nb[1] * size_t(root->ne[1] / cache.n_streams());
        if (ggml_nbytes(node) <= stream_bytes) {
            views.push_back({ node, int(node->view_offs / stream_bytes), stream_bytes });
        }
    });
    return views;
}

void retarget_views(std::vector<StreamView> & views, const std::vector<int> & from, const std::vector<int> & to) {
    if (from == to) {
        return;
    }
    GGML_ASSERT(from.size() == to.size());
    for (StreamView & one : views) {
        const auto      place = std::find(from.begin(), from.end(), one.stream);
        const int       next  = to[size_t(place - from.begin())];
        const ptrdiff_t by    = ptrdiff_t(next - one.stream) * ptrdiff_t(one.stream_bytes);
        one.view->view_offs   = size_t(ptrdiff_t(one.view->view_offs) + by);
        if (one.view->data) {
            one.view->data = static_cast<char *>(one.view->data) + by;
        }
        one.stream = next;
    }
}

} // namespace penelope
