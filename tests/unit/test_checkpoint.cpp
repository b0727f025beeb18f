// A checkpoint gives back every bit, refuses what does not fit, and never leaves half a file.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "support/cpu.h"
#include "support/errors.h"
#include "support/temp_dir.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

#include <doctest/doctest.h>

#include <filesystem>

using namespace penelope;
using penelope::test::contains;
using penelope::test::cpu;
using penelope::test::error_of;
using penelope::test::TempDir;

namespace {

const std::vector<ParameterGroup> kGroups{ { "lora", 0.01, { { "a", { 3, 5 } }, { "b", { 7 } } } },
                                           { "rows", 0.0, { { "c", { 1500 } } } } };

std::vector<float> numbers(size_t n, float first) {
    std::vector<float> values(n);
    for (size_t i = 0; i < n; i++) {
        values[i] = first + float(i) * 0.37f;
    }
    return values;
}

void fill(Optimizer & optimizer, float first) {
    for (int group = 0; group < optimizer.n_groups(); group++) {
        for (auto part :
             { Optimizer::Part::weights, Optimizer::Part::first_moments, Optimizer::Part::second_moments }) {
            optimizer.write(group, part, numbers(size_t(optimizer.n_flat(group)), first += 10));
        }
    }
}

} // namespace

TEST_CASE("weights, moments and counts come back bit by bit") {
    const TempDir dir;
    Optimizer     saved(cpu(), kGroups), loaded(cpu(), kGroups);
    fill(saved, 0.5f);
    saved.set_n_steps(41);
    RunState state;
    state.update   = 42;
    state.scored   = 40;
    state.best     = { 40, 0.875, 0.1234567890123 };
    state.seconds  = 12.5;
    state.settings = "{\"seed\":1}";
    save_checkpoint(dir.file("last.gguf"), state, saved, CheckpointParts::weights_and_moments);

    const RunState found = load_checkpoint(dir.file("last.gguf"), loaded, CheckpointParts::weights_and_moments);
    CHECK(found.update == 42);
    CHECK(found.scored == 40);
    CHECK(found.best.update == 40);
    CHECK(found.best.exact == 0.875);
    CHECK(found.best.loss == 0.1234567890123);
    CHECK(found.settings == state.settings);
    CHECK(loaded.n_steps() == 41);
    for (int group = 0; group < saved.n_groups(); group++) {
        for (auto part :
             { Optimizer::Part::weights, Optimizer::Part::first_moments, Optimizer::Part::second_moments }) {
            CHECK(saved.read(group, part) == loaded.read(group, part));
        }
    }
}

TEST_CASE("a file of weights alone has no moments to give") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups), other(cpu(), kGroups);
    fill(optimizer, 1.0f);
    save_checkpoint(dir.file("best.gguf"), {}, optimizer, CheckpointParts::weights);
    load_checkpoint(dir.file("best.gguf"), other, CheckpointParts::weights);
    CHECK(optimizer.values("a") == other.values("a"));
    CHECK(contains(error_of([&] {
                       load_checkpoint(dir.file("best.gguf"), other, CheckpointParts::weights_and_moments);
                   }).message(),
                   "first_moments"));
}

TEST_CASE("a checkpoint of other parameters is refused") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups);
    Optimizer     larger(cpu(), { { "lora", 0.01, { { "a", { 300, 50 } } } }, { "rows", 0.0, { { "c", { 1500 } } } } });
    save_checkpoint(dir.file("last.gguf"), {}, optimizer, CheckpointParts::weights_and_moments);
    CHECK(contains(error_of([&] {
                       load_checkpoint(dir.file("last.gguf"), larger, CheckpointParts::weights_and_moments);
                   }).message(),
                   "lora.weights"));
    CHECK(error_of([&] { load_checkpoint(dir.file("none.gguf"), optimizer, CheckpointParts::weights); }).kind ==
          ErrorKind::not_found);
}

