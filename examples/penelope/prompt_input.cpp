#include "prompt_input.h"

#include "base/format.h"
#include "base/trim.h"
#include "interrupt.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace penelope {

namespace {

std::string read_all(std::istream & in, const std::string & name) {
    std::string content;
    char        piece[65536];
    errno = 0;
    while (in.read(piece, sizeof piece), in.gcount() > 0) {
        content.append(piece, static_cast<size_t>(in.gcount()));
    }
    if (in.bad() || (&in == &std::cin && std::ferror(stdin) != 0)) { // std::cin reads through stdio
        throw Error(ErrorKind::io, name + ": " + std::strerror(errno));
    }
    return content;
}

} // namespace

std::string read_text(const std::string & path) {
    if (path == "-") {
        return read_all(std::cin, "standard input");
    }
    if (std::filesystem::is_directory(path)) {
        throw Error(ErrorKind::io, in_quotes(path) + ": is a directory", "give the path of a file");
    }
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        throw Error(errno == ENOENT ? ErrorKind::not_found : ErrorKind::io,
                    in_quotes(path) + ": " + std::strerror(errno), "check the path");
    }
    return read_all(in, path);
}

namespace {

// Editors and echo append a newline that is not part of the prompt.
std::string without_last_newline(std::string text) {
    if (!text.empty() && text.back() == '\n') {
        text.pop_back();
        if (!text.empty() && text.back() == '\r') {
            text.pop_back();
        }
    }
    return text;
}

constexpr const char * line_hint = "each line is an object such as {\"id\": 1, \"question\": \"...\"}";

std::string text_of(const Json & object, const std::string & origin) {
    const std::optional<std::string> prompt =
        object.is_object() ? json_find<std::string>(object, "prompt", origin) : std::nullopt;
    const std::optional<std::string> question =
        object.is_object() ? json_find<std::string>(object, "question", origin) : std::nullopt;
    if (!prompt && !question) {
        throw Error(ErrorKind::format, origin + ": missing \"prompt\" or \"question\"", line_hint);
    }
    return prompt ? *prompt : *question;
}

// number: the id of a line that has none. An error is stored in the result, so that it is reported under the line's id.
PromptInput parse_line(const std::string & line, const std::string & origin, size_t number) {
    PromptInput input{ number, "", {} };
    try {
        const Json object = parse_json_line(line, origin, line_hint, ", ");
        if (object.is_object() && object.contains("id") && !object["id"].is_null()) {
            input.id = OrderedJson(object["id"]);
        }
        input.text = text_of(object, origin);
    } catch (const Error & error) {
        input.parse_error.emplace(error);
    }
    return input;
}

std::string line_origin(const std::string & name, int n_line) {
    return name + ", line " + std::to_string(n_line);
}

std::deque<PromptInput> read_batch(const std::string & path) {
    std::istringstream      in(read_text(path));
    std::deque<PromptInput> prompts;
    int                     n_line = 0;
    for (std::string line; std::getline(in, line);) {
        ++n_line;
        if (!is_blank(line)) {
            prompts.push_back(parse_line(line, line_origin(path, n_line), prompts.size()));
            if (prompts.back().parse_error) {
                throw Error(*prompts.back().parse_error);
            }
        }
    }
    if (prompts.empty()) {
        throw Error(ErrorKind::format, path + ": no prompts found", line_hint);
    }
    return prompts;
}

// Whether standard input can be read (data or end of file). SIGINT is blocked except inside ppoll(), so that no Ctrl-C
// is lost between checking the count and waiting. Throws Error(cancelled).
bool input_is_ready(bool wait) {
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    pollfd         input{ STDIN_FILENO, POLLIN, 0 };
    const timespec at_once{};
    int            n = 0;
    do {
        n = interrupt_count() > 0 ? -1 : ppoll(&input, 1, wait ? nullptr : &at_once, &before);
    } while (n == -1 && errno == EINTR && interrupt_count() == 0);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (interrupt_count() > 0) {
        throw Error(ErrorKind::cancelled, "interrupted while reading prompts");
    }
    return n > 0;
}

} // namespace

PromptSource::PromptSource(const Options & options, Terminal & terminal) {
    if (options.given("prompt") + options.given("file") + options.given("batch") > 1) {
        throw UsageError("--prompt, --file and --batch: exclude each other", "give only one");
    }
    if (options.given("batch") && options.text("batch") == "-") {
        streams_ = true;
        ended_   = false;
        return;
    }
    if (options.given("batch")) {
        ready_ = read_batch(options.text("batch"));
    } else if (options.given("prompt")) {
        ready_.push_back({ nullptr, options.text("prompt"), {} });
    } else if (options.given("file")) {
        ready_.push_back({ nullptr, without_last_newline(read_text(options.text("file"))), {} });
    } else {
        if (terminal.in_is_tty()) {
            terminal.note("type the prompt, then Ctrl-D at the start of a line (or give it with -p)");
        }
        ready_.push_back({ nullptr, without_last_newline(read_text("-")), {} });
    }
    n_total_ = ready_.size();
}

std::optional<size_t> PromptSource::total() const {
    return streams_ ? std::nullopt : std::optional(n_total_);
}

// Reads a block of standard input and parses the lines it completes.
void PromptSource::read_more() {
    char          piece[65536];
    const ssize_t n = ::read(STDIN_FILENO, piece, sizeof piece);
    if (n < 0 && errno == EINTR) {
        return;
    }
    if (n < 0) {
        throw Error(ErrorKind::io, std::string("standard input: ") + std::strerror(errno));
    }
    ended_ = n == 0;
    bytes_.append(piece, static_cast<size_t>(n));
    if (ended_ && !bytes_.empty()) {
        bytes_ += '\n';
    }
    size_t begin = 0;
    for (size_t end = 0; (end = bytes_.find('\n', begin)) != std::string::npos; begin = end + 1) {
        const std::string line = bytes_.substr(begin, end - begin);
        ++n_line_;
        if (is_blank(line)) {
            continue;
        }
        ready_.push_back(parse_line(line, line_origin("standard input", n_line_), n_total_));
        ++n_total_;
    }
    bytes_.erase(0, begin);
    if (ended_ && n_total_ == 0) {
        throw Error(ErrorKind::format, "standard input: no prompts found", line_hint);
    }
}

std::vector<PromptInput> PromptSource::next(size_t most) {
    while (!ended_ && ready_.size() < most && input_is_ready(ready_.empty())) {
        read_more();
    }
    std::vector<PromptInput> prompts;
    while (!ready_.empty() && prompts.size() < most) {
        prompts.push_back(std::move(ready_.front()));
        ready_.pop_front();
    }
    return prompts;
}

} // namespace penelope
