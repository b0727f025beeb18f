#include "task/thread.h"

#include "base/error.h"
#include "base/format.h"
#include "task/baseline.h"
#include "task/question.h"
#include "task/split.h"
#include "task/thread_surface.h"

#include <algorithm>
#include <map>

namespace penelope {

namespace {

constexpr DepthRange possible_depths = { 1, 51 };

const ThreadSurface & surface_of(const DatasetOptions & options) {
    const ThreadSurface * surface = find_thread_surface(options.surface);
    if (surface == nullptr) {
        throw Error(ErrorKind::usage, "--surface: unknown surface " + in_quotes(options.surface),
                    "expected letters or words");
    }
    return *surface;
}

// Chains are as long as the deepest question of the set needs, so that nothing but the thread tells depths apart.
int chain_length(const DatasetOptions & options) {
    return std::max(options.depth.last, options.test_depth.last);
}

void check_size(const DatasetOptions & options) {
    if (options.min_chains > options.n_chains) {
        throw Error(ErrorKind::usage, "--min-chains " + std::to_string(options.min_chains) + ": exceeds --chains " +
                                          std::to_string(options.n_chains));
    }
    const ThreadSurface & surface = surface_of(options);
    const int             n_nodes = options.n_chains * (chain_length(options) + 1);
    if (n_nodes > static_cast<int>(surface.names.size())) {
        throw Error(ErrorKind::usage,
                    "thread: " + std::to_string(options.n_chains) + " chains of " +
                        std::to_string(chain_length(options)) + " edges need " + std::to_string(n_nodes) +
                        " node names, the surface has " + std::to_string(surface.names.size()),
                    "lower --chains or --depth");
    }
}

// Depths in turn, so that no two differ by more than one in number.
std::vector<Example> fill_depths(const SplitRequest & request, const DatasetOptions & options, QuestionSet & seen,
                                 Rng & rng) {
    const size_t n_depths = static_cast<size_t>(request.depth.last - request.depth.first + 1);
    auto         examples = fill_by_drawing(request, seen, [&](size_t index) {
        const int depth    = request.depth.first + static_cast<int>(index % n_depths);
        int       n_chains = options.n_chains;
        if (request.split == "train" && options.min_chains > 0) {
            const bool is_easy = index / n_depths % 2 == 0; // every other round of depths
            n_chains = draw_depth({ options.min_chains, is_easy ? options.min_chains : options.n_chains }, rng);
        }
        return draw_thread(depth, chain_length(options), n_chains, options.surface, rng);
    });
    rng.shuffle(examples);
    return examples;
}

std::vector<std::string> ends_of(const Thread & thread) {
    std::vector<std::string> ends;
    for (const auto & [from, to] : thread.edges) {
        if (from == to) {
            ends.push_back(from);
        }
    }
    return ends;
}

// A word comes with the space before it.
std::string as_result(const std::string & name) {
    return (name.size() > 1 ? " " : "") + name;
}

} // namespace

std::vector<std::string> thread_path(const Thread & thread) {
    std::map<std::string, std::string> next(thread.edges.begin(), thread.edges.end());
    std::vector<std::string>           path = { thread.start };
    while (path.size() <= thread.edges.size()) {
        const auto edge = next.find(path.back());
        if (edge == next.end()) {
            break;
        }
        if (edge->second == path.back()) {
            return path;
        }
        path.push_back(edge->second);
    }
    return {};
}

Example draw_thread(int depth, int length, int n_chains, const std::string & surface_name, Rng & rng) {
    const ThreadSurface &     surface = *find_thread_surface(surface_name);
    const size_t              n_nodes = static_cast<size_t>(length) + 1; // of a chain
    const std::vector<size_t> drawn   = rng.choose(surface.names.size(), n_nodes * static_cast<size_t>(n_chains));
    const auto                name    = [&](size_t chain, size_t node) -> const std::string & {
        return surface.names[drawn[chain * n_nodes + node]];
    };
    std::vector<std::string> edges;
    for (size_t chain = 0; chain < static_cast<size_t>(n_chains); ++chain) {
        for (size_t node = 0; node < n_nodes; ++node) {
            edges.push_back(surface.edge(name(chain, node), name(chain, std::min(node + 1, n_nodes - 1))));
        }
    }
    rng.shuffle(edges);

    const size_t chain = rng.below(static_cast<uint64_t>(n_chains));
    const size_t start = static_cast<size_t>(length - depth);
    Example      example;
    example.question = join(edges, " ") + " " + surface.ask(name(chain, start));
    for (size_t node = start; node + 1 < n_nodes; ++node) {
        example.steps.push_back(surface.edge(name(chain, node), name(chain, node + 1)));
    }
    example.answer = name(chain, n_nodes - 1);
    return example;
}

Dataset generate_thread(const DatasetOptions & options) {
    check_size(options);
    return generate_splits("thread", options, possible_depths, normalize_thread,
                           [&options](const SplitRequest & request, QuestionSet & seen, Rng & rng) {
                               return fill_depths(request, options, seen, rng);
                           });
}

std::string extract_end(const std::string & text) {
    const std::string whole = trim(text);
    std::string       last  = whole.substr(whole.find_last_of("\n#") + 1); // npos + 1 is the beginning
    last                    = trim(last);
    if (!last.empty() && last.back() == '.') {
        last.pop_back();
    }
    const bool is_word = !last.empty() && std::all_of(last.begin(), last.end(), is_thread_letter);
    return is_word ? last : "";
}

std::vector<ChanceLevel> thread_chance(const std::vector<Example> & examples) {
    double n_first = 0, n_any = 0;
    for (const Example & example : examples) {
        const Thread thread = read_thread(example.question);
        n_first += thread_baseline_answer(example.question) == example.answer;
        n_any += 1.0 / static_cast<double>(std::max<size_t>(1, ends_of(thread).size()));
    }
    const double n = static_cast<double>(examples.size());
    return { { "first chain end in the text", n_first / n },
             { "random chain end", n_any / n },
             { "majority baseline", majority_accuracy(examples) } };
}

std::string thread_start(const Example & example) {
    return as_result(read_thread(example.question).start);
}

std::string thread_baseline_answer(const std::string & question) {
    const std::vector<std::string> ends = ends_of(read_thread(question));
    return ends.empty() ? "" : ends.front();
}

// Upper and lower case are different names.
std::string normalize_thread(const std::string & question) {
    return join(split_words(question), " ");
}

bool is_thread_question(const std::string & question) {
    return !thread_path(read_thread(question)).empty();
}

Facets thread_facets(const Example & example) {
    const Thread thread = read_thread(example.question);
    const size_t n_path = thread_path(thread).size();
    return { { "depth", std::to_string(n_path > 0 ? n_path - 1 : 0) },
             { "chains", std::to_string(ends_of(thread).size()) } };
}

std::vector<std::string> thread_results(const Example & example) {
    const std::vector<std::string> path = thread_path(read_thread(example.question));
    std::vector<std::string>       results;
    for (size_t i = 1; i < path.size(); ++i) {
        results.push_back(as_result(path[i]));
    }
    if (!results.empty()) {
        results.push_back(results.back());
    }
    return results;
}

} // namespace penelope
