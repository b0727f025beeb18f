#include "interrupt.h"

#include "base/atomic_file.h"

#include <csignal>
#include <unistd.h>

#include <atomic>

namespace penelope {

namespace {

using StopFunction = void (*)(void *);

// A signal handler has no other way to reach the state of the program.
std::atomic<StopFunction> stop_function{ nullptr };
std::atomic<void *>       stop_object{ nullptr };
std::atomic<int>          presses{ 0 };
std::atomic<int>          n_holds{ 0 };

static_assert(std::atomic<StopFunction>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

[[noreturn]] void end_process(int code) {
    remove_temporary_files();
    _exit(code);
}

void on_interrupt(int) {
    const int          n    = presses.fetch_add(1) + 1;
    const StopFunction stop = stop_function.load();
    if (stop != nullptr && n == 1) {
        stop(stop_object.load());
        return;
    }
    if (stop == nullptr && n_holds.load() > 0 && n <= 2) {
        return;
    }
    // What is on the line already stays readable.
    const ssize_t ignored = ::write(STDERR_FILENO, "\n", 1);
    (void) ignored;
    end_process(130);
}

void on_terminate(int signal_number) {
    end_process(128 + signal_number);
}

} // namespace

void install_interrupt_handler() {
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    // No SA_RESTART: a read that waits for input has to return.
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, nullptr);
    action.sa_handler = on_terminate;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGHUP, &action, nullptr);
    // A file that grows beyond the user's limit is an error of the write, like a full disk.
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, nullptr);
}

InterruptWatch::InterruptWatch(void (*stop)(void * object), void * object) {
    stop_object.store(object);
    stop_function.store(stop);
}

InterruptWatch::~InterruptWatch() {
    stop_function.store(nullptr);
    stop_object.store(nullptr);
}

InterruptHold::InterruptHold() {
    n_holds.fetch_add(1);
}

InterruptHold::~InterruptHold() {
    n_holds.fetch_sub(1);
}

int interrupt_count() {
    return presses.load();
}

void reset_interrupts() {
    presses.store(0);
}

} // namespace penelope
