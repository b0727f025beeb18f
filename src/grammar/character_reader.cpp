#include "grammar/character_reader.h"

#include "base/error.h"
#include "text/utf8.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t kMaxRepeat = 10000;

std::string valid_text(std::string_view text) {
    std::string out;
    append_valid_utf8(out, text);
    return out;
}

size_t read_number(CharacterReader & in) {
    size_t value = 0, n_digits = 0;
    for (; !in.at_end() && in.peek() >= '0' && in.peek() <= '9'; in.skip(), n_digits++) {
        value = value * 10 + size_t(in.peek() - '0');
        if (value > kMaxRepeat) {
            in.fail("repeat count above " + std::to_string(kMaxRepeat));
        }
    }
    if (n_digits == 0) {
        in.fail("expected a number");
    }
    return value;
}

} // namespace

CharacterReader::CharacterReader(std::string_view text, std::string what)
    : text_(valid_text(text)), what_(std::move(what)) {}

void CharacterReader::fail(const std::string & why) const {
    const std::string_view before(text_.data(), at_);
    const size_t           line  = size_t(std::count(before.begin(), before.end(), '\n')) + 1;
    const size_t           start = before.rfind('\n') + 1; // first line: npos + 1 = 0
    throw Error(ErrorKind::format,
                what_ + ", line " + std::to_string(line) + ", column " + std::to_string(at_ - start + 1) + ": " + why);
}

bool CharacterReader::take(std::string_view word) {
    if (text_.compare(at_, word.size(), word) != 0) {
        return false;
    }
    at_ += word.size();
    return true;
}

uint32_t CharacterReader::character() {
    if (at_end()) {
        fail("unexpected end");
    }
    const size_t   n     = next_utf8_unit(text_, at_).size;
    const uint32_t value = code_point(std::string_view(text_).substr(at_, n));
    at_ += n;
    return value;
}

uint32_t CharacterReader::hexadecimal(int n_digits) {
    uint32_t value = 0;
    for (int i = 0; i < n_digits; i++) {
        const char c     = at_end() ? '\0' : peek();
        const int  digit = c >= '0' && c <= '9'   ? c - '0'
                           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                  : -1;
        if (digit < 0) {
            fail("expected " + std::to_string(n_digits) + " hexadecimal digits");
        }
        value = value << 4 | uint32_t(digit);
        skip();
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
        fail("not a Unicode character");
    }
    return value;
}

uint32_t CharacterReader::escaped(std::string_view also_escape) {
    const uint32_t c = character();
    if (c != '\\') {
        return c;
    }
    const uint32_t e = character();
    switch (e) {
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        case 'x': return hexadecimal(2);
        case 'u': return hexadecimal(4);
        case 'U': return hexadecimal(8);
        default: break;
    }
    if (e == '\\' || (e < 0x80 && also_escape.find(char(e)) != std::string_view::npos)) {
        return e;
    }
    fail("unknown escape \\" + utf8_text(e));
}

std::optional<CodeRanges> read_class_escape(CharacterReader & in) {
    const CodeRanges digits = { { '0', '9' } }, words = { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' }, { '_', '_' } },
                     spaces = { { '\t', '\r' }, { ' ', ' ' } };
    for (const auto & [name, ranges] :
         { std::pair("\\d", digits), std::pair("\\w", words), std::pair("\\s", spaces) }) {
        if (in.take(name)) {
            return ranges;
        }
    }
    for (const auto & [name, ranges] :
         { std::pair("\\D", digits), std::pair("\\W", words), std::pair("\\S", spaces) }) {
        if (in.take(name)) {
            return complement(ranges);
        }
    }
    return std::nullopt;
}

CodeRanges read_class(CharacterReader & in, std::string_view also_escape) {
    const bool others = in.take("^");
    CodeRanges ranges;
    while (!in.take("]")) {
        if (const auto named = read_class_escape(in)) {
            ranges.insert(ranges.end(), named->begin(), named->end());
            continue;
        }
        const uint32_t first = in.escaped(also_escape);
        uint32_t       last  = first;
        if (in.take("-")) {
            if (in.take("]")) { // a trailing dash is a literal
                ranges.emplace_back(first, first);
                ranges.emplace_back('-', '-');
                break;
            }
            last = in.escaped(also_escape);
        }
        if (last < first) {
            in.fail("invalid range: its end is before its start");
        }
        ranges.emplace_back(first, last);
    }
    ranges = others ? complement(ranges) : ranges;
    if (ranges.empty()) {
        in.fail("empty character class");
    }
    return ranges;
}

std::optional<Count> read_count(CharacterReader & in) {
    if (in.take("*")) {
        return Count{ 0, std::nullopt };
    }
    if (in.take("+")) {
        return Count{ 1, std::nullopt };
    }
    if (in.take("?")) {
        return Count{ 0, 1 };
    }
    if (!in.take("{")) {
        return std::nullopt;
    }
    const size_t          least = read_number(in);
    std::optional<size_t> most  = least;
    if (in.take(",")) {
        most.reset();
        if (!in.at_end() && in.peek() != '}') {
            most = read_number(in);
        }
    }
    if (!in.take("}")) {
        in.fail("expected }");
    }
    if (most && *most < least) {
        in.fail("invalid count: maximum below minimum");
    }
    return Count{ least, most };
}

} // namespace penelope
