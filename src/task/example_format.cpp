#include "task/example_format.h"

#include "base/error.h"
#include "task/question.h"
#include "text/prompt_template.h"

namespace penelope {

namespace {

constexpr const char * format_hint = "one object a line: {\"question\", \"steps\": [..], \"answer\"}, {\"prompt\", "
                                     "\"completion\"} or {\"messages\": [..]}; or one "
                                     "JSON array of them, or CSV with such columns";

// Texts or numbers; none where the key is missing or null. one names an item in messages.
std::vector<std::string> optional_texts(const Json & object, const std::string & key, const std::string & one,
                                        const std::string & where) {
    std::vector<std::string> texts;
    const auto               items = object.find(key);
    if (items == object.end() || items->is_null()) {
        return texts;
    }
    if (!items->is_array()) {
        throw bad_example(where, "\"" + key + "\" must be an array of strings, not " + items->type_name());
    }
    for (const Json & item : *items) {
        if (!item.is_string() && !item.is_number()) {
            throw bad_example(where, one + " " + std::to_string(texts.size() + 1) + " must be a string, not " +
                                         item.type_name());
        }
        texts.push_back(item.is_string() ? item.get<std::string>() : dump_json(item));
    }
    return texts;
}

void read_question(const Json & object, const std::string & where, Example & example) {
    example.question       = required_text(object, "question", where);
    example.answer         = required_text(object, "answer", where);
    example.steps          = optional_texts(object, "steps", "step", where);
    example.results        = optional_texts(object, "step_results", "result", where);
    const size_t n_results = example.results.size(), n_steps = example.steps.size();
    // One for each step, and before them what the first step starts from.
    if (n_results > 0 && n_results != n_steps && (n_results != n_steps + 1 || n_steps == 0)) {
        throw bad_example(where,
                          "has " + std::to_string(n_results) + " results of " + std::to_string(n_steps) + " steps");
    }
}

void write_question(const Example & example, OrderedJson & object) {
    object["question"] = example.question;
    object["steps"]    = example.steps;
    if (!example.results.empty()) {
        object["step_results"] = example.results;
    }
    object["answer"] = example.answer;
}

void read_completion(const Json & object, const std::string & where, Example & example) {
    example.question = required_text(object, "prompt", where);
    example.answer   = required_text(object, "completion", where);
}

void write_completion(const Example & example, OrderedJson & object) {
    object["prompt"]     = example.question;
    object["completion"] = example.answer;
}

// The last message is what the model has to answer; all before it are the prompt.
void read_messages(const Json & object, const std::string & where, Example & example) {
    const Json & messages = object.at("messages");
    if (!messages.is_array() || messages.size() < 2) {
        throw bad_example(where, "\"messages\" must be an array of at least a question and its answer");
    }
    for (const Json & message : messages) {
        if (!message.is_object()) {
            throw bad_example(where, "a message must be an object {\"role\", \"content\"}");
        }
        example.messages.push_back({ required_text(message, "role", where), required_text(message, "content", where) });
        const std::string & role = example.messages.back().role;
        if (role != "system" && role != "user" && role != "assistant") {
            throw bad_example(where, "role '" + role + "' is none of system, user and assistant");
        }
    }
    if (example.messages.back().role != "assistant") {
        throw bad_example(where, "the last message must be the assistant's");
    }
    example.answer = example.messages.back().content;
    example.messages.pop_back();
    for (const ChatMessage & message : example.messages) {
        example.question += (example.question.empty() ? "" : "\n") + message.content;
    }
}

void write_messages(const Example & example, OrderedJson & object) {
    object["messages"] = OrderedJson::array();
    for (const ChatMessage & message : example.messages) {
        object["messages"].push_back({ { "role", message.role }, { "content", message.content } });
    }
    object["messages"].push_back({ { "role", "assistant" }, { "content", example.answer } });
}

} // namespace

const char * example_hint() {
    return format_hint;
}

Error bad_example(const std::string & where, const std::string & why) {
    return Error(ErrorKind::format, where + ": " + why, format_hint);
}

std::string required_text(const Json & object, const char * key, const std::string & where) {
    const auto field = object.find(key);
    if (field == object.end()) {
        throw bad_example(where, std::string("\"") + key + "\" is missing");
    }
    if (field->is_number()) {
        return dump_json(*field);
    }
    if (!field->is_string()) {
        throw bad_example(where,
                          std::string("\"") + key + "\" must be a string or a number, not " + field->type_name());
    }
    if (trim(field->get_ref<const std::string &>()).empty()) {
        throw bad_example(where, std::string("\"") + key + "\" is empty");
    }
    return *field;
}

const std::vector<ExampleFormat> & example_formats() {
    static const std::vector<ExampleFormat> formats = {
        { "question, steps, answer", ExampleKind::question, "question", read_question, write_question,
          default_prompt_template, default_answer_prefix },
        { "prompt, completion", ExampleKind::completion, "completion", read_completion, write_completion, "{question}",
          "" },
        { "messages", ExampleKind::chat, "messages", read_messages, write_messages, chat_prompt_template, "" },
    };
    return formats;
}

const ExampleFormat & format_of(ExampleKind kind) {
    for (const ExampleFormat & format : example_formats()) {
        if (format.kind == kind) {
            return format;
        }
    }
    return example_formats().front();
}

const ExampleFormat & format_of(const Json & object) {
    for (const ExampleFormat & format : example_formats()) {
        if (object.contains(format.mark)) {
            return format;
        }
    }
    return example_formats().front();
}

} // namespace penelope
