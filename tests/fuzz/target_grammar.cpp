// A JSON Schema or a GBNF grammar, refused or followed along the first texts it leads to.
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/token_filter.h"
#include "target.h"

#include <algorithm>

namespace penelope::fuzz {

namespace {

// An answer of the likeliest tokens that are allowed, cut short.
void follow_tokens(const std::shared_ptr<const Grammar> & grammar) {
    static const Tokenizer tokenizer(byte_level_vocabulary());
    const int              n = int(tokenizer.n_vocab());
    TokenFilter            filter(grammar, tokenizer);
    std::vector<float>     logits(size_t(n), 0.0f);
    for (int i = 0; i < 40 && !filter.complete(); i++) {
        for (int token = 0; token < n; token++) {
            logits[size_t(token)] = float((token * 37 + i * 11) % 101);
        }
        const float * masked = filter.masked(logits.data(), n);
        const auto    best   = int32_t(std::max_element(masked, masked + n) - masked);
        if (tokenizer.is_end_of_generation(best)) {
            return;
        }
        filter.accept(best);
    }
}

} // namespace

void run_input(const std::string & bytes) {
    Grammar grammar;
    if (!bytes.empty() && bytes[0] == '{') {
        grammar = json_schema_grammar(parse_ordered_json(bytes, "schema"));
    } else {
        grammar = parse_gbnf(bytes.substr(0, 65536));
    }
    const auto shared = std::make_shared<const Grammar>(std::move(grammar));
    follow_tokens(shared);
    Automaton automaton(shared);
    int       state = automaton.start();
    for (int i = 0; i < 200 && automaton.can_continue(state); i++) {
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
             "\"type\":\"boolean\"}]}]}",
             R"({"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"type":"object","properties":{)"
             R"("kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind"]},"b":{"type":"object","properties":{)"
             R"("kind":{"enum":["b","c"]},"of":{"$ref":"#"}},"required":["kind"]}}})" };
}

} // namespace penelope::fuzz
