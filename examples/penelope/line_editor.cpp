#include "line_editor.h"

#include "interrupt.h"

#include <histedit.h>
#include <sys/select.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <iostream>

namespace penelope {

namespace {

constexpr char escape_mark = '\1'; // marks zero-width escape sequences in the prompt

constexpr const char * paste_on  = "\033[?2004h"; // bracketed paste mode
constexpr const char * paste_off = "\033[?2004l";

// Set by the handlers of SIGTSTP and SIGCONT.
volatile std::sig_atomic_t stop_asked = 0, was_stopped = 0;

void on_job_control(int signal_number) {
    (signal_number == SIGTSTP ? stop_asked : was_stopped) = 1;
}

// While it exists, SIGTSTP and SIGCONT only set flags: the terminal mode must be restored before stopping and set again
// after continuing.
class JobControl {
  public:
    JobControl() {
        struct sigaction action {};
        sigemptyset(&action.sa_mask);
        action.sa_handler = on_job_control;
        sigaction(SIGTSTP, &action, &stop_before_);
        sigaction(SIGCONT, &action, &go_on_before_);
    }
    ~JobControl() {
        sigaction(SIGTSTP, &stop_before_, nullptr);
        sigaction(SIGCONT, &go_on_before_, nullptr);
    }
    JobControl(const JobControl &)             = delete;
    JobControl & operator=(const JobControl &) = delete;

    // Stops the process with the default action of SIGTSTP; returns after SIGCONT.
    static void stop() {
        struct sigaction plain {
        }, ours{};
        sigemptyset(&plain.sa_mask);
        plain.sa_handler = SIG_DFL;
        sigset_t both, before;
        sigemptyset(&both);
        sigaddset(&both, SIGTSTP);
        sigaddset(&both, SIGCONT);
        sigaction(SIGTSTP, &plain, &ours);
        raise(SIGTSTP);
        pthread_sigmask(SIG_UNBLOCK, &both, &before);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        sigaction(SIGTSTP, &ours, nullptr);
    }

  private:
    struct sigaction stop_before_ {
    }, go_on_before_{};
};

} // namespace

struct LineEditor::Impl {
    std::string              prompt;
    std::vector<std::string> completions;
    bool                     on_terminal;
    bool                     brackets     = true;  // the terminal supports bracketed paste
    bool                     interrupted  = false; // by Ctrl-C while waiting for a key
    bool                     had_text     = false; // at that moment
    int                      n_interrupts = 0;     // Ctrl-C count before this line
    ChatHistory              earlier{ "" };

    std::FILE *                                      out = stdout;
    std::unique_ptr<EditLine, decltype(&el_end)>     edit{ nullptr, el_end };
    std::unique_ptr<History, decltype(&history_end)> history{ nullptr, history_end };

    static Impl & of(EditLine * edit) {
        void * self = nullptr;
        el_get(edit, EL_CLIENTDATA, &self);
        return *static_cast<Impl *>(self);
    }

    static char * give_prompt(EditLine * edit) { return of(edit).prompt.data(); }

