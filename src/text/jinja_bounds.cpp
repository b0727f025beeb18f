#include "text/jinja_bounds.h"

#include <algorithm>

namespace penelope {

namespace {

using namespace jinja;

constexpr size_t  kMostInTag    = 1000; // tokens between {% and %}: every operator may be a level of the tree
constexpr size_t  kMostBrackets = 100;  // inside each other
constexpr size_t  kMostBlocks   = 200;  // inside each other; an elif is one more
constexpr size_t  kMaxTokens    = 100000;
constexpr int64_t kLongestRange = 10000;
constexpr size_t  kMostStack    = 2 << 20; // bytes; threads have 8 MiB

thread_local JinjaBudget * current = nullptr;

[[noreturn]] void fail(const std::string & message) {
    throw JinjaFailure{ message };
}

value bounded_range(const func_args & args) {
    args.ensure_count(1, 3);
    int64_t bounds[3] = { 0, 0, 1 }; // start, stop, step
    for (size_t i = 0; i < args.count(); i++) {
        args.ensure_val<value_int>(args.get_pos(i));
        bounds[args.count() == 1 ? 1 : i] = args.get_pos(i)->as_int();
    }
    const auto [start, stop, step] = bounds;
    if (step == 0) {
        throw std::runtime_error("range() step argument must not be zero");
    }
    auto out = mk_val<value_array>();
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (out->val_arr.size() == size_t(kLongestRange)) {
            fail("range: more than " + std::to_string(kLongestRange) + " numbers");
        }
        out->push_back(mk_val<value_int>(i));
        if (__builtin_add_overflow(i, step, &i)) {
            break;
        }
    }
    return out;
}

// Whether the tag whose first word is tokens[i] has an end of its own.
bool opens_block(const std::vector<jinja::token> & tokens, size_t i) {
    for (const char * name : { "if", "for", "macro", "call", "filter", "generation" }) {
        if (tokens[i].value == name) {
            return true;
        }
    }
    if (tokens[i].value != "set") {
        return false;
    }
    for (size_t j = i; j < tokens.size() && tokens[j].t != token::close_statement; j++) {
        if (tokens[j].t == token::equals) {
            return false;
        }
    }
    return true;
}

value raise_exception(const func_args & args) {
    args.ensure_vals<value_string>();
    fail(args.get_pos(0)->as_string().str());
}

} // namespace

void check_jinja_nesting(const std::vector<jinja::token> & tokens) {
    if (tokens.size() > kMaxTokens) {
        fail("more than " + std::to_string(kMaxTokens) + " tokens");
    }
    size_t              n_in_tag = 0, n_brackets = 0;
    std::vector<size_t> blocks; // open ones; an if with its elifs, which the parser puts into each other
    size_t              depth = 0;
    for (size_t i = 0; i < tokens.size(); i++) {
        const jinja::token & token = tokens[i];
        switch (token.t) {
            case token::open_statement:
            case token::open_expression: n_in_tag = n_brackets = 0; break;
            case token::open_paren:
            case token::open_square_bracket:
            case token::open_curly_bracket: n_brackets++; break;
            case token::close_paren:
            case token::close_square_bracket:
            case token::close_curly_bracket: n_brackets -= n_brackets > 0; break;
            default: break;
        }
        if (++n_in_tag > kMostInTag || n_brackets > kMostBrackets) {
            fail("a tag with more than " + std::to_string(kMostInTag) + " tokens or " + std::to_string(kMostBrackets) +
                 " brackets inside each other");
        }
        if (i == 0 || tokens[i - 1].t != token::open_statement) {
            continue;
        }
        if (opens_block(tokens, i)) {
            blocks.push_back(1);
            depth++;
        } else if (token.value == "elif" && !blocks.empty()) {
            blocks.back()++;
            depth++;
        } else if (token.value.substr(0, 3) == "end" && !blocks.empty()) {
            depth -= blocks.back();
            blocks.pop_back();
        }
        if (depth > kMostBlocks) {
            fail("more than " + std::to_string(kMostBlocks) + " blocks inside each other");
        }
    }
}

void set_bounded_functions(jinja::context & context) {
    context.set_val("range", mk_val<value_func>("range", bounded_range));
    context.set_val("raise_exception", mk_val<value_func>("raise_exception", raise_exception));
}

JinjaBudget::JinjaBudget(size_t n_units)
    : left_(n_units), stack_(static_cast<const char *>(__builtin_frame_address(0))), outer_(current) {
    current = this;
}

JinjaBudget::~JinjaBudget() {
    current = outer_;
}

void JinjaBudget::spend(size_t n_units) {
    if (n_units > current->left_) {
        current->left_ = 0;
        fail("it takes too long or makes too much text");
    }
    current->left_ -= n_units;
}

void JinjaBudget::check_stack() {
    const char * here = static_cast<const char *>(__builtin_frame_address(0));
    const size_t used = size_t(here < current->stack_ ? current->stack_ - here : here - current->stack_);
    if (used > kMostStack) {
        fail("blocks or calls nested too deep");
    }
}

} // namespace penelope
