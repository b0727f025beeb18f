// The tokens of a vocabulary that stand for text, as a trie over their bytes. Whoever rejects a prefix skips all tokens
// that start with it. Control tokens and those that end a generation are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace penelope {

class Tokenizer;

class TokenTrie {
  public:
    // Nodes stand in preorder: the children of a node follow it, up to `end`.
    struct Node {
        uint32_t      end;         // one past the last node below this one
        uint32_t      depth;       // bytes from the root, which is no node itself: from 1
        uint32_t      first_token; // its tokens are ids()[first_token .. first_token of the next node)
        unsigned char byte;
    };

    explicit TokenTrie(const Tokenizer & tokenizer);

    size_t                       n_nodes() const { return nodes_.size() - 1; } // the last one only ends the list of ids
    const std::vector<Node> &    nodes() const { return nodes_; }
    const std::vector<int32_t> & ids() const { return ids_; } // ascending by their bytes
    size_t                       max_depth() const { return max_depth_; }

  private:
    std::vector<Node>    nodes_;
    std::vector<int32_t> ids_;
    size_t               max_depth_ = 0;
};

} // namespace penelope
