// How models write tool calls: a table of formats, and which of them the chat template of a model teaches.
#pragma once

#include "grammar/grammar.h"
#include "text/chat_template.h"
#include "tools/call_body.h"

#include <functional>

namespace penelope {

// What stands around a call. An empty `open`: a call may begin where the answer begins, and after another call.
struct ToolMark {
    std::string_view open, close;
};

struct ToolFormat {
    const char * name;
    // Found in what a template writes for a call of the function `probe_function`, or in its instructions. Null: for
    // templates that take no tools; the functions are then described in the system message.
    const char *          template_mark;
    std::vector<ToolMark> marks; // the first is the one that grammars write

    std::unique_ptr<CallBody> (*body)(const std::vector<Tool> & tools);

    // The text of an answer with calls, as templates write it:
    // list_begin (call_begin NAME call_arguments REST call_end) separator (...) list_end
    const char * list_begin;
    const char * call_begin;
    const char * call_arguments;
    // REST: the arguments and what closes them. Throws Error(unsupported) for a schema it cannot follow.
    Sequence (*rest)(GrammarBuilder & builder, const Tool & tool);
    const char * call_end;
    const char * separator; // null: one call only
    const char * list_end;
    // REST in all the spellings a model may choose, whatever the schema says; null: none. For a call that has begun
    // differently than the grammar of its schema allows.
    const char * loose_rest; // GBNF

    // Marks that are control tokens of a vocabulary. Decoding leaves such out; here they are text.
    std::vector<std::string> control_marks;
};

constexpr const char * probe_function = "fXzF";

const std::vector<ToolFormat> & tool_formats();

// How the tools reach a model.
struct ToolDialect {
    const ToolFormat * format       = nullptr;
    ToolPlace          place        = ToolPlace::tools; // where the template takes them
    bool               described    = false;            // the template takes none: describe() puts them into a message
    bool               writes_calls = false;            // the template writes the calls of earlier answers
    bool               takes_system = false;            // the template takes a system message
};

ToolDialect find_tool_dialect(const ChatTemplate & chat);

// The conversation for a template: where it cannot write earlier calls and results they become text of the messages,
// and where it takes no tools they are described in the first message.
std::vector<ChatMessage> messages_with_tools(const ToolDialect & dialect, std::vector<ChatMessage> messages,
                                             const std::vector<Tool> & tools);

} // namespace penelope
