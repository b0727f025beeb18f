// Which texts an answer may be: a context-free grammar over bytes, made by a GrammarBuilder from GBNF (gbnf.h) or a
// JSON Schema (json_schema.h), followed by an Automaton.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penelope {

using ByteSet    = std::bitset<256>;
using Symbol     = int32_t; // of a rule, from 0; below 0: ~index of a set of bytes
using Sequence   = std::vector<Symbol>;
using CodeRanges = std::vector<std::pair<uint32_t, uint32_t>>; // of code points, both ends included

struct Grammar {
    std::vector<ByteSet>               sets;
    std::vector<std::vector<Sequence>> rules; // each a list of alternatives
    Symbol                             root = 0;
};

class GrammarBuilder {
  public:
    Symbol   bytes(const ByteSet & set);
    Sequence literal(std::string_view text);

    Symbol rule(); // a new one without alternatives
    void   add(Symbol rule, Sequence alternative);
    Symbol any_of(const std::vector<Sequence> & alternatives);

    Symbol repeat(Symbol what, size_t least, std::optional<size_t> most);
    Symbol optional(Symbol what) { return repeat(what, 0, 1); }

    // One character of UTF-8 out of these; surrogates are none.
    Symbol character(const CodeRanges & ranges);

    // Texts of one length from lo to hi in the order of their bytes, where each byte after the first is from `least` to
    // `most`: numbers of so many digits, the bytes of a range of code points.
    std::vector<Sequence> between(std::string_view lo, std::string_view hi, unsigned char least, unsigned char most);

    // Throws Error(unsupported) when a rule that is used can never end, or begins with itself.
    Grammar finish(Symbol root);

  private:
    void count(size_t n_symbols); // throws Error(unsupported) when there are too many

    Grammar                       grammar_;
    std::map<std::string, Symbol> known_sets_; // by their bits
    size_t                        n_symbols_ = 0;
};

// All code points that are not in the ranges.
CodeRanges complement(CodeRanges ranges);

} // namespace penelope
