#include "task/example.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "task/question.h"

#include <algorithm>
#include <fstream>
#include <system_error>
#include <unordered_map>

namespace penelope {

namespace {

constexpr const char * format_hint =
    "one object {\"id\", \"question\", \"steps\": [..], \"answer\"} a line, or one JSON array of such objects";

Error bad_example(const std::string & where, const std::string & why) {
    return Error(ErrorKind::format, where + ": " + why, format_hint);
}

constexpr JsonLimits array_limits = { size_t(4) << 30, 100 };

std::string required_text(const Json & object, const char * key, const std::string & where) {
    const auto field = object.find(key);
    if (field == object.end()) {
        throw bad_example(where, std::string("\"") + key + "\" is missing");
    }
    if (!field->is_string()) {
        throw bad_example(where, std::string("\"") + key + "\" must be a string, not " + field->type_name());
    }
    if (trim(field->get_ref<const std::string &>()).empty()) {
        throw bad_example(where, std::string("\"") + key + "\" is empty");
    }
    return *field;
}

std::vector<std::string> required_steps(const Json & object, const std::string & where) {
    const auto field = object.find("steps");
    if (field == object.end()) {
        throw bad_example(where, "\"steps\" is missing");
    }
    if (!field->is_array()) {
        throw bad_example(where, std::string("\"steps\" must be an array of strings, not ") + field->type_name());
    }
    std::vector<std::string> steps;
    for (const Json & step : *field) {
        if (!step.is_string()) {
            throw bad_example(where, "step " + std::to_string(steps.size() + 1) + " must be a string, not " +
                                         step.type_name());
        }
        steps.push_back(step);
    }
    return steps;
}

std::string example_id(const Json & object, const std::string & stem, size_t index, const std::string & where) {
    for (const char * key : { "id", "idx" }) {
        const auto field = object.find(key);
        if (field == object.end()) {
            continue;
        }
        const bool is_id = std::string(key) == "id";
        if (field->is_number_integer()) {
            return is_id ? field->dump() : stem + "-" + field->dump(); // idx counts within a file
        }
        if (is_id) {
            return required_text(object, key, where);
        }
        throw bad_example(where, std::string("\"idx\" must be an integer, not ") + field->type_name());
    }
    return stem + "-" + std::to_string(index);
}

Example to_example(const Json & object, const std::string & stem, size_t index, const std::string & where) {
    if (!object.is_object()) {
        throw bad_example(where, std::string("an example must be an object, not ") + object.type_name());
    }
    Example example;
    example.id       = example_id(object, stem, index, where);
    example.question = required_text(object, "question", where);
    example.steps    = required_steps(object, where);
    example.answer   = required_text(object, "answer", where);
    return example;
}

// An example and the place it comes from, for messages.
struct Placed {
    Example     example;
    std::string where;
};

std::vector<Placed> parse_array(const std::string & text, const std::string & name, const std::string & stem) {
    Json array;
    try {
        array = parse_json(text, name, array_limits);
    } catch (const Error & error) {
        throw Error(error.kind, error.message(), format_hint);
    }
    std::vector<Placed> examples;
    for (const Json & object : array) {
        const std::string where = name + " item " + std::to_string(examples.size() + 1);
        examples.push_back({ to_example(object, stem, examples.size(), where), where });
    }
    return examples;
}

std::vector<Placed> parse_lines(const std::string & text, const std::string & name, const std::string & stem) {
    std::vector<Placed> examples;
    size_t              n_lines = 0;
    for (size_t start = 0; start < text.size();) {
        const size_t      end  = std::min(text.find('\n', start), text.size());
        const std::string line = trim(text.substr(start, end - start));
        start                  = end + 1;
        ++n_lines;
        if (line.empty()) {
            continue;
        }
        const std::string where = name + " line " + std::to_string(n_lines);
        examples.push_back(
            { to_example(parse_json_line(line, where, format_hint), stem, examples.size(), where), where });
    }
    return examples;
}

std::string read_text(const std::filesystem::path & path) {
    std::error_code error;
    const auto      type = std::filesystem::status(path, error).type();
    if (type == std::filesystem::file_type::not_found) {
        throw Error(ErrorKind::not_found, path.string() + ": no such file", "penelope data makes files of questions");
    }
    if (type == std::filesystem::file_type::directory) {
        throw Error(ErrorKind::usage, path.string() + ": is a directory", "name a .jsonl or .json file");
    }
    std::ifstream stream(path, std::ios::binary); // a stream rather than a mapping, so that pipes work
    std::string   text{ std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>() };
    if (!stream.is_open() || stream.bad()) {
        throw Error(ErrorKind::io, path.string() + ": cannot be read");
    }
    return text;
}

} // namespace

std::vector<Example> parse_examples(const std::string & text, const std::string & name, IdCheck ids) {
    const std::string stem = std::filesystem::path(name).stem().string();
    if (text.rfind("\x1f\x8b", 0) == 0) {
        throw Error(ErrorKind::format, name + ": is compressed", "unpack it with gunzip first");
    }
    const std::string byte_order_mark = "\xef\xbb\xbf";
    const size_t      begin           = text.rfind(byte_order_mark, 0) == 0 ? byte_order_mark.size() : 0;
    const size_t      first           = text.find_first_not_of(" \t\r\n", begin);
    if (first == std::string::npos) {
        throw bad_example(name, "the file is empty");
    }
    std::vector<Placed> placed =
        text[first] == '[' ? parse_array(text, name, stem) : parse_lines(text.substr(begin), name, stem);
    if (placed.empty()) {
        throw bad_example(name, "there are no examples in the array");
    }
    if (ids == IdCheck::unique) {
        std::unordered_map<std::string, const Placed *> by_id;
        for (const Placed & item : placed) {
            const auto [earlier, is_new] = by_id.emplace(item.example.id, &item);
            if (!is_new) {
                throw Error(ErrorKind::format,
                            item.where + ": the id " + in_quotes(item.example.id) + " occurs already in " +
                                earlier->second->where,
                            "ids must be different; leave them out to have the examples numbered");
            }
        }
    }
    std::vector<Example> examples;
    examples.reserve(placed.size());
    for (Placed & item : placed) {
        examples.push_back(std::move(item.example));
    }
    return examples;
}

std::vector<Example> read_examples(const std::filesystem::path & path, IdCheck ids) {
    return parse_examples(read_text(path), path.string(), ids);
}

std::string examples_to_jsonl(const std::vector<Example> & examples) {
    std::string text;
    for (const Example & example : examples) {
        const OrderedJson object = { { "id", example.id },
                                     { "question", example.question },
                                     { "steps", example.steps },
                                     { "answer", example.answer } };
        text += dump_json(object) + "\n";
    }
    return text;
}

} // namespace penelope
