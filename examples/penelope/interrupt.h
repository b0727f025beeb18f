// Ctrl-C. The first press asks the watched work to stop; a second one before reset_interrupts() ends the process with
// 130, removing unfinished output files. Without watched work the first press ends the process. SIGTERM and SIGHUP end
// it at once, with 128 + their number, unless a hold of all signals lives.
#pragma once

#include <string>

namespace penelope {

// Installs the handlers of the signals that end a program, but for SIGINT and SIGHUP where the caller had them ignored,
// as nohup does. Call once, early.
void install_interrupt_handler();

// What a process that a signal ends prints on stdout last, a whole line; "" for nothing.
void set_exit_message(const std::string & line);

// While it lives, the first Ctrl-C calls stop(object) instead of ending the process. stop is called in a signal
// handler.
class CancelOnInterrupt {
  public:
    CancelOnInterrupt(void (*stop)(void * object), void * object);
    ~CancelOnInterrupt();
    CancelOnInterrupt(const CancelOnInterrupt &)             = delete;
    CancelOnInterrupt & operator=(const CancelOnInterrupt &) = delete;
};

// While one lives and nothing is watched, the first two presses are only counted: the holder looks at
// interrupt_count(). One of all signals counts the first SIGTERM or SIGHUP as such a press.
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

int  interrupt_count(); // presses since the last reset
void reset_interrupts();
int  interrupted_exit_code(); // 130, or 128 + the number of the other signal that was counted

} // namespace penelope
