#include "task/thread_surface.h"

#include <algorithm>
#include <sstream>

namespace penelope {

namespace {

// --- letters: "kQ aa Qa ?k"

std::vector<std::string> letters() {
    std::vector<std::string> names;
    for (const char first : { 'a', 'A' }) {
        for (char c = first; c < first + 26; ++c) {
            names.emplace_back(1, c);
        }
    }
    return names;
}

std::string letters_edge(const std::string & from, const std::string & to) {
    return from + to;
}

std::string letters_ask(const std::string & start) {
    return "?" + start;
}

Thread read_letters(const std::vector<std::string> & words) {
    Thread thread;
    for (size_t i = 0; i < words.size(); ++i) {
        const std::string & word    = words[i];
        const bool          is_last = i + 1 == words.size();
        const bool          fits =
            word.size() == 2 && (is_last ? word[0] == '?' : is_thread_letter(word[0])) && is_thread_letter(word[1]);
        if (!fits) {
            return {};
        }
        if (is_last) {
            thread.start = word.substr(1);
        } else {
            thread.edges.emplace_back(word.substr(0, 1), word.substr(1));
        }
    }
    return thread;
}

// --- words: "Ann hands the key to Bob. Bob keeps the key. Ann has the key. Who has it at the end?"

const std::vector<std::string> people = {
    "Adam", "Alan",   "Alex",  "Alice",  "Amy",    "Andy",  "Anna",  "Anne",   "Ben",   "Bill",  "Bob",  "Brian",
    "Carl", "Carol",  "Chris", "Clara",  "Daniel", "David", "Diana", "Edward", "Ella",  "Emily", "Emma", "Eric",
    "Eva",  "Frank",  "Fred",  "George", "Grace",  "Harry", "Helen", "Henry",  "Jack",  "James", "Jane", "Jim",
    "John", "Julia",  "Kate",  "Kevin",  "Laura",  "Lily",  "Lucy",  "Maria",  "Mark",  "Mary",  "Max",  "Mike",
    "Nick", "Oliver", "Paul",  "Peter",  "Robert", "Sam",   "Sarah", "Steve",  "Susan", "Tim",   "Tom",  "William",
};

std::string words_edge(const std::string & from, const std::string & to) {
    return from == to ? from + " keeps the key." : from + " hands the key to " + to + ".";
}

std::string words_ask(const std::string & start) {
    return start + " has the key. Who has it at the end?";
}

bool matches(const std::vector<std::string> & words, size_t first, const std::vector<std::string> & pattern) {
    if (first + pattern.size() > words.size()) {
        return false;
    }
    for (size_t i = 0; i < pattern.size(); ++i) {
        if (!pattern[i].empty() && words[first + i] != pattern[i]) { // an empty one stands for any word
            return false;
        }
    }
    return true;
}

Thread read_words(const std::vector<std::string> & words) {
    Thread thread;
    size_t i = 0;
    while (i < words.size()) {
        if (matches(words, i, { "", "hands", "the", "key", "to", "" }) && words[i + 5].back() == '.') {
            thread.edges.emplace_back(words[i], words[i + 5].substr(0, words[i + 5].size() - 1));
            i += 6;
        } else if (matches(words, i, { "", "keeps", "the", "key." })) {
            thread.edges.emplace_back(words[i], words[i]);
            i += 4;
        } else if (matches(words, i, { "", "has", "the", "key.", "Who", "has", "it", "at", "the", "end?" }) &&
                   i + 10 == words.size()) {
            thread.start = words[i];
            return thread;
        } else {
            return {};
        }
    }
    return {};
}

} // namespace

const std::vector<ThreadSurface> & thread_surfaces() {
    static const std::vector<ThreadSurface> surfaces = {
        { "letters", letters(), letters_edge, letters_ask, read_letters },
        { "words", people, words_edge, words_ask, read_words },
    };
    return surfaces;
}

const ThreadSurface * find_thread_surface(const std::string & name) {
    const auto & surfaces = thread_surfaces();
    const auto   found    = std::find_if(surfaces.begin(), surfaces.end(),
                                         [&](const ThreadSurface & surface) { return name == surface.name; });
    return found == surfaces.end() ? nullptr : &*found;
}

bool is_thread_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::vector<std::string> split_words(const std::string & text) {
    std::istringstream       in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) {
        words.push_back(word);
    }
    return words;
}

Thread read_thread(const std::string & question) {
    const std::vector<std::string> words = split_words(question);
    for (const ThreadSurface & surface : thread_surfaces()) {
        Thread thread = surface.read(words);
        if (!thread.edges.empty()) {
            return thread;
        }
    }
    return {};
}

} // namespace penelope
