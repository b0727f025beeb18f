// Strings by number and numbers by string: the two directions of a vocabulary, in two blocks of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

class StringTable {
  public:
    explicit StringTable(size_t n_strings);

    // Appends a string, numbered from 0; all together may have 4 GiB. Gives -1, or, if `indexed` and the same string is
    // indexed already, the number of that one, which the index keeps.
    int32_t add(std::string_view text, bool indexed);

    int32_t          size() const { return static_cast<int32_t>(ends_.size()) - 1; }
    std::string_view operator[](int32_t number) const {
        return std::string_view(text_).substr(ends_[number], ends_[number + 1] - ends_[number]);
    }

    // The number of an indexed string, -1 for none.
    int32_t find(std::string_view text) const;

  private:
    struct Slot { // the place of the string as well: a lookup touches few cache lines
        uint32_t hash;
        int32_t  number;
        uint32_t begin;
        uint32_t size;
    };
    size_t slot_of(std::string_view text, uint32_t hash) const; // where it is or would go

    std::string           text_;
    std::vector<uint32_t> ends_{ 0 };
    std::vector<Slot>     slots_; // open addressing, a power of two of them
};

} // namespace penelope
