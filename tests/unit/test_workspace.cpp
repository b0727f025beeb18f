// A workspace shared by graphs that come and go.
#include <doctest/doctest.h>

#include "graph/ops.h"

#include <memory>

using namespace penelope;

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
