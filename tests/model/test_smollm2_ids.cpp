// Prompts of SmolLM2-135M-Instruct as its own tokenizer and chat template give them: ids must be identical.
#include "base/json.h"
#include "gguf/reader.h"
#include "support/files.h"
#include "support/temp_dir.h"
#include "text/chat_template.h"
#include "text/stream_decoder.h"

#include <doctest/doctest.h>

using namespace penelope;
using Ids = std::vector<int32_t>;

TEST_CASE("ids of SmolLM2" * doctest::skip(test::lacks_smollm2())) {
    const Tokenizer    tokenizer = Tokenizer::from_gguf(GgufReader::open(test::smollm2_path()));
    const ChatTemplate chat(tokenizer);
    CHECK(chat.end_of_turn() == 2);
    CHECK(tokenizer.is_end_of_generation(2));
    CHECK_FALSE(tokenizer.adds_bos());

    const auto golden  = read_json_file(PENELOPE_TEST_DIR "/golden/smollm2/expected.json");
    int        n_chats = 0;
    for (const auto & c : golden["cases"]) {
        const std::string prompt = c["prompt"];
        const Ids         ids    = c["ids"];
        CAPTURE(prompt);
        CHECK(tokenizer.encode(prompt, { true, c["chat"].get<bool>() }) == ids);
        CHECK(tokenizer.decode(ids, { true }) == prompt);

        const Ids         answer = c["greedy_ids"];
        const std::string text   = c["greedy_text"];
        CHECK(tokenizer.decode(answer, { true }) == text);
        StreamDecoder stream(tokenizer, { true });
        std::string   streamed;
        for (const int32_t id : answer) {
            streamed += stream.feed(id);
        }
        CHECK(streamed + stream.flush() == text);

        if (!c["chat"].get<bool>()) {
            continue;
        }
        // The question alone must become the whole prompt, the model's own system message included.
        const std::string before   = "<|im_start|>user\n";
        const size_t      begin    = prompt.find(before) + before.size();
        const std::string question = prompt.substr(begin, prompt.find("<|im_end|>", begin) - begin);
        CHECK(chat.render({ { "user", question } }) == prompt);
        CHECK(chat.encode({ { "user", question } }) == ids);
        const std::string system_mark = "<|im_start|>system\n";
        const size_t      system      = prompt.find(system_mark) + system_mark.size();
        const std::string own         = prompt.substr(system, prompt.find("<|im_end|>", system) - system);
        CHECK(chat.encode({ { "system", own }, { "user", question } }) == ids);
        n_chats++;
    }
    CHECK(n_chats == 2);
}
