#include "task/example.h"

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "task/csv.h"
#include "task/example_format.h"
#include "task/question.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>
#include <unordered_map>

namespace penelope {

namespace {

constexpr JsonLimits array_limits = { size_t(4) << 30, 100 };

// The id in the file, or nothing.
std::optional<std::string> find_id(const Json & object, const std::string & stem, const std::string & where) {
    for (const char * key : { "id", "idx" }) {
        const auto field = object.find(key);
        if (field == object.end()) {
            continue;
        }
        const bool is_id = std::string(key) == "id";
        if (field->is_number_integer()) {
            return is_id ? dump_json(*field) : stem + "-" + dump_json(*field); // idx counts within a file
        }
        if (is_id) {
            return required_text(object, key, where);
        }
        throw bad_example(where, std::string("\"idx\" must be an integer, not ") + field->type_name());
    }
    return std::nullopt;
}

Example to_example(const Json & object, const std::string & stem, size_t index, const std::string & where) {
    if (!object.is_object()) {
        throw bad_example(where, std::string("an example must be an object, not ") + object.type_name());
    }
    Example    example;
    const auto id                = find_id(object, stem, where);
    example.id                   = id ? *id : stem + "-" + std::to_string(index);
    example.is_numbered          = !id;
    const ExampleFormat & format = format_of(object);
    example.kind                 = format.kind;
    format.read(object, where, example);
    return example;
}

// An example and the place it comes from, for messages.
struct LocatedExample {
    Example     example;
    std::string where;
};

std::vector<LocatedExample> parse_array(const std::string & text, const std::string & name, const std::string & stem) {
    Json array;
    try {
        array = parse_json(text, name, array_limits);
    } catch (const Error & error) {
        throw Error(error.kind, error.message(), example_hint());
    }
    std::vector<LocatedExample> examples;
    for (const Json & object : array) {
        const std::string where = name + " item " + std::to_string(examples.size() + 1);
        examples.push_back({ to_example(object, stem, examples.size(), where), where });
    }
    return examples;
}

std::vector<LocatedExample> parse_lines(const std::string & text, const std::string & name, const std::string & stem) {
    std::vector<LocatedExample> examples;
    size_t                      n_lines = 0;
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
            { to_example(parse_json_line(line, where, example_hint()), stem, examples.size(), where), where });
    }
    return examples;
}

// The first row names the columns; steps, and their results, stand on lines of their own in a cell.
std::vector<LocatedExample> parse_table(const std::string & text, const std::string & name, const std::string & stem) {
    std::vector<CsvRow>         rows = parse_csv(text, name);
    const CsvRow                head = rows.front();
    std::vector<LocatedExample> examples;
    for (size_t r = 1; r < rows.size(); r++) {
        const std::string where = name + " line " + std::to_string(rows[r].line);
        if (rows[r].cells.size() > head.cells.size()) {
            throw bad_example(where, "has " + std::to_string(rows[r].cells.size()) + " cells, the head " +
                                         std::to_string(head.cells.size()));
        }
        Json object = Json::object();
        for (size_t i = 0; i < rows[r].cells.size(); i++) {
            const std::string key = to_lower(trim(head.cells[i])), cell = rows[r].cells[i];
            if (key == "steps" || key == "step_results") {
                object[key] = split(cell, '\n');
            } else if (!trim(cell).empty()) {
                object[key] = cell;
            }
        }
        examples.push_back({ to_example(object, stem, examples.size(), where), where });
    }
    return examples;
}

// Whether the first line names columns of a table: no line of JSON does.
bool is_table(const std::string & text) {
    const std::vector<CsvRow> head = parse_csv(text.substr(0, text.find('\n')), "");
    for (const ExampleFormat & format : example_formats()) {
        for (const std::string & cell : head.empty() ? std::vector<std::string>{} : head.front().cells) {
            if (to_lower(trim(cell)) == format.mark) {
                return true;
            }
        }
    }
    return false;
}

void check_one_kind(const std::vector<LocatedExample> & placed) {
    for (const LocatedExample & item : placed) {
        if (item.example.kind != placed.front().example.kind) {
            throw bad_example(item.where, std::string("format ") + format_of(item.example.kind).name +
                                              ", but the file started with format " +
                                              format_of(placed.front().example.kind).name);
        }
    }
}

std::string read_text(const std::filesystem::path & path) {
    std::error_code error;
    const auto      type = std::filesystem::status(path, error).type();
    if (type == std::filesystem::file_type::not_found) {
        throw Error(ErrorKind::not_found, path.string() + ": no such file", "make one with penelope data NAME");
    }
    if (type == std::filesystem::file_type::directory) {
        throw Error(ErrorKind::usage, path.string() + ": is a directory", "name a .jsonl, .json or .csv file");
    }
    std::ifstream stream(path, std::ios::binary); // a stream rather than a mapping, so that pipes work
    std::string   text{ std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>() };
    if (!stream.is_open() || stream.bad()) {
        throw Error(ErrorKind::io, path.string() + ": read failed");
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
    std::vector<LocatedExample> placed = text[first] == '[' ? parse_array(text, name, stem)
                                         : text[first] != '{' && is_table(text.substr(begin))
                                             ? parse_table(text.substr(begin), name, stem)
                                             : parse_lines(text.substr(begin), name, stem);
    if (placed.empty()) {
        throw bad_example(name, text[first] == '[' ? "there are no examples in the array" : "there are no examples");
    }
    check_one_kind(placed);
    if (ids == IdCheck::unique) {
        std::unordered_map<std::string, const LocatedExample *> by_id;
        for (const LocatedExample & item : placed) {
            const auto [earlier, is_new] = by_id.emplace(item.example.id, &item);
            if (!is_new) {
                throw Error(ErrorKind::format,
                            item.where + ": duplicate id " + in_quotes(item.example.id) + ", first in " +
                                earlier->second->where,
                            "ids must be unique; leave them out to number the examples");
            }
        }
    }
    std::vector<Example> examples;
    examples.reserve(placed.size());
    for (LocatedExample & item : placed) {
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
        OrderedJson object = { { "id", example.id } };
        format_of(example.kind).write(example, object);
        text += dump_json(object) + "\n";
    }
    return text;
}

} // namespace penelope