TEST_CASE("any byte that changes is noticed, and nothing of the file is taken over") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups), other(cpu(), kGroups);
    fill(optimizer, 1.0f);
    RunState state;
    state.update   = 7;
    state.settings = "{}";
    save_checkpoint(dir.file("last.gguf"), state, optimizer, CheckpointParts::weights_and_moments);
    const std::string good      = test::read_bytes(dir.file("last.gguf"));
    const auto        before    = other.values("c");
    size_t            n_refused = 0, n_tried = 0;
    for (size_t at = 0; at < good.size(); at += at < 1024 ? 1 : 37) {
        std::string bad = good;
        bad[at]         = char(bad[at] ^ (1 << at % 8));
        dir.write("bad.gguf", bad);
        CAPTURE(at);
        n_tried++;
        try {
            const RunState found = load_checkpoint(dir.file("bad.gguf"), other, CheckpointParts::weights_and_moments);
            // Padding, and what GGUF says of the file as a whole, mean nothing here.
            CHECK(found.update == state.update);
            CHECK(other.values("c") == optimizer.values("c"));
            other.set_values("c", before);
        } catch (const Error & error) {
            n_refused++;
            CHECK(other.values("c") == before);
        }
    }
    CHECK(n_refused > n_tried * 9 / 10);
}

TEST_CASE("counts that cannot be are refused, whatever their checksum says") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups);
    const auto    refused = [&](const RunState & state) {
        save_checkpoint(dir.file("last.gguf"), state, optimizer, CheckpointParts::weights);
        return error_of([&] { load_checkpoint(dir.file("last.gguf"), optimizer, CheckpointParts::weights); }).kind ==
               ErrorKind::format;
    };
    RunState state;
    state.update = -1;
    CHECK(refused(state));
    state.update = 5;
    state.scored = 6;
    CHECK(refused(state));
    state.scored      = 0;
    state.best.update = 6;
    CHECK(refused(state));
    state.best.update = 0;
    optimizer.set_n_steps(6);
    CHECK(refused(state));
}

TEST_CASE("two checkpoints are kept, and the older takes the place of a damaged one") {
    const TempDir    dir;
    const RunFolder  run(dir.file("run"));
    const FolderLock lock = run.create(false, false);
    const auto       save = [&](const char * text) {
        run.keep_previous();
        dir.write("run/new", text);
        std::filesystem::rename(dir.file("run/new"), run.last());
    };
    save("1");
    CHECK(!run.has(run.previous()));
    save("2");
    save("3");
    CHECK(test::read_bytes(run.last()) == "3");
    CHECK(test::read_bytes(run.previous()) == "2");
    run.return_to(run.previous());
    CHECK(test::read_bytes(run.last()) == "2");
    CHECK(test::read_bytes(run.previous()) == "2");
    save("4");
    CHECK(test::read_bytes(run.previous()) == "2");
    CHECK(std::distance(std::filesystem::directory_iterator(dir.file("run/checkpoint")), {}) == 2);
}

TEST_CASE("a second writer is kept out of a run folder, and no longer than needed") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    {
        const FolderLock lock = run.create(false, false);
        CHECK(contains(error_of([&] { FolderLock second = run.create(false, false); }).message(), "another process"));
    }
    CHECK_NOTHROW(FolderLock(dir.file("run")));
}

TEST_CASE("a run folder is not started over by accident, and is cleaned of what a killed run left") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    { const FolderLock lock = run.create(false, false); }
    dir.write("run/config.toml", "seed = 1\n");
    dir.write("run/notes.txt", "mine");
    dir.write("run/checkpoint/.penelope-1-0.tmp", "half");
    CHECK(contains(error_of([&] { run.check(false, false); }).hint, "--resume"));
    CHECK(error_of([&] { run.check(true, false); }).kind == ErrorKind::not_found);
    run.check(false, true);
    const FolderLock lock = run.create(false, true);
    CHECK(!std::filesystem::exists(run.config()));
    CHECK(std::filesystem::exists(dir.file("run/notes.txt")));
    CHECK(!std::filesystem::exists(dir.file("run/checkpoint/.penelope-1-0.tmp")));
}

TEST_CASE("metrics after the checkpoint are dropped, a half line too") {
    const TempDir    dir;
    const RunFolder  run(dir.file("run"));
    const FolderLock lock = run.create(false, false);
    for (int update = 1; update <= 5; update++) {
        run.append_metrics({ { "update", update }, { "loss", 1.0 / update } });
    }
    run.append_metrics({ { "update", 3 }, { "k_default", 2 } });
    const std::string all = test::read_bytes(run.metrics());
    dir.write("run/metrics.jsonl", all + "{\"update\":2,\"lo");
    run.cut_metrics(3);
    CHECK(test::read_bytes(run.metrics()) ==
          "{\"update\":1,\"loss\":1.0}\n{\"update\":2,\"loss\":0.5}\n{\"update\":3,\"loss\":0.3333333333333333}\n");
}
