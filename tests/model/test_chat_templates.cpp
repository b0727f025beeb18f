// The chat templates of many models, as llama.cpp keeps them: those we take must give what Jinja gives, byte for byte, and
// all others must be refused.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "base/error.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "text/chat_template.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace penelope;

namespace {

ChatTemplate load(const std::string & name) {
    TokenizerData data = byte_level_vocabulary();
    data.tokens[256]   = "<BOS>";
    data.chat_template = test::read_bytes(test::vocab_dir() + "/templates/" + name);
    return ChatTemplate(Tokenizer(data));
}

nlohmann::json expected() {
    return nlohmann::json::parse(test::read_bytes(PENELOPE_TEST_DIR "/golden/chat/expected.json"));
}

} // namespace

TEST_CASE("templates we take give what Jinja gives" * doctest::skip(test::lacks_vocab_dir())) {
    const nlohmann::json golden = expected();
    CHECK(golden["templates"].size() == 7);
    for (const auto & [name, texts] : golden["templates"].items()) {
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
        }
    }
}

TEST_CASE("all others are refused with a way out" * doctest::skip(test::lacks_vocab_dir())) {
    const nlohmann::json golden = expected();
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
