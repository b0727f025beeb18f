// src/text/regex.h for browsers, where PCRE2 is not: no pattern can be compiled. Vocabularies of single bytes need
// none.
#include "text/regex.h"

#include "base/error.h"

struct pcre2_real_code_8 {};
struct pcre2_real_match_context_8 {};
struct pcre2_real_match_data_8 {};

namespace penelope {

namespace {

[[noreturn]] void refuse() {
    throw Error(ErrorKind::unsupported, "regular expressions: this build has none",
                "vocabularies with merges need a build with PCRE2");
}

} // namespace

Regex::Regex() : code_(nullptr, nullptr), limits_(nullptr, nullptr) {}

Regex::Regex(std::string_view /*pattern*/) : Regex() {
    refuse();
}

Regex Regex::untrusted(std::string_view /*pattern*/) {
    refuse();
}

Regex::Search::Search(const Regex & regex) : regex_(&regex), match_(nullptr, nullptr), ranges_(nullptr) {
    refuse();
}

bool Regex::Search::find(std::string_view /*text*/, size_t /*pos*/) {
    refuse();
}

size_t Regex::Search::begin(int /*group*/) const {
    refuse();
}

size_t Regex::Search::end(int /*group*/) const {
    refuse();
}

} // namespace penelope
