// A JSON Schema or a GBNF grammar, refused or followed along the first texts it leads to.
#include "grammar/automaton.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "target.h"

namespace penelope::fuzz {

void run_input(const std::string & bytes) {
    Grammar grammar;
    if (!bytes.empty() && bytes[0] == '{') {
        JsonLimits limits;
        limits.max_bytes = 65536;
        parse_json(bytes, "schema", limits);
        grammar = json_schema_grammar(OrderedJson::parse(bytes));
    } else {
        grammar = parse_gbnf(bytes.substr(0, 65536));
    }
    Automaton automaton(std::make_shared<const Grammar>(std::move(grammar)));
    int       state = automaton.start();
    for (int i = 0; i < 200 && automaton.goes_on(state); i++) {
        for (int byte = 255; byte >= 0; byte--) { // the last of them is the smallest, which closes strings
            const int next = automaton.next(state, static_cast<unsigned char>(byte));
            if (next != Automaton::dead && (byte < 128 || byte % 3 == i % 3)) {
                state = next;
                break;
            }
        }
    }
    automaton.next(automaton.start(), bytes);
}

std::vector<std::string> seeds() {
    return { "root ::= item (\",\" item){0,3} # a list\nitem ::= [a-z^\\]]+ | \"\\x41\\u00e9\" | \"(\" root \")\" | "
             "[^\\n] .?\n",
             "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"integer\",\"null\"],\"minimum\":-3,\"maximum\":"
             "205},\"b\":{\"$ref\":\"#/$defs/c\"},"
             "\"d\":{\"enum\":[1,\"x\",[2]]}},\"required\":[\"a\"],\"$defs\":{\"c\":{\"type\":\"array\",\"items\":{\"$"
             "ref\":\"#\"},\"minItems\":1,\"maxItems\":4}}}",
             "{\"anyOf\":[{\"type\":\"string\",\"pattern\":\"^[A-Z]{2,3}(-\\\\d+)?$\"},{\"type\":\"string\","
             "\"minLength\":2,\"maxLength\":5},{\"type\":\"string\","
             "\"format\":\"date\"},{\"prefixItems\":[{\"const\":1}],\"items\":false},{\"oneOf\":[{\"type\":\"null\"},{"
             "\"type\":\"boolean\"}]}]}" };
}

} // namespace penelope::fuzz
