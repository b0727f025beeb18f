// Bounds on what a Jinja template may take. llama.cpp's engine has none: a loop over range(1000000000), a list that
// holds itself or a macro that calls itself would take all memory, all stack or all time. The engine stays as it is:
// before a template runs, the nodes of its syntax tree are replaced by nodes of derived classes that count.
#pragma once

#include <jinja/runtime.h>

#include <cstddef>
#include <string>

namespace penelope {

// Thrown through the engine, which catches only std::exception: by the template's raise_exception(), and at a bound.
struct JinjaFailure {
    std::string message;
};

// Throws JinjaFailure for a template whose syntax tree would be too deep to parse: brackets, blocks and operators in
// one tag are counted.
void check_jinja_nesting(const std::vector<jinja::token> & tokens);

// The nodes of the program count from now on, inside the lifetime of a JinjaBudget.
void bound_jinja(jinja::program & program);

// range(), which would make lists of any length, and raise_exception().
void set_bounded_functions(jinja::context & context);

// What a run may use. One unit: a node, an item of a loop, or 64 bytes of text that are read or made.
class JinjaBudget {
  public:
    explicit JinjaBudget(size_t n_units);
    ~JinjaBudget();
    JinjaBudget(const JinjaBudget &)             = delete;
    JinjaBudget & operator=(const JinjaBudget &) = delete;

    static void spend(size_t n_units); // throws JinjaFailure when nothing is left
    static void check_stack();

  private:
    size_t        left_;
    const char *  stack_;
    JinjaBudget * outer_;
};

} // namespace penelope
