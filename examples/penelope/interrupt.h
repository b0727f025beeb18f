// Signal handling of the program.
//
// SIGINT (Ctrl-C): while a CancelOnInterrupt exists, the first one cancels its work; a second one before
// reset_interrupts() exits with 130 and removes unfinished output files. Otherwise the first one exits. SIGTERM and
// SIGHUP exit at once with 128 + signal number, unless an InterruptDeferral of all signals exists.
#pragma once

#include <string>

namespace penelope {

// Installs the handlers. SIGINT and SIGHUP stay ignored if the caller ignores them, as nohup does. Call once, early.
void install_interrupt_handler();

// A line that is printed on stdout when a signal ends the process; "": none.
void set_exit_message(const std::string & line);

// While it exists, the first Ctrl-C calls stop(object) instead of ending the process. stop runs in a signal handler.
class CancelOnInterrupt {
  public:
    CancelOnInterrupt(void (*stop)(void * object), void * object);
    ~CancelOnInterrupt();
    CancelOnInterrupt(const CancelOnInterrupt &)             = delete;
    CancelOnInterrupt & operator=(const CancelOnInterrupt &) = delete;
};

// While it exists (and no CancelOnInterrupt does), the first two Ctrl-C only increase interrupt_count(), which the
// owner polls. With all_signals, the first SIGTERM or SIGHUP is counted the same way.
class InterruptDeferral {
  public:
    enum Signals { ctrl_c, all_signals };

    explicit InterruptDeferral(Signals signals = ctrl_c);
    ~InterruptDeferral();
    InterruptDeferral(const InterruptDeferral &)             = delete;
    InterruptDeferral & operator=(const InterruptDeferral &) = delete;

  private:
    const Signals signals_;
};

int  interrupt_count(); // since the last reset
void reset_interrupts();
int  interrupted_exit_code(); // 130, or 128 + number of the SIGTERM or SIGHUP that was counted

} // namespace penelope
