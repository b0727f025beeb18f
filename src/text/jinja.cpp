#include "text/jinja.h"

#include "base/error.h"
#include "text/jinja_bounds.h"
#include "text/utf8.h"

#include <jinja/lexer.h>
#include <jinja/parser.h>

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t kUnits = 300000, kUnitsOfValue = 3000; // some seconds

[[noreturn]] void fail(const std::string & why) {
    std::string message = "chat template: " + why;
    for (char & c : message) {
        c = c == '\n' ? ' ' : c;
    }
    throw Error(ErrorKind::unsupported, message,
                "name another template with --chat-template, or use --raw to write the prompt yourself");
}

// The engine's reports: "\nError executing NODE at position N: WHY", or WHY and the place in the lines after.
std::string reason(std::string report) {
    report.erase(0, std::min(report.find_first_not_of('\n'), report.size()));
    if (report.substr(0, 16) == "Error executing ") {
        report.erase(0, report.find(": ") + 2);
    }
    return report.substr(0, report.find('\n'));
}

std::string valid(const std::string & text) {
    std::string out;
    append_valid_utf8(out, text);
    return out;
}

// A character that nobody wrote: Unicode's noncharacters U+FDD0 to U+FDEF are for use inside programs.
std::string unused_mark(const std::string & texts) {
    for (int i = 0; i < 32; i++) {
        const std::string mark = { '\xEF', '\xB7', static_cast<char>(0x90 + i) };
        if (texts.find(mark) == std::string::npos) {
            return mark;
        }
    }
    fail("the messages hold all 32 noncharacters from U+FDD0 on");
}

// A role is part of what some templates make control tokens of.
bool is_word(const OrderedJson & json) {
    const std::string text = json.is_string() ? json.get<std::string>() : " ";
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

class Values {
  public:
    Values(const JinjaInput & input, std::string mark) : input_(input), mark_(std::move(mark)) {}

    jinja::value make(const OrderedJson & json, bool given, bool role = false) {
        n_++;
        switch (json.type()) {
            case OrderedJson::value_t::boolean: return jinja::mk_val<jinja::value_bool>(json.get<bool>());
            case OrderedJson::value_t::number_integer:
            case OrderedJson::value_t::number_unsigned: return jinja::mk_val<jinja::value_int>(json.get<int64_t>());
            case OrderedJson::value_t::number_float: return jinja::mk_val<jinja::value_float>(json.get<double>());
            case OrderedJson::value_t::string: return text(valid(json.get<std::string>()), given && !role);
            case OrderedJson::value_t::array: {
                auto array = jinja::mk_val<jinja::value_array>();
                for (const OrderedJson & item : json) {
                    array->push_back(make(item, given));
                }
                return array;
            }
            case OrderedJson::value_t::object: {
                auto object = jinja::mk_val<jinja::value_object>();
                for (const auto & [key, item] : json.items()) {
                    object->insert(text(valid(key), given), make(item, given, key == "role" && is_word(item)));
                }
                return object;
            }
            default: return jinja::mk_val<jinja::value_none>();
        }
    }

    size_t n_units() const { return kUnits + kUnitsOfValue * n_ + n_bytes_; }

  private:
    jinja::value text(const std::string & string, bool given) {
        n_bytes_ += string.size();
        auto made = jinja::mk_val<jinja::value_string>(given && input_.guard ? input_.guard(string, mark_) : string);
        if (given) {
            made->mark_input();
        }
        return made;
    }

    const JinjaInput & input_;
    std::string        mark_;
    size_t             n_ = 0, n_bytes_ = 0;
};

// The parts of the engine's text without marks, which end ranges of the template's own.
JinjaText collect(const jinja::string & result, const std::string & mark) {
    JinjaText out;
    for (const jinja::string_part & part : result.parts) {
        for (size_t pos = 0; pos <= part.val.size();) {
            const size_t end   = std::min(part.val.find(mark, pos), part.val.size());
            const size_t begin = out.text.size();
            out.text.append(part.val, pos, end - pos);
            if (!part.is_input && out.text.size() > begin) {
                out.own.push_back({ begin, out.text.size() });
            }
            pos = end + (end < part.val.size() ? mark.size() : 1);
        }
    }
    return out;
}

} // namespace

JinjaText run_jinja(const std::string & source, const JinjaInput & input) {
    const std::string mark = unused_mark(dump_json(input.given) + source);
    try {
        jinja::context context; // without the source: the engine would quote it in every message
        context.current_time = input.now;
        set_bounded_functions(context);
        Values values(input, mark);
        for (const auto & [name, value] : input.own.items()) {
            context.set_val(name, values.make(value, false));
        }
        for (const auto & [name, value] : input.given.items()) {
            context.set_val(name, values.make(value, true));
        }
        const JinjaBudget         budget(values.n_units());
        jinja::lexer              lexer;
        const jinja::lexer_result tokens = lexer.tokenize(valid(source));
        check_jinja_nesting(tokens.tokens);
        jinja::program program = jinja::parse_from_tokens(tokens);
        bound_jinja(program);
        const jinja::value result = jinja::runtime(context).execute(program);
        return collect(jinja::runtime::gather_string_parts(result)->val_str, mark);
    } catch (const JinjaFailure & failure) {
        fail(failure.message);
    } catch (const std::bad_alloc &) {
        throw;
    } catch (const std::exception & error) {
        fail(reason(error.what()));
    }
}

} // namespace penelope
