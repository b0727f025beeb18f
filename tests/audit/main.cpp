// Op-support audit: checks whether a device supports every graph of the program, for all architectures, methods, K,
// batches, training, and types of weights and KV cache, in published model shapes. Allocates no weights, computes
// nothing.
//
//     penelope-audit DEVICE [--rpc HOST:PORT] [--shape NAME...] [--type NAME...] [--steps K...] [--as-gpu]
//
// Prints a table and exits with 0. If nodes are unsupported, prints each with operation, types and shapes and exits
// with 1.
#include "base/error.h"
#include "base/format.h"
#include "base/log.h"
#include "graph/ggml_abort.h"
#include "graph/rpc.h"
#include "graphs.h"
#include "infer/random_engine.h"
#include "shadow_device.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace penelope;
using namespace penelope::audit;

namespace {

class Audit {
  public:
    void ask(const std::string & kind, const std::string & model, const std::function<void()> & work) {
        OpSupport & row = row_of(kind);
        answers         = &row;
        try {
            work();
        } catch (const Error & error) {
            row.refused["not built: " + model + ": " + error.what()]++;
        }
    }

    // Whether nothing was refused.
    bool print() const {
        std::printf("| graphs of | graphs | nodes | operations | refused |\n|---|---|---|---|---|\n");
        OpSupport all;
        for (const auto & [kind, row] : rows_) {
            print_row(kind, row);
            all.n_graphs += row.n_graphs;
            all.n_nodes += row.n_nodes;
            all.operations.insert(row.operations.begin(), row.operations.end());
            for (const auto & [what, n] : row.refused) {
                all.refused[what] += n;
            }
        }
        print_row("all", all);
        std::printf("\noperations:");
        for (const std::string & operation : all.operations) {
            std::printf(" %s", operation.c_str());
        }
        std::printf("\n");
        for (const auto & [what, n] : all.refused) {
            std::printf("refused %d times, %s\n", n, what.c_str());
        }
        return all.refused.empty();
    }

    OpSupport * answers = nullptr;

  private:
    OpSupport & row_of(const std::string & kind) {
        for (auto & [name, row] : rows_) {
            if (name == kind) {
                return row;
            }
        }
        rows_.emplace_back(kind, OpSupport{});
        return rows_.back().second;
    }

    static void print_row(const std::string & kind, const OpSupport & row) {
        int64_t n_refused = 0;
        for (const auto & [what, n] : row.refused) {
            n_refused += n;
        }
        std::printf("| %s | %lld | %lld | %zu | %lld |\n", kind.c_str(), static_cast<long long>(row.n_graphs),
                    static_cast<long long>(row.n_nodes), row.operations.size(), static_cast<long long>(n_refused));
    }

    std::vector<std::pair<std::string, OpSupport>> rows_; // in the order they came up
};

} // namespace

int main(int argc, char ** argv) {
    std::string              device, rpc;
    std::vector<std::string> shapes = known_shapes();
    std::vector<std::string> types{ "F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K" };
    std::vector<int>         steps{ 0, 1, 2, 3, 4, 5, 6, 7, 8 };
    bool                     as_gpu = false;
    CLI::App                 app("Asks a device whether it runs every graph of the program.");
    app.add_option("device", device, "as --device takes it")->required();
    app.add_option("--rpc", rpc, "servers, as penelope takes them");
    app.add_option("--shape", shapes, "only these shapes");
    app.add_option("--type", types, "only these types of weights");
    app.add_option("--steps", steps, "only these K");
    app.add_flag("--as-gpu", as_gpu, "ask the CPU about the graphs a GPU gets");
    CLI11_PARSE(app, argc, argv);
    try {
        if (!rpc.empty()) {
            set_fatal_error_handler([](const Error & error) {
                std::fprintf(stderr, "error: %s\n", error.what());
                std::exit(1);
            });
            add_rpc_servers(split(rpc, ','));
        }
        DeviceInfo asked = find_device(device);
        asked.is_cpu     = asked.is_cpu && !as_gpu;
        Audit             audit;
        const std::string shadow = add_shadow(asked, audit.answers), other = add_shadow(asked, audit.answers);
        std::printf("%s: %s\n\n", asked.name.c_str(), asked.description.c_str());
        for (const std::string & shape : shapes) {
            for (const std::string & type : types) {
                const AuditFunction ask = [&](const std::string & kind, const std::function<void()> & work) {
                    audit.ask(kind, shape + " " + type, work);
                };
                // Types of weights matter to products and tables, those of caches to attention: neither to how many
                // steps there are.
                AuditCase what{ shape, type, shadow, other, { std::min(2, steps.back()) }, { GGML_TYPE_F16 } };
                if (type == types.front()) {
                    what.steps  = steps;
                    what.caches = { GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_BF16, GGML_TYPE_Q8_0 };
                }
                std::fprintf(stderr, "asking about %s %s\n", shape.c_str(), type.c_str());
                audit_inference(what, ask);
                audit_training(what, ask);
            }
        }
        return audit.print() ? 0 : 1;
    } catch (const Error & error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return 1;
    }
}
