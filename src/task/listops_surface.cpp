// What can be said about a ListOps question from its surface: the outermost operator, the digits that stand directly in
// it, how deep the brackets go; and how far a guess gets that looks no further. Input: questions as text, in our
// spelling or that of the original ListOps (`[MAX 2 9 [MIN 4 7 ] 0 ]`).
#include "task/baseline.h"
#include "task/listops.h"
#include "task/question.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>

namespace penelope {

namespace {

constexpr size_t no_operator = listops_operators.size();
constexpr int    max_hidden  = 4; // more arguments of our expressions there are not

struct Surface {
    size_t           op = no_operator;
    std::vector<int> digits;       // direct arguments, sorted
    int              n_hidden = 0; // arguments that are expressions themselves
    int              depth    = 0;
};

Surface read_surface(const std::string & question) {
    Surface surface;
    int     level = 0;
    size_t  i     = question.find('[');
    if (i == std::string::npos) {
        return surface;
    }
    const size_t      name_end = std::min(question.find_first_of(" []", i + 1), question.size());
    const std::string name     = question.substr(i + 1, name_end - i - 1);
    surface.op = static_cast<size_t>(std::find(listops_operators.begin(), listops_operators.end(), name) -
                                     listops_operators.begin());
    for (; i < question.size(); ++i) {
        const char c = question[i];
        if (c == '[') {
            surface.n_hidden += level == 1 ? 1 : 0;
            surface.depth = std::max(surface.depth, ++level);
        } else if (c == ']') {
            --level;
        } else if (level == 1 && c >= '0' && c <= '9') {
            surface.digits.push_back(c - '0');
        }
    }
    std::sort(surface.digits.begin(), surface.digits.end());
    return surface;
}

std::string operator_name(const Example & example) {
    const size_t op = read_surface(example.question).op;
    return op == no_operator ? "" : listops_operators[op];
}

// A few digits in place of any number of them: every operator gives the same with them and n_hidden more.
std::vector<int> equivalent_digits(const Surface & surface, int n_hidden) {
    const std::vector<int> & digits = surface.digits;
    if (digits.empty()) {
        return {};
    }
    switch (surface.op) {
        case 0: return { digits.back() };
        case 1: return { digits.front() };
        case 2: {
            // The middle stays where it is when as many go from either end, as long as none of those can get there.
            const size_t n_kept = std::min(digits.size(), size_t(2 * n_hidden) + 2 + digits.size() % 2);
            const auto   first  = digits.begin() + long((digits.size() - n_kept) / 2);
            return { first, first + long(n_kept) };
        }
        default: return { int(std::accumulate(digits.begin(), digits.end(), int64_t(0)) % 10) };
    }
}

// The most likely value if every hidden argument were a uniform digit; the smallest of several.
int likeliest_value(const Surface & surface) {
    std::array<int, 10> counts   = {};
    const int           n_hidden = std::min(surface.n_hidden, max_hidden);
    std::vector<int>    values   = equivalent_digits(surface, n_hidden);
    const size_t        n_shown  = values.size();
    int                 n_cases  = 1;
    for (int i = 0; i < n_hidden; ++i) {
        n_cases *= 10;
    }
    values.resize(n_shown + static_cast<size_t>(n_hidden));
    for (int number = 0; number < n_cases; ++number) {
        int rest = number;
        for (size_t i = n_shown; i < values.size(); ++i) {
            values[i] = rest % 10;
            rest /= 10;
        }
        counts[static_cast<size_t>(apply_listops(surface.op, values))]++;
    }
    return static_cast<int>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

double surface_baseline_accuracy(const std::vector<Example> & examples) {
    const auto n_correct = std::count_if(examples.begin(), examples.end(), [](const Example & example) {
        return listops_baseline_answer(example.question) == example.answer;
    });
    return static_cast<double>(n_correct) / static_cast<double>(examples.size());
}

} // namespace

std::string listops_baseline_answer(const std::string & question) {
    const Surface surface = read_surface(question);
    const bool    known   = surface.op != no_operator && (!surface.digits.empty() || surface.n_hidden > 0);
    return known ? std::to_string(likeliest_value(surface)) : "";
}

std::vector<ChanceLevel> listops_chance(const std::vector<Example> & examples) {
    return { { "best guess from the outermost operator and its digits", surface_baseline_accuracy(examples) },
             { "majority baseline per outermost operator", best_constant_accuracy(examples, operator_name) },
             { "majority baseline", majority_accuracy(examples) } };
}

// "Evaluate: " and one whole expression: brackets that match, each opened by an operator, and single digits.
bool is_listops_question(const std::string & question) {
    constexpr std::string_view opening = "Evaluate:";
    const std::string          text    = trim(question);
    if (text.compare(0, opening.size(), opening) != 0) {
        return false;
    }
    int  level    = 0;
    bool is_whole = false;
    for (size_t i = opening.size(); i < text.size();) {
        if (std::isspace(static_cast<unsigned char>(text[i]))) {
            i++;
            continue;
        }
        const size_t      end  = std::min(text.find_first_of(" \t\r\n[]", i + 1), text.size());
        const std::string word = text.substr(i, end - i);
        if (word == "]") {
            is_whole = --level == 0;
        } else if (word[0] == '[') {
            level++;
        }
        const bool fits = word == "]" || (word.size() == 1 && word[0] >= '0' && word[0] <= '9') ||
                          std::any_of(listops_operators.begin(), listops_operators.end(),
                                      [&](const std::string & name) { return word == "[" + name; });
        i = end;
        if (!fits || level < 0 || (level == 0 && !(is_whole && i == text.size()))) {
            return false;
        }
    }
    return is_whole;
}

Facets listops_facets(const Example & example) {
    return { { "depth", std::to_string(read_surface(example.question).depth) },
             { "digit", example.answer },
             { "operator", operator_name(example) },
             { "steps", std::to_string(example.steps.size()) } };
}

std::vector<std::string> listops_results(const Example & example) {
    std::vector<std::string> results;
    for (const std::string & step : example.steps) {
        results.push_back(trim(step.substr(step.rfind('=') + 1)));
    }
    results.push_back(example.answer);
    return results;
}

} // namespace penelope
