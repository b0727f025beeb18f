#include "task/prontoqa.h"

#include "base/format.h"
#include "task/baseline.h"
#include "task/question.h"
#include "task/split.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace penelope {

namespace {

// 2 * hops + 4 concepts and 2 * hops + 1 property families must be different.
constexpr DepthRange possible_depths = { 1, 6 };

// A property is negated with probability 1/3 in the original ontologies; proofs that end at one prefer negated ones and
// pass the others by, which leaves these shares on the chain.
constexpr double negated_end_p   = 0.4715;
constexpr double negated_chain_p = 0.277;
constexpr double negated_side_p  = 1.0 / 3;

constexpr const char * query_opening = "True or false: ";

constexpr std::array<const char *, 17> concepts = { "wumpus", "yumpus",  "zumpus",  "dumpus", "rompus", "numpus",
                                                    "tumpus", "vumpus",  "impus",   "jompus", "gorpus", "shumpus",
                                                    "lempus", "sterpus", "grimpus", "lorpus", "brimpus" };

constexpr std::array<const char *, 9> people = {
    "Fae", "Rex", "Sally", "Max", "Alex", "Sam", "Polly", "Stella", "Wren"
};

const std::vector<std::vector<const char *>> & property_families() {
    static const std::vector<std::vector<const char *>> families = {
        { "blue", "red", "brown", "orange" },
        { "small", "large" },
        { "metallic", "wooden", "luminous", "liquid" },
        { "transparent", "opaque" },
        { "nervous", "happy", "feisty", "shy" },
        { "bright", "dull" },
        { "sweet", "sour", "spicy", "bitter" },
        { "floral", "fruity", "earthy" },
        { "hot", "cold", "temperate" },
        { "kind", "mean", "angry", "amenable", "aggressive" },
        { "melodic", "muffled", "discordant", "loud" },
        { "slow", "moderate", "fast" },
        { "windy", "sunny", "overcast", "rainy", "snowy" },
    };
    return families;
}

std::string with_article(const std::string & noun) {
    return (std::string("aeiou").find(noun[0]) != std::string::npos ? "an " : "a ") + noun;
}

struct Property {
    std::string name;
    bool        negated;
};

// A rule in the surface form it keeps in context and proof: "Lempuses are ...", "Each lempus is ..." or "Every lempus
// is ...".
class RuleWriter {
  public:
    explicit RuleWriter(Rng & rng) : rng_(rng) {}

    std::string subsumption(const std::string & child, const std::string & parent) {
        const std::string subject = draw_subject(child);
        return subject + (plural_ ? parent + "es." : with_article(parent) + ".");
    }

    std::string property(const std::string & owner, const Property & property) {
        const std::string subject = draw_subject(owner);
        return subject + (property.negated ? "not " : "") + property.name + ".";
    }

  private:
    std::string draw_subject(const std::string & noun) {
        const uint64_t form = rng_.below(4);
        plural_             = form < 2;
        if (plural_) {
            return static_cast<char>(noun[0] - 'a' + 'A') + noun.substr(1) + "es are ";
        }
        return (form == 2 ? "Each " : "Every ") + noun + " is ";
    }

    Rng & rng_;
    bool  plural_ = false;
};

Property draw_property(size_t family, double negated_p, Rng & rng) {
    const std::vector<const char *> & names = property_families()[family];
    const char *                      name  = names[rng.below(names.size())];
    return { name, rng.chance(negated_p) };
}

std::string claim(const std::string & person, const Property & property, bool denied) {
    return person + " is " + (property.negated != denied ? "not " : "") + property.name + ".";
}

// "lempus", "lempus." and "Lempuses" name the concept lempus.
bool names_concept(const std::string & word) {
    std::string noun = to_lower(word);
    noun.erase(std::remove(noun.begin(), noun.end(), '.'), noun.end());
    return std::any_of(concepts.begin(), concepts.end(),
                       [&](const std::string & name) { return noun == name || noun == name + "es"; });
}

bool ends_sentence(const std::string & word) {
    return word.back() == '.';
}

std::vector<std::string> words_of(const std::string & text) {
    std::istringstream       in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) {
        words.push_back(word);
    }
    return words;
}

} // namespace

