#include "grammar/automaton.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "serve/generation_request.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t kMaxGrammarLength = 65536;

// Where a request may carry a response format, as JSON pointers.
struct FormatPath {
    const char * path;        // object with "type"
    const char * schema_path; // its schema
};
constexpr FormatPath kFormatPaths[] = {
    { "/response_format", "/response_format/json_schema/schema" }, // OpenAI Chat Completions
    { "/response_format", "/response_format/schema" },             // some llama.cpp clients
    { "/text/format", "/text/format/schema" },                     // OpenAI Responses
    { "/output_config/format", "/output_config/format/schema" },   // Anthropic Messages
    { "/output_format", "/output_format/schema" },                 // Anthropic Messages, older name
};

std::string name_of(std::string path) {
    for (char & c : path) {
        c = c == '/' ? '.' : c;
    }
    return path.substr(1);
}

// Reports errors in a schema or grammar as RequestError(400) with the field name.
template <typename Make>
void set_grammar(GenerationRequest & gen_request, const std::string & field, const Make & make) {
    if (gen_request.job->generate.grammar) {
        throw RequestError(400, field + ": more than one schema or grammar", field);
    }
    try {
        auto            grammar = std::make_shared<const Grammar>(make());
        const Automaton possible(grammar); // throws when even the first state is too large
        gen_request.job->generate.grammar = std::move(grammar);
    } catch (const Error & error) {
        const std::string words = error.message();
        throw RequestError(400, words.rfind(field + ": ", 0) == 0 ? words : field + ": " + words, field);
    }
}

} // namespace

void read_constraint(GenerationRequest & gen_request, const Fields & fields, const std::string & body) {
    const char * const places[] = { "response_format", "text",        "output_config",
                                    "output_format",   "json_schema", "grammar" };
    if (std::none_of(std::begin(places), std::end(places), [&](const char * name) { return fields.has(name); })) {
        return;
    }
    OrderedJson request;
    try {
        request = parse_ordered_json(body, "body");
    } catch (const Error & error) {
        throw RequestError(400, error.message());
    }
    const auto find = [&](const std::string & path) {
        const OrderedJson::json_pointer place(path);
        return request.contains(place) ? request.at(place) : OrderedJson();
    };
    std::string form;
    for (const FormatPath & place : kFormatPaths) {
        const OrderedJson object = find(place.path), schema = find(place.schema_path);
        if (!object.is_object() && !object.is_null()) {
            throw RequestError(400, name_of(place.path) + ": expected an object", name_of(place.path));
        }
        if (object.is_null()) {
            continue;
        }
        const OrderedJson type = object.value("type", OrderedJson("text"));
        if (type != "text" && type != "json_object" && type != "json_schema") {
            throw RequestError(400, name_of(place.path) + ".type: expected text, json_object or json_schema",
                               name_of(place.path));
        }
        if (type != "text" && !schema.is_null()) {
            set_grammar(gen_request, name_of(place.schema_path), [&] { return json_schema_grammar(schema); });
            form.clear();
            break;
        }
        form = type == "text" ? "" : type.get<std::string>();
    }
    if (form == "json_schema") {
        throw RequestError(400, "response_format: missing schema", "response_format");
    }
    if (form == "json_object") {
        set_grammar(gen_request, "response_format", [] { return json_object_grammar(); });
    }
    if (fields.has("json_schema")) {
        set_grammar(gen_request, "json_schema", [&] { return json_schema_grammar(find("/json_schema")); });
    }
    if (const auto grammar = fields.text("grammar")) {
        if (grammar->size() > kMaxGrammarLength) {
            fields.fail("grammar", "longer than " + std::to_string(kMaxGrammarLength) + " bytes");
        }
        if (!grammar->empty()) {
            set_grammar(gen_request, "grammar", [&] { return parse_gbnf(*grammar); });
        }
    }
}

} // namespace penelope
