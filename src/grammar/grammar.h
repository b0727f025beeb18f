// A context-free grammar over bytes that constrains an answer. GrammarBuilder makes it from GBNF (gbnf.h) or JSON
// Schema (json_schema.h); Automaton matches it.
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
using Symbol     = int32_t; // >= 0: index of a rule; < 0: ~index of a byte set
using Sequence   = std::vector<Symbol>;
using CodeRanges = std::vector<std::pair<uint32_t, uint32_t>>; // code points, inclusive

struct Grammar {
    std::vector<ByteSet>               sets;
    std::vector<std::vector<Sequence>> rules; // list of alternatives per rule
    Symbol                             root = 0;
};

class GrammarBuilder {
  public:
    Symbol   bytes(const ByteSet & set);
    Sequence literal(std::string_view text);

    Symbol rule(); // new rule without alternatives
    void   add(Symbol rule, Sequence alternative);
    Symbol any_of(const std::vector<Sequence> & alternatives);

    Symbol repeat(Symbol what, size_t least, std::optional<size_t> most);
    Symbol optional(Symbol what) { return repeat(what, 0, 1); }

    // The rules of a finished grammar; gives its root.
    Symbol embed(const Grammar & grammar);

    // One UTF-8 character of the ranges, without surrogates.
    Symbol character(const CodeRanges & ranges);

    // Byte strings of equal length from lo to hi in lexicographic order, where every byte after the first is in [least,
    // most]. Used for numbers of a fixed number of digits and for ranges of code points.
    std::vector<Sequence> between(std::string_view lo, std::string_view hi, unsigned char least, unsigned char most);

    // Throws Error(unsupported) when a reachable rule never terminates or is left-recursive.
    Grammar finish(Symbol root);

  private:
    void count(size_t n_symbols); // throws Error(unsupported) when there are too many

    Grammar                       grammar_;
    std::map<std::string, Symbol> known_sets_; // byte set -> symbol
    size_t                        n_symbols_ = 0;
};

// All code points outside the ranges.
CodeRanges complement(CodeRanges ranges);

} // namespace penelope
