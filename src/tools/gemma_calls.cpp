// Calls as Gemma 4 writes them: call:NAME{KEY:VALUE,...}. Keys are bare, strings stand between <|"|>.
#include "tools/call_body.h"

#include <algorithm>

namespace penelope {

namespace {

constexpr size_t           kMaxName  = 512;
constexpr int              kMaxDepth = 100;
constexpr std::string_view kQuote = "<|\"|>", kEnd = "<tool_call|>";

struct NoValue {};

// Throws NoValue for anything else than a value of this form.
class GemmaReader {
  public:
    explicit GemmaReader(std::string_view text) : at_(text) {}

    OrderedJson object() {
        expect("{");
        OrderedJson out = OrderedJson::object();
        while (!take("}")) {
            if (!out.empty()) {
                expect(",");
            }
            const std::string key = word(":");
            expect(":");
            out[key] = value();
        }
        return out;
    }
    bool at_end() {
        at_.skip_spaces();
        return at_.at_end();
    }

  private:
    bool take(std::string_view text) {
        at_.skip_spaces();
        return at_.skip(text) == TextCursor::Match::yes;
    }
    void expect(std::string_view text) {
        if (!take(text)) {
            throw NoValue();
        }
    }
    std::string until(std::string_view end) {
        const size_t begin = at_.position(), found = at_.text().find(end, begin);
        if (found == std::string_view::npos) {
            throw NoValue();
        }
        at_.move_to(found);
        return std::string(at_.text().substr(begin, found - begin));
    }
    std::string word(std::string_view end) {
        if (!take(kQuote)) {
            std::string text = until(end);
            text.erase(std::min(text.find_last_not_of(" \t\r\n") + 1, text.size()));
            return text;
        }
        std::string text = until(kQuote);
        expect(kQuote);
        return text;
    }
    OrderedJson value() {
        struct Depth {
            explicit Depth(int & depth) : depth_(depth) {
                if (++depth_ > kMaxDepth) {
                    throw NoValue();
                }
            }
            ~Depth() { depth_--; }
            int & depth_;
        } const deeper(depth_);
        at_.skip_spaces();
        if (at_.at_end()) {
            throw NoValue();
        }
        if (at_.peek() == '{') {
            return object();
        }
        if (take("[")) {
            OrderedJson out = OrderedJson::array();
            while (!take("]")) {
                if (!out.empty()) {
                    expect(",");
                }
                out.push_back(value());
            }
            return out;
        }
        if (at_.text().substr(at_.position(), kQuote.size()) == kQuote) {
            return word("");
        }
        const size_t begin = at_.position(), end = at_.text().find_first_of(",}] \t\r\n", begin);
        if (end == std::string_view::npos) {
            throw NoValue();
        }
        at_.move_to(end);
        try {
            return parse_ordered_json(at_.text().substr(begin, end - begin), "");
        } catch (const std::exception &) {
            throw NoValue();
        }
    }

    TextCursor at_;
    int        depth_ = 0;
};

class GemmaCallBody : public CallBody {
  public:
    explicit GemmaCallBody(const std::vector<Tool> & tools) : tools_(tools) {}

    Status read(std::string & text, std::vector<ToolEvent> & out) override {
        return begun_ ? arguments(text, out) : start(text, out);
    }

  private:
    Status start(std::string & text, std::vector<ToolEvent> & out) {
        TextCursor at(text);
        at.skip_spaces();
        const auto   found = at.skip("call:");
        const size_t brace = text.find('{', at.position());
        if (found == TextCursor::Match::no || (brace == std::string::npos && text.size() > kMaxName)) {
            return Status::failed;
        }
        if (found == TextCursor::Match::more || brace == std::string::npos) {
            return Status::more;
        }
        const std::string name = text.substr(at.position(), brace - at.position());
        if (!is_tool(tools_, name)) {
            return Status::failed;
        }
        text.erase(0, brace);
        begun_ = true;
        out.push_back({ ToolEvent::Kind::begin, name });
        return Status::began;
    }

    Status arguments(std::string & text, std::vector<ToolEvent> & out) {
        const size_t end = text.find(kEnd, searched_);
        if (end == std::string::npos) {
            searched_ = text.size() - std::min(text.size(), kEnd.size());
            return Status::more;
        }
        GemmaReader reader(std::string_view(text).substr(0, end));
        try {
            const OrderedJson object = reader.object();
            if (!reader.at_end()) {
                throw NoValue();
            }
            out.push_back({ ToolEvent::Kind::arguments, dump_json(object) });
            out.push_back({ ToolEvent::Kind::end, "" });
        } catch (const NoValue &) { // broken: without an end
        }
        text.erase(0, end);
        return Status::done;
    }

    const std::vector<Tool> & tools_;
    bool                      begun_    = false;
    size_t                    searched_ = 0;
};

} // namespace

std::unique_ptr<CallBody> gemma_call_body(const std::vector<Tool> & tools) {
    return std::make_unique<GemmaCallBody>(tools);
}

} // namespace penelope
