// Calls written as JSON objects: Hermes, Qwen, Llama 3, Granite, Phi-4-mini, Mistral.
#include "tools/call_body.h"
#include "tools/json_scanner.h"

namespace penelope {

namespace {

constexpr size_t kMaxHead = 4096; // bytes before the arguments

enum class Head { more, no, arguments, empty }; // empty: the object ends without arguments

// A JSON string in which nothing is escaped.
std::optional<std::string> plain_string(TextCursor & at, bool & more) {
    const std::string_view text  = at.text();
    const size_t           begin = at.position() + 1;
    const size_t           end   = at.at_end() || at.peek() != '"' ? std::string_view::npos : text.find('"', begin);
    more                         = at.at_end() || (at.peek() == '"' && end == std::string_view::npos);
    if (end == std::string_view::npos || text.substr(begin, end - begin).find('\\') != std::string_view::npos) {
        return std::nullopt;
    }
    at.move_to(end + 1);
    return std::string(text.substr(begin, end - begin));
}

// The beginning of an object up to its arguments. Other fields with plain strings ("type", "id") are skipped.
Head read_head(TextCursor & at, std::string & name) {
    at.skip_spaces();
    for (const char * before = "{";; before = ",") {
        const auto punctuation = at.skip(before);
        if (punctuation != TextCursor::Match::yes) {
            const bool ends = !name.empty() && at.skip("}") == TextCursor::Match::yes;
            return ends ? Head::empty : punctuation == TextCursor::Match::more ? Head::more : Head::no;
        }
        bool more = false;
        at.skip_spaces();
        const auto key = plain_string(at, more);
        if (!key) {
            return more ? Head::more : Head::no;
        }
        at.skip_spaces();
        if (const auto colon = at.skip(":"); colon != TextCursor::Match::yes) {
            return colon == TextCursor::Match::more ? Head::more : Head::no;
        }
        at.skip_spaces();
        if (*key == "arguments" || *key == "parameters") {
            if (at.at_end()) {
                return Head::more;
            }
            return !name.empty() && at.peek() == '{' ? Head::arguments : Head::no;
        }
        const auto value = plain_string(at, more);
        if (!value) {
            return more ? Head::more : Head::no;
        }
        name = *key == "name" ? *value : name;
        at.skip_spaces();
    }
}

class JsonCallBody : public CallBody {
  public:
    explicit JsonCallBody(const std::vector<Tool> & tools) : tools_(tools) {}

    Status read(std::string & text, std::vector<ToolEvent> & out) override {
        switch (state_) {
            case State::start: return start(text, out);
            case State::arguments: return arguments(text, out);
            case State::tail: return tail(text);
        }
        return Status::failed;
    }

  private:
    enum class State { start, arguments, tail };

    Status start(std::string & text, std::vector<ToolEvent> & out) {
        TextCursor at(text);
        at.skip_spaces();
        const bool opens_list = !in_list_ && n_calls_ == 0 && at.skip("[") == TextCursor::Match::yes;
        if (at.at_end()) {
            return Status::more;
        }
        std::string name;
        const Head  head = read_head(at, name);
        if (head == Head::more && text.size() <= kMaxHead) {
            return Status::more;
        }
        if (head == Head::no || head == Head::more || !is_tool(tools_, name)) {
            return n_calls_ > 0 ? Status::done : Status::failed;
        }
        in_list_ = in_list_ || opens_list;
        n_calls_++;
        text.erase(0, at.position());
        out.push_back({ ToolEvent::Kind::begin, name });
        if (head == Head::empty) {
            out.push_back({ ToolEvent::Kind::arguments, "{}" });
            out.push_back({ ToolEvent::Kind::end, "" });
            state_ = State::tail;
            ended_ = true;
            return tail(text);
        }
        scanner_ = JsonScanner();
        state_   = State::arguments;
        ended_   = false;
        return Status::began;
    }

    Status arguments(std::string & text, std::vector<ToolEvent> & out) {
        size_t n = 0;
        while (n < text.size() && scanner_.state() == JsonScanner::State::inside) {
            scanner_.feed(text[n++]);
        }
        const bool broken = scanner_.state() == JsonScanner::State::broken;
        n -= broken;
        if (n > 0) {
            out.push_back({ ToolEvent::Kind::arguments, text.substr(0, n) });
            text.erase(0, n);
        }
        if (broken) {
            return Status::done; // cut off: without an end
        }
        if (scanner_.state() == JsonScanner::State::inside) {
            return Status::more;
        }
        out.push_back({ ToolEvent::Kind::end, "" });
        state_ = State::tail;
        return tail(text);
    }

    // The end of the object and what stands between it and the next one of the list. Fields after the arguments, as an
    // "id", are skipped.
    Status tail(std::string & text) {
        if (!ended_) {
            const size_t end = text.find('}');
            if (end == std::string::npos) {
                return text.size() > kMaxHead ? Status::done : Status::more;
            }
            text.erase(0, end + 1);
            ended_ = true;
        }
        if (!in_list_) {
            return Status::done;
        }
        TextCursor at(text);
        at.skip_spaces();
        if (at.at_end()) {
            return Status::more;
        }
        const char next = at.peek();
        if (next == ']' || next == ',') {
            text.erase(0, at.position() + 1);
        }
        if (next == ',') {
            state_ = State::start;
            return Status::more;
        }
        return Status::done;
    }

    const std::vector<Tool> & tools_;
    State                     state_   = State::start;
    bool                      in_list_ = false;
    bool                      ended_   = false; // the object that holds the call
    int                       n_calls_ = 0;
    JsonScanner               scanner_;
};

} // namespace

std::unique_ptr<CallBody> json_call_body(const std::vector<Tool> & tools) {
    return std::make_unique<JsonCallBody>(tools);
}

} // namespace penelope
