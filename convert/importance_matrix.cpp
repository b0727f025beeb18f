#include "convert/importance_matrix.h"

#include "base/error.h"
#include "method/context.h"

#include <algorithm>
#include <cmath>

namespace penelope {

namespace {

// What a layer multiplies its matrices with is kept until the end of the graph: some rows at a time bound the memory.
constexpr int kChunk = 256;

struct ImportanceGraph : BuiltGraph {
    using BuiltGraph::BuiltGraph;
    Node                                      ids = nullptr;
    std::unique_ptr<RowInputs>                rows;
    std::vector<std::pair<std::string, Node>> sums; // matrix, [1, n_in]: sum of squares over the rows
};

bool is_layer_matrix(const ggml_tensor * tensor) {
    return tensor->op == GGML_OP_NONE && ggml_n_dims(tensor) == 2 && std::string(tensor->name).rfind("blk.", 0) == 0;
}

// Finds the products of the finished graph by their matrices, so that no layer has to know that it is watched.
void collect_activations(ImportanceGraph & built) {
    Graph &              g = built.graph;
    std::map<Node, Node> sum_of; // q, k and v read the same rows
    std::vector<Node>    products;
    for (Node node : g.nodes()) {
        if (node->op == GGML_OP_MUL_MAT && is_layer_matrix(node->src[0])) {
            products.push_back(node);
        }
    }
    for (Node product : products) {
        Node & sum = sum_of[product->src[1]];
        if (!sum) {
            Node squares = ggml_sqr(g.ctx(), product->src[1]); // [n_in, n_rows]
            sum          = ggml_sum_rows(g.ctx(), ggml_cont(g.ctx(), ggml_transpose(g.ctx(), squares))); // [1, n_in]
            g.output(sum);
        }
        built.sums.push_back({ product->src[0]->name, sum });
    }
}

ImportanceGraph & importance_graph(Context & context, int n) {
    return context.graph<ImportanceGraph>("importance:" + std::to_string(n), {}, [&]() {
        const Backbone & model = context.model();
        auto             built = std::make_unique<ImportanceGraph>(context);
        Graph &          g     = built->graph;
        built->rows = std::make_unique<RowInputs>(g, "rows", model.config, std::vector<SeqRange>{ { 0, 0, n } }, true);
        built->ids  = g.input("ids", GGML_TYPE_I32, n);
        g.output(run_layers(g, model, 0, model.config.n_layer, embed_tokens(g, model, built->ids), built->rows->rows(),
                            context.cache()));
        collect_activations(*built);
        return built;
    });
}

} // namespace

ImportanceMatrix compute_imatrix(const Engine & engine, const std::vector<int32_t> & tokens,
                                 const ImportanceOptions & options) {
    if (tokens.empty()) {
        throw Error(ErrorKind::usage, "the text for the importance matrix is empty");
    }
    ContextOptions shape;
    shape.n_ctx     = kChunk;
    shape.n_threads = options.n_threads;
    Context          context(engine.backbone(), engine.split().devices, shape);
    ImportanceMatrix importance;
    for (size_t first = 0; first < tokens.size(); first += kChunk) {
        if (options.cancelled && options.cancelled()) {
            throw Error(ErrorKind::cancelled, "interrupted");
        }
        const size_t      n     = std::min<size_t>(kChunk, tokens.size() - first);
        ImportanceGraph & built = importance_graph(context, int(n));
        context.prepare(built);
        built.graph.set(built.ids, tokens.data() + first, n * sizeof(int32_t));
        built.rows->fill({ { 0, 0, int(n) } }, &context.cache());
        context.compute(built);
        for (const auto & [name, node] : built.sums) {
            const std::vector<float> sum   = get_node(node);
            std::vector<float> &     total = importance[name];
            total.resize(sum.size());
            std::transform(sum.begin(), sum.end(), total.begin(), total.begin(), std::plus<float>());
        }
        if (options.progress) {
            options.progress(first + n);
        }
    }
    for (auto & [name, values] : importance) {
        for (float & value : values) {
            value /= float(tokens.size());
            if (!std::isfinite(value)) {
                engine.throw_not_finite();
            }
        }
    }
    return importance;
}

} // namespace penelope
