#include "chat_help.h"

#include <algorithm>

namespace penelope {

namespace {

struct ChatCommand {
    const char * usage;
    const char * meaning;
};

constexpr ChatCommand chat_commands[] = {
    { "/help", "this list" },
    { "/steps N", "latent steps, or auto; the same as /set K N" },
    { "/watch", "show or hide the nearest tokens of every latent step" },
    { "/set K N", "latent steps" },
    { "/set temp T", "temperature, 0: greedy" },
    { "/set seed S", "sampling seed" },
    { "/set n N", "maximum number of new tokens, -1: no limit" },
    { "/regen", "answer the last message again" },
    { "/clear", "clear the conversation" },
    { "/stats", "cost of the last answer, settings, memory use" },
    { "/save [--force] F", "write the conversation to a file, one JSON object per line" },
    { "/exit", "exit, like Ctrl-D" },
};

constexpr const char * chat_keys =
    "Ctrl-C stops an answer; twice exits. Several lines: paste them, end a line with \\, or put them between lines of "
    "\"\"\".\n"
    "A message that starts with / can be sent with a space before it.\n";

} // namespace

std::string chat_help() {
    std::string text;
    for (const ChatCommand & command : chat_commands) {
        std::string usage = command.usage;
        usage.resize(20, ' ');
        text += usage + command.meaning + "\n";
    }
    return text + chat_keys;
}

OrderedJson chat_help_json() {
    OrderedJson rows = OrderedJson::array();
    for (const ChatCommand & command : chat_commands) {
        rows.push_back({ { "command", command.usage }, { "meaning", command.meaning } });
    }
    return { { "status", "ok" }, { "help", std::move(rows) } };
}

std::vector<std::string> chat_command_names() {
    std::vector<std::string> names;
    for (const ChatCommand & command : chat_commands) {
        const std::string usage = command.usage;
        names.push_back(usage.substr(0, usage.find(' ')));
    }
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

} // namespace penelope
