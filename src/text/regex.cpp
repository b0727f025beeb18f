#include "text/regex.h"

#include "base/error.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <string>

namespace penelope {

namespace {

[[noreturn]] void fail(ErrorKind kind, int code, const char * hint) {
    std::array<PCRE2_UCHAR, 256> reason{};
    pcre2_get_error_message(code, reason.data(), reason.size());
    throw Error(kind, std::string("PCRE2: ") + reinterpret_cast<const char *>(reason.data()), hint);
}

} // namespace

Regex::Regex(std::string_view pattern) : code_(nullptr, pcre2_code_free), jit_(false) {
    int        error  = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                              &error, &offset, nullptr));
    if (!code_) {
        fail(ErrorKind::unsupported, error, "use a PCRE2 library built with Unicode support");
    }
    jit_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
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
        rc = pcre2_match(code, subject, text.size(), pos, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match_.get(), nullptr);
    }
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) {
        fail(ErrorKind::memory, rc, "");
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
