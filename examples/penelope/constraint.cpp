#include "constraint.h"

#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "prompt_input.h"

#include <filesystem>

namespace penelope {

namespace {

Grammar parse_schema(const std::string & text, const std::string & origin) {
    return json_schema_grammar(parse_ordered_json(text, origin));
}

struct Kind {
    const char * option;
    const char * file_option;
    Grammar (*parse)(const std::string & text, const std::string & origin);
};

constexpr Kind kinds[] = {
    { "json-schema", "json-schema-file", parse_schema },
    { "grammar", "grammar-file", [](const std::string & text, const std::string &) { return parse_gbnf(text); } },
};

} // namespace

std::shared_ptr<const Grammar> read_constraint(const Options & options) {
    std::shared_ptr<const Grammar> grammar;
    for (const Kind & kind : kinds) {
        for (const bool is_file : { false, true }) {
            const std::string option = is_file ? kind.file_option : kind.option;
            if (!options.given(option)) {
                continue;
            }
            if (grammar) {
                throw UsageError("--" + option + ": more than one schema or grammar", "give only one");
            }
            const std::string value = options.text(option);
            const std::string label = is_file ? value : "--" + option;
            try {
                const std::string text = is_file ? read_text(value) : value;
                grammar                = std::make_shared<const Grammar>(kind.parse(text, label));
            } catch (const Error & error) {
                const std::string message = error.message().compare(0, label.size(), label) == 0
                                                ? error.message()
                                                : label + ": " + error.message();
                if (is_file) {
                    throw Error(error.kind, message, error.hint);
                }
                std::error_code none;
                throw UsageError(message, std::filesystem::exists(value, none)
                                              ? "this is a file name; did you mean --" + std::string(kind.file_option)
                                              : error.hint);
            }
        }
    }
    return grammar;
}

} // namespace penelope
