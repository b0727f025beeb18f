// Grammar rules for JSON values.
#pragma once

#include "base/json.h"
#include "grammar/grammar.h"

namespace penelope {

class JsonText {
  public:
    explicit JsonText(GrammarBuilder & builder) : builder_(builder) {}

    Symbol value();  // any JSON value
    Symbol object(); // any object
    Symbol array();
    Symbol string();
    Symbol number();
    Symbol number_from_0();

    // Integers within the bounds; an unbounded side has up to 16 digits.
    Symbol integer(std::optional<int64_t> least, std::optional<int64_t> most);
    Symbol string_of(Symbol character, size_t least, std::optional<size_t> most);

    Symbol character();                          // any character of a string, escaped if necessary
    Symbol character(const CodeRanges & ranges); // a character of these ranges

    Sequence literal(const OrderedJson & value);
    Sequence key(const std::string & name); // "name":
    Symbol   comma();

    // { "k": v, ... } and [ v, ... ]
    Symbol map_of(Symbol value);
    Symbol list_of(Symbol item, size_t least, std::optional<size_t> most);

  private:
    // Returns the rule of this name, built once; it may refer to itself.
    template <typename Fill> Symbol once(const char * name, const Fill & fill);

    std::vector<Sequence> natural(uint64_t least, std::optional<uint64_t> most);

    GrammarBuilder &              builder_;
    std::map<std::string, Symbol> made_;
};

} // namespace penelope
