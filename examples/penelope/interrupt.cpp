#include "interrupt.h"

#include "base/atomic_file.h"

#include <csignal>
#include <unistd.h>

#include <atomic>
#include <list>

namespace penelope {

namespace {

using StopFunction = void (*)(void *);

// Globals, because a signal handler has no other access to state.
std::atomic<StopFunction>        stop_function{ nullptr };
std::atomic<void *>              stop_object{ nullptr };
std::atomic<int>                 n_interrupts{ 0 };
std::atomic<int>                 n_deferrals{ 0 };
std::atomic<int>                 n_deferrals_of_all{ 0 };
std::atomic<int>                 other_signal{ 0 };
std::atomic<const std::string *> exit_message{ nullptr };

static_assert(std::atomic<StopFunction>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

[[noreturn]] void end_process(int code) {
    // End the current line first.
    static constexpr char plain[]   = "\n";
    static constexpr char removed[] = "\nerror: interrupted: unfinished output was removed\n";

    const ssize_t ignored = remove_temporary_files() ? ::write(STDERR_FILENO, removed, sizeof removed - 1)
                                                     : ::write(STDERR_FILENO, plain, sizeof plain - 1);
    (void) ignored;
    if (const std::string * line = exit_message.load()) {
        const ssize_t unheard = ::write(STDOUT_FILENO, line->data(), line->size());
        (void) unheard;
    }
    _exit(code);
}

void on_interrupt(int) {
    const int          n    = n_interrupts.fetch_add(1) + 1;
    const StopFunction stop = stop_function.load();
    if (stop != nullptr && n == 1) {
        stop(stop_object.load());
        return;
    }
    if (stop == nullptr && n_deferrals.load() > 0 && n <= 2) {
        return;
    }
    end_process(128 + SIGINT);
}

void on_terminate(int signal_number) {
    int none = 0;
    if (n_deferrals_of_all.load() > 0 && other_signal.compare_exchange_strong(none, signal_number)) {
        n_interrupts.fetch_add(1);
        return;
    }
    end_process(128 + signal_number);
}

bool is_ignored(int signal_number) {
    struct sigaction now {};
    sigaction(signal_number, nullptr, &now);
    return now.sa_handler == SIG_IGN;
}

void handle(int signal_number, void (*handler)(int)) {
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_handler = handler; // no SA_RESTART: a blocking read must return
    sigaction(signal_number, &action, nullptr);
}

} // namespace

void install_interrupt_handler() {
    handle(SIGTERM, on_terminate);
    if (!is_ignored(SIGINT)) {
        handle(SIGINT, on_interrupt);
    }
    if (!is_ignored(SIGHUP)) {
        handle(SIGHUP, on_terminate);
    }
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    // Exceeding the file size limit then fails in write(), like a full disk.
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, nullptr);
}

void set_exit_message(const std::string & line) {
    static auto & said = *new std::list<std::string>; // never freed: a signal handler may read any of them
    exit_message.store(nullptr);
    if (!line.empty()) {
        said.push_back(line);
        exit_message.store(&said.back());
    }
}

CancelOnInterrupt::CancelOnInterrupt(void (*stop)(void * object), void * object) {
    stop_object.store(object);
    stop_function.store(stop);
}

CancelOnInterrupt::~CancelOnInterrupt() {
    stop_function.store(nullptr);
    stop_object.store(nullptr);
}

InterruptDeferral::InterruptDeferral(Signals signals) : signals_(signals) {
    n_deferrals.fetch_add(1);
    n_deferrals_of_all.fetch_add(signals == all_signals);
}

InterruptDeferral::~InterruptDeferral() {
    n_deferrals.fetch_sub(1);
    n_deferrals_of_all.fetch_sub(signals_ == all_signals);
}

int interrupt_count() {
    return n_interrupts.load();
}

int interrupted_exit_code() {
    const int number = other_signal.load();
    return 128 + (number != 0 ? number : SIGINT);
}

void reset_interrupts() {
    n_interrupts.store(0);
}

} // namespace penelope
