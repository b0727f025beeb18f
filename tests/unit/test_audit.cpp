// The audit finds what would spoil a comparison and names it; the dataset writer audits, refuses and replaces.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/sha256.h"
#include "support/temp_dir.h"
#include "task/audit.h"
#include "task/dataset_files.h"
#include "task/question.h"

#include <algorithm>
#include <functional>

using namespace penelope;

static Example listops(const std::string & id, const std::string & expression, const std::string & answer) {
    return { id, "Evaluate: " + expression, {}, answer };
}

static DatasetOptions small(const Task & task) {
    DatasetOptions options = task.defaults;
    options.n_train        = 40;
    options.n_valid        = 20;
    options.n_test         = 30;
    return options;
}

static std::string kind_of_failure(const std::function<void()> & action) {
    try {
        action();
    } catch (const Error & error) {
        return error_kind_name(error.kind);
    }
    return "none";
}

TEST_CASE("normalized questions") {
    CHECK(normalize_text("  What\tIS \n it?  ") == "what is it?");
    CHECK(normalize_text("") == "");
    CHECK(normalize_text(" \n") == "");
    CHECK(normalize_text("Ünï") == "Ünï"); // other scripts are left as they are
    CHECK(normalize_bracketed("Evaluate: [MAX 2 9 [MIN 4 7 ] 0 ]") ==
          normalize_bracketed("evaluate:  [max 2 9 [min 4 7] 0]"));
    CHECK(normalize_bracketed("Evaluate: [MAX 2 9]") != normalize_bracketed("Evaluate: [MAX 29]"));
    CHECK(normalize_bracketed("[MAX [MIN 1 2] 3]") == "[max[min 1 2]3]");
    CHECK(normalize_bracketed("") == "");
}

TEST_CASE("clean files pass and are counted") {
    const AuditReport report =
        audit({ { "train.jsonl", { listops("a", "[MAX 1 2]", "2"), listops("b", "[MIN 1 [MAX 0 3]]", "1") } },
                { "test.jsonl", { listops("c", "[MAX 1 3]", "3") } } });
    CHECK(report.ok);
    CHECK(report.problem == "");
    CHECK_NOTHROW(require_clean(report));
    CHECK(report.json["status"] == "ok");
    CHECK(report.json["task"] == "listops");
    CHECK(report.json["n"] == 3);
    CHECK(report.json["files"][0]["file"] == "train.jsonl");
    CHECK(report.json["files"][0]["n"] == 2);
    CHECK(report.json["files"][0]["counts"]["depth"]["1"] == 1);
    CHECK(report.json["files"][0]["counts"]["depth"]["2"] == 1);
    CHECK(report.json["files"][0]["counts"]["digit"]["2"] == 1);
    CHECK(report.json["files"][0]["counts"]["operator"]["MIN"] == 1);
    CHECK(report.json["repeated_ids"]["n"] == 0);
    CHECK(report.json["files"][1]["questions_sha256"] == sha256_hex(sha256_hex("evaluate:[max 1 3]")));
}

TEST_CASE("values are listed in natural order") {
    std::vector<Example> examples;
    std::string          expression = "[MAX 1 2]";
    for (int depth = 1; depth <= 11; ++depth) {
        examples.push_back(listops(std::to_string(depth), expression, "2"));
        expression = "[MAX 0 " + expression + "]";
    }
    const AuditReport        report = audit({ { "x.jsonl", examples } });
    std::vector<std::string> depths;
    for (const auto & [depth, n] : report.json["files"][0]["counts"]["depth"].items()) {
        depths.push_back(depth);
    }
    CHECK(depths == std::vector<std::string>{ "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11" });
}

TEST_CASE("a duplicate id is reported with both locations") {
    const AuditReport report =
        audit({ { "train.jsonl", { listops("a", "[MAX 1 2]", "2") } },
                { "test.jsonl", { listops("b", "[MAX 1 3]", "3"), listops("a", "[MAX 1 4]", "4") } } });
    CHECK_FALSE(report.ok);
    CHECK(report.json["status"] == "error");
    CHECK(report.json["kind"] == "format");
    CHECK(report.json["message"] == "audit: " + report.problem);
    CHECK(report.problem == "duplicate ids (1), first: 'a' in test.jsonl example 2 and train.jsonl example 1");
    CHECK(report.json["repeated_ids"]["first"][0]["id"] == "a");
    CHECK(kind_of_failure([&] { require_clean(report); }) == "format");
}