Example draw_prontoqa_example(int n_hops, Rng & rng) {
    const size_t              h             = static_cast<size_t>(n_hops);
    const std::vector<size_t> concept_draws = rng.choose(concepts.size(), 2 * h + 4);
    const std::vector<size_t> family_draws  = rng.choose(property_families().size(), 2 * h + 1);
    const std::string         person        = people[rng.below(people.size())];
    const auto                drawn_concept = [&](size_t i) { return std::string(concepts[concept_draws[i]]); };

    // chain[0] is the root, chain[h] what the person is; side[i] is the other parent of chain[i] (side[0] unused).
    std::vector<std::string> chain, side(1);
    for (size_t i = 0; i <= h; ++i) {
        chain.push_back(drawn_concept(i));
    }
    for (size_t i = 1; i <= h; ++i) {
        side.push_back(drawn_concept(h + i));
    }
    const std::string second_kind   = drawn_concept(2 * h + 1);
    const std::string second_parent = drawn_concept(2 * h + 2);
    const std::string contrary      = drawn_concept(2 * h + 3);

    RuleWriter               writer(rng);
    std::vector<std::string> rules;
    std::vector<std::string> climb(h + 1); // climb[i]: the sentence that leads from chain[i] to chain[i - 1]
    for (size_t i = 1; i <= h; ++i) {
        climb[i] = writer.subsumption(chain[i], chain[i - 1]);
        rules.push_back(climb[i]);
        rules.push_back(writer.subsumption(chain[i], side[i]));
    }
    const Property    conclusion = draw_property(family_draws[0], negated_end_p, rng);
    const std::string end        = writer.property(chain[1], conclusion);
    rules.push_back(end);
    for (size_t i = 2; i <= h; ++i) {
        const Property property = draw_property(family_draws[i - 1], negated_chain_p, rng);
        rules.push_back(writer.property(chain[i], property));
    }
    for (size_t i = 1; i <= h; ++i) {
        const Property property = draw_property(family_draws[h + i - 1], negated_side_p, rng);
        rules.push_back(writer.property(side[i], property));
    }
    const Property second_property = draw_property(family_draws[2 * h], negated_side_p, rng);
    rules.push_back(writer.property(second_kind, second_property));
    rules.push_back(writer.subsumption(second_kind, second_parent));
    rng.shuffle(rules);
    const uint64_t place = rng.below(rules.size() + 1);
    rules.insert(rules.begin() + static_cast<std::ptrdiff_t>(place),
                 writer.property(contrary, { conclusion.name, !conclusion.negated }));

    std::vector<std::string> facts = { person + " is " + with_article(chain[h]) + ".",
                                       person + " is " + with_article(second_kind) + "." };
    rng.shuffle(facts);
    const bool denied = rng.below(2) == 1;

    Example example;
    for (const std::vector<std::string> * sentences : { &rules, &facts }) {
        for (const std::string & sentence : *sentences) {
            example.question += sentence + " ";
        }
    }
    example.question += query_opening + claim(person, conclusion, denied);
    for (size_t i = h; i >= 1; --i) {
        example.steps.push_back(person + " is " + with_article(chain[i]) + ". " + (i > 1 ? climb[i] : end));
    }
    example.steps.push_back(claim(person, conclusion, false));
    example.answer = denied ? "False" : "True";
    return example;
}

Dataset generate_prontoqa(const DatasetOptions & options) {
    return generate_splits("prontoqa", options, possible_depths, normalize_text,
                           [](const SplitRequest & request, QuestionSet & seen, Rng & rng) {
                               return fill_by_drawing(request, seen, [&](size_t) {
                                   return draw_prontoqa_example(draw_depth(request.depth, rng), rng);
                               });
                           });
}

std::vector<ChanceLevel> prontoqa_chance(const std::vector<Example> & examples) {
    return { { "majority baseline", majority_accuracy(examples) } };
}

bool is_prontoqa_question(const std::string & question) {
    const size_t query = question.find(query_opening);
    if (query == std::string::npos) {
        return false;
    }
    // Before the query at least one sentence, each of which names a concept.
    bool has_sentence = false, names_one = false;
    for (const std::string & word : words_of(question.substr(0, query))) {
        names_one = names_one || names_concept(word);
        if (ends_sentence(word)) {
            if (!names_one) {
                return false;
            }
            has_sentence = true;
            names_one    = false;
        }
    }
    // The query is one claim: "Max is hot." or "Max is not hot."
    const std::vector<std::string> claimed = words_of(question.substr(query + std::string(query_opening).size()));
    const size_t                   n       = claimed.size();
    return has_sentence && (n == 3 || (n == 4 && claimed[2] == "not")) && claimed[1] == "is" &&
           std::count_if(claimed.begin(), claimed.end(), ends_sentence) == 1 && ends_sentence(claimed.back());
}

Facets prontoqa_facets(const Example & example) {
    const size_t n_hops = example.steps.empty() ? 0 : example.steps.size() - 1;
    return { { "depth", std::to_string(n_hops) }, { "answer", example.answer } };
}

std::vector<std::string> prontoqa_results(const Example & example) {
    std::vector<std::string> results;
    for (size_t i = 1; i < example.steps.size(); i++) {
        // "Max is a wumpus. ...": " wumpus"; "Max is not hot.": " not hot"
        std::string found = example.steps[i].substr(0, example.steps[i].find('.'));
        for (const char * opening : { " is", " a", " an" }) {
            const size_t end = found.find(std::string(opening) + " ");
            found            = end == std::string::npos ? found : found.substr(end + std::string(opening).size());
        }
        results.push_back(found);
    }
    if (!example.steps.empty()) {
        results.insert(results.end(), 2, " " + example.answer);
    }
    return results;
}

} // namespace penelope
