#include "grammar/json_text.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t kMaxDigits = 16; // of unbounded numbers: models might never stop

const CodeRanges kDigits = { { '0', '9' } };
const CodeRanges kPlain  = { { ' ', '!' },
                             { '#', '[' },
                             { ']', 0x10FFFF } }; // all but control characters, " and backslash

// Characters with a short escape.
constexpr std::pair<uint32_t, const char *> kEscapes[] = {
    { '"', "\\\"" }, { '\\', "\\\\" }, { '\b', "\\b" }, { '\f', "\\f" },
    { '\n', "\\n" }, { '\r', "\\r" },  { '\t', "\\t" },
};

bool contains(const CodeRanges & ranges, uint32_t code) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const auto & range) { return range.first <= code && code <= range.second; });
}

CodeRanges common(const CodeRanges & a, const CodeRanges & b) {
    CodeRanges both;
    for (const auto & [a_first, a_last] : a) {
        for (const auto & [b_first, b_last] : b) {
            if (std::max(a_first, b_first) <= std::min(a_last, b_last)) {
                both.emplace_back(std::max(a_first, b_first), std::min(a_last, b_last));
            }
        }
    }
    return both;
}

Sequence operator+(Sequence a, const Sequence & b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

} // namespace

template <typename Fill> Symbol JsonText::once(const char * name, const Fill & fill) {
    const auto [place, is_new] = made_.try_emplace(name, 0);
    if (is_new) {
        const Symbol rule = place->second = builder_.rule();
        for (Sequence & alternative : fill()) {
            builder_.add(rule, std::move(alternative));
        }
        return rule;
    }
    return place->second;
}

Sequence JsonText::literal(const OrderedJson & value) {
    return builder_.literal(dump_json(value));
}

Sequence JsonText::key(const std::string & name) {
    return literal(name) + builder_.literal(":") + Sequence{ builder_.optional(builder_.literal(" ")[0]) };
}

Symbol JsonText::comma() {
    return once("comma", [&] {
        return std::vector<Sequence>{ builder_.literal(",") + Sequence{ builder_.optional(builder_.literal(" ")[0]) } };
    });
}

Symbol JsonText::value() {
    return once("value", [&] {
        return std::vector<Sequence>{ { object() },
                                      { array() },
                                      { string() },
                                      { number() },
                                      builder_.literal("true"),
                                      builder_.literal("false"),
                                      builder_.literal("null") };
    });
}

Symbol JsonText::object() {
    return once("object", [&] { return std::vector<Sequence>{ { map_of(value()) } }; });
}

Symbol JsonText::array() {
    return once("array", [&] { return std::vector<Sequence>{ { list_of(value(), 0, std::nullopt) } }; });
}

Symbol JsonText::string() {
    return once("string", [&] { return std::vector<Sequence>{ { string_of(character(), 0, std::nullopt) } }; });
}

Symbol JsonText::string_of(Symbol character, size_t least, std::optional<size_t> most) {
    const Sequence quote = builder_.literal("\"");
    return builder_.any_of({ quote + Sequence{ builder_.repeat(character, least, most) } + quote });
}

Symbol JsonText::character() {
    return once("character", [&] {
        const Symbol hex = builder_.character({ { '0', '9' }, { 'a', 'f' }, { 'A', 'F' } });
        const Symbol not_d =
            builder_.character({ { '0', '9' }, { 'a', 'c' }, { 'e', 'f' }, { 'A', 'C' }, { 'E', 'F' } });
        std::vector<Sequence> all{ { builder_.character(kPlain) }, builder_.literal("\\/") };
        for (const auto & [code, escape] : kEscapes) {
            all.push_back(builder_.literal(escape));
        }
        // A lone surrogate is not a character.
        all.push_back(builder_.literal("\\u") + Sequence{ not_d, hex, hex, hex });
        all.push_back(builder_.literal("\\u") + Sequence{ builder_.character({ { 'd', 'd' }, { 'D', 'D' } }),
                                                          builder_.character({ { '0', '7' } }), hex, hex });
        return all;
    });
}

