// What the nodes of jinja_nodes.cpp do around the engine's own work: pay for values, look at calls before they are
// made.
#pragma once

#include <jinja/runtime.h>

#include <string>
#include <vector>

namespace penelope {

constexpr size_t jinja_unit           = 64;      // bytes of text for one unit of a JinjaBudget
constexpr size_t largest_jinja_result = 1 << 24; // bytes that one call may make

// Pays for a value as it would be written out. Lists that hold themselves or each other many times end at a bound.
void pay(const jinja::value & v, size_t depth = 0);
// The same for a value that was just changed: one that holds itself would never be freed.
void pay_changed(const jinja::value & v);

// Throws JinjaFailure for calls whose result may be as long as two things multiplied, and for those the engine does not
// survive. self: what the function or filter is called on, may be null.
void check_call(const std::string & name, const jinja::value & self, const std::vector<jinja::value> & args);

// trim, strip, lstrip and rstrip without arguments: the engine knows the white space of C alone, Python that of
// Unicode.
bool         is_strip(const std::string & name);
jinja::value stripped(const std::string & name, const jinja::value & text);

} // namespace penelope
