#include "task/extract.h"

#include "task/question.h"

#include <algorithm>
#include <sstream>

namespace penelope {

namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}

bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

// Bytes outside ASCII belong to letters of other scripts, so they continue a word.
bool is_word(char c) {
    return is_digit(c) || is_lower(c) || is_upper(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

} // namespace

std::string answer_part(const std::string & text) {
    const std::string phrase = "The answer is:";
    std::string       part   = text;
    if (const size_t mark = text.rfind('#'); mark != std::string::npos) {
        part = text.substr(mark + 1);
    } else if (const size_t place = text.rfind(phrase); place != std::string::npos) {
        part = text.substr(place + phrase.size());
    }
    part = trim(part.substr(0, part.find('\n')));
    part.erase(std::remove(part.begin(), part.end(), ','), part.end());
    return part;
}

std::string extract_digit(const std::string & text) {
    const std::string part  = answer_part(text);
    const auto        first = std::find_if(part.begin(), part.end(), is_digit);
    const auto        last  = std::find_if_not(first, part.end(), is_digit);
    return last - first == 1 ? std::string(first, last) : "";
}

std::string extract_truth(const std::string & text) {
    const std::string part  = answer_part(text);
    auto              begin = part.begin();
    while (begin != part.end()) {
        const auto        first = std::find_if(begin, part.end(), is_word);
        const auto        last  = std::find_if_not(first, part.end(), is_word);
        const std::string word(first, last);
        if (word == "True" || word == "False") {
            return word;
        }
        begin = last;
    }
    return "";
}

std::string extract_membership(const std::string & text) {
    std::string part = answer_part(text);
    if (!part.empty() && part.back() == '.') {
        part.pop_back();
    }
    std::istringstream words(part);
    std::string        name, is, article, concept_name, rest;
    words >> name >> is >> article >> concept_name;
    const bool is_name = !name.empty() && is_upper(name[0]) && std::all_of(name.begin() + 1, name.end(), is_lower);
    const bool is_kind = !concept_name.empty() && std::all_of(concept_name.begin(), concept_name.end(), is_lower);
    if (!is_name || is != "is" || article != "a" || !is_kind || words >> rest) {
        return "";
    }
    return name + " is a " + concept_name + ".";
}

} // namespace penelope
