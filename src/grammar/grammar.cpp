#include "grammar/grammar.h"

#include "base/error.h"
#include "text/utf8.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t   kMaxSymbols    = 200000; // counts such as {0,1000} are expanded
constexpr uint32_t kLastCodePoint = 0x10FFFF;

ByteSet byte_range(unsigned char first, unsigned char last) {
    ByteSet set;
    for (int byte = first; byte <= last; byte++) {
        set.set(size_t(byte));
    }
    return set;
}

using Edges = std::vector<std::vector<Symbol>>; // rule -> rules

Edges rules_used(const Grammar & grammar) {
    Edges uses(grammar.rules.size());
    for (size_t i = 0; i < grammar.rules.size(); i++) {
        for (const Sequence & alternative : grammar.rules[i]) {
            std::copy_if(alternative.begin(), alternative.end(), std::back_inserter(uses[i]),
                         [](Symbol s) { return s >= 0; });
        }
    }
    return uses;
}

// The least fixed point of `property`: a rule holds if property(alternative, holds) is true for one of its
// alternatives. A rule is checked again only when a rule it uses changes.
template <typename Property> std::vector<bool> fixed_point(const Grammar & grammar, const Property & property) {
    Edges               users(grammar.rules.size());
    const Edges         uses = rules_used(grammar);
    std::vector<Symbol> open;
    for (size_t i = 0; i < uses.size(); i++) {
        open.push_back(Symbol(i));
        for (const Symbol used : uses[i]) {
            users[size_t(used)].push_back(Symbol(i));
        }
    }
    std::vector<bool> holds(grammar.rules.size());
    while (!open.empty()) {
        const auto rule = size_t(open.back());
        open.pop_back();
        const std::vector<Sequence> & all = grammar.rules[rule];
        if (!holds[rule] &&
            std::any_of(all.begin(), all.end(), [&](const Sequence & s) { return property(s, holds); })) {
            holds[rule] = true;
            open.insert(open.end(), users[rule].begin(), users[rule].end());
        }
    }
    return holds;
}

// Rules that terminate: some alternative has only symbols that terminate.
std::vector<bool> ending_rules(const Grammar & grammar) {
    return fixed_point(grammar, [](const Sequence & alternative, const std::vector<bool> & ends) {
        return std::all_of(alternative.begin(), alternative.end(), [&](Symbol s) { return s < 0 || ends[size_t(s)]; });
    });
}

std::vector<bool> empty_rules(const Grammar & grammar) {
    return fixed_point(grammar, [](const Sequence & alternative, const std::vector<bool> & empty) {
        return std::all_of(alternative.begin(), alternative.end(),
                           [&](Symbol s) { return s >= 0 && empty[size_t(s)]; });
    });
}

std::vector<bool> reached_from(const Edges & edges, Symbol start) {
    std::vector<bool>   seen(edges.size());
    std::vector<Symbol> open{ start };
    seen[size_t(start)] = true;
    while (!open.empty()) {
        const Symbol rule = open.back();
        open.pop_back();
        for (const Symbol next : edges[size_t(rule)]) {
            if (!seen[size_t(next)]) {
                seen[size_t(next)] = true;
                open.push_back(next);
            }
        }
    }
    return seen;
}

// Left recursion that is not a tail call would push frames forever. With a tail call (a ::= a | "x") the stack does not
// grow and the automaton finds the state already visited.
void check_left_recursion(const Grammar & grammar) {
    const std::vector<bool>                empty = empty_rules(grammar);
    Edges                                  starts(grammar.rules.size()); // rules that a rule may start with
    std::vector<std::pair<size_t, Symbol>> piling;                       // those followed by further symbols
    for (size_t i = 0; i < grammar.rules.size(); i++) {
        for (const Sequence & alternative : grammar.rules[i]) {
            for (size_t j = 0; j < alternative.size() && alternative[j] >= 0; j++) {
                starts[i].push_back(alternative[j]);
                if (j + 1 < alternative.size()) {
                    piling.emplace_back(i, alternative[j]);
                }
                if (!empty[size_t(alternative[j])]) {
                    break;
                }
            }
        }
    }
    std::map<Symbol, std::vector<size_t>> users; // grouped by start, so that each is searched once
    for (const auto & [user, start] : piling) {
        users[start].push_back(user);
    }
    for (const auto & [start, from] : users) {
        const std::vector<bool> reached = reached_from(starts, start);
        if (std::any_of(from.begin(), from.end(), [&](size_t user) { return reached[user]; })) {
            throw Error(ErrorKind::unsupported, "grammar: left recursion is not supported",
                        "write it with repetition: not a ::= a \"x\" | \"y\" but a ::= \"y\" \"x\"*");
        }
    }
}

} // namespace

CodeRanges complement(CodeRanges ranges) {
    std::sort(ranges.begin(), ranges.end());
    CodeRanges others;
    uint32_t   next = 0; // first code point not covered yet
    for (const auto & [first, last] : ranges) {
        if (first > next) {
            others.emplace_back(next, first - 1);
        }
        next = std::max(next, last + 1);
    }
    if (next <= kLastCodePoint) {
        others.emplace_back(next, kLastCodePoint);
    }
    return others;
}

void GrammarBuilder::count(size_t n_symbols) {
    n_symbols_ += n_symbols;
    if (n_symbols_ > kMaxSymbols) {
        throw Error(ErrorKind::unsupported, "grammar: too large, more than " + std::to_string(kMaxSymbols) + " symbols",
                    "counts such as {0,1000} are expanded; use smaller ones or none");
    }
}

