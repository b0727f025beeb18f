// A second reading of PrOntoQA questions from their text: facts, class rules and property rules, and what follows from
// them.
#pragma once

#include "task/example.h"
#include "text/regex.h"

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace prontoqa_checker {

struct Reading {
    std::multimap<std::string, std::string> parents;    // concept -> concept
    std::multimap<std::string, std::string> properties; // concept -> "hot" or "not hot"
    std::vector<std::string>                facts;      // what the person is
    std::string                             person, claim;
    int                                     n_plural = 0;
    int                                     n_rules  = 0;
    std::set<std::string>                   sentences;
};

inline bool is_concept(const std::string & word) {
    return word.size() > 3 && word.compare(word.size() - 3, 3, "pus") == 0;
}

inline std::string lowered(std::string word) {
    word[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(word[0])));
    return word;
}

// A form of sentences, and the words of the last one that had it.
class Form {
  public:
    explicit Form(const std::string & pattern) : regex_("\\A(?:" + pattern + ")\\z"), search_(regex_) {}

    bool fits(const std::string & sentence) { return search_.find(sentence, 0); }

    std::string operator[](int group) const { return std::string(search_.text(group)); }

  private:
    penelope::Regex         regex_;
    penelope::Regex::Search search_;
};

// Throws std::runtime_error unless every sentence has one of the forms of the published files.
inline Reading read(const std::string & question) {
    static Form       plural(R"(([A-Z][a-z]+pus)es are (?:([a-z]+pus)es|((?:not )?[a-z]+)))");
    static Form       singular(R"((?:Each|Every) ([a-z]+pus) is (?:a ([b-z][a-z]*pus)|an (impus)|((?:not )?[a-z]+)))");
    static Form       fact(R"(([A-Z][a-z]+) is (?:a ([b-z][a-z]*pus)|an (impus)))");
    static Form       query(R"(True or false: ([A-Z][a-z]+) is ((?:not )?[a-z]+))");
    Reading           reading;
    const std::string gap = ". ";
    for (size_t start = 0; start < question.size();) {
        const size_t end = std::min(question.find(gap, start), question.size() - 1);
        if (question[end] != '.') {
            throw std::runtime_error("no final period: " + question);
        }
        const std::string sentence = question.substr(start, end - start);
        start                      = end + gap.size();
        reading.sentences.insert(sentence);
        if (!reading.claim.empty()) {
            throw std::runtime_error("sentence after the query: " + sentence);
        }
        if (plural.fits(sentence)) {
            const bool is_class = !plural[2].empty();
            (is_class ? reading.parents : reading.properties).emplace(lowered(plural[1]), plural[is_class ? 2 : 3]);
            reading.n_plural++;
            reading.n_rules++;
        } else if (fact.fits(sentence) && fact[1] != "Each" && fact[1] != "Every") {
            reading.facts.push_back(fact[2] + fact[3]);
            if (!reading.person.empty() && reading.person != fact[1]) {
                throw std::runtime_error("two people: " + sentence);
            }
            reading.person = fact[1];
        } else if (singular.fits(sentence)) {
            const std::string class_name = singular[2] + singular[3];
            (class_name.empty() ? reading.properties : reading.parents)
                .emplace(singular[1], class_name.empty() ? singular[4] : class_name);
            reading.n_rules++;
        } else if (query.fits(sentence) && query[1] == reading.person) {
            reading.claim = query[2];
        } else {
            throw std::runtime_error("not a PrOntoQA sentence: " + sentence);
        }
    }
    if (reading.claim.empty()) {
        throw std::runtime_error("no query: " + question);
    }
    return reading;
}

inline std::string negation(const std::string & property) {
    return property.rfind("not ", 0) == 0 ? property.substr(4) : "not " + property;
}

// Everything that follows for the person: concepts and properties.
inline std::set<std::string> consequences(const Reading & reading) {
    std::set<std::string>    known;
    std::vector<std::string> open = reading.facts;
    while (!open.empty()) {
        const std::string name = open.back();
        open.pop_back();
        if (!known.insert(name).second) {
            continue;
        }
        for (auto [rule, end] = reading.parents.equal_range(name); rule != end; ++rule) {
            open.push_back(rule->second);
        }
        for (auto [rule, end] = reading.properties.equal_range(name); rule != end; ++rule) {
            known.insert(rule->second);
        }
    }
    return known;
}

// Empty if the answer follows from the context and the steps prove it sentence by sentence; else what is wrong.
inline std::string problem(const penelope::Example & example) {
    const Reading               reading = read(example.question);
    const std::set<std::string> known   = consequences(reading);
    const bool                  holds   = known.count(reading.claim) == 1;
    if (holds == (known.count(negation(reading.claim)) == 1)) {
        return "the claim is neither proved nor refuted";
    }
    if (example.answer != (holds ? "True" : "False")) {
        return "wrong answer";
    }
    std::string here; // the concept the proof has reached
    for (size_t i = 0; i + 1 < example.steps.size(); ++i) {
        const std::string & step = example.steps[i];
        const size_t        gap  = step.find(". ");
        const std::string   is   = step.substr(0, gap);
        const std::string   rule = gap == std::string::npos ? "" : step.substr(gap + 2, step.size() - gap - 3);
        const std::string   kind = is.substr(is.rfind(' ') + 1);
        if (i == 0 ? reading.sentences.count(is) == 0 : kind != here) {
            return "step does not start where the last one ended: " + step;
        }
        if (is != reading.person + " is " + (kind == "impus" ? "an " : "a ") + kind ||
            reading.sentences.count(rule) == 0) {
            return "step is not made of the context's sentences: " + step;
        }
        // A one-rule context tells what the sentence says, independent of how it is spelled.
        const Reading one =
            read(rule + ". " + reading.person + " is a zumpus. True or false: " + reading.person + " is hot.");
        const auto & rules = i + 2 == example.steps.size() ? one.properties : one.parents;
        if (rules.size() != 1 || rules.begin()->first != kind) {
            return "rule is not about the concept reached: " + step;
        }
        here = rules.begin()->second;
    }
    const std::string conclusion = holds ? reading.claim : negation(reading.claim);
    if (here != conclusion || example.steps.empty() ||
        example.steps.back() != reading.person + " is " + conclusion + ".") {
        return "proof ends elsewhere";
    }
    return "";
}

} // namespace prontoqa_checker
