#include "task/listops.h"

#include "base/error.h"
#include "base/format.h"
#include "task/question.h"
#include "task/split.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace penelope {

namespace {

constexpr DepthRange possible_depths = { 1, 64 };
constexpr int        max_rejections  = 50'000; // draws of a depth in a row that fill no cell before we give up

struct Node {
    int               op    = -1; // index into listops_operators; -1 = a digit
    int               value = 0;  // of a digit
    std::vector<Node> arguments;
};

Node draw_digit(Rng & rng) {
    Node node;
    node.value = static_cast<int>(rng.below(10));
    return node;
}

// What expressions are drawn from.
struct Grammar {
    std::vector<int> operators; // indices into listops_operators
    double           branch_p;
};

Grammar grammar_of(const DatasetOptions & options) {
    Grammar grammar{ {}, options.branch_p };
    for (size_t op = 0; op < listops_operators.size(); ++op) {
        const auto & wanted = options.operators;
        if (wanted.empty() || std::find(wanted.begin(), wanted.end(), listops_operators[op]) != wanted.end()) {
            grammar.operators.push_back(static_cast<int>(op));
        }
    }
    for (const std::string & name : options.operators) {
        if (std::find(listops_operators.begin(), listops_operators.end(), name) == listops_operators.end()) {
            throw Error(ErrorKind::usage, "--operators: unknown operator " + in_quotes(name),
                        "expected MAX, MIN, MED or SM, e.g. --operators MAX,MIN,MED");
        }
    }
    return grammar;
}

Node draw_expression(int depth, const Grammar & grammar, Rng & rng) {
    Node node;
    node.op                    = grammar.operators[rng.below(grammar.operators.size())];
    const uint64_t n_arguments = 2 + rng.below(3);
    const uint64_t spine       = depth > 1 ? rng.below(n_arguments) : n_arguments;
    for (uint64_t i = 0; i < n_arguments; ++i) {
        if (i == spine) {
            node.arguments.push_back(draw_expression(depth - 1, grammar, rng));
        } else if (depth > 1 && grammar.branch_p > 0.0 && rng.chance(grammar.branch_p)) {
            node.arguments.push_back(draw_expression(1, grammar, rng));
        } else {
            node.arguments.push_back(draw_digit(rng));
        }
    }
    return node;
}

std::string to_text(const Node & node) {
    if (node.op < 0) {
        return std::to_string(node.value);
    }
    std::string text = std::string("[") + listops_operators[static_cast<size_t>(node.op)];
    for (const Node & argument : node.arguments) {
        text += " " + to_text(argument);
    }
    return text + "]";
}

// Reduces arguments before their operator, left to right, and notes each transition in `steps` if it is given.
int reduce(const Node & node, std::vector<std::string> * steps) {
    if (node.op < 0) {
        return node.value;
    }
    Node flat;
    flat.op = node.op;
    std::vector<int> values;
    for (const Node & argument : node.arguments) {
        values.push_back(reduce(argument, steps));
        flat.arguments.emplace_back();
        flat.arguments.back().value = values.back();
    }
    const int result = apply_listops(static_cast<size_t>(node.op), values);
    if (steps != nullptr) {
        steps->push_back(to_text(flat) + " = " + std::to_string(result));
    }
    return result;
}

std::string to_question(const Node & expression) {
    return "Evaluate: " + to_text(expression);
}

Example to_example(const Node & expression, int max_steps) {
    Example example;
    example.question = to_question(expression);
    example.answer   = std::to_string(reduce(expression, &example.steps));
    if (max_steps >= 0 && example.steps.size() > static_cast<size_t>(max_steps)) {
        example.steps.resize(static_cast<size_t>(max_steps));
    }
    return example;
}

// n in k parts that differ by at most one; the larger parts begin at `first` and go round.
std::vector<size_t> even_parts(size_t n, size_t k, size_t first = 0) {
    std::vector<size_t> parts(k, n / k);
    for (size_t i = 0; i < n % k; ++i) {
        parts[(first + i) % k]++;
    }
    return parts;
}

std::vector<Example> fill_cells(const SplitRequest & request, const DatasetOptions & options, QuestionSet & seen,
                                Rng & rng) {
    const Grammar                  grammar = grammar_of(options);
    const std::vector<ListopsCell> cells   = listops_cells(request.n, request.depth, options.depth);
    std::vector<Example>           examples;
    for (size_t first = 0; first < cells.size(); first += 10) {
        const int              depth = cells[first].depth;
        std::array<size_t, 10> left  = {};
        for (size_t digit = 0; digit < 10; ++digit) {
            left[digit] = cells[first + digit].n;
        }
        size_t n_left     = std::accumulate(left.begin(), left.end(), size_t{ 0 });
        int    rejections = 0;
        while (n_left > 0) {
            const Node expression = draw_expression(depth, grammar, rng);
            size_t &   cell       = left[static_cast<size_t>(reduce(expression, nullptr))];
            if (cell > 0 && seen.add(to_question(expression))) {
                examples.push_back(to_example(expression, options.max_steps));
                --cell;
                --n_left;
                rejections = 0;
            } else if (++rejections == max_rejections) {
                throw too_few_questions(request, " of depth " + std::to_string(depth));
            }
        }
    }
    rng.shuffle(examples);
    return examples;
}

} // namespace

std::vector<ListopsCell> listops_cells(size_t n, const DepthRange & depth, const DepthRange & known) {
    std::vector<int> inside;
    std::vector<int> beyond;
    for (int d = depth.first; d <= depth.last; ++d) {
        (d >= known.first && d <= known.last ? inside : beyond).push_back(d);
    }
    const size_t          n_beyond = beyond.empty() ? 0 : inside.empty() ? n : n / 2;
    std::map<int, size_t> per_depth;
    const auto            share = [&per_depth](const std::vector<int> & depths, size_t total) {
        if (!depths.empty()) {
            const std::vector<size_t> parts = even_parts(total, depths.size());
            for (size_t i = 0; i < depths.size(); ++i) {
                per_depth[depths[i]] = parts[i];
            }
        }
    };
    share(inside, n - n_beyond);
    share(beyond, n_beyond);

    std::vector<ListopsCell> cells;
    size_t                   first_digit = 0;
    for (const auto & [d, total] : per_depth) {
        const std::vector<size_t> parts = even_parts(total, 10, first_digit);
        for (size_t digit = 0; digit < 10; ++digit) {
            cells.push_back({ d, static_cast<int>(digit), parts[digit] });
        }
        first_digit = (first_digit + total) % 10;
    }
    return cells;
}

int apply_listops(size_t op, std::vector<int> values) {
    switch (op) {
        case 0: return *std::max_element(values.begin(), values.end());
        case 1: return *std::min_element(values.begin(), values.end());
        case 2: {
            std::sort(values.begin(), values.end());
            const size_t middle = values.size() / 2;
            return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
        }
        default: return std::accumulate(values.begin(), values.end(), 0) % 10;
    }
}

Dataset generate_listops(const DatasetOptions & options) {
    return generate_splits("listops", options, possible_depths, normalize_bracketed,
                           [&options](const SplitRequest & request, QuestionSet & seen, Rng & rng) {
                               return fill_cells(request, options, seen, rng);
                           });
}

} // namespace penelope
