#include "tools/tool_set.h"

#include "base/error.h"
#include "grammar/automaton.h"
#include "grammar/gbnf.h"

#include <algorithm>

namespace penelope {

namespace {

Sequence operator+(Sequence a, const Sequence & b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

constexpr size_t kMaxSymbols = 400000; // of all tools together, some hundred milliseconds and 10 MB

size_t n_symbols(const Grammar & grammar) {
    size_t n = 0;
    for (const auto & alternatives : grammar.rules) {
        for (const Sequence & sequence : alternatives) {
            n += sequence.size() + 1;
        }
    }
    return n;
}

std::shared_ptr<const Grammar> rest_grammar(const ToolFormat & format, const Tool & tool) {
    GrammarBuilder  builder;
    const Sequence  rest    = format.rest(builder, tool);
    auto            grammar = std::make_shared<const Grammar>(builder.finish(builder.any_of({ rest })));
    const Automaton possible(grammar); // throws when even the first state is too large
    return grammar;
}

} // namespace

std::shared_ptr<const ToolSet> make_tool_set(std::vector<Tool> tools, const ToolFormat & format, bool parallel,
                                             std::vector<std::string> & warnings) {
    auto set         = std::make_shared<ToolSet>();
    set->tools       = std::move(tools);
    set->format      = &format;
    set->parallel    = parallel;
    const auto loose = format.loose_rest ? std::make_shared<const Grammar>(parse_gbnf(format.loose_rest)) : nullptr;
    size_t     n_all = 0;
    for (const Tool & tool : set->tools) {
        auto & rests = set->rests[tool.name];
        try {
            if (n_all > kMaxSymbols) {
                throw Error(ErrorKind::unsupported, "schemas: too large all together",
                            "leave out counts such as maxLength, or tools");
            }
            rests.push_back(rest_grammar(format, tool));
            n_all += n_symbols(*rests.back());
        } catch (const Error & error) {
            if (tool.strict) {
                throw Error(error.kind, "tool " + tool.name + ": " + error.message(), error.hint);
            }
            n_all += kMaxSymbols / 16; // what it took to find out
            warnings.push_back("tools: the arguments of " + tool.name +
                               " are not held to their schema: " + error.message());
            Tool any       = tool;
            any.parameters = { { "type", "object" } };
            rests.push_back(rest_grammar(format, any));
        }
        if (loose) {
            rests.push_back(loose);
        }
    }
    return set;
}

Grammar tool_call_grammar(const ToolSet & set, const std::vector<std::string> & functions, std::optional<size_t> most,
                          const Grammar * text) {
    const ToolFormat &    format = *set.format;
    GrammarBuilder        builder;
    std::vector<Sequence> calls;
    for (const std::string & function : functions) {
        calls.push_back(builder.literal(format.call_begin + function + format.call_arguments) +
                        Sequence{ builder.embed(*set.rests.at(function).front()) } + builder.literal(format.call_end));
    }
    const Symbol call  = builder.any_of(calls);
    Sequence     whole = builder.literal(format.list_begin) + Sequence{ call };
    if (format.separator != nullptr && most != size_t(1)) {
        const Symbol next = builder.any_of({ builder.literal(format.separator) + Sequence{ call } });
        whole.push_back(builder.repeat(next, 0, most ? std::optional(*most - 1) : std::nullopt));
    }
    std::vector<Sequence> answers{ whole + builder.literal(format.list_end) };
    if (text != nullptr) {
        answers.push_back({ builder.embed(*text) });
    }
    return builder.finish(builder.any_of(answers));
}

} // namespace penelope