Symbol GrammarBuilder::bytes(const ByteSet & set) {
    const auto [place, is_new] = known_sets_.emplace(set.to_string(), ~Symbol(grammar_.sets.size()));
    if (is_new) {
        grammar_.sets.push_back(set);
    }
    return place->second;
}

Sequence GrammarBuilder::literal(std::string_view text) {
    Sequence sequence;
    for (const char c : text) {
        ByteSet set;
        set.set(static_cast<unsigned char>(c));
        sequence.push_back(bytes(set));
    }
    return sequence;
}

Symbol GrammarBuilder::rule() {
    count(1);
    grammar_.rules.emplace_back();
    return Symbol(grammar_.rules.size() - 1);
}

void GrammarBuilder::add(Symbol rule, Sequence alternative) {
    count(alternative.size() + 1);
    grammar_.rules[size_t(rule)].push_back(std::move(alternative));
}

Symbol GrammarBuilder::any_of(const std::vector<Sequence> & alternatives) {
    const Symbol made = rule();
    for (const Sequence & alternative : alternatives) {
        add(made, alternative);
    }
    return made;
}

Symbol GrammarBuilder::repeat(Symbol what, size_t least, std::optional<size_t> most) {
    // Built from the end: empty, or one more followed by the rest. Without a maximum the last rule refers to itself.
    Symbol tail = rule();
    add(tail, {});
    if (!most) {
        add(tail, { what, tail });
    }
    for (size_t i = most.value_or(least); i > 0; i--) {
        const Symbol longer = rule();
        if (i > least) {
            add(longer, {});
        }
        add(longer, { what, tail });
        tail = longer;
    }
    return tail;
}

Symbol GrammarBuilder::embed(const Grammar & grammar) {
    const Symbol first = Symbol(grammar_.rules.size());
    for (size_t i = 0; i < grammar.rules.size(); i++) {
        rule();
    }
    for (size_t i = 0; i < grammar.rules.size(); i++) {
        for (Sequence alternative : grammar.rules[i]) {
            for (Symbol & symbol : alternative) {
                symbol = symbol >= 0 ? first + symbol : bytes(grammar.sets[size_t(~symbol)]);
            }
            add(first + Symbol(i), std::move(alternative));
        }
    }
    return first + grammar.root;
}

std::vector<Sequence> GrammarBuilder::between(std::string_view lo, std::string_view hi, unsigned char least,
                                              unsigned char most) {
    auto       first = static_cast<unsigned char>(lo[0]), last = static_cast<unsigned char>(hi[0]);
    const auto all = [](std::string_view text, unsigned char byte) {
        return std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<unsigned char>(c) == byte; });
    };
    const std::string_view lo_rest = lo.substr(1), hi_rest = hi.substr(1);
    std::vector<Sequence>  out;
    const auto             add_all = [&](unsigned char byte, std::string_view from, std::string_view to) {
        for (Sequence & rest : between(from, to, least, most)) {
            rest.insert(rest.begin(), bytes(byte_range(byte, byte)));
            out.push_back(std::move(rest));
        }
    };
    if (first == last && !lo_rest.empty()) {
        add_all(first, lo_rest, hi_rest);
        return out;
    }
    if (!all(lo_rest, least)) {
        add_all(first++, lo_rest, std::string(lo_rest.size(), char(most)));
    }
    std::vector<Sequence> end;
    if (!all(hi_rest, most)) {
        out.swap(end);
        add_all(last--, std::string(hi_rest.size(), char(least)), hi_rest);
        out.swap(end);
    }
    if (first <= last) {
        Sequence middle{ bytes(byte_range(first, last)) };
        middle.insert(middle.end(), lo_rest.size(), bytes(byte_range(least, most)));
        out.push_back(std::move(middle));
    }
    out.insert(out.end(), end.begin(), end.end());
    return out;
}

Symbol GrammarBuilder::character(const CodeRanges & ranges) {
    // Split where the UTF-8 length changes and around the surrogates.
    static constexpr std::pair<uint32_t, uint32_t> pieces[] = {
        { 0, 0x7F }, { 0x80, 0x7FF }, { 0x800, 0xD7FF }, { 0xE000, 0xFFFF }, { 0x10000, kLastCodePoint },
    };
    ByteSet               single;
    std::vector<Sequence> alternatives;
    for (const auto & [first, last] : ranges) {
        for (const auto & [begin, end] : pieces) {
            const uint32_t lo = std::max(first, begin), hi = std::min(last, end);
            if (lo > hi) {
                continue;
            }
            if (end == 0x7F) {
                single |= byte_range(static_cast<unsigned char>(lo), static_cast<unsigned char>(hi));
                continue;
            }
            const std::vector<Sequence> more = between(utf8_text(lo), utf8_text(hi), 0x80, 0xBF);
            alternatives.insert(alternatives.end(), more.begin(), more.end());
        }
    }
    if (single.any()) {
        alternatives.push_back({ bytes(single) });
    }
    return alternatives.size() == 1 && alternatives[0].size() == 1 ? alternatives[0][0] : any_of(alternatives);
}

Grammar GrammarBuilder::finish(Symbol root) {
    if (root < 0) {
        root = any_of({ { root } });
    }
    grammar_.root                = root;
    const std::vector<bool> ends = ending_rules(grammar_), used = reached_from(rules_used(grammar_), root);
    for (size_t i = 0; i < ends.size(); i++) {
        if (used[i] && !ends[i]) {
            throw Error(ErrorKind::unsupported, "grammar: a rule never terminates",
                        "add an alternative that does not use the rule itself");
        }
    }
    check_left_recursion(grammar_);
    return std::move(grammar_);
}

} // namespace penelope
