// A workspace shared by graphs that come and go.
#include <doctest/doctest.h>

#include "graph/ops.h"
#include "support/errors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>

using namespace penelope;

namespace {

constexpr size_t kMiB = size_t(1) << 20;

// The sanitizer's allocator keeps freed memory for a while.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kHasAddressSanitizer = true;
#else
constexpr bool kHasAddressSanitizer = false;
#endif

// A graph that needs a workspace of about so many bytes: x, and 2 x + 1 in its place.
std::unique_ptr<Graph> graph_of(size_t n_bytes) {
    auto graph = std::make_unique<Graph>();
    Node input = graph->input("x", GGML_TYPE_F32, int64_t(n_bytes / 4));
    graph->output(scale(*graph, input, 2.0f, 1.0f));
    return graph;
}

// While it lives, this process may take so many more bytes of address space.
class AddressSpaceLimit {
  public:
    explicit AddressSpaceLimit(size_t n_more) {
        size_t n_pages = 0;
        std::ifstream("/proc/self/statm") >> n_pages;
        getrlimit(RLIMIT_AS, &before_);
        rlimit limit   = before_;
        limit.rlim_cur = n_pages * size_t(sysconf(_SC_PAGESIZE)) + n_more;
        REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    }
    ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

  private:
    rlimit before_{};
};

} // namespace

TEST_CASE("a graph built where another was gets memory of its own") {
    const Backend backend(find_device("CPU"), 1);
    Workspace     workspace(backend);
    for (int n = 1; n <= 8; n++) {
        // Freed and made again at once: the new graph mostly takes the old one's place in memory.
        auto graph  = std::make_unique<Graph>();
        Node input  = graph->input("x", GGML_TYPE_F32, n);
        Node result = scale(*graph, input, 2.0f, 1.0f);
        graph->output(result);
        graph->allocate(backend, workspace);
        REQUIRE(input->data != nullptr);
        set_node(input, std::vector<float>(size_t(n), float(n)));
        graph->compute(backend);
        CHECK(get_node(result) == std::vector<float>(size_t(n), 2.0f * float(n) + 1.0f));
    }
}

TEST_CASE("a growing workspace counts freed memory once" * doctest::skip(kHasAddressSanitizer)) {
    const Backend backend(find_device("CPU"), 1);
    Workspace     workspace(backend);
    graph_of(256 * kMiB)->allocate(backend, workspace);
    REQUIRE(workspace.bytes() >= 256 * kMiB);
    const AddressSpaceLimit limit(128 * kMiB); // 384 with what the workspace holds

    const Error error = test::error_of([&] { graph_of(448 * kMiB)->allocate(backend, workspace); });
    CHECK(error.kind == ErrorKind::memory);
    CHECK(test::contains(error.message(), "graph buffer: needs"));
    graph_of(320 * kMiB)->allocate(backend, workspace);
    CHECK(workspace.bytes() >= 320 * kMiB);
}
