// A file of examples. The first byte says what its name ends in, and so its format.
#include "target.h"
#include "task/example.h"

namespace penelope::fuzz {

namespace {

const char * const kEndings[] = { "jsonl", "json", "csv", "txt" };

} // namespace

void run_input(const std::string & bytes) {
    if (!bytes.empty()) {
        const std::string ending = kEndings[static_cast<unsigned char>(bytes[0]) % 4];
        read_examples(as_file("input." + ending, bytes.substr(1)));
    }
}

std::vector<std::string> seeds() {
    const std::string object = R"({"id": "a", "question": "1 + 1?", "steps": ["1 + 1 = 2"], "answer": "2"})";
    return { std::string(1, 0) + object + "\n" + R"({"question": "ü 😀", "answer": 4})" + "\n",
             std::string(1, 1) + "[" + object + R"(, {"question": "q", "steps": [], "answer": "b", "idx": 3}])",
             std::string(1, 2) + "question,answer\n\"a, \"\"b\"\"\",c\r\nd,e\n",
             std::string(1, 3) + "question,answer\na,b\n" };
}

} // namespace penelope::fuzz
