#include "text/token_trie.h"

#include "text/tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace penelope {

TokenTrie::TokenTrie(const Tokenizer & tokenizer) {
    std::vector<std::pair<std::string, int32_t>> tokens;
    for (int32_t id = 0; id < tokenizer.n_vocab(); id++) {
        std::string bytes = tokenizer.token_bytes(id);
        if (!bytes.empty() && !is_special(tokenizer.token_type(id)) && !tokenizer.is_end_of_generation(id)) {
            tokens.emplace_back(std::move(bytes), id);
        }
    }
    std::sort(tokens.begin(), tokens.end());

    std::vector<uint32_t> path; // the nodes of the token before
    const auto            close = [&](size_t depth) {
        for (; path.size() > depth; path.pop_back()) {
            nodes_[path.back()].end = uint32_t(nodes_.size());
        }
    };
    const std::string * before = nullptr;
    for (const auto & [bytes, id] : tokens) {
        size_t shared = 0;
        while (before && shared < std::min(bytes.size(), before->size()) && bytes[shared] == (*before)[shared]) {
            shared++;
        }
        close(shared);
        for (size_t i = shared; i < bytes.size(); i++) {
            path.push_back(uint32_t(nodes_.size()));
            nodes_.push_back({ 0, uint32_t(i + 1), uint32_t(ids_.size()), static_cast<unsigned char>(bytes[i]) });
        }
        ids_.push_back(id);
        max_depth_ = std::max(max_depth_, bytes.size());
        before     = &bytes;
    }
    close(0);
    nodes_.push_back({ 0, 0, uint32_t(ids_.size()), 0 });
    nodes_.shrink_to_fit();
}

} // namespace penelope