TEST_CASE("ids that the reader made up are not compared, and repeated questions are shown") {
    const std::string line  = R"({"question": "Why?", "answer": "so"})";
    const std::string other = R"({"question": "How?", "answer": "so"})";
    CHECK(audit({ { "a/d.jsonl", parse_examples(line, "a/d.jsonl") },
                  { "b/d.jsonl", parse_examples(other, "b/d.jsonl") } })
              .ok);
    const AuditReport report = audit(
        { { "a/d.jsonl", parse_examples(line, "a/d.jsonl") }, { "b/d.jsonl", parse_examples(line, "b/d.jsonl") } });
    CHECK(report.problem == "duplicate questions (1), first: 'Why?' in b/d.jsonl example 1 and a/d.jsonl example 1");
}

TEST_CASE("a repeated question is found in any spelling, within a file and across") {
    const AuditReport within =
        audit({ { "x.jsonl", { listops("a", "[MAX 1 2]", "2"), listops("b", "[MAX  1 2 ]", "2") } } });
    CHECK_FALSE(within.ok);
    CHECK(within.json["repeated_questions"]["n"] == 1);
    const AuditReport across =
        audit({ { "x.jsonl", { listops("a", "[MAX 1 2]", "2") } }, { "y.jsonl", { listops("b", "[MAX 1 2]", "2") } } });
    CHECK_FALSE(across.ok);
    CHECK(across.problem.find("y.jsonl example 1 and x.jsonl example 1") != std::string::npos);
}

TEST_CASE("answers that cannot be parsed are reported") {
    const AuditReport report =
        audit({ { "x.jsonl", { listops("a", "[MAX 1 2]", "2"), listops("b", "[MAX 1 3]", "twelve") } } });
    CHECK_FALSE(report.ok);
    CHECK(report.problem == "answers that cannot be parsed for this task (1), first: 'twelve' in x.jsonl example 2");
}

TEST_CASE("only the first repeats are spelled out, all are counted") {
    std::vector<Example> examples;
    for (int i = 0; i < 50; ++i) {
        examples.push_back(listops("same", "[MAX 1 2]", "2"));
    }
    const AuditReport report = audit({ { "x.jsonl", examples } });
    CHECK(report.json["repeated_ids"]["n"] == 49);
    CHECK(report.json["repeated_ids"]["first"].size() == 10);
    CHECK(report.json["repeated_questions"]["n"] == 49);
}

TEST_CASE("questions of no known task are compared as plain text") {
    const AuditReport report = audit({ { "x.jsonl", { { "a", "Why?", {}, "so" }, { "b", "why? ", {}, "so" } } } });
    CHECK(report.json["task"].is_null());
    CHECK(report.json["files"][0]["counts"] == OrderedJson::object());
    CHECK(report.json["repeated_questions"]["n"] == 1);
}

TEST_CASE("a dataset is written with its audit and passes it again from disk") {
    for (const Task & task : tasks()) {
        const test::TempDir dir;
        const auto          out    = dir.path() / "new" / task.name;
        const AuditReport   report = write_dataset(task, small(task), out, false);
        CHECK(report.ok);
        CHECK(read_examples(out / "train.jsonl").size() == 40);
        CHECK(read_examples(out / "valid.jsonl").size() == 20);
        CHECK(read_examples(out / "test.jsonl").size() == 30);
        const Json saved = parse_json(test::read_bytes(out / "audit.json"), "audit.json");
        CHECK(saved["status"] == "ok");
        CHECK(saved["task"] == task.name);
        CHECK(saved["options"]["train"] == 40);
        const AuditReport again = audit_paths({ out });
        CHECK(again.ok);
        CHECK(again.json["task"] == task.name);
        CHECK(again.json["n"] == 90);
        for (const auto & file : again.json["files"]) {
            const auto same =
                std::find_if(report.json["files"].begin(), report.json["files"].end(), [&](const OrderedJson & other) {
                    return file["file"].get<std::string>() == (out / other["file"].get<std::string>()).string();
                });
            REQUIRE(same != report.json["files"].end());
            CHECK(file["questions_sha256"] == (*same)["questions_sha256"]);
            CHECK(file["counts"] == (*same)["counts"]);
        }
        size_t n_files = 0;
        for (const auto & entry : std::filesystem::directory_iterator(out)) {
            CHECK(entry.is_regular_file());
            ++n_files;
        }
        CHECK(n_files == 4); // no temporary file is left
    }
}

