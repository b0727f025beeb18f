// A second reading of ProsQA questions from their text: edges, distances, the two options; whether answer and steps
// hold.
#pragma once

#include "task/example.h"
#include "text/regex.h"

#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace prosqa_checker {

struct Reading {
    std::map<std::string, std::set<std::string>> children;
    size_t                                       n_edges = 0;
    std::string                                  asked, first, second; // Is asked a first or second?
};

// Throws std::runtime_error unless every sentence has the exact form of the published files.
inline Reading read(const std::string & question) {
    static const penelope::Regex sentence(R"(\G(?:Every ([a-z]+)|([A-Z][a-z]+)) is a ([a-z]+)\. )");
    static const penelope::Regex query(R"(\GIs ([A-Z][a-z]+) a ([a-z]+) or ([a-z]+)\?\z)");
    Reading                      reading;
    penelope::Regex::Search      edge(sentence), asked(query);
    size_t                       place = 0;
    while (edge.find(question, place)) {
        reading.children[std::string(edge.text(1)) + std::string(edge.text(2))].emplace(edge.text(3));
        reading.n_edges++;
        place = edge.end();
    }
    if (!asked.find(question, place)) {
        throw std::runtime_error("not a ProsQA question: " + question.substr(place));
    }
    reading.asked  = asked.text(1);
    reading.first  = asked.text(2);
    reading.second = asked.text(3);
    return reading;
}

// Distances from a name by breadth-first search.
inline std::map<std::string, int> distances(const Reading & reading, const std::string & from) {
    std::map<std::string, int> distance = { { from, 0 } };
    std::deque<std::string>    queue    = { from };
    while (!queue.empty()) {
        const std::string name = queue.front();
        queue.pop_front();
        const auto children = reading.children.find(name);
        if (children == reading.children.end()) {
            continue;
        }
        for (const std::string & child : children->second) {
            if (distance.emplace(child, distance[name] + 1).second) {
                queue.push_back(child);
            }
        }
    }
    return distance;
}

// Empty if the right option alone follows, the answer names it and the steps are a shortest path to it; else what is
// wrong.
inline std::string problem(const penelope::Example & example) {
    const Reading                    reading = read(example.question);
    const std::map<std::string, int> reached = distances(reading, reading.asked);
    const bool                       first   = reached.count(reading.first) == 1;
    if (first == (reached.count(reading.second) == 1)) {
        return "not exactly one option follows";
    }
    const std::string right = first ? reading.first : reading.second;
    if (example.answer != reading.asked + " is a " + right + ".") {
        return "wrong answer";
    }
    if (static_cast<int>(example.steps.size()) != reached.at(right)) {
        return "not a shortest path";
    }
    std::string name = reading.asked;
    for (const std::string & step : example.steps) {
        const std::string start = (name == reading.asked ? "" : "Every ") + name + " is a ";
        if (step.rfind(start, 0) != 0 || step.back() != '.' ||
            (" " + example.question).find(" " + step + " ") == std::string::npos) {
            return "step does not continue the path or is not in the question: " + step;
        }
        name = step.substr(start.size(), step.size() - start.size() - 1);
    }
    return name == right ? "" : "path ends elsewhere";
}

} // namespace prosqa_checker
