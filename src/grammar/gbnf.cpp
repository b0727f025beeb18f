#include "grammar/gbnf.h"

#include "base/error.h"
#include "base/format.h"
#include "grammar/character_reader.h"
#include "text/utf8.h"

namespace penelope {

namespace {

constexpr int kMaxNesting = 200;

class Gbnf {
  public:
    explicit Gbnf(std::string_view text) : in_(text, "grammar") {}

    Grammar parse() {
        skip_space(true);
        while (!in_.at_end()) {
            const std::string name  = read_name();
            Entry &           entry = entry_of(name);
            const Symbol      rule  = entry.rule;
            if (entry.defined) {
                in_.fail("duplicate rule " + in_quotes(name));
            }
            entry.defined = true;
            skip_space(false);
            if (!in_.take("::=")) {
                in_.fail("expected ::= after the rule name");
            }
            skip_space(true);
            builder_.add(rule, { alternatives(0) });
            if (!in_.at_end() && !ended_line_) {
                in_.fail("expected the end of the line");
            }
        }
        for (const auto & [name, entry] : rules_) {
            if (!entry.defined) {
                throw Error(ErrorKind::format, "grammar: undefined rule " + in_quotes(name));
            }
        }
        if (rules_.find("root") == rules_.end()) {
            throw Error(ErrorKind::format, "grammar: missing rule root",
                        "add root ::= ..., which matches the whole text");
        }
        return builder_.finish(rules_["root"].rule);
    }

  private:
    struct Entry {
        Symbol rule    = 0;
        bool   defined = false; // false: only referenced so far
    };

    static bool is_name(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    }

    // Skips white space and comments; line ends only where they do not end a rule.
    void skip_space(bool lines) {
        ended_line_ = false;
        while (!in_.at_end()) {
            const char c = in_.peek();
            if (c == '#') {
                while (!in_.at_end() && in_.peek() != '\n' && in_.peek() != '\r') {
                    in_.skip();
                }
            } else if (c == ' ' || c == '\t' || ((c == '\n' || c == '\r') && lines)) {
                in_.skip();
            } else {
                break;
            }
        }
    }

    std::string read_name() {
        std::string name;
        while (!in_.at_end() && is_name(in_.peek())) {
            name += in_.peek();
            in_.skip();
        }
        if (name.empty()) {
            in_.fail("expected a rule name");
        }
        return name;
    }

    Entry & entry_of(const std::string & name) {
        const auto [place, is_new] = rules_.try_emplace(name);
        if (is_new) {
            place->second.rule = builder_.rule();
        }
        return place->second;
    }

    // depth: nesting of parentheses. Line ends inside parentheses are white space.
    Symbol alternatives(int depth) {
        if (depth > kMaxNesting) {
            in_.fail("parentheses nested too deep");
        }
        const Symbol rule = builder_.rule();
        do {
            skip_space(true);
            builder_.add(rule, sequence(depth));
        } while (in_.take("|"));
        return rule;
    }

    Sequence sequence(int depth) {
        Sequence out;
        while (true) {
            const size_t begin = out.size();
            skip_space(depth > 0);
            if (depth == 0 && (in_.at_end() || in_.peek() == '\n' || in_.peek() == '\r')) {
                // The rule ends here unless the next line starts with |.
                skip_space(true);
                ended_line_ = in_.at_end() || in_.peek() != '|';
                return out;
            }
            if (in_.at_end() || in_.peek() == '|' || in_.peek() == ')') {
                return out;
            }
            if (in_.take("\"")) {
                std::string text;
                while (!in_.take("\"")) {
                    text += utf8_text(in_.escaped("\"'[]"));
                }
                const Sequence literal = builder_.literal(text);
                out.insert(out.end(), literal.begin(), literal.end());
                if (literal.size() > 1 && has_count()) { // the count applies to the whole literal
                    out.resize(begin);
                    out.push_back(builder_.any_of({ literal }));
                }
            } else if (in_.take("[")) {
                out.push_back(builder_.character(read_class(in_, "\"'[]")));
            } else if (in_.take(".")) {
                out.push_back(builder_.character(complement({})));
            } else if (in_.take("(")) {
                out.push_back(alternatives(depth + 1));
                if (!in_.take(")")) {
                    in_.fail("expected )");
                }
            } else if (is_name(in_.peek())) {
                out.push_back(entry_of(read_name()).rule);
            } else {
                in_.fail("expected a literal, a class, a rule or (");
            }
            if (const auto count = read_count(in_)) {
                if (out.size() == begin) {
                    in_.fail("nothing to repeat");
                }
                out.back() = builder_.repeat(out.back(), count->least, count->most);
            }
        }
    }

    bool has_count() {
        return !in_.at_end() && (in_.peek() == '*' || in_.peek() == '+' || in_.peek() == '?' || in_.peek() == '{');
    }

    CharacterReader              in_;
    GrammarBuilder               builder_;
    std::map<std::string, Entry> rules_;
    bool                         ended_line_ = false; // the last skipped line end may end the rule
};

} // namespace

Grammar parse_gbnf(std::string_view text) {
    return Gbnf(text).parse();
}

} // namespace penelope
