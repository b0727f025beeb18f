// Prompt and target strings, which decide what every method is trained on.
#include <doctest/doctest.h>

#include "base/error.h"
#include "task/target_text.h"
#include "text/prompt_template.h"

static const penelope::Example example = {
    "x-0", "Evaluate: [MAX 3 [MIN 4 7] 2]", { "[MIN 4 7] = 4", "[MAX 3 4 2] = 4" }, "4"
};

TEST_CASE("the prompt is the template with the question put in") {
    CHECK(penelope::prompt_text(penelope::default_prompt_template, "Why?") == "Why?\n");
    CHECK(penelope::prompt_text("Q: {question}\nA:", "Why?") == "Q: Why?\nA:");
    CHECK(penelope::prompt_text("{question}", "") == "");
}

TEST_CASE("a question that contains the placeholder or replacement signs is left as it is") {
    CHECK(penelope::prompt_text("<{question}>", "{question} $1 \\1") == "<{question} $1 \\1>");
}

TEST_CASE("a template without the placeholder, or with two, is refused") {
    CHECK_THROWS_AS(penelope::prompt_text("no place", "Why?"), penelope::Error);
    CHECK_THROWS_AS(penelope::prompt_text("", "Why?"), penelope::Error);
    CHECK_THROWS_AS(penelope::prompt_text("{question} {question}", "Why?"), penelope::Error);
}

TEST_CASE("the target holds the steps that are not latent and then the answer") {
    CHECK(penelope::target_text(example, 0, "### ") == "[MIN 4 7] = 4\n[MAX 3 4 2] = 4\n### 4");
    CHECK(penelope::target_text(example, 1, "### ") == "[MAX 3 4 2] = 4\n### 4");
    CHECK(penelope::target_text(example, 2, "### ") == "### 4");
    CHECK(penelope::target_text(example, 6, "### ") == "### 4");
    CHECK(penelope::target_text(example, SIZE_MAX, "") == "4");
    CHECK(penelope::target_text({ "x-1", "Q", {}, "True" }, 0, "The answer is: ") == "The answer is: True");
}
