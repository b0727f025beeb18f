// The chat templates of many models, as llama.cpp ships them: what they give must be what Jinja gives, byte for byte.
// The expected hashes are made by tests/golden/chat/make_expected.py.
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "tools/tool_format.h"

#include <doctest/doctest.h>

#include <sstream>

using namespace penelope;

namespace {

ChatTemplate load(const std::string & name, ChatSettings settings = {}) {
    TokenizerData data = byte_level_vocabulary();
    data.tokens[256]   = "<BOS>";
    data.tokens[257]   = "<EOS>";
    data.chat_template = test::read_bytes(test::vocab_dir() + "/templates/" + name);
    return ChatTemplate(Tokenizer(data), std::move(settings));
}

ChatTemplate load(const std::string & name, Thinking thinking) {
    ChatSettings settings;
    settings.thinking = thinking;
    return load(name, settings);
}

std::string digest(const std::string & text) {
    Sha256 hash;
    hash.add(text);
    return hash.hex().substr(0, 10);
}

std::vector<ChatMessage> messages_of(const OrderedJson & conversation) {
    std::vector<ChatMessage> messages;
    for (const auto & message : conversation) {
        messages.push_back({ message["role"], message["content"], message.value("reasoning_content", "") });
    }
    return messages;
}

} // namespace

TEST_CASE("templates give what Jinja gives" * doctest::skip(test::lacks_vocab_dir())) {
    const std::string  folder = PENELOPE_TEST_DIR "/golden/chat";
    const OrderedJson  cases  = parse_ordered_json(test::read_bytes(folder + "/cases.json"), "cases.json");
    std::istringstream lines(test::read_bytes(folder + "/expected.txt"));
    int                n_templates = 0, n_compared = 0;
    for (std::string line; std::getline(lines, line); n_templates++) {
        std::istringstream words(line);
        std::string        name, expected;
        words >> name;
        CAPTURE(name);
        std::vector<std::optional<ChatTemplate>> chats;
        for (const auto & variant : cases["variants"]) {
            ChatSettings settings;
            settings.now       = cases["now"].get<std::time_t>();
            settings.variables = variant.value("variables", OrderedJson());
            settings.tools     = variant.value("tools", false) ? cases["tools"] : OrderedJson();
            try {
                chats.emplace_back(load(name, settings));
            } catch (const Error & error) {
                FAIL_CHECK(error.message());
                chats.emplace_back();
            }
        }
        for (size_t i = 0; i < cases["conversations"].size(); i++) {
            const std::vector<ChatMessage> messages = messages_of(cases["conversations"][i]);
            for (size_t v = 0; v < chats.size(); v++) {
                REQUIRE(bool(words >> expected));
                // Jinja's `safe` makes it write quotes in tools as &#34;, which nobody means.
                const bool escapes =
                    name == "meetkai-functionary-medium-v3.1.jinja" && cases["variants"][v].contains("tools");
                if (expected == "?" || escapes || !chats[v]) {
                    continue;
                }
                n_compared++;
                CAPTURE(i);
                CAPTURE(v);
                std::string text;
                try {
                    text = chats[v]->render(messages, cases["variants"][v]["add_generation_prompt"]);
                    CAPTURE(text);
                    CHECK(digest(text) == expected);
                } catch (const Error & error) {
                    const std::string message = error.message();
                    CAPTURE(message);
                    CHECK("!" + digest(message.substr(std::string("chat template: ").size())) == expected);
                }
            }
        }
    }
    CHECK(n_templates == 68);
    CHECK(n_compared > 4000);
}

