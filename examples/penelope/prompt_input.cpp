#include "prompt_input.h"

#include "base/format.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace penelope {

namespace {

std::string read_all(std::istream & in, const std::string & name) {
    std::ostringstream content;
    content << in.rdbuf();
    if (in.bad()) {
        throw Error(ErrorKind::io, name + ": " + std::strerror(errno));
    }
    return content.str();
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

// Editors and echo end a text with a newline that is not meant.
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

std::vector<PromptInput> read_batch(const std::string & path) {
    const std::string        name = path == "-" ? "standard input" : path;
    std::istringstream       in(read_text(path));
    std::vector<PromptInput> prompts;
    int                      n_line = 0;
    for (std::string line; std::getline(in, line);) {
        ++n_line;
        if (line.find_first_not_of(" \t\r") == std::string::npos) {
            continue;
        }
        const std::string                origin = name + ", line " + std::to_string(n_line);
        const Json                       object = parse_json_line(line, origin, line_hint, ", ");
        const std::optional<std::string> prompt =
            object.is_object() ? json_find<std::string>(object, "prompt", origin) : std::nullopt;
        const std::optional<std::string> question =
            object.is_object() ? json_find<std::string>(object, "question", origin) : std::nullopt;
        if (!prompt && !question) {
            throw Error(ErrorKind::format, origin + ": neither \"prompt\" nor \"question\"", line_hint);
        }
        const bool has_id = object.contains("id") && !object["id"].is_null();
        prompts.push_back(
            { has_id ? OrderedJson(object["id"]) : OrderedJson(prompts.size()), prompt ? *prompt : *question });
    }
    if (prompts.empty()) {
        throw Error(ErrorKind::format, name + ": no questions in it", line_hint);
    }
    return prompts;
}

} // namespace

std::vector<PromptInput> read_prompts(const Options & options, Terminal & terminal) {
    if (options.given("prompt") + options.given("file") + options.given("batch") > 1) {
        throw UsageError("run: more than one of --prompt, --file and --batch", "give one of them");
    }
    if (options.given("batch")) {
        return read_batch(options.text("batch"));
    }
    if (options.given("prompt")) {
        return { { nullptr, options.text("prompt") } };
    }
    if (options.given("file")) {
        return { { nullptr, without_last_newline(read_text(options.text("file"))) } };
    }
    if (terminal.in_is_tty()) {
        terminal.note("type the prompt, then Ctrl-D at the start of a line (or give it with -p)");
    }
    return { { nullptr, without_last_newline(read_text("-")) } };
}

} // namespace penelope