TEST_CASE("existing files are not replaced without force") {
    const test::TempDir dir;
    const Task &        task = find_task("listops");
    for (const char * name : { "train.jsonl", "audit.json" }) {
        const test::TempDir other;
        const std::string   path = other.write(name, "mine");
        CHECK(kind_of_failure([&] { write_dataset(task, small(task), other.path(), false); }) == "io");
        CHECK(test::read_bytes(path) == "mine");
        CHECK(std::distance(std::filesystem::directory_iterator(other.path()), {}) == 1);
    }
    write_dataset(task, small(task), dir.path(), false);
    const std::string before  = test::read_bytes(dir.path() / "train.jsonl");
    DatasetOptions    options = small(task);
    options.seed              = 1;
    options.n_valid           = 0;
    write_dataset(task, options, dir.path(), true);
    CHECK(test::read_bytes(dir.path() / "train.jsonl") != before);
    CHECK_FALSE(std::filesystem::exists(dir.path() / "valid.jsonl"));
}

TEST_CASE("failing to create a directory is an error") {
    const test::TempDir dir;
    const std::string   file = dir.write("file", "x");
    const Task &        task = find_task("listops");
    CHECK(kind_of_failure([&] { write_dataset(task, small(task), file, false); }) == "io");
    CHECK(kind_of_failure([&] { write_dataset(task, small(task), std::filesystem::path(file) / "below", false); }) ==
          "io");
}

TEST_CASE("audit of paths") {
    const test::TempDir dir;
    CHECK(kind_of_failure([&] { audit_paths({ dir.path() }); }) == "not_found");
    CHECK(kind_of_failure([&] { audit_paths({ dir.file("none.jsonl") }); }) == "not_found");
    CHECK(kind_of_failure([&] { audit_paths({}); }) == "usage");
    const std::string line = R"({"question":"Why?","steps":[],"answer":"so"})"
                             "\n";
    const std::string one  = dir.write("one.jsonl", line);
    CHECK(audit_paths({ one }).ok);
    CHECK_FALSE(audit_paths({ one, one }).ok);
    dir.write("two.json", "[" + line + "]");
    dir.write("notes.txt", "not data");
    const AuditReport report = audit_paths({ dir.path() });
    CHECK(report.json["files"].size() == 2);
    CHECK(report.json["repeated_questions"]["n"] == 1);
    CHECK(report.json["repeated_ids"]["n"] == 0); // ids made up for unnamed examples carry the file's name
    dir.write("twice.jsonl", R"({"id":"a","question":"A","steps":[],"answer":"so"})"
                             "\n"
                             R"({"id":"a","question":"B","steps":[],"answer":"so"})");
    CHECK(audit_paths({ dir.file("twice.jsonl") }).json["repeated_ids"]["n"] == 1);
}

TEST_CASE("questions of given files can be kept out of new data") {
    const test::TempDir dir;
    const Task &        task    = find_task("prosqa");
    DatasetOptions      options = small(task);
    write_dataset(task, options, dir.path() / "old", false);
    options.excluded = question_hashes(task, { dir.path() / "old" / "test.jsonl", dir.path() / "old" / "valid.jsonl" });
    CHECK(options.excluded.size() == 50);
    write_dataset(task, options, dir.path() / "new", false);
    CHECK(audit_paths({ dir.path() / "new" / "train.jsonl", dir.path() / "old" / "test.jsonl" })
              .json["repeated_questions"]["n"] == 0);
    CHECK(read_examples(dir.path() / "new" / "test.jsonl")[0].question !=
          read_examples(dir.path() / "old" / "test.jsonl")[0].question);
}
