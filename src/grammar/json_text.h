// The parts JSON is written with, as rules of a grammar.
#pragma once

#include "base/json.h"
#include "grammar/grammar.h"

namespace penelope {

class JsonText {
  public:
    explicit JsonText(GrammarBuilder & builder) : builder_(builder) {}

    Symbol value();  // of any kind, nested at will
    Symbol object(); // of any content
    Symbol array();
    Symbol string();
    Symbol number();
    Symbol number_from_0();

    // Whole numbers between the bounds, without bound up to 16 digits.
    Symbol integer(std::optional<int64_t> least, std::optional<int64_t> most);
    Symbol string_of(Symbol character, size_t least, std::optional<size_t> most);

    Symbol character();                          // one of any string, escaped where it has to be
    Symbol character(const CodeRanges & ranges); // one of these

    Sequence literal(const OrderedJson & value);
    Sequence key(const std::string & name); // "name":
    Symbol   comma();

    // { "k": v, ... } and [ v, ... ]
    Symbol map_of(Symbol value);
    Symbol list_of(Symbol item, size_t least, std::optional<size_t> most);

  private:
    // Makes a rule once; it may use itself.
    template <typename Fill> Symbol once(const char * name, const Fill & fill);

    std::vector<Sequence> natural(uint64_t least, std::optional<uint64_t> most);

    GrammarBuilder &              builder_;
    std::map<std::string, Symbol> made_;
};

} // namespace penelope
