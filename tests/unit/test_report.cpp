// What a report reads: metrics of finished, killed and damaged runs, evaluations and predictions.
#include "base/error.h"
#include "report/report.h"
#include "report/run_log.h"
#include "support/temp_dir.h"
#include "task/evaluation_file.h"

#include <doctest/doctest.h>

#include <filesystem>

using namespace penelope;
using penelope::test::read_bytes;
using penelope::test::TempDir;

namespace {

const std::string kUpdate = R"({"update":1,"K":1,"u":1,"loss":2.5,"ms":500,"target_tokens":100,"peak_memory":1000})";
const std::string kNext   = R"({"update":2,"K":1,"u":1,"loss":1.5,"ms":500,"target_tokens":300,"peak_memory":3000})";
const std::string kScore  = R"({"update":2,"K":1,"valid_loss":1.75,"valid_exact":0.25,"valid_n":8,"best":true})";
const std::string kEnd    = R"({"update":2,"exact_by_K":[0.25,0.5],"k_default":1,"valid_n":8})";

std::string make_run(const TempDir & folder, const std::string & name, const std::string & metrics) {
    std::filesystem::create_directories(folder.path() / name);
    folder.write(name + "/metrics.jsonl", metrics);
    return folder.file(name);
}

std::string result(double em, const std::string & method = "penelope") {
    return R"({"status":"ok","task":"listops","method":")" + method +
           R"(","results":[{"K":0,"em":0.25,"parsed":1,"n":8,"output_tokens":4,"latency_ms":2,"latency_sd":1,)" +
           R"("layer_applications":21},{"K":3,"em":)" + std::to_string(em) +
           R"(,"parsed":1,"n":8,"output_tokens":4,"latency_ms":5,"latency_sd":1,"layer_applications":36,)" +
           R"("by_depth":[{"depth":1,"n":4,"em":1},{"depth":2,"n":4,"em":)" + std::to_string(2 * em - 1) + "}]}]," +
           R"("default_K":3,"best_K":3,"chance":[{"how":"outermost operator","em":0.47}]})" + "\n";
}

} // namespace

TEST_CASE("the metrics of a run") {
    const TempDir folder;
    const RunLog  log =
        read_run_log(make_run(folder, "run", kUpdate + "\n" + kNext + "\n" + kScore + "\n" + kEnd + "\n"));
    REQUIRE(log.loss.size() == 2);
    CHECK(log.loss[1].x == 2);
    CHECK(log.loss[1].y == 1.5);
    CHECK(log.n_updates == 2);
    CHECK(log.tokens_per_second == 400);
    CHECK(log.peak_memory == 3000);
    REQUIRE(log.valid_exact.size() == 1);
    CHECK(log.valid_exact[0].y == 0.25);
    CHECK(log.valid_loss[0].y == 1.75);
    CHECK(log.exact_by_depth == std::vector<double>{ 0.25, 0.5 });
    CHECK(log.k_default == 1);
}

TEST_CASE("a killed run is shown as far as it got") {
    const TempDir folder;
    const RunLog  log = read_run_log(make_run(folder, "run", kUpdate + "\n" + kNext.substr(0, 30)));
    CHECK(log.loss.size() == 1);
    CHECK(log.k_default == -1);
}

TEST_CASE("damaged and empty metrics are errors that say where") {
    const TempDir folder;
    const auto    refused = [&](const std::string & metrics, const std::string & said) {
        const std::string path = make_run(folder, "run", metrics);
        CHECK_THROWS_WITH_AS(read_run_log(path), doctest::Contains(said.c_str()), Error);
    };
    refused("", "no update logged yet");
    refused("\n", "line 1");
    refused(kUpdate + "\n{\"update\":\n" + kNext + "\n", "line 2");
    refused(kUpdate + "\n[1]\n", "line 2");
    refused(kUpdate + "\n{\"update\":2,\"loss\":\"low\"}\n", "loss");
    refused(kUpdate + "\n{\"update\":2,\"exact_by_K\":[\"x\"],\"k_default\":0}\n", "exact_by_K");
    std::filesystem::create_directories(folder.file("other"));
    CHECK_THROWS_WITH_AS(read_run_log(folder.file("other")), doctest::Contains("metrics.jsonl"), Error);
}

TEST_CASE("evaluations read back as they were written") {
    Evaluation written;
    written.method        = "penelope";
    written.task          = "listops";
    written.default_steps = 2;
    written.chance        = { { "guess", 0.5 } };
    for (int k = 0; k < 3; k++) {
        Score s;
        s.n_steps            = k;
        s.em                 = k == 1 ? 0.75 : 0.5;
        s.n                  = 4;
        s.layer_applications = 8 + 2 * k;
        s.by_depth           = { { 1, 2, 1.0 }, { 3, 2, 0.5 } };
        written.scores.push_back(s);
    }
    written.scores[2].latency_ms = 12.5;
    const TempDir                 folder;
    const std::vector<Evaluation> read =
        read_evaluations(folder.write("a.json", dump_json(evaluation_json(written)) + "\n"));
    REQUIRE(read.size() == 1);
    CHECK(dump_json(evaluation_json(read[0])) == dump_json(evaluation_json(written)));
    CHECK(std::isnan(read[0].scores[0].latency_ms));
    CHECK(chosen_score(read[0], "a.json").n_steps == 2);
}

