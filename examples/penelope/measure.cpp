#include "measure.h"

#include "base/clock.h"

namespace penelope {

void run_cases(std::vector<BenchCase> & cases, int repetitions, Terminal & terminal) {
    for (int i = 0; i <= repetitions; ++i) {
        for (BenchCase & test : cases) {
            terminal.progress(
                (i == 0 ? "warming up: " : "run " + std::to_string(i) + " of " + std::to_string(repetitions) + ": ") +
                test.test + " " + test.method);
            const Traffic   before = rpc_traffic();
            const Stopwatch watch;
            test.layer_applications = test.run();
            if (i > 0) {
                test.ms.push_back(watch.elapsed_ms() / test.divisor);
            }
            const Traffic after = rpc_traffic();
            test.traffic        = { after.sent - before.sent, after.received - before.received };
        }
    }
    terminal.progress("");
}

} // namespace penelope