    // Waits for a key; false if Ctrl-C came first. Signals are blocked except inside pselect(), so that none is lost
    // between checking the flags and waiting.
    bool wait_for_key() {
        sigset_t signals, before;
        sigemptyset(&signals);
        for (const int one : { SIGINT, SIGTSTP, SIGCONT }) {
            sigaddset(&signals, one);
        }
        pthread_sigmask(SIG_BLOCK, &signals, &before);
        bool pressed = interrupt_count() != n_interrupts;
        for (bool ready = false; !ready && !pressed; pressed = interrupt_count() != n_interrupts) {
            if (stop_asked || was_stopped) {
                suspend();
            }
            fd_set keys;
            FD_ZERO(&keys);
            FD_SET(STDIN_FILENO, &keys);
            ready = pselect(STDIN_FILENO + 1, &keys, nullptr, nullptr, nullptr, &before) != -1 || errno != EINTR;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return !pressed;
    }

    // Restores the terminal mode for the shell, stops, and redraws the line after SIGCONT.
    void suspend() {
        bracket_paste(false);
        el_set(edit.get(), EL_PREP_TERM, 0);
        if (stop_asked) {
            JobControl::stop();
        }
        stop_asked = was_stopped = 0;
        el_set(edit.get(), EL_PREP_TERM, 1);
        bracket_paste(true);
        el_resize(edit.get());
        el_set(edit.get(), EL_REFRESH);
    }

    // Reads one character. libedit's own function does not return after a signal.
    static int read_char(EditLine * edit, wchar_t * out) {
        Impl &         self = of(edit);
        std::mbstate_t state{};
        while (true) {
            if (!self.wait_for_key()) {
                const LineInfo * line = el_line(edit);
                self.interrupted      = true;
                self.had_text         = line->lastchar != line->buffer;
                return -1;
            }
            char          byte = 0;
            const ssize_t n    = ::read(STDIN_FILENO, &byte, 1);
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n <= 0) {
                return static_cast<int>(n);
            }
            const size_t used = std::mbrtowc(out, &byte, 1, &state);
            if (used == static_cast<size_t>(-1)) {
                *out = L'?';
                return 1;
            }
            if (used != static_cast<size_t>(-2)) {
                return 1;
            }
        }
    }

    // Bound to the start sequence of bracketed paste: inserts everything up to the end sequence.
    static unsigned char insert_paste(EditLine * edit, int) {
        static const std::wstring closing = L"\033[201~";
        std::wstring              text;
        wchar_t                   c = 0;
        while (el_wgetc(edit, &c) == 1) {
            text += c;
            if (text.size() >= closing.size() &&
                text.compare(text.size() - closing.size(), closing.size(), closing) == 0) {
                text.resize(text.size() - closing.size());
                break;
            }
        }
        std::wstring clean;
        for (size_t i = 0; i < text.size(); ++i) {
            if (text[i] == L'\r') {
                if (i + 1 == text.size() || text[i + 1] != L'\n') {
                    clean += L'\n';
                }
            } else if (text[i] != L'\0') {
                clean += text[i];
            }
        }
        while (!clean.empty() && clean.back() == L'\n') {
            clean.pop_back();
        }
        return !clean.empty() && el_winsertstr(edit, clean.c_str()) == -1 ? CC_ERROR : CC_REFRESH;
    }

    static unsigned char complete(EditLine * edit, int) {
        const LineInfo *  line = el_line(edit);
        const std::string typed(line->buffer, static_cast<size_t>(line->cursor - line->buffer));
        std::string       found;
        for (const std::string & word : of(edit).completions) {
            if (!typed.empty() && word.compare(0, typed.size(), typed) == 0) {
                if (!found.empty()) {
                    return CC_REFRESH_BEEP;
                }
                found = word;
            }
        }
        if (found.empty() || el_insertstr(edit, (found.substr(typed.size()) + " ").c_str()) == -1) {
            return CC_REFRESH_BEEP;
        }
        return CC_REFRESH;
    }

    void start(const Terminal & terminal) {
        use_utf8_locale();
        // Prompt and echo go to the screen even if stdout is a file.
        out = terminal.out_is_tty() ? stdout : stderr;
        edit.reset(el_init("penelope", stdin, out, stderr));
        history.reset(history_init());
        if (!edit || !history) {
            throw Error(ErrorKind::io, "terminal: cannot start the line editor", "use 'penelope run' or a pipe");
        }
        HistEvent event;
        ::history(history.get(), &event, H_SETSIZE, static_cast<int>(ChatHistory::limit));
        ::history(history.get(), &event, H_SETUNIQUE, 1);
        for (const std::string & message : earlier.load()) {
            ::history(history.get(), &event, H_ENTER, message.c_str());
        }

        EditLine * e = edit.get();
        el_set(e, EL_CLIENTDATA, this);
        el_set(e, EL_SIGNAL, 0);
        el_set(e, EL_EDITOR, "emacs");
        el_set(e, EL_HIST, ::history, history.get());
        el_set(e, EL_PROMPT_ESC, give_prompt, escape_mark);
        el_set(e, EL_GETCFN, read_char);
        el_set(e, EL_ADDFN, "penelope-paste", "insert pasted text", insert_paste);
        el_set(e, EL_ADDFN, "penelope-complete", "complete a command", complete);
        el_set(e, EL_BIND, "\033[200~", "penelope-paste", nullptr);
        el_set(e, EL_BIND, "\t", "penelope-complete", nullptr);
        el_set(e, EL_BIND, "^R", "em-inc-search-prev", nullptr);
        el_source(e, nullptr); // the user's own bindings
    }