TEST_CASE("predictions give the scores they came from, by run") {
    const TempDir folder;
    std::string   lines;
    for (size_t run : { 1, 2 }) {
        Evaluation evaluation;
        evaluation.default_steps = 3;
        for (int i = 0; i < 4; i++) {
            Prediction p;
            p.id         = "q" + std::to_string(i);
            p.n_steps    = 3;
            p.depth      = i / 2;
            p.question   = "Evaluate: [MAX 1 " + std::to_string(i) + "]";
            p.answer     = "1";
            p.correct    = i < int(run);
            p.parsed     = true;
            p.latency_ms = i == 0 ? 7 : -1;
            evaluation.predictions.push_back(p);
        }
        lines += prediction_lines(evaluation, run);
    }
    const std::vector<Evaluation> read = read_evaluations(folder.write("p.jsonl", lines));
    REQUIRE(read.size() == 2);
    CHECK(read[0].scores[0].em == 0.25);
    CHECK(read[1].scores[0].em == 0.5);
    CHECK(read[0].scores[0].latency_ms == 7);
    REQUIRE(read[1].scores[0].by_depth.size() == 2);
    CHECK(read[1].scores[0].by_depth[0].em == 1.0);
    CHECK(read[1].scores[0].by_depth[1].em == 0.0);
    CHECK(read[0].task == "listops");
    CHECK(read[0].default_steps == 3);
    CHECK_THROWS_WITH_AS(read_evaluations(folder.write("twice.jsonl", lines + lines)), doctest::Contains("twice"),
                         Error);
    CHECK_THROWS_WITH_AS(read_evaluations(folder.write("empty.jsonl", "\n")), doctest::Contains("empty"), Error);
    CHECK_THROWS_WITH_AS(read_evaluations(folder.write("other.jsonl", "{\"id\":1}\n")), doctest::Contains("line 1"),
                         Error);
    CHECK_THROWS_WITH_AS(read_evaluations(folder.write("cut.jsonl", lines.substr(0, lines.size() - 20))),
                         doctest::Contains("line 8"), Error);
}

TEST_CASE("the page has a row per label, with mean and deviation of its repetitions") {
    const TempDir     folder;
    const std::string a = folder.write("a.json", result(0.5)), b = folder.write("b.json", result(0.625) + result(0.75));
    const std::string run   = make_run(folder, "latent", kUpdate + "\n" + kScore + "\n" + kEnd + "\n");
    const ReportFiles files = write_report({ { "Pene|lope", a }, { "Pene|lope", b }, { "other", a }, { "run", run } },
                                           folder.file("out"), false);
    const std::string page  = read_bytes(files.page);
    CHECK(page.find("| Pene\\|lope | 3 | 3 | 62.50 ± 12.50 | 100.00 | 4.00 | 5.00 | 36 |") != std::string::npos);
    CHECK(page.find("| other | 1 | 3 | 50.00 | 100.00 | 4.00 | 5.00 ± 1.00 | 36 |") != std::string::npos);
    CHECK(page.find("47.00 % (outermost operator)") != std::string::npos);
    CHECK(page.find("| run | 1 | 2.5000 | 50.00 | 1 |") != std::string::npos);
    CHECK(page.find("| method | 1 | 2 |") != std::string::npos);
    CHECK(page.find("| Pene\\|lope | 100.0 | 25.0 |") != std::string::npos);
    CHECK(files.charts.size() == 7);
    for (const std::string & chart : files.charts) {
        CHECK(page.find("(" + std::filesystem::path(chart).filename().string() + ")") != std::string::npos);
        CHECK(read_bytes(chart).size() < 20000);
    }
    CHECK_THROWS_AS(write_report({ { "run", run } }, folder.file("out"), false), Error);
    write_report({ { "run", run } }, folder.file("out"), true);
}

TEST_CASE("inputs with and without a label") {
    const TempDir folder;
    const auto    run = make_run(folder, "latent", kUpdate + "\n");
    CHECK(parse_report_input(run).label == "latent");
    CHECK(parse_report_input(run + "/").label == "latent");
    CHECK(parse_report_input("results/cot.json").label == "cot");
    CHECK(parse_report_input("Visible CoT=results/cot.json").label == "Visible CoT");
    CHECK(parse_report_input("Visible CoT=results/cot.json").path == "results/cot.json");
    CHECK_THROWS_AS(parse_report_input("=x"), Error);
    CHECK_THROWS_AS(parse_report_input("x="), Error);
}
