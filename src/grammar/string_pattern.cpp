#include "grammar/string_pattern.h"

#include "grammar/character_reader.h"

namespace penelope {

namespace {

constexpr int          kMaxNesting  = 100;
constexpr const char * kPunctuation = "^$.*+?()[]{}|/-\"'";

class Pattern {
  public:
    Pattern(GrammarBuilder & builder, JsonText & json, const std::string & pattern, const std::string & where)
        : builder_(builder), json_(json), in_(pattern, where) {}

    Symbol string() {
        const Sequence quote = builder_.literal("\"");
        const Symbol   rule  = builder_.rule();
        do {
            const bool   from_start = in_.take("^");
            Sequence     content    = sequence(0);
            const bool   to_end     = in_.take("$");
            const Symbol anything   = builder_.repeat(json_.character(), 0, std::nullopt);
            Sequence     whole      = quote;
            if (!from_start) {
                whole.push_back(anything);
            }
            whole.insert(whole.end(), content.begin(), content.end());
            if (!to_end) {
                whole.push_back(anything);
            }
            whole.insert(whole.end(), quote.begin(), quote.end());
            builder_.add(rule, std::move(whole));
        } while (in_.take("|"));
        if (!in_.at_end()) {
            in_.fail(in_.peek() == ')' ? "unmatched )" : "not supported here");
        }
        return rule;
    }

  private:
    Symbol alternatives(int depth) {
        if (depth > kMaxNesting) {
            in_.fail("groups nested too deep");
        }
        const Symbol rule = builder_.rule();
        do {
            builder_.add(rule, sequence(depth));
        } while (in_.take("|"));
        return rule;
    }

    Sequence sequence(int depth) {
        Sequence out;
        while (!in_.at_end() && in_.peek() != '|' && in_.peek() != ')' && in_.peek() != '$') {
            out.push_back(atom(depth));
            if (const auto count = read_count(in_)) {
                out.back() = builder_.repeat(out.back(), count->least, count->most);
                in_.take("?"); // lazy quantifiers match the same set of texts
            }
        }
        return out;
    }

    Symbol atom(int depth) {
        if (in_.take("(")) {
            if (!in_.take("?:") && !in_.at_end() && in_.peek() == '?') {
                in_.fail("(? is not supported, except (?:");
            }
            const Symbol group = alternatives(depth + 1);
            if (!in_.take(")")) {
                in_.fail("expected )");
            }
            return group;
        }
        if (in_.take("[")) {
            return json_.character(read_class(in_, kPunctuation));
        }
        if (in_.take(".")) {
            return json_.character(complement({ { '\n', '\n' }, { '\r', '\r' }, { 0x2028, 0x2029 } }));
        }
        if (const auto named = read_class_escape(in_)) {
            return json_.character(*named);
        }
        for (const char c : { '*', '+', '?', '{', '^' }) {
            if (in_.peek() == c) {
                in_.fail(std::string(1, c) + " is not supported here");
            }
        }
        const uint32_t code = in_.escaped(kPunctuation);
        return json_.character({ { code, code } });
    }

    GrammarBuilder & builder_;
    JsonText &       json_;
    CharacterReader  in_;
};

} // namespace

Symbol pattern_string(GrammarBuilder & builder, JsonText & json, const std::string & pattern,
                      const std::string & where) {
    return Pattern(builder, json, pattern, where).string();
}

} // namespace penelope