Symbol JsonText::character(const CodeRanges & ranges) {
    std::vector<Sequence> all;
    const CodeRanges      plain = common(ranges, kPlain);
    if (!plain.empty()) {
        all.push_back({ builder_.character(plain) });
    }
    for (const auto & [code, escape] : kEscapes) {
        if (contains(ranges, code)) {
            all.push_back(builder_.literal(escape));
        }
    }
    return builder_.any_of(all);
}

Symbol JsonText::map_of(Symbol value) {
    const Sequence pair = {
        string(), builder_.any_of({ builder_.literal(":") + Sequence{ builder_.optional(builder_.literal(" ")[0]) } }),
        value
    };
    const Symbol more = builder_.repeat(builder_.any_of({ Sequence{ comma() } + pair }), 0, std::nullopt);
    return builder_.any_of(
        { builder_.literal("{}"), builder_.literal("{") + pair + Sequence{ more } + builder_.literal("}") });
}

Symbol JsonText::list_of(Symbol item, size_t least, std::optional<size_t> most) {
    std::vector<Sequence> all;
    if (least == 0) {
        all.push_back(builder_.literal("[]"));
    }
    if (!most || *most > 0) {
        const Symbol another = builder_.any_of({ { comma(), item } });
        const Symbol more =
            builder_.repeat(another, least > 0 ? least - 1 : 0, most ? std::optional(*most - 1) : std::nullopt);
        all.push_back(builder_.literal("[") + Sequence{ item, more } + builder_.literal("]"));
    }
    return builder_.any_of(all);
}

Symbol JsonText::number_from_0() {
    return once("number from 0", [&] {
        const Symbol digit = builder_.character(kDigits);
        const Symbol fraction =
            builder_.any_of({ builder_.literal(".") + Sequence{ builder_.repeat(digit, 1, kMaxDigits) } });
        const Symbol sign     = builder_.character({ { '+', '+' }, { '-', '-' } });
        const Symbol e        = builder_.character({ { 'e', 'e' }, { 'E', 'E' } });
        const Symbol exponent = builder_.any_of({ { e, builder_.optional(sign), builder_.repeat(digit, 1, 2) } });
        return std::vector<Sequence>{ { builder_.any_of(natural(0, std::nullopt)), builder_.optional(fraction),
                                        builder_.optional(exponent) } };
    });
}

Symbol JsonText::number() {
    return once("number", [&] {
        return std::vector<Sequence>{ { builder_.optional(builder_.literal("-")[0]), number_from_0() } };
    });
}

// Digits without a leading zero.
std::vector<Sequence> JsonText::natural(uint64_t least, std::optional<uint64_t> most) {
    std::vector<Sequence> all;
    const Symbol          digit = builder_.character(kDigits);
    std::string           lo    = std::to_string(least);
    if (!most) {
        const size_t   n     = lo.size();
        const Sequence first = { builder_.character({ { '1', '9' } }) };
        const size_t   more  = std::max(n, kMaxDigits - 1);
        all                  = builder_.between(lo, std::string(n, '9'), '0', '9');
        all.push_back(first + Sequence{ builder_.repeat(digit, n, more) });
        return all;
    }
    for (const std::string hi = std::to_string(*most); lo.size() <= hi.size();) {
        const std::string           end  = lo.size() < hi.size() ? std::string(lo.size(), '9') : hi;
        const std::vector<Sequence> some = builder_.between(lo, end, '0', '9');
        all.insert(all.end(), some.begin(), some.end());
        lo = "1" + std::string(lo.size(), '0');
    }
    return all;
}

Symbol JsonText::integer(std::optional<int64_t> least, std::optional<int64_t> most) {
    std::vector<Sequence> all;
    const auto            size_of = [](int64_t value) { return value < 0 ? ~uint64_t(value) + 1 : uint64_t(value); };
    if (!most || *most >= 0) {
        const uint64_t from = least && *least > 0 ? size_of(*least) : 0;
        all                 = natural(from, most ? std::optional(size_of(*most)) : std::nullopt);
    }
    if (!least || *least < 0) {
        const uint64_t from = most && *most < 0 ? size_of(*most) : 1;
        for (Sequence & digits : natural(from, least ? std::optional(size_of(*least)) : std::nullopt)) {
            all.push_back(builder_.literal("-") + digits);
        }
    }
    return builder_.any_of(all);
}

} // namespace penelope
