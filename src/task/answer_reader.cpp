#include "task/answer_reader.h"

#include "base/error.h"
#include "base/format.h"
#include "base/trim.h"
#include "task/question.h"
#include "text/normalize.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

namespace penelope {

namespace {

constexpr const char * match_names[] = { "exact", "number", "choice" }; // in the order of Match

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Letters, digits and everything outside ASCII.
bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || static_cast<unsigned char>(c) >= 0x80;
}

// What may stand around a choice without being part of it: "(B).", "**B**", but "C#" and "C++" are themselves.
bool is_delimiter(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("()[]{}\"'`*_.,:;!?").find(c) != std::string_view::npos;
}

// Folded, without what stands around it.
std::string canonical_choice(const std::string & text) {
    const std::string folded = fold_case(text);
    const auto        first  = std::find_if_not(folded.begin(), folded.end(), is_delimiter);
    const auto        last   = std::find_if_not(folded.rbegin(), folded.rend(), is_delimiter).base();
    return first < last ? std::string(first, last) : trim(folded); // "?" is an answer too
}

// Digits from text[at], thousands separated by commas where three digits follow each.
std::string read_integer(const std::string & text, size_t & at) {
    std::string digits;
    while (at < text.size()) {
        const bool group = text[at] == ',' && !digits.empty() && at + 3 < text.size() && is_digit(text[at + 1]) &&
                           is_digit(text[at + 2]) && is_digit(text[at + 3]) &&
                           (at + 4 >= text.size() || !is_digit(text[at + 4]));
        if (!group && !is_digit(text[at])) {
            break;
        }
        if (!group) {
            digits += text[at];
        }
        at++;
    }
    return digits;
}

} // namespace

Match parse_match(const std::string & name) {
    for (size_t i = 0; i < std::size(match_names); i++) {
        if (name == match_names[i] || (name.empty() && i == 0)) {
            return Match(i);
        }
    }
    throw Error(ErrorKind::usage, "--match: unknown value " + in_quotes(name), "expected exact, number or choice");
}

std::string after_prefix(const std::string & text, const std::string & prefix) {
    if (prefix.empty()) {
        return text;
    }
    size_t place = std::string::npos;
    for (size_t at = text.rfind(prefix); at != std::string::npos; at = at == 0 ? at : text.rfind(prefix, at - 1)) {
        place = place == std::string::npos ? at : place;
        if (at == 0 || text[at - 1] == '\n') {
            place = at;
            break;
        }
    }
    return place == std::string::npos ? text : text.substr(place + prefix.size());
}

std::string canonical_number(const std::string & text) {
    std::string       plain;
    const std::string minus = "\xe2\x88\x92"; // U+2212
    for (size_t i = 0; i < text.size();) {
        const bool is_minus = text.compare(i, minus.size(), minus) == 0;
        plain += is_minus ? '-' : text[i];
        i += is_minus ? minus.size() : 1;
    }
    size_t at = 0;
    while (at < plain.size() &&
           !(is_digit(plain[at]) || (plain[at] == '.' && at + 1 < plain.size() && is_digit(plain[at + 1])))) {
        at++;
    }
    if (at == plain.size()) {
        return "";
    }
    // A sign belongs to the number unless it joins it to a word: "-3", "= -3", but not "item-3".
    size_t sign = at;
    while (sign > 0 && plain[sign - 1] == ' ') {
        sign--;
    }
    const bool  negative = sign > 0 && plain[sign - 1] == '-' && (sign < 2 || !is_word(plain[sign - 2]));
    std::string whole    = read_integer(plain, at);
    std::string fraction;
    if (at + 1 < plain.size() && plain[at] == '.' && is_digit(plain[at + 1])) {
        for (at++; at < plain.size() && is_digit(plain[at]); at++) {
            fraction += plain[at];
        }
    }
    int exponent = 0;
    if (at < plain.size() && (plain[at] == 'e' || plain[at] == 'E')) {
        size_t     digit = at + 1;
        const bool below = digit < plain.size() && plain[digit] == '-';
        digit += digit < plain.size() && (plain[digit] == '-' || plain[digit] == '+') ? 1 : 0;
        for (; digit < plain.size() && is_digit(plain[digit]) && exponent < 1000; digit++) {
            exponent = 10 * exponent + (plain[digit] - '0');
        }
        exponent = below ? -exponent : exponent;
    }
    // Moves the point by the exponent, then drops zeros that mean nothing.
    for (; exponent > 0; exponent--) {
        whole += fraction.empty() ? '0' : fraction.front();
        fraction.erase(0, 1);
    }
    for (; exponent < 0; exponent++) {
        fraction.insert(fraction.begin(), whole.empty() ? '0' : whole.back());
        whole = whole.empty() ? whole : whole.substr(0, whole.size() - 1);
    }
    whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
    fraction.erase(fraction.find_last_not_of('0') + 1);
    const bool zero = whole.empty() && fraction.empty();
    return (negative && !zero ? "-" : "") + (whole.empty() ? "0" : whole) + (fraction.empty() ? "" : "." + fraction);
}

AnswerReader::AnswerReader(const Task & task, std::string answer_prefix, Match match,
                           const std::vector<Example> & examples)
    : task_(&task), prefix_(trim_end(std::move(answer_prefix))), match_(match) {
    if (task_ == &generic_task() && match_ == Match::choice) {
        std::set<std::string> known;
        for (const Example & example : examples) {
            known.insert(canonical_choice(example.answer));
        }
        choices_.assign(known.begin(), known.end());
        std::stable_sort(choices_.begin(), choices_.end(),
                         [](const std::string & a, const std::string & b) { return a.size() > b.size(); });
    }
}

std::string AnswerReader::canonicalize(const std::string & answer) const {
    if (task_ != &generic_task()) {
        return task_->extract(answer);
    }
    if (match_ == Match::number) {
        return canonical_number(answer);
    }
    if (match_ == Match::exact) {
        return trim(normalize_unicode(answer));
    }
    const std::string form = canonical_choice(answer);
    for (const std::string & choice : choices_) {
        const bool ends_there =
            form.size() == choice.size() || (form.size() > choice.size() && is_delimiter(form[choice.size()]));
        if (ends_there && form.compare(0, choice.size(), choice) == 0) {
            return choice;
        }
    }
    return "";
}

std::string AnswerReader::read(const std::string & text) const {
    return canonicalize(after_prefix(text, prefix_));
}

std::string AnswerReader::gold(const Example & example) const {
    return canonicalize(example.answer);
}

bool AnswerReader::is_correct(const std::string & text, const Example & example) const {
    const std::string answer = read(text);
    return !answer.empty() && answer == gold(example);
}

} // namespace penelope
