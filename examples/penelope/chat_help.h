// The slash commands of penelope chat, as /help shows them.
#pragma once

#include "base/json.h"

#include <string>
#include <vector>

namespace penelope {

std::string              chat_help();
OrderedJson              chat_help_json();     // {"status":"ok","help":[{"command","meaning"}]}
std::vector<std::string> chat_command_names(); // "/help", ...

} // namespace penelope