    void remember(const std::string & message) {
        if (history && !message.empty()) {
            HistEvent event;
            ::history(history.get(), &event, H_ENTER, message.c_str());
            earlier.add(message);
        }
    }

    void screen(const char * sequence) {
        std::fputs(sequence, out);
        std::fflush(out);
    }

    void bracket_paste(bool on) {
        if (brackets) {
            screen(on ? paste_on : paste_off);
        }
    }
};

LineEditor::LineEditor(const Terminal & terminal, std::string prompt, std::vector<std::string> completions,
                       ChatHistory history)
    : impl_(std::make_unique<Impl>()) {
    impl_->earlier     = std::move(history);
    impl_->on_terminal = terminal.in_is_tty();
    impl_->brackets    = terminal.moves();
    impl_->completions = std::move(completions);
    if (terminal.color_out() && !prompt.empty()) {
        // libedit prints an escape sequence with the next character, so it must not be at the end of the prompt.
        prompt.insert(prompt.size() - 1, "\1\033[0m\1");
        prompt.insert(0, "\1\033[1;32m\1");
    }
    impl_->prompt = std::move(prompt);
    if (impl_->on_terminal) {
        impl_->start(terminal);
    }
}

LineEditor::~LineEditor() = default;

ReadStatus LineEditor::read_line(std::string & line) {
    line.clear();
    if (!impl_->on_terminal) {
        if (!std::getline(std::cin, line)) {
            return ReadStatus::end;
        }
        if (!line.empty() && line.back() == '\r') {
            line.pop_back();
        }
        return ReadStatus::message;
    }

    const JobControl job_control;
    impl_->interrupted  = false;
    impl_->n_interrupts = interrupt_count();
    el_resize(impl_->edit.get());
    // Before the prompt is shown: a Ctrl-D typed while the terminal is still in line mode would be lost.
    el_set(impl_->edit.get(), EL_PREP_TERM, 1);
    impl_->bracket_paste(true);
    int          n_read = 0;
    const char * text   = el_gets(impl_->edit.get(), &n_read);
    impl_->bracket_paste(false);
    if (impl_->interrupted) {
        impl_->screen("\n");
        el_reset(impl_->edit.get());
        return ReadStatus::interrupted;
    }
    if (text == nullptr || n_read <= 0) {
        impl_->screen("\n");
        return ReadStatus::end;
    }
    line.assign(text, static_cast<size_t>(n_read));
    if (line.back() == '\n') {
        line.pop_back();
    }
    return ReadStatus::message;
}

ReadStatus LineEditor::read(std::string & message) {
    message.clear();
    bool in_block  = false;
    bool continues = false;
    while (true) {
        std::string      line;
        const ReadStatus status = read_line(line);
        if (status == ReadStatus::interrupted && (impl_->had_text || in_block || continues)) {
            reset_interrupts();
            message.clear();
            in_block = continues = false;
            continue;
        }
        if (status == ReadStatus::interrupted) {
            return status;
        }
        if (status == ReadStatus::end) {
            // An unterminated last message of a pipe counts.
            return message.empty() ? ReadStatus::end : ReadStatus::message;
        }
        const bool fence = line == "\"\"\"";
        if (fence) {
            in_block = !in_block;
        }
        continues = !fence && !in_block && !line.empty() && line.back() == '\\';
        if (continues) {
            line.pop_back();
        }
        if (!fence) {
            message += (message.empty() ? "" : "\n") + line;
        }
        if (!in_block && !continues) {
            impl_->remember(message);
            return ReadStatus::message;
        }
    }
}

} // namespace penelope
