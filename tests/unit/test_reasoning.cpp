// A chain of thought told apart from the answer, however the text is cut into pieces.
#include "infer/generation_state.h"
#include "text/chat_template.h"
#include "text/reasoning.h"
#include "text/tokenizer.h"

#include <doctest/doctest.h>

using namespace penelope;

namespace {

// All ways to cut a text in two, and character by character, give the same.
void check_split(std::string_view text, ReasoningStart start, const std::string & reasoning,
                 const std::string & answer) {
    CAPTURE(text);
    const auto check = [&](const std::vector<std::string_view> & pieces) {
        ReasoningSplitter splitter(start);
        std::string       thought, said;
        const auto        add = [&](const ReasoningPiece & piece) {
            thought += piece.reasoning;
            said += piece.answer;
        };
        for (std::string_view piece : pieces) {
            add(splitter.feed(piece));
        }
        add(splitter.flush());
        CHECK(thought == reasoning);
        CHECK(said == answer);
    };
    for (size_t i = 0; i <= text.size(); i++) {
        check({ text.substr(0, i), text.substr(i) });
    }
    std::vector<std::string_view> characters;
    for (size_t i = 0; i < text.size(); i++) {
        characters.push_back(text.substr(i, 1));
    }
    check(characters);
}

} // namespace

TEST_CASE("a thought the model marks") {
    const ReasoningStart marked = ReasoningStart::marked;
    check_split("<think>\nfirst\n\nthen\n</think>\n\nanswer\n", marked, "first\n\nthen", "answer\n");
    check_split(" \n<think>x</think>y", marked, "x", "y");
    check_split("<think>\n\n</think>\n\nanswer", marked, "", "answer");
    check_split("plain <think>no</think>", marked, "", "plain <think>no</think>");
    check_split("\n plain", marked, "", "\n plain");
    check_split("<thin", marked, "", "<thin");
    check_split("", marked, "", "");
    check_split("<think>cut off \n", marked, "cut off", "");
    check_split("<think>a </thin</think>b</think>c", marked, "a </thin", "b</think>c");
}

TEST_CASE("a thought the prompt has begun, and none") {
    check_split("first</think>\n\nanswer", ReasoningStart::inside, "first", "answer");
    check_split("\nfirst < </ </think", ReasoningStart::inside, "first < </ </think", "");
    check_split("</think>answer", ReasoningStart::inside, "", "answer");
    check_split("</think>", ReasoningStart::inside, "", "");
    check_split("<think>a</think>b", ReasoningStart::none, "", "<think>a</think>b");
}

TEST_CASE("tokens of a thought are counted, stop strings are for the answer, marks may be control tokens") {
    TokenizerData data = byte_level_vocabulary();
    for (const char * text : { "<think>", "</think>" }) {
        data.tokens.push_back(text);
        data.types.push_back(TokenType::control);
    }
    const Tokenizer tokenizer(data);
    const int32_t   begin = *tokenizer.find_token("<think>"), end = *tokenizer.find_token("</think>");
    const auto grow = [&](const std::vector<int32_t> & tokens, const GenerateOptions & options, std::string & pieces) {
        const GenerationEnv facts{ tokenizer, tokenizer.n_vocab(), 100, [] { FAIL("not finite"); } };
        GenerationState     answer(facts, options, 0, {});
        for (int32_t token : tokens) {
            if (answer.done()) {
                break;
            }
            std::vector<float> logits(size_t(tokenizer.n_vocab()), 0.0f);
            logits[size_t(token)]  = 1.0f;
            const std::string text = answer.accept_logits(logits.data());
            pieces += answer.new_reasoning().empty() ? text : "[" + answer.new_reasoning() + "]" + text;
        }
        answer.end(FinishReason::length);
        return answer.answer();
    };
    GenerateOptions options;
    options.reasoning = ReasoningStart::marked;
    options.stop      = { "b" };
    std::string  pieces;
    const Answer answer = grow({ begin, '\n', 'a', 'b', '\n', end, '\n', 'c', 'd', 'b', 'e' }, options, pieces);
    CHECK(answer.reasoning == "ab");
    CHECK(answer.text == "cd");
    CHECK(answer.n_reasoning == 6);
    CHECK(answer.stopped_by == "b");
    CHECK(pieces == "[a][b]cd");

    options.reasoning = ReasoningStart::inside;
    pieces.clear();
    const Answer cut = grow({ 'a', ' ' }, options, pieces);
    CHECK(cut.reasoning == "a");
    CHECK(cut.text.empty());
    CHECK(cut.n_reasoning == 2);

    options.reasoning = ReasoningStart::none; // control tokens have no text then, as ever
    pieces.clear();
    CHECK(grow({ begin, 'a', end, 'c' }, options, pieces).text == "ac");
}
