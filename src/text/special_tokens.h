// Finds tokens that stand in the text as they are (control tokens, added words) before anything else is done to it.
// Longer tokens win over shorter ones, then earlier ones over later ones; matches never overlap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace penelope {

class SpecialTokens {
  public:
    struct Match {
        size_t  begin;
        size_t  size;
        int32_t id;
    };

    // Token texts are copied and not empty.
    void add(std::string_view text, int32_t id);

    bool empty() const { return token_of_.size() == 1; }

    // In the order of the text.
    std::vector<Match> find(std::string_view text) const;

  private:
    // At that place and of at most that size; size 0 if there is none.
    Match longest_at(std::string_view text, size_t begin, size_t most) const;

    // A tree of bytes; node 0 is the root.
    std::unordered_map<uint64_t, uint32_t> edges_;          // node << 8 | byte -> node
    std::vector<int32_t>                   token_of_{ -1 }; // of a node, -1 for none
    std::array<bool, 256>                  starts_{};       // whether a token starts with this byte
};

} // namespace penelope
