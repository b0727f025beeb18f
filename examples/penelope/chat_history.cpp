#include "chat_history.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace penelope {

namespace {

std::string directory_of(const char * variable, const char * below) {
    const char * value = std::getenv(variable);
    return value != nullptr && value[0] == '/' ? std::string(value) + below : "";
}

} // namespace

std::string ChatHistory::default_path() {
    std::string folder = directory_of("XDG_STATE_HOME", "");
    if (folder.empty()) {
        folder = directory_of("HOME", "/.local/state");
    }
    return folder.empty() ? "" : folder + "/penelope/history";
}

ChatHistory::ChatHistory(std::string path) : path_(std::move(path)) {}

std::vector<std::string> ChatHistory::load() {
    std::vector<std::string> messages;
    size_t                   n_lines = 0;
    std::ifstream            in(path_);
    for (std::string line; std::getline(in, line); ++n_lines) {
        // Damaged lines are skipped.
        const std::optional<Json> message = try_parse_json(line);
        if (message && message->is_string()) {
            messages.push_back(message->get<std::string>());
        }
    }
    if (messages.size() > limit) {
        messages.erase(messages.begin(), messages.end() - limit);
    }
    if (n_lines > 2 * limit) {
        std::string newest;
        for (const std::string & message : messages) {
            newest += dump_json(OrderedJson(message)) + "\n";
        }
        try {
            write_file(path_, newest, true);
            ::chmod(path_.c_str(), S_IRUSR | S_IWUSR);
        } catch (const Error & error) {
            log_debug("history: " + error.message());
        }
    }
    return messages;
}

void ChatHistory::add(const std::string & message) {
    if (path_.empty()) {
        return;
    }
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    // One append per message: two chats at the same time interleave messages, not bytes.
    const std::string line = dump_json(OrderedJson(message)) + "\n";
    const int         file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file == -1 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        log_debug("history: '" + path_ + "': write failed");
    }
    if (file != -1) {
        ::close(file);
    }
}

} // namespace penelope
