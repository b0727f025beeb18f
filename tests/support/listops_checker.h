// A second reading of ListOps expressions, independent of the generator: a stack over whitespace and bracket tokens.
// Takes our spelling `[MAX 3 [MIN 4 7] 2]`, the original one `[MAX 3 [MIN 4 7 ] 2 ]` and its binary-tree parentheses.
#pragma once

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string>
#include <vector>

namespace listops_checker {

struct Reading {
    int                      value       = 0;
    int                      depth       = 0; // nested operators
    size_t                   min_args    = 99;
    size_t                   max_args    = 0;
    int                      n_operators = 0;
    int                      max_nested  = 0; // arguments of one operator that are operators themselves
    std::vector<std::string> transitions;     // in the order the closing brackets come
};

inline int apply(const std::string & op, std::vector<int> args) {
    std::sort(args.begin(), args.end());
    if (op == "MIN") {
        return args.front();
    }
    if (op == "MAX") {
        return args.back();
    }
    if (op == "MED") {
        const size_t n = args.size();
        return (args[(n - 1) / 2] + args[n / 2]) / 2;
    }
    if (op == "SM") {
        int sum = 0;
        for (const int arg : args) {
            sum = (sum + arg) % 10;
        }
        return sum;
    }
    throw std::runtime_error("unknown operator " + op);
}

inline Reading read(const std::string & expression) {
    struct Frame {
        std::string      op;
        std::vector<int> args;
        int              n_nested = 0;
    };
    Reading            reading;
    std::vector<Frame> stack(1); // the bottom frame collects the result
    for (size_t i = 0; i < expression.size();) {
        const char c = expression[i];
        if (c == ' ' || c == '(' || c == ')') {
            ++i;
        } else if (c == '[') {
            std::string op;
            for (++i; i < expression.size() && std::isupper(static_cast<unsigned char>(expression[i])); ++i) {
                op += expression[i];
            }
            stack.back().n_nested++;
            stack.push_back({ op, {}, 0 });
            reading.depth = std::max(reading.depth, static_cast<int>(stack.size()) - 1);
        } else if (c == ']') {
            if (stack.size() < 2) {
                throw std::runtime_error("unbalanced: " + expression);
            }
            const Frame frame = stack.back();
            stack.pop_back();
            const int value = apply(frame.op, frame.args);
            stack.back().args.push_back(value);
            reading.min_args   = std::min(reading.min_args, frame.args.size());
            reading.max_args   = std::max(reading.max_args, frame.args.size());
            reading.max_nested = std::max(reading.max_nested, frame.n_nested);
            reading.n_operators++;
            std::string text = "[" + frame.op;
            for (const int arg : frame.args) {
                text += " " + std::to_string(arg);
            }
            reading.transitions.push_back(text + "] = " + std::to_string(value));
            ++i;
        } else if (c >= '0' && c <= '9') {
            stack.back().args.push_back(c - '0');
            ++i;
        } else {
            throw std::runtime_error("unexpected character in " + expression);
        }
    }
    if (stack.size() != 1 || stack[0].args.size() != 1) {
        throw std::runtime_error("not one expression: " + expression);
    }
    reading.value = stack[0].args[0];
    return reading;
}

} // namespace listops_checker
