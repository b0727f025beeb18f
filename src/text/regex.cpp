#include "text/regex.h"

#include "base/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <string>

namespace penelope {

namespace {

constexpr size_t   kMaxPatternLength = 1000;
constexpr uint32_t kMaxMatchSteps    = 100000; // some milliseconds
constexpr uint32_t kMaxMatchHeap     = 16384;  // KiB

[[noreturn]] void fail(ErrorKind kind, int code, const char * hint) {
    std::array<PCRE2_UCHAR, 256> reason{};
    pcre2_get_error_message(code, reason.data(), reason.size());
    throw Error(kind, std::string("PCRE2: ") + reinterpret_cast<const char *>(reason.data()), hint);
}

pcre2_code * compile(std::string_view pattern, uint32_t options, int & error) {
    PCRE2_SIZE offset = 0;
    return pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset,
                         nullptr);
}

} // namespace

Regex::Regex() : code_(nullptr, pcre2_code_free), limits_(nullptr, pcre2_match_context_free) {}

Regex::Regex(std::string_view pattern) : Regex() {
    int error = 0;
    code_.reset(compile(pattern, PCRE2_UTF | PCRE2_UCP, error));
    if (!code_) {
        fail(ErrorKind::unsupported, error, "use a PCRE2 library built with Unicode support");
    }
    jit_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

Regex Regex::untrusted(std::string_view pattern) {
    if (pattern.size() > kMaxPatternLength) {
        throw Error(ErrorKind::format, "a regular expression of " + std::to_string(pattern.size()) +
                                           " bytes, at most " + std::to_string(kMaxPatternLength) + " are allowed");
    }
    Regex made;
    int   error = 0;
    made.code_.reset(compile(pattern, PCRE2_NEVER_UTF | PCRE2_NEVER_UCP, error));
    if (!made.code_) {
        fail(ErrorKind::format, error, "");
    }
    made.limits_.reset(pcre2_match_context_create(nullptr));
    if (!made.limits_) {
        throw Error(ErrorKind::memory, "PCRE2: no memory for limits");
    }
    pcre2_set_match_limit(made.limits_.get(), kMaxMatchSteps);
    pcre2_set_heap_limit(made.limits_.get(), kMaxMatchHeap);
    return made;
}

Regex::Search::Search(const Regex & regex)
    : regex_(&regex), match_(pcre2_match_data_create_from_pattern(regex.code_.get(), nullptr), pcre2_match_data_free) {
    if (!match_) {
        throw Error(ErrorKind::memory, "PCRE2: no memory for match data");
    }
    ranges_ = pcre2_get_ovector_pointer(match_.get());
}

bool Regex::Search::find(std::string_view text, size_t pos) {
    const auto *       subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const pcre2_code * code    = regex_->code_.get();
    int                rc      = PCRE2_ERROR_JIT_STACKLIMIT;
    if (regex_->jit_) {
        rc = pcre2_jit_match(code, subject, text.size(), pos, PCRE2_NO_UTF_CHECK, match_.get(), nullptr);
    }
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
        rc = pcre2_match(code, subject, text.size(), pos, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match_.get(),
                         regex_->limits_.get());
    }
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
        fail(regex_->limits_ ? ErrorKind::format : ErrorKind::memory, rc, "");
    }
    subject_ = text;
    return rc >= 0;
}

size_t Regex::Search::begin(int group) const {
    return ranges_[2 * group] == PCRE2_UNSET ? 0 : ranges_[2 * group];
}

size_t Regex::Search::end(int group) const {
    return ranges_[2 * group + 1] == PCRE2_UNSET ? 0 : ranges_[2 * group + 1];
}

} // namespace penelope
