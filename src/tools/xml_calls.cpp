// Calls written as <function=NAME> with one <parameter=KEY> for each argument: Qwen3.5, Qwen3-Coder.
#include "tools/call_body.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t kMaxName = 512;

constexpr std::string_view kFunction = "<function=", kFunctionEnd = "</function>",
                           kParameter = "<parameter=", kParameterEnd = "</parameter>";

// A value as JSON. What the schema calls a string is one, whatever it looks like.
OrderedJson typed_value(const OrderedJson & schema, const std::string & key, const std::string & text) {
    const OrderedJson properties = schema.value("properties", OrderedJson::object());
    const OrderedJson property = properties.is_object() ? properties.value(key, OrderedJson::object()) : OrderedJson();
    const OrderedJson type     = property.is_object() ? property.value("type", OrderedJson()) : OrderedJson();
    if (type != "string") {
        try {
            return parse_ordered_json(text, key);
        } catch (const std::exception &) { // no JSON: a string
        }
    }
    return text;
}

class XmlCallBody : public CallBody {
  public:
    explicit XmlCallBody(const std::vector<Tool> & tools) : tools_(tools) {}

    Status read(std::string & text, std::vector<ToolEvent> & out) override {
        return tool_ == nullptr ? start(text, out) : parameters(text, out);
    }

  private:
    Status start(std::string & text, std::vector<ToolEvent> & out) {
        TextCursor at(text);
        at.skip_spaces();
        const auto   found = at.skip(kFunction);
        const size_t end   = text.find('>', at.position());
        if (found == TextCursor::Match::no || (end == std::string::npos && text.size() > kMaxName)) {
            return Status::failed;
        }
        if (end == std::string::npos || found == TextCursor::Match::more) {
            return Status::more;
        }
        const std::string name = text.substr(at.position(), end - at.position());
        const auto tool = std::find_if(tools_.begin(), tools_.end(), [&](const Tool & t) { return t.name == name; });
        if (tool == tools_.end()) {
            return Status::failed;
        }
        tool_ = &*tool;
        text.erase(0, end + 1);
        out.push_back({ ToolEvent::Kind::begin, name });
        return Status::began;
    }

    Status parameters(std::string & text, std::vector<ToolEvent> & out) {
        for (;;) {
            TextCursor at(text);
            at.skip_spaces();
            const auto ends = at.skip(kFunctionEnd);
            if (ends == TextCursor::Match::yes) {
                out.push_back({ ToolEvent::Kind::arguments, n_arguments_ == 0 ? "{}" : "}" });
                out.push_back({ ToolEvent::Kind::end, "" });
                text.erase(0, at.position());
                return Status::done;
            }
            const auto opens = at.skip(kParameter);
            if (opens == TextCursor::Match::no && ends == TextCursor::Match::no) {
                return Status::done; // broken: without an end
            }
            const size_t name_end = text.find('>', at.position());
            if (opens != TextCursor::Match::yes || name_end == std::string::npos) {
                return text.size() > kMaxName ? Status::done : Status::more;
            }
            const size_t end = text.find(kParameterEnd, std::max(searched_, name_end + 1));
            if (end == std::string::npos) {
                searched_ = text.size() - std::min(text.size(), kParameterEnd.size());
                return Status::more;
            }
            searched_               = 0;
            const std::string key   = text.substr(at.position(), name_end - at.position());
            std::string       value = text.substr(name_end + 1, end - name_end - 1);
            value.erase(0, !value.empty() && value.front() == '\n'); // one line break on either side is the format's
            if (!value.empty() && value.back() == '\n') {
                value.pop_back();
            }
            text.erase(0, end + kParameterEnd.size());
            out.push_back({ ToolEvent::Kind::arguments, (n_arguments_++ == 0 ? "{" : ", ") +
                                                            dump_json(OrderedJson(key)) + ": " +
                                                            dump_json(typed_value(tool_->parameters, key, value)) });
        }
    }

    const std::vector<Tool> & tools_;
    const Tool *              tool_        = nullptr;
    int                       n_arguments_ = 0;
    size_t                    searched_    = 0; // no end of the open parameter before this position
};

} // namespace

std::unique_ptr<CallBody> xml_call_body(const std::vector<Tool> & tools) {
    return std::make_unique<XmlCallBody>(tools);
}

} // namespace penelope
