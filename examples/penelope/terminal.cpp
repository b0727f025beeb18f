#include "terminal.h"

#include "base/log.h"
#include "options.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace penelope {

namespace {

bool understands_escapes() {
    const char * term = std::getenv("TERM");
    return term == nullptr || std::strcmp(term, "dumb") != 0;
}

// https://no-color.org: present and not empty.
bool colors_allowed() {
    const char * no_color = std::getenv("NO_COLOR");
    return (no_color == nullptr || *no_color == '\0') && understands_escapes();
}

const char * escape_of(Style style) {
    switch (style) {
        case Style::bold: return "\033[1m";
        case Style::dim: return "\033[2m";
        case Style::red: return "\033[1;31m";
        case Style::green: return "\033[32m";
        case Style::cyan: return "\033[36m";
        case Style::plain: return "";
    }
    return "";
}

} // namespace

void use_utf8_locale() {
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
        std::setlocale(LC_CTYPE, "C.UTF-8");
    }
}

std::string styled(std::string_view text, Style style, bool color) {
    return color && style != Style::plain ? std::string(escape_of(style)) + std::string(text) + "\033[0m"
                                          : std::string(text);
}

Terminal::Terminal()
    : in_tty_(isatty(STDIN_FILENO) == 1), out_tty_(isatty(STDOUT_FILENO) == 1), err_tty_(isatty(STDERR_FILENO) == 1),
      moves_(understands_escapes()), color_out_(out_tty_ && colors_allowed()),
      color_err_(err_tty_ && colors_allowed()) {}

Terminal::~Terminal() {
    log_set_sink({});
}

void Terminal::configure(const Options & options) {
    quiet_   = options.flag("quiet");
    verbose_ = options.flag("verbose") && !quiet_;
    if (options.text("color") != "auto") {
        color_out_ = color_err_ = options.text("color") == "on";
    }
    log_set_level(quiet_ ? LogLevel::error : verbose_ ? LogLevel::debug : LogLevel::warning);
    log_set_sink([this](LogLevel level, std::string_view text) {
        progress("");
        if (level == LogLevel::warning) {
            warning(text);
        } else {
            err_line("", text, Style::dim);
        }
    });
    log_route_ggml();
}

size_t Terminal::width() const {
    for (const int stream : { STDOUT_FILENO, STDERR_FILENO }) {
        winsize size{};
        if (ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
            return std::clamp<size_t>(size.ws_col, 60, 110);
        }
    }
    return 100;
}

size_t Terminal::columns() const {
    winsize size{};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Terminal::write(std::string_view text) {
    progress(""); // both may share a screen
    // Not through stdio: a write cut short by Ctrl-C must go on where it stopped.
    while (!text.empty()) {
        const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
        if (n >= 0) {
            text.remove_prefix(static_cast<size_t>(n));
        } else if (errno != EINTR) {
            throw Error(ErrorKind::io, std::string("standard output: ") + std::strerror(errno));
        }
    }
}

void Terminal::line(std::string_view text) {
    write(std::string(text) + "\n");
}

void Terminal::write_styled(std::string_view text, Style style) {
    write(styled(text, style, color_out_));
}

void Terminal::err_line(std::string_view label, std::string_view text, Style style) {
    progress("");
    // The label is coloured for things that matter, the whole line for asides.
    const std::string shown =
        label.empty() ? styled(text, style, color_err_) : styled(label, style, color_err_) + " " + std::string(text);
    std::fprintf(stderr, "%s\n", shown.c_str());
}

void Terminal::tell(std::string_view text) {
    if (!quiet_) {
        err_line("", text, Style::plain);
    }
}

void Terminal::note(std::string_view text) {
    if (talkative()) {
        err_line("", text, Style::dim);
    }
}

void Terminal::aside(std::string_view text) {
    if (!quiet_) {
        progress("");
        std::fputs(styled(text, Style::dim, color_err_).c_str(), stderr);
        std::fflush(stderr);
    }
}

void Terminal::warning(std::string_view text) {
    if (!quiet_) {
        err_line("warning:", text, Style::cyan);
    }
}

void Terminal::error(const Error & error) {
    err_line("error:", error.message(), Style::red);
    if (!error.hint.empty()) {
        err_line("hint:", error.hint, Style::cyan);
    }
}

void Terminal::progress(std::string_view text) {
    if (!err_tty_ || !moves_ || quiet_ || (text.empty() && !progress_shown_)) {
        return;
    }
    // A line that wraps could not be taken back.
    winsize size = {};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
        text = text.substr(0, size.ws_col - 1u);
    }
    std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(text.size()), text.data());
    std::fflush(stderr);
    progress_shown_ = !text.empty();
}

} // namespace penelope
