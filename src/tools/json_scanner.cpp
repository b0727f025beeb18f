#include "tools/json_scanner.h"

#include <cctype>
#include <cstring>

namespace penelope {

namespace {

constexpr size_t kMaxDepth = 100;

bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
bool is_number(const std::string & text) {
    const char * p      = text.c_str();
    const auto   digits = [&] {
        const char * first = p;
        while (*p >= '0' && *p <= '9') {
            p++;
        }
        return p - first;
    };
    p += *p == '-';
    const bool zero = *p == '0';
    const auto n    = digits();
    if (n == 0 || (zero && n > 1)) {
        return false;
    }
    if (*p == '.' && (p++, digits() == 0)) {
        return false;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '+' || *p == '-';
        if (digits() == 0) {
            return false;
        }
    }
    return *p == 0;
}

} // namespace

JsonScanner::State JsonScanner::end_value() {
    if (open_.empty()) {
        return state_ = State::done;
    }
    expect_ = Expect::comma;
    return state_;
}

JsonScanner::State JsonScanner::in_string(char c) {
    if (escaped_ == -1) {
        escaped_ = c == 'u' ? 4 : 0;
        return c == 'u' || (c != 0 && std::strchr("\"\\/bfnrt", c)) ? state_ : fail();
    }
    if (escaped_ > 0) {
        escaped_--;
        return std::isxdigit(static_cast<unsigned char>(c)) ? state_ : fail();
    }
    if (c == '\\') {
        escaped_ = -1;
    } else if (c == '"') {
        string_ = false;
        if (is_key_) {
            expect_ = Expect::colon;
            return state_;
        }
        return end_value();
    } else if (static_cast<unsigned char>(c) < 0x20) {
        return fail();
    }
    return state_;
}

JsonScanner::State JsonScanner::in_word(char c) {
    if (c != word_[0]) {
        return fail();
    }
    word_.erase(0, 1);
    return word_.empty() ? end_value() : state_;
}

JsonScanner::State JsonScanner::in_number(char c) {
    if ((c >= '0' && c <= '9') || (c != 0 && std::strchr("+-.eE", c))) {
        word_ += c;
        return word_.size() > 400 ? fail() : state_;
    }
    if (!is_number(word_)) {
        return fail();
    }
    number_ = false;
    word_.clear();
    expect_ = Expect::comma; // a number alone has no end: values here are objects
    return between(c);
}

JsonScanner::State JsonScanner::begin_value(char c) {
    if (c == '"') {
        string_ = true;
        is_key_ = false;
    } else if (c == '{' || c == '[') {
        if (open_.size() == kMaxDepth) {
            return fail();
        }
        open_ += c;
        expect_ = c == '{' ? Expect::first_key : Expect::first_item;
    } else if (c == 't' || c == 'f' || c == 'n') {
        word_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        number_ = true;
        word_   = c;
    } else {
        return fail();
    }
    return state_;
}

JsonScanner::State JsonScanner::between(char c) {
    if (is_space(c)) {
        return state_;
    }
    const char closing = open_.empty() ? 0 : open_.back() == '{' ? '}' : ']';
    const bool closes  = expect_ == Expect::comma || expect_ == Expect::first_key || expect_ == Expect::first_item;
    if (c == closing && closing != 0 && closes) {
        open_.pop_back();
        return end_value();
    }
    switch (expect_) {
        case Expect::first_key:
        case Expect::key: string_ = is_key_ = c == '"'; return c == '"' ? state_ : fail();
        case Expect::colon: expect_ = Expect::value; return c == ':' ? state_ : fail();
        case Expect::comma: expect_ = closing == '}' ? Expect::key : Expect::value; return c == ',' ? state_ : fail();
        case Expect::value:
        case Expect::first_item: return begin_value(c);
    }
    return fail();
}

JsonScanner::State JsonScanner::feed(char c) {
    if (state_ != State::inside) {
        return state_;
    }
    return string_ ? in_string(c) : number_ ? in_number(c) : !word_.empty() ? in_word(c) : between(c);
}

} // namespace penelope
