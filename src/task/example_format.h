// The shapes an example may have in a file, one entry each: which keys tell it, how it is read and written, and how a model is
// asked that is trained on it.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "task/example.h"

#include <string>
#include <vector>

namespace penelope {

struct ExampleFormat {
    const char * name;
    ExampleKind  kind;
    const char * mark; // the key only this shape has
    // Fills in everything but the id. where stands in messages. Throws Error(format) for missing, empty and wrong fields.
    void (*read)(const Json & object, const std::string & where, Example & example);
    void (*write)(const Example & example, OrderedJson & object);
    const char * prompt_template; // unless one is given
    const char * answer_prefix;
};

const std::vector<ExampleFormat> & example_formats();

const ExampleFormat & format_of(ExampleKind kind);

// By its keys; the first format when it has none of them.
const ExampleFormat & format_of(const Json & object);

const char * example_hint(); // what a file may look like

Error bad_example(const std::string & where, const std::string & why);

// A text, or a number as it is written. Throws Error(format).
std::string required_text(const Json & object, const char * key, const std::string & where);

} // namespace penelope
