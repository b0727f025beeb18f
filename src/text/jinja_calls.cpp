#include "text/jinja_calls.h"

#include "text/jinja_bounds.h"
#include "text/python_text.h"

#include <algorithm>
#include <cmath>

namespace penelope {

using namespace jinja;

namespace {

constexpr size_t kDeepestValue = 64;

[[noreturn]] void fail(const std::string & message) {
    throw JinjaFailure{ message };
}

// Comparisons of values of several types are no order, which std::sort cannot bear.
void check_sortable(const std::vector<value> & items) {
    for (const value & item : items) {
        const bool number = is_val<value_float>(item) ? !std::isnan(item->val_flt) : is_val<value_int>(item);
        const bool first  = is_val<value_int>(items[0]) || is_val<value_float>(items[0]);
        if (first ? !number : !is_val<value_string>(item) || !is_val<value_string>(items[0])) {
            fail("sort: expected all strings or all numbers");
        }
    }
}

void check_sort(const std::string & name, const value & self, const std::vector<value> & args) {
    value by;
    for (const value & arg : args) {
        if (const auto * named = cast_val<value_kwarg>(arg)) {
            by = named->key == "attribute" || named->key == "by" ? named->val : by;
        }
    }
    std::vector<value> items;
    for (const value & item : self->val_arr) {
        value none = mk_val<value_undefined>();
        items.push_back(!by                                                  ? item
                        : is_val<value_object>(item) && by->is_hashable()    ? item->at(by, none)
                        : is_val<value_array>(item) && is_val<value_int>(by) ? item->at(by->as_int(), none)
                                                                             : none);
    }
    for (const auto & [key, item] : self->val_obj) {
        items.push_back(by && is_val<value_string>(by) && by->as_string().str() == "value" ? item : key);
    }
    if (name == "sort" && args.size() > 2 && !by) {
        fail("sort: write attribute= in front of the attribute");
    }
    check_sortable(items);
}

} // namespace

void pay(const value & v, size_t depth) {
    if (depth > kDeepestValue) {
        fail("lists nested deeper than " + std::to_string(kDeepestValue) + " levels");
    }
    size_t bytes = 0;
    for (const string_part & part : v->val_str.parts) {
        bytes += part.val.size() + jinja_unit / 4;
    }
    JinjaBudget::spend(bytes / jinja_unit);
    if (!v->val_arr.empty() || !v->val_obj.empty()) {
        JinjaBudget::spend(v->val_arr.size() + v->val_obj.size());
    }
    for (const value & item : v->val_arr) {
        pay(item, depth + 1);
    }
    for (const auto & [key, item] : v->val_obj) {
        pay(key, depth + 1);
        pay(item, depth + 1);
    }
}

void pay_changed(const value & v) {
    try {
        pay(v);
    } catch (const JinjaFailure &) {
        v->val_arr.clear();
        v->val_obj.clear();
        if (is_val<value_object>(v)) {
            static_cast<value_object_t &>(*v).unordered.clear();
        }
        throw;
    }
}

void check_call(const std::string & name, const value & self, const std::vector<value> & args) {
    if (!self) {
        return;
    }
    size_t factor = 1;
    for (const value & arg : args) {
        const value plain = is_val<value_kwarg>(arg) ? cast_val<value_kwarg>(arg)->val : arg;
        if (is_val<value_int>(plain)) {
            factor = std::max<uint64_t>(factor,
                                        uint64_t(std::abs(std::clamp<int64_t>(plain->as_int(), -(1 << 30), 1 << 30))));
        } else if (is_val<value_string>(plain)) {
            factor = std::max(factor, plain->val_str.length());
            if (plain->val_str.length() == 11 && plain->as_string().str() == "divisibleby") {
                fail("select: divisibleby is not supported"); // by zero it ends the process
            }
        }
    }
    if (name == "replace" || name == "join" || name == "indent" || name == "tojson" || name == "format") {
        const size_t n = self->val_str.length() + self->val_arr.size() + self->val_obj.size() + 1;
        if (factor > largest_jinja_result / n && factor > 1) {
            fail(name + ": the result would be too long");
        }
    }
    if (name == "sort" || name == "dictsort") {
        check_sort(name, self, args);
    }
}

bool is_strip(const std::string & name) {
    return name == "trim" || name == "strip" || name == "lstrip" || name == "rstrip";
}

value stripped(const std::string & name, const value & text) {
    jinja::string out = text->val_str;
    while (name != "rstrip" && !out.parts.empty()) {
        out.parts.front().val = std::string(python_lstrip(out.parts.front().val));
        if (!out.parts.front().val.empty()) {
            break;
        }
        out.parts.erase(out.parts.begin());
    }
    while (name != "lstrip" && !out.parts.empty()) {
        out.parts.back().val = std::string(python_rstrip(out.parts.back().val));
        if (!out.parts.back().val.empty()) {
            break;
        }
        out.parts.pop_back();
    }
    return mk_val<value_string>(out);
}

} // namespace penelope
