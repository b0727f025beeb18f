// Where ggml ends the process, seen from a process that waits for it.
#include <doctest/doctest.h>

#include "ggml.h"
#include "graph/ggml_abort.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace penelope;

namespace {

constexpr int kEnded = 7;

// How a process ends in which ggml gives up with that message.
int status_after(const char * message) {
    const pid_t child = fork();
    if (child == 0) {
        const rlimit no_core{ 0, 0 };
        setrlimit(RLIMIT_CORE, &no_core);
        std::signal(SIGABRT, SIG_DFL);
        set_fatal_error_handler([](const Error & error) { _exit(error.kind == ErrorKind::device ? kEnded : 1); });
        GGML_ABORT("%s", message);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}

} // namespace

TEST_CASE("a lost device is an error") {
    for (const char * message : { "CUDA error", "Remote RPC server crashed or returned malformed response" }) {
        CAPTURE(message);
        const int status = status_after(message);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == kEnded);
    }
}

TEST_CASE("a broken invariant is not") {
    const int status = status_after("GGML_ASSERT(a == b) failed");
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGABRT);
}
