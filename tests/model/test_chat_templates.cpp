// The chat templates of many models, as llama.cpp keeps them: those we take must give what Jinja gives, byte for byte, and
// all others must be refused.
#include "base/error.h"
#include "base/json.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "text/chat_template.h"

#include <doctest/doctest.h>

using namespace penelope;

namespace {

ChatTemplate load(const std::string & name, Thinking thinking = Thinking::automatic) {
    TokenizerData data = byte_level_vocabulary();
    data.tokens[256]   = "<BOS>";
    data.chat_template = test::read_bytes(test::vocab_dir() + "/templates/" + name);
    return ChatTemplate(Tokenizer(data), thinking);
}

Json expected() {
    return read_json_file(PENELOPE_TEST_DIR "/golden/chat/expected.json");
}

} // namespace

TEST_CASE("templates we take give what Jinja gives" * doctest::skip(test::lacks_vocab_dir())) {
    const Json golden = expected();
    CHECK(golden["templates"].size() == 7);
    for (const auto & [title, texts] : golden["templates"].items()) {
        const std::string & name = title;
        CAPTURE(name);
        const ChatTemplate chat = load(name);
        for (size_t i = 0; i < texts.size(); i++) {
            std::vector<ChatMessage> messages;
            for (const auto & message : golden["conversations"][i]) {
                messages.push_back({ message["role"], message["content"] });
            }
            CAPTURE(i);
            CHECK(chat.render(messages, true) == texts[i]["generation_prompt"].get<std::string>());
            CHECK(chat.render(messages, false) == texts[i]["without"].get<std::string>());
            const ChatTemplate off = load(name, Thinking::off);
            const auto         key = texts[i].contains("thinking_off") ? "thinking_off" : "generation_prompt";
            CHECK(off.render(messages, true) == texts[i][key].get<std::string>());
            CHECK(off.render(messages, false) == texts[i]["without"].get<std::string>());
        }
    }
}

TEST_CASE("which templates think aloud, and how their answers begin" * doctest::skip(test::lacks_vocab_dir())) {
    CHECK(load("Qwen-Qwen2.5-7B-Instruct.jinja").reasoning_start() == ReasoningStart::none);
    CHECK(load("Qwen-Qwen3-0.6B.jinja").reasoning_start() == ReasoningStart::marked);
    CHECK(load("Qwen3.5-4B.jinja").reasoning_start() == ReasoningStart::inside);
    CHECK(load("Qwen3.5-4B.jinja", Thinking::on).reasoning_start() == ReasoningStart::inside);
    CHECK(load("Qwen3.5-4B.jinja", Thinking::off).reasoning_start() == ReasoningStart::marked);
    CHECK_FALSE(load("Qwen-Qwen2.5-7B-Instruct.jinja").rewrites_answer(true));
    CHECK_FALSE(load("Qwen-Qwen3-0.6B.jinja").rewrites_answer(false)); // it goes on from what was generated
    CHECK(load("Qwen-Qwen3-0.6B.jinja").rewrites_answer(true));
    CHECK(load("Qwen-Qwen3-0.6B.jinja", Thinking::off).rewrites_answer(false)); // the empty block goes
    CHECK(load("Qwen3.5-4B.jinja").rewrites_answer(false));
    for (const char * plain : { "Qwen-Qwen2.5-7B-Instruct.jinja", "meta-llama-Llama-3.2-3B-Instruct.jinja" }) {
        CHECK_THROWS_WITH_AS(load(plain, Thinking::on),
                             "reasoning on: the chat template of this model does not think aloud", Error);
    }
}

TEST_CASE("a prompt and the next one share all but the generation prompt" * doctest::skip(test::lacks_vocab_dir())) {
    for (const char * name : { "Qwen-Qwen3-0.6B.jinja", "Qwen3.5-4B.jinja" }) {
        for (Thinking thinking : { Thinking::automatic, Thinking::off }) {
            const ChatTemplate         chat   = load(name, thinking);
            const std::vector<int32_t> first  = chat.encode({ { "user", "Q" } });
            const std::vector<int32_t> second = chat.encode({ { "user", "Q" }, { "assistant", "A" }, { "user", "R" } });
            const size_t               n      = first.size() - size_t(chat.n_generation_prompt());
            CHECK(std::equal(first.begin(), first.begin() + int(n), second.begin()));
            CHECK(chat.encode({ { "user", "Q" } }, false).size() == n);
        }
    }
}

TEST_CASE("all others are refused with a way out" * doctest::skip(test::lacks_vocab_dir())) {
    const Json golden = expected();
    CHECK(golden["refused"].size() > 50);
    for (const std::string name : golden["refused"]) {
        CAPTURE(name);
        try {
            load(name);
            FAIL_CHECK("accepted");
        } catch (const Error & error) {
            CHECK(error.kind == ErrorKind::unsupported);
            CHECK(error.hint.find("--raw") != std::string::npos);
        }
    }
}
