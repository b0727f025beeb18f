// penelope data: generates the data of a task; describes, splits or audits data files.
#include "commands.h"
#include "output.h"

#include "base/format.h"
#include "base/number_text.h"
#include "task/dataset_files.h"
#include "train/check_data.h"

#include <algorithm>
#include <climits>

namespace penelope {

namespace {

std::vector<std::filesystem::path> paths_of(const std::vector<std::string> & texts) {
    return { texts.begin(), texts.end() };
}

DepthRange depth_range(const Options & options, const char * name, DepthRange fallback) {
    const std::vector<int> depths = options.steps(name);
    if (!depths.empty() && depths.back() - depths.front() + 1 != static_cast<int>(depths.size())) {
        throw UsageError(std::string("--") + name + ": '" + options.text(name) + "' is not a range",
                         "depths are given as A-B, e.g. 1-8");
    }
    return depths.empty() ? fallback : DepthRange{ depths.front(), depths.back() };
}

DatasetOptions dataset_options(const Options & options, const Task & task) {
    DatasetOptions dataset = task.defaults;
    dataset.seed           = static_cast<uint64_t>(options.integer("seed"));
    dataset.depth          = depth_range(options, "depth", dataset.depth);
    dataset.test_depth =
        depth_range(options, "test-depth", options.given("depth") ? dataset.depth : dataset.test_depth);
    dataset.branch_p  = options.number("branch");
    dataset.operators = split(options.text("operators"), ',');
    if (options.given("max-steps")) {
        dataset.max_steps = static_cast<int>(std::min<int64_t>(options.integer("max-steps"), INT_MAX));
    }
    dataset.n_chains = static_cast<int>(options.integer("chains"));
    dataset.surface  = options.text("surface");

    dataset.min_chains = static_cast<int>(options.integer("min-chains"));
    if (options.given("train")) {
        dataset.n_train = static_cast<size_t>(options.integer("train"));
    }
    if (options.given("valid")) {
        dataset.n_valid = static_cast<size_t>(options.integer("valid"));
    }
    if (options.given("test")) {
        dataset.n_test = static_cast<size_t>(options.integer("test"));
    }
    if (options.given("exclude")) {
        dataset.excluded = question_hashes(task, paths_of(options.list("exclude")));
    }
    return dataset;
}

void print_report(const AuditReport & report, const Options & options, Terminal & terminal) {
    if (options.flag("json")) {
        terminal.line(dump_json(report.json));
        return;
    }
    for (const auto & file : report.json.at("files")) {
        terminal.line(file.at("file").get<std::string>() + ": " + std::to_string(file.at("n").get<size_t>()) +
                      " examples");
        for (const auto & [facet, counts] : file.at("counts").items()) {
            std::vector<std::string> parts;
            for (const auto & [value, n] : counts.items()) {
                parts.push_back(value + ": " + dump_json(n));
            }
            terminal.line("  " + facet + "  " + join(parts, ", "));
        }
    }
}

std::string the_path(const std::vector<std::string> & paths, const std::string & what) {
    if (paths.size() != 1) {
        throw UsageError("data " + what + ": takes one file", "penelope data " + what + " FILE");
    }
    return paths.front();
}

void print_check(const OrderedJson & r, Terminal & terminal) {
    const auto          n     = [](const OrderedJson & value) { return std::to_string(value.get<size_t>()); };
    const OrderedJson & steps = r.at("steps");
    terminal.line("format     " + r.at("format").get<std::string>() + ", " + n(r.at("examples")) + " examples, " +
                  n(r.at("questions")) + " different questions");
    terminal.line("steps      " + n(steps.at("fewest")) + " to " + n(steps.at("most")) + ", " +
                  with_digits("%.1f", steps.at("mean")) + " on average");
    terminal.line("answers    " + n(r.at("answers")) + " different; the most frequent, " +
                  in_quotes(r.at("most_frequent").at("answer").get<std::string>()) + ", is right in " +
                  with_digits("%.1f %%", 100 * r.at("most_frequent").at("share").get<double>()));
    terminal.line("task       " + r.at("task").get<std::string>() + ": " + r.at("task_reason").get<std::string>());
    if (r.contains("tokens")) {
        const OrderedJson & t = r.at("tokens");
        terminal.line("tokens     " + with_digits("%.0f", t.at("mean")) + " on average, " + n(t.at("longest")) +
                      " in " + in_quotes(t.at("longest_id").get<std::string>()) + "; " + n(t.at("too_long")) +
                      " examples do not fit the context of " + n(t.at("context")) +
                      (t.at("too_long").get<size_t>() ? " (--skip-long drops them)" : ""));
    }
    terminal.line("prompt of the first example\n" + r.at("first").at("prompt").get<std::string>());
    terminal.line("target\n" + r.at("first").at("target").get<std::string>());
    std::vector<std::string> results;
    for (const OrderedJson & result : r.at("first").at("results")) {
        results.push_back(in_quotes(result.get<std::string>()));
    }
    if (!results.empty()) {
        const std::string start = r.at("first").value("start", std::string());
        terminal.line("targets of the latent steps (--step-loss)\n" + join(results, " > ") +
                      "\nstart of the first step (--teacher-forcing)\n" + in_quotes(start));
    }
}

const Task & task_to_make(const std::string & name) {
    std::vector<std::string> known;
    for (const Task & task : tasks()) {
        if (name == task.name) {
            return task;
        }
        known.emplace_back(task.name);
    }
    throw UsageError("data " + in_quotes(name) + ": " +
                         (name == generic_task().name ? "generic has no generator" : "unknown task or command"),
                     "tasks: " + join(known, ", ") + "; commands: check, split, audit");
}

} // namespace

int cmd_data(const Options & options, Terminal & terminal) {
    const std::string what  = options.required("what");
    const auto        paths = options.list("path");
    if (what == "audit") {
        if (paths.empty()) {
            throw UsageError("data audit: PATH is missing", "penelope data audit DIR | FILES");
        }
        const Task *      task   = options.given("task") ? &find_task(options.text("task")) : nullptr;
        const AuditReport report = audit_paths(paths_of(paths), task);
        print_report(report, options, terminal);
        if (!report.ok && options.flag("json")) {
            return 1; // the report is the error
        }
        require_clean(report);
        if (!options.flag("json")) {
            terminal.line(std::string("no duplicate ids or questions") +
                          (report.json.at("task").is_null() ? "; task unknown: answers not checked" : ""));
        }
        return 0;
    }
    if (what == "check") {
        const OrderedJson report = check_data(the_path(paths, what), options.text("model"), options.text("task"));
        if (options.flag("json")) {
            terminal.line(dump_json(report));
        } else {
            print_check(report, terminal);
        }
        return 0;
    }
    if (what == "split") {
        print_report(write_split(the_path(paths, what), parse_split_ratios(options.text("split")),
                                 static_cast<uint64_t>(options.integer("seed")), options.text("task"),
                                 options.required("out"), options.flag("force")),
                     options, terminal);
        return 0;
    }
    if (!paths.empty()) {
        throw UsageError("'" + paths[0] + "': unexpected argument", "penelope data " + what + " --out DIR");
    }
    const Task & task = task_to_make(what);
    if (options.given("task")) {
        throw UsageError("--task: only for check, split and audit", "the task to generate is already " + what);
    }
    print_report(write_dataset(task, dataset_options(options, task), options.required("out"), options.flag("force")),
                 options, terminal);
    return 0;
}

} // namespace penelope
