// The formats of examples, one table entry each: the key that identifies it, how it is read and written, and the
// default prompt template and answer prefix.
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
    const char * mark; // the key that only this format has
    // Reads everything but the id. where: position for messages. Throws Error(format) for missing or invalid fields.
    void (*read)(const Json & object, const std::string & where, Example & example);
    void (*write)(const Example & example, OrderedJson & object);
    const char * prompt_template; // default
    const char * answer_prefix;
};

const std::vector<ExampleFormat> & example_formats();

const ExampleFormat & format_of(ExampleKind kind);

// Recognized by its keys; the first format if it has none of them.
const ExampleFormat & format_of(const Json & object);

const char * example_hint(); // describes the formats

Error bad_example(const std::string & where, const std::string & why);

// A string, or a number as written. Throws Error(format).
std::string required_text(const Json & object, const char * key, const std::string & where);

} // namespace penelope
