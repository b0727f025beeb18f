// Ctrl-C. The first press asks the watched work to stop; a second one before reset_interrupts() ends the process with
// 130, removing unfinished output files. Without watched work the first press ends the process.
#pragma once

namespace penelope {

// Installs the handlers of the signals that end a program. Call once, early.
void install_interrupt_handler();

// While it lives, the first Ctrl-C calls stop(object) instead of ending the process. stop is called in a signal
// handler.
class InterruptWatch {
  public:
    InterruptWatch(void (*stop)(void * object), void * object);
    ~InterruptWatch();
    InterruptWatch(const InterruptWatch &)             = delete;
    InterruptWatch & operator=(const InterruptWatch &) = delete;
};

// While one lives and nothing is watched, the first two presses are only counted: the holder looks at
// interrupt_count().
class InterruptHold {
  public:
    InterruptHold();
    ~InterruptHold();
    InterruptHold(const InterruptHold &)             = delete;
    InterruptHold & operator=(const InterruptHold &) = delete;
};

int  interrupt_count(); // presses since the last reset
void reset_interrupts();

} // namespace penelope