TEST_CASE("which templates have a thinking mode, and how their answers start" *
          doctest::skip(test::lacks_vocab_dir())) {
    CHECK(load("Qwen-Qwen2.5-7B-Instruct.jinja").reasoning_start() == ReasoningStart::none);
    CHECK(load("Qwen-Qwen3-0.6B.jinja").reasoning_start() == ReasoningStart::marked);
    CHECK(load("Qwen3.5-4B.jinja").reasoning_start() == ReasoningStart::inside);
    CHECK(load("Qwen3.5-4B.jinja", Thinking::on).reasoning_start() == ReasoningStart::inside);
    CHECK(load("Qwen3.5-4B.jinja", Thinking::off).reasoning_start() == ReasoningStart::marked);
    CHECK(load("deepseek-ai-DeepSeek-V3.1.jinja", Thinking::on).reasoning_start() == ReasoningStart::inside);
    CHECK_FALSE(load("Qwen-Qwen2.5-7B-Instruct.jinja").rewrites_answer(true));
    CHECK_FALSE(load("Qwen-Qwen3-0.6B.jinja").rewrites_answer(false)); // it goes on from what was generated
    CHECK(load("Qwen-Qwen3-0.6B.jinja").rewrites_answer(true));
    CHECK(load("Qwen-Qwen3-0.6B.jinja", Thinking::off).rewrites_answer(false)); // the empty block goes
    CHECK(load("Qwen3.5-4B.jinja").rewrites_answer(false));
    for (const char * plain : { "Qwen-Qwen2.5-7B-Instruct.jinja", "meta-llama-Llama-3.2-3B-Instruct.jinja" }) {
        CHECK_THROWS_WITH_AS(load(plain, Thinking::on),
                             "reasoning on: the chat template of this model does not think aloud", Error);
    }
    CHECK_THROWS_WITH_AS(load("deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja", Thinking::off),
                         "reasoning off: the chat template of this model always thinks aloud", Error);
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

TEST_CASE("tool calls as templates write them" * doctest::skip(test::lacks_vocab_dir())) {
    const std::pair<const char *, const char *> formats[] = {
        { "Qwen-Qwen2.5-7B-Instruct", "hermes" },
        { "Qwen-Qwen3-0.6B", "hermes" },
        { "NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "hermes" },
        { "ibm-granite-granite-4.0", "hermes" },
        { "Qwen3.5-4B", "qwen-xml" },
        { "Qwen3-Coder", "qwen-xml" },
        { "meta-llama-Llama-3.1-8B-Instruct", "llama" },
        { "meta-llama-Llama-3.2-3B-Instruct", "llama" },
        { "meta-llama-Llama-3.3-70B-Instruct", "llama" },
        { "ibm-granite-granite-3.3-2B-Instruct", "granite" },
        { "mistralai-Mistral-Nemo-Instruct-2407", "mistral" },
        { "google-gemma-4-31B-it", "gemma" },
        { "google-gemma-2-2b-it", "described" },
        { "microsoft-Phi-3.5-mini-instruct", "described" },
        { "HuggingFaceTB-SmolLM3-3B", "described" },
    };
    const std::vector<Tool> tools = { { "fXzG", "about", { { "type", "object" } } } };
    for (const auto & [name, expected] : formats) {
        CAPTURE(name);
        ChatTemplate      chat    = load(std::string(name) + ".jinja");
        const ToolDialect dialect = find_tool_dialect(chat);
        CHECK(std::string(dialect.format->name) == expected);
        // The whole loop of a conversation goes through every one.
        ChatMessage call{ "assistant", "" }, result{ "tool", "rXzR" };
        call.tool_calls.push_back({ "123456789", "fXzG", "{\"k\": \"vXzV\"}" });
        result.tool_call_id = "123456789";
        result.name         = "fXzG";
        if (!dialect.described) {
            chat = chat.with_tools(OrderedJson::array({ tools[0].json() }), dialect.place);
        }
        const std::string text = chat.render(messages_with_tools(dialect, { { "user", "Q" }, call, result }, tools));
        for (const char * part : { "fXzG", "about", "vXzV", "rXzR" }) {
            CAPTURE(part);
            CHECK(text.find(part) != std::string::npos);
        }
    }
}
