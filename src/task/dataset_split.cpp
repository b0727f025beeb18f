#include "task/dataset_split.h"

#include "base/error.h"
#include "base/format.h"
#include "base/rng.h"
#include "task/question.h"

#include <cmath>
#include <map>

namespace penelope {

SplitRatios parse_split_ratios(const std::string & text) {
    std::vector<double> numbers;
    for (const std::string & part : split(text, ',')) {
        char *       end   = nullptr;
        const double value = std::strtod(part.c_str(), &end);
        numbers.push_back(!part.empty() && *end == '\0' && std::isfinite(value) && value >= 0 ? value : -1);
    }
    const bool ok = (numbers.size() == 2 || numbers.size() == 3) && numbers[0] > 0 && numbers[1] >= 0 &&
                    (numbers.size() == 2 || numbers[2] >= 0);
    if (!ok) {
        throw Error(ErrorKind::usage, "--split: " + in_quotes(text) + ": expected two or three numbers, e.g. 80,10,10",
                    "they are the shares of train, valid and test");
    }
    return { numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : 0 };
}

Dataset split_dataset(const std::vector<Example> & examples, const SplitRatios & shares, uint64_t seed) {
    std::map<std::string, std::vector<const Example *>> by_question;
    for (const Example & example : examples) {
        by_question[normalize_text(example.question)].push_back(&example);
    }
    std::vector<const std::vector<const Example *> *> groups;
    for (const auto & [question, group] : by_question) {
        groups.push_back(&group);
    }
    Rng rng(seed, stream_id("divide"));
    rng.shuffle(groups);

    const double all      = shares.train + shares.valid + shares.test;
    const auto   n_wanted = [&](double share) { return size_t(std::lround(double(examples.size()) * share / all)); };
    const size_t n_test = n_wanted(shares.test), n_valid = n_wanted(shares.valid);
    Dataset      parts;
    for (const auto * group : groups) {
        std::vector<Example> & part = parts.test.size() < n_test     ? parts.test
                                      : parts.valid.size() < n_valid ? parts.valid
                                                                     : parts.train;
        for (const Example * example : *group) {
            part.push_back(*example);
        }
    }
    if (parts.train.empty() || (shares.valid > 0 && parts.valid.empty()) || (shares.test > 0 && parts.test.empty())) {
        throw Error(ErrorKind::usage,
                    "--split: " + std::to_string(by_question.size()) + " distinct questions are too few for this split",
                    "use larger shares for valid and test, or more data");
    }
    return parts;
}

} // namespace penelope
