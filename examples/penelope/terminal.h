// Writes to stdout (answers and tables) and stderr (everything else). Colour and progress lines appear only on
// terminals.
#pragma once

#include "base/error.h"

#include <atomic>
#include <string>
#include <string_view>

namespace penelope {

class Options;

enum class Style { plain, bold, dim, red, green, cyan };

class Terminal {
  public:
    Terminal(); // colours by "auto" until configure()
    ~Terminal();
    Terminal(const Terminal &)             = delete;
    Terminal & operator=(const Terminal &) = delete;

    // Takes --color, --quiet and --verbose; sets the level of the log.
    void configure(const Options & options);

    bool in_is_tty() const { return in_tty_; }
    bool out_is_tty() const { return out_tty_; }
    bool err_is_tty() const { return err_tty_; }
    bool quiet() const { return quiet_; }
    bool verbose() const { return verbose_; }
    bool color_out() const { return color_out_; }
    bool color_err() const { return color_err_; }
    // Lines can be written over and the cursor moved: not on TERM=dumb.
    bool moves() const { return moves_; }
    // People watch: stderr is a terminal or -v was given, and not -q.
    bool talkative() const { return (err_tty_ || verbose_) && !quiet_; }

    size_t width() const;   // columns of stdout, else of stderr, else 100; between 60 and 110
    size_t columns() const; // of stdout as they are; 80 where it does not tell

    // stdout. write() keeps partial lines and flushes them at once; both throw Error(io) when the stream fails.
    void write(std::string_view text);
    void line(std::string_view text);
    void write_styled(std::string_view text, Style style);

    // stderr, one line: tell and warning unless quiet, note when talkative(), error always.
    void tell(std::string_view text);
    void note(std::string_view text);
    void warning(std::string_view text);
    void error(const Error & error);

    // stderr, dim, as it comes and without a line's end; nothing when quiet.
    void aside(std::string_view text);

    // A line on stderr that is written over by the next one; nothing when stderr is no terminal or cannot do that. ""
    // removes it.
    void progress(std::string_view text);

  private:
    void err_line(std::string_view label, std::string_view text, Style style);

    bool              in_tty_, out_tty_, err_tty_, moves_;
    bool              color_out_, color_err_;
    bool              quiet_   = false;
    bool              verbose_ = false;
    std::atomic<bool> progress_shown_{ false }; // loading and its progress run on two threads
};

// Text on terminals is UTF-8, whatever the environment says. Numbers stay in the C locale.
void use_utf8_locale();

std::string styled(std::string_view text, Style style, bool color);

} // namespace penelope
