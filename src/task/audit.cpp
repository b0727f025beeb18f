#include "task/audit.h"

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "task/question.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <unordered_map>

namespace penelope {

namespace {

constexpr size_t n_listed = 10; // problems of a kind that are spelled out; the rest is counted

// Values of a facet in natural order: "2" before "10".
struct ShorterFirst {
    bool operator()(const std::string & a, const std::string & b) const {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
};

// Where an example stands, counted from 1 as an editor does.
struct ExampleLocation {
    const std::string * file;
    size_t              number;
};

std::string to_text(const ExampleLocation & place) {
    return *place.file + " example " + std::to_string(place.number);
}

class Findings {
  public:
    explicit Findings(std::string what) : what_(std::move(what)) {}

    void add(OrderedJson details, const std::string & text) {
        if (n_++ == 0) {
            first_ = text;
        }
        if (list_.size() < n_listed) {
            list_.push_back(std::move(details));
        }
    }

    bool        empty() const { return n_ == 0; }
    OrderedJson json() const { return { { "n", n_ }, { "first", list_ } }; }
    std::string summary() const { return what_ + " (" + std::to_string(n_) + "), first: " + first_; }

  private:
    std::string what_;
    std::string first_;
    size_t      n_    = 0;
    OrderedJson list_ = OrderedJson::array();
};

// Notes an example under a key that no other may have.
void check_unique(std::unordered_map<std::string, ExampleLocation> & seen, const std::string & key,
                  const ExampleLocation & place, const char * key_name, const std::string & shown,
                  Findings & findings) {
    const auto [earlier, is_new] = seen.emplace(key, place);
    if (!is_new) {
        const std::string here  = to_text(place);
        const std::string there = to_text(earlier->second);
        findings.add({ { key_name, key }, { "in", here }, { "and", there } },
                     in_quotes(shown) + " in " + here + " and " + there);
    }
}

const Task * recognize_all(const std::vector<NamedExamples> & files) {
    const Task * task = nullptr;
    for (const NamedExamples & file : files) {
        const Task * own = recognize_questions(file.examples); // answers that do not fit are what it looks for
        if (own == nullptr || (task != nullptr && own != task)) {
            return nullptr;
        }
        task = own;
    }
    return task;
}

// Empty without a task.
OrderedJson count_facets(const Task * task, const std::vector<Example> & examples) {
    std::vector<std::string>                                           names; // in the order the task gives them
    std::map<std::string, std::map<std::string, size_t, ShorterFirst>> counts;
    for (const Example & example : examples) {
        for (const auto & [name, value] : task != nullptr ? task->facets(example) : Facets()) {
            if (counts.find(name) == counts.end()) {
                names.push_back(name);
            }
            counts[name][value]++;
        }
    }
    OrderedJson json = OrderedJson::object();
    for (const std::string & name : names) {
        json[name] = OrderedJson::object();
        for (const auto & [value, n] : counts[name]) {
            json[name][value] = n;
        }
    }
    return json;
}

Error to_error(const AuditReport & report) {
    return Error(ErrorKind::format, "audit: " + report.problem,
                 "remove the duplicate or broken examples, or generate the data again");
}

std::vector<std::filesystem::path> data_files(const std::filesystem::path & path) {
    std::error_code ignored; // what is wrong with a path that is no folder is for reading it to say
    if (!std::filesystem::is_directory(path, ignored)) {
        return { path };
    }
    std::vector<std::filesystem::path> files;
    std::error_code                    error;
    for (const auto & entry : std::filesystem::directory_iterator(path, error)) {
        const std::string extension = entry.path().extension().string();
        if (entry.is_regular_file(error) && (extension == ".jsonl" || extension == ".json" || extension == ".csv") &&
            entry.path().filename() != "audit.json") {
            files.push_back(entry.path());
        }
    }
    if (error) {
        throw Error(ErrorKind::io, path.string() + ": " + error.message());
    }
    if (files.empty()) {
        throw Error(ErrorKind::not_found, path.string() + ": no data files found",
                    "data files end in .jsonl, .json or .csv");
    }
    std::sort(files.begin(), files.end());
    return files;
}

} // namespace

AuditReport audit(const std::vector<NamedExamples> & files, const Task * task) {
    if (task == nullptr) {
        task = recognize_all(files);
    }
    std::unordered_map<std::string, ExampleLocation> ids;
    std::unordered_map<std::string, ExampleLocation> questions;
    Findings                                         repeated_ids("duplicate ids");
    Findings                                         repeated_questions("duplicate questions");
    Findings                                         unreadable_answers("answers that cannot be parsed for this task");
    OrderedJson                                      file_list = OrderedJson::array();
    size_t                                           n_total   = 0;
    for (const NamedExamples & file : files) {
        Sha256 all_questions;
        size_t number = 0;
        for (const Example & example : file.examples) {
            const ExampleLocation place = { &file.name, ++number };
            const std::string     normalized =
                task != nullptr ? task->normalize(example.question) : normalize_text(example.question);
            const std::string hash = sha256_hex(normalized);
            all_questions.add(hash);
            if (!example.is_numbered) {
                check_unique(ids, example.id, place, "id", example.id, repeated_ids);
            }
            check_unique(questions, hash, place, "question_sha256", example.question, repeated_questions);
            if (task != nullptr && task->extract(example.answer).empty()) {
                unreadable_answers.add({ { "answer", example.answer }, { "in", to_text(place) } },
                                       in_quotes(example.answer) + " in " + to_text(place));
            }
        }
        file_list.push_back({ { "file", file.name },
                              { "n", file.examples.size() },
                              { "questions_sha256", all_questions.hex() },
                              { "counts", count_facets(task, file.examples) } });
        n_total += file.examples.size();
    }

    AuditReport report;
    for (const Findings * findings : { &repeated_ids, &repeated_questions, &unreadable_answers }) {
        if (!findings->empty()) {
            report.problem += (report.problem.empty() ? "" : "; ") + findings->summary();
        }
    }
    report.ok   = report.problem.empty();
    report.json = { { "status", report.ok ? "ok" : "error" } };
    if (!report.ok) {
        const Error error      = to_error(report);
        report.json["kind"]    = error_kind_name(error.kind);
        report.json["message"] = error.message();
        report.json["hint"]    = error.hint;
    }
    report.json["task"]               = task != nullptr ? OrderedJson(task->name) : OrderedJson();
    report.json["n"]                  = n_total;
    report.json["files"]              = std::move(file_list);
    report.json["repeated_ids"]       = repeated_ids.json();
    report.json["repeated_questions"] = repeated_questions.json();
    report.json["unreadable_answers"] = unreadable_answers.json();
    return report;
}

AuditReport audit_paths(const std::vector<std::filesystem::path> & paths, const Task * task) {
    std::vector<NamedExamples> files;
    for (const std::filesystem::path & path : paths) {
        for (const std::filesystem::path & file : data_files(path)) {
            files.push_back({ file.string(), read_examples(file, IdCheck::none) });
        }
    }
    if (files.empty()) {
        throw Error(ErrorKind::usage, "audit: no files given", "name a data folder or data files");
    }
    return audit(files, task);
}

void require_clean(const AuditReport & report) {
    if (!report.ok) {
        throw to_error(report);
    }
}

} // namespace penelope
