#include "text/chat_format.h"

#include "base/error.h"
#include "base/format.h"
#include "text/reasoning.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace penelope {

namespace {

// A pattern with shorthand: #+ concatenates, #role, #content and #first are message.role, message['content'] and
// messages[0].content in all their spellings.
Regex pattern(std::string_view shorthand) {
    std::string text(shorthand);
    const auto  replace = [&](std::string_view from, std::string_view to) {
        for (size_t pos = 0; (pos = text.find(from, pos)) != std::string::npos; pos += to.size()) {
            text.replace(pos, from.size(), to);
        }
    };
    replace("#+", R"([ \t]*\+[ \t]*)");
    replace("#role", R"(message(?:\.role|\[['"]role['"]\]))");
    replace("#content", R"((?:message(?:\.content|\[['"]content['"]\])|content)(?:[ \t]*\|[ \t]*trim)?)");
    replace("#first", R"((?:messages\[0\](?:\.content|\[['"]content['"]\])|content)(?:[ \t]*\|[ \t]*trim)?)");
    return Regex(text);
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

[[noreturn]] void refuse(const std::string & why) {
    throw Error(ErrorKind::unsupported, "chat template: " + why,
                "only templates of the ChatML and Llama 3 families are supported; name one with --chat-template, or "
                "use --raw to "
                "write the prompt yourself");
}

bool matches(const Regex & regex, std::string_view text) {
    return Regex::Search(regex).find(text, 0);
}

// Jinja's string escapes. Templates keep line ends in strings as \n or as they are; afterwards all are as they are.
std::string unescape(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size(); i++) {
        if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == 'n') {
            out += '\n';
            i++;
        } else {
            out += text[i];
        }
    }
    return out;
}

// Runs the part of a template that writes the generation prompt, with nothing but add_generation_prompt and perhaps
// enable_thinking defined: text, string literals, and conditions on enable_thinking.
class GenerationPrompt {
  public:
    // text: what follows `{% if add_generation_prompt %}`.
    GenerationPrompt(std::string_view text, bool strips, std::optional<bool> enable_thinking)
        : rest_(text), strips_(strips), enable_thinking_(enable_thinking) {}

    std::string run() {
        int depth = 1, skipping = 0; // skipping: the depth of the branch not taken, 0 for none
        while (true) {
            const size_t tag = rest_.find('{');
            if (tag == std::string_view::npos || tag + 2 > rest_.size()) {
                refuse("the generation prompt has no end");
            }
            const bool block = rest_[tag + 1] == '%';
            if (!block && rest_[tag + 1] != '{') {
                refuse("unknown tag in the generation prompt");
            }
            const std::string_view raw = white_space_kept(rest_.substr(0, tag), block, rest_.substr(tag + 2, 1) == "-");
            const size_t           last = rest_.find(block ? "%}" : "}}", tag);
            if (last == std::string_view::npos) {
                refuse("a tag has no end");
            }
            std::string_view inside = rest_.substr(tag + 2, last - tag - 2);
            rest_.remove_prefix(last + 2);
            strips_      = !inside.empty() && inside.back() == '-';
            after_block_ = block;
            inside       = trimmed(inside, " \t\n-");
            if (!skipping) {
                out_.append(raw);
            }
            if (!block) {
                if (!skipping) {
                    append_literal(inside);
                }
            } else if (inside == "endif") {
                if (--depth == 0) {
                    return out_;
                }
                skipping = skipping > depth ? 0 : skipping;
            } else if (inside == "else" && depth > 1) {
                skipping = skipping == depth ? 0 : skipping ? skipping : depth;
            } else {
                const bool taken = holds(inside);
                depth++;
                skipping = skipping ? skipping : taken ? 0 : depth;
            }
        }
    }

  private:
    bool holds(std::string_view condition) const {
        const std::string_view asks = "if enable_thinking is defined and enable_thinking is ";
        if (condition.substr(0, asks.size()) != asks) {
            refuse("unknown condition in the generation prompt");
        }
        const std::string_view value = condition.substr(asks.size());
        if (value != "false" && value != "true") {
            refuse("unknown condition in the generation prompt");
        }
        return enable_thinking_ == (value == "true");
    }

    // Jinja with trim_blocks and lstrip_blocks, as chat templates are run.
    std::string_view white_space_kept(std::string_view raw, bool before_block, bool next_strips) const {
        if (after_block_ && !raw.empty() && raw[0] == '\n') {
            raw.remove_prefix(1);
        }
        if (strips_) {
            raw = raw.substr(std::min(raw.find_first_not_of(" \t\n"), raw.size()));
        }
        if (next_strips || before_block) {
            raw = raw.substr(0, raw.find_last_not_of(next_strips ? " \t\n" : " \t") + 1);
        }
        return raw;
    }

    static std::string_view trimmed(std::string_view text, const char * characters) {
        text = text.substr(std::min(text.find_first_not_of(characters), text.size()));
        return text.substr(0, text.find_last_not_of(characters) + 1);
    }

    // 'text' or 'text' + 'text'
    void append_literal(std::string_view inside) {
        while (true) {
            const char quote = inside.empty() ? '\0' : inside[0];
            const auto end   = inside.find(quote, 1);
            if ((quote != '\'' && quote != '"') || end == std::string_view::npos) {
                refuse("the generation prompt is not plain text");
            }
            out_.append(inside.substr(1, end - 1));
            inside = trimmed(inside.substr(end + 1), " \t\n");
            if (inside.empty()) {
                return;
            }
            if (inside[0] != '+' && inside[0] != '~') {
                refuse("the generation prompt is not plain text");
            }
            inside = trimmed(inside.substr(1), " \t\n");
        }
    }

    std::string_view    rest_;
    std::string         out_;
    bool                strips_;             // the tag before ends in -
    bool                after_block_ = true; // it was {% %}
    std::optional<bool> enable_thinking_;    // none: not defined
};

// What the generation prompt adds to the header that starts an answer.
std::string generation_suffix(std::string_view jinja, std::string_view header,
                              std::optional<bool> enable_thinking = std::nullopt) {
    const Regex   condition(R"(\{%-?\s*if add_generation_prompt\s*(-?)%\})");
    Regex::Search search(condition);
    size_t        begin  = 0;
    bool          strips = false;
    for (size_t pos = 0; search.find(jinja, pos); pos = search.end()) {
        begin  = search.end();
        strips = !search.text(1).empty();
    }
    if (begin == 0) {
        if (contains(jinja, "add_generation_prompt")) {
            refuse("unknown condition for the generation prompt");
        }
        return "";
    }
    const std::string prompt = GenerationPrompt(jinja.substr(begin), strips, enable_thinking).run();
    if (prompt.substr(0, header.size()) != header) {
        refuse("the generation prompt does not start with the header of an answer");
    }
    return prompt.substr(header.size());
}

void recognise_generation_prompt(std::string_view jinja, std::string_view header, ChatFormat & format) {
    format.generation_suffix  = generation_suffix(jinja, header);
    const std::string without = generation_suffix(jinja, header, false);
    if (without != format.generation_suffix) {
        format.suffix_without_thinking = without;
    }
}

// Looks at every place that writes a system message's header.
void recognise_chatml_system(std::string_view jinja, ChatFormat & format) {
    const std::string_view header = "<|im_start|>system\n", end = "<|im_end|>";
    const Regex            given    = pattern(R"(^['"]#+#first#+['"]<\|im_end\|>)");
    const Regex            for_tool = Regex(R"(^\{%-?\s*if tools[^%]*%\}\s*\{\{-?\s*['"]$)");
    for (size_t pos = 0; (pos = jinja.find(header, pos)) != std::string_view::npos;) {
        const std::string_view before = jinja.substr(0, pos);
        pos += header.size();
        const std::string_view after = jinja.substr(pos);
        if (matches(given, after)) {
            continue;
        }
        // Without tools the branch that lists them is never taken.
        const size_t condition = before.rfind("{%");
        if (condition != std::string_view::npos && after.substr(0, 1) == before.substr(before.size() - 1) &&
            matches(for_tool, before.substr(condition))) {
            continue;
        }
        const std::string_view content = after.substr(0, after.find(end));
        if (content.size() == after.size() || content.find_first_of("'\"{}") != std::string_view::npos) {
            refuse("it makes up its system message in a way that is not known");
        }
        format.default_system = std::string(content);
    }
}

void recognise_llama3_system(std::string_view jinja, ChatFormat & format) {
    if (!contains(jinja, "<|start_header_id|>system<|end_header_id|>")) {
        return; // a system message is a message like any other
    }
    const Regex   preface(R"(['"](Cutting Knowledge Date: [A-Za-z]+ \d+\n)['"])");
    const Regex   date(R"(set date_string = ['"](\d+ [A-Z][a-z]+ \d+)['"])");
    Regex::Search cut(preface), today(date);
    if (!cut.find(jinja, 0) || !today.find(jinja, 0) || !contains(jinja, "\"Today Date: \" + date_string + \"\n\n\"")) {
        refuse("it makes up its system message in a way that is not known");
    }
    // The template's own date, not today's: the same prompt must give the same answer tomorrow.
    format.system_preface = std::string(cut.text(1)) + "Today Date: " + std::string(today.text(1)) + "\n\n";
}

} // namespace

bool ChatFormat::thinks() const {
    return drops_reasoning || suffix_without_thinking || contains(generation_suffix, think_begin);
}

const char * chat_family_name(ChatFamily family) {
    switch (family) {
        case ChatFamily::chatml: return "chatml";
        case ChatFamily::llama3: return "llama3";
    }
    return "";
}

ChatFormat named_chat_format(std::string_view name) {
    ChatFormat format;
    for (const ChatFamily family : { ChatFamily::chatml, ChatFamily::llama3 }) {
        if (name == chat_family_name(family)) {
            format.family   = family;
            format.with_bos = format.trims = family == ChatFamily::llama3;
            return format;
        }
    }
    throw Error(ErrorKind::usage, "chat template " + in_quotes(name) + ": not a name we know",
                "use auto, none, chatml or llama3");
}

ChatFormat recognise_chat_format(std::string_view template_text) {
    if (template_text.empty()) {
        throw Error(ErrorKind::unsupported, "chat template: the model has none",
                    "name one with --chat-template, or use --raw to write the prompt yourself");
    }
    std::string valid;
    append_valid_utf8(valid, template_text);
    const std::string jinja = unescape(valid);

    const std::string chatml = R"(<\|im_start\|>['"]#+#role#+['"]\n['"]#+#content#+['"]<\|im_end\|>(?:['"]#+['"])?\n)";
    const Regex       chatml_turn = pattern(chatml);
    const Regex       gap_after   = pattern(chatml + R"(['"][ \t]*\}\}[ \t]*\n[ \t]*\{[%{](?!-))");
    const Regex       llama3_turn =
        pattern(R"(<\|start_header_id\|>['"]#+#role#+['"]<\|end_header_id\|>\n\n['"]#+#content#+['"]<\|eot_id\|>)");
    ChatFormat format;
    format.with_bos = contains(jinja, "bos_token");
    format.trims    = matches(Regex(R"(\|\s*trim\b)"), jinja);
    if (matches(gap_after, jinja)) {
        refuse("it has empty lines between turns");
    } else if (matches(chatml_turn, jinja)) {
        format.family = ChatFamily::chatml;
        recognise_generation_prompt(jinja, "<|im_start|>assistant\n", format);
        recognise_chatml_system(jinja, format);
    } else if (matches(llama3_turn, jinja)) {
        format.family = ChatFamily::llama3;
        recognise_generation_prompt(jinja, "<|start_header_id|>assistant<|end_header_id|>\n\n", format);
        recognise_llama3_system(jinja, format);
    } else {
        refuse("it is of no known family");
    }
    format.drops_reasoning = matches(Regex(R"(\.split\('</think>'\)(?:\[-1\]|\s*\|\s*last\b))"), jinja);
    format.wraps_reasoning = contains(jinja, "\n<think>\n' + reasoning_content");
    if (format.wraps_reasoning && !contains(jinja, "+ '\n</think>\n\n' + content")) {
        refuse("it writes the model's reasoning in a way that is not known");
    }
    return format;
}

} // namespace penelope
