// A checkpoint gives back every bit, refuses what does not fit, and never leaves half a file.
#include "support/cpu.h"
#include "support/errors.h"
#include "support/temp_dir.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <csignal>
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
        for (auto part : { Optimizer::BufferKind::weights, Optimizer::BufferKind::first_moments,
                           Optimizer::BufferKind::second_moments }) {
            optimizer.write(group, part, numbers(size_t(optimizer.n_flat(group)), first += 10));
        }
    }
}

} // namespace

TEST_CASE("weights, moments and counts come back bit by bit") {
    const TempDir dir;
    Optimizer     saved(cpu(), kGroups), loaded(cpu(), kGroups);
    fill(saved, 0.5f);
    saved.set_step_count(41);
    RunState state;
    state.update    = 42;
    state.validated = 40;
    state.best      = { 40, 0.875, 0.1234567890123 };
    state.seconds   = 12.5;
    state.settings  = "{\"seed\":1}";
    save_checkpoint(dir.file("last.gguf"), state, saved, CheckpointContents::weights_and_moments);

    const RunState found = load_checkpoint(dir.file("last.gguf"), loaded, CheckpointContents::weights_and_moments);
    CHECK(found.update == 42);
    CHECK(found.validated == 40);
    CHECK(found.best.update == 40);
    CHECK(found.best.exact == 0.875);
    CHECK(found.best.loss == 0.1234567890123);
    CHECK(found.settings == state.settings);
    CHECK(loaded.step_count() == 41);
    for (int group = 0; group < saved.n_groups(); group++) {
        for (auto part : { Optimizer::BufferKind::weights, Optimizer::BufferKind::first_moments,
                           Optimizer::BufferKind::second_moments }) {
            CHECK(saved.read(group, part) == loaded.read(group, part));
        }
    }
}

TEST_CASE("a file of weights alone has no moments to give") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups), other(cpu(), kGroups);
    fill(optimizer, 1.0f);
    save_checkpoint(dir.file("best.gguf"), {}, optimizer, CheckpointContents::weights);
    load_checkpoint(dir.file("best.gguf"), other, CheckpointContents::weights);
    CHECK(optimizer.values("a") == other.values("a"));
    CHECK(contains(error_of([&] {
                       load_checkpoint(dir.file("best.gguf"), other, CheckpointContents::weights_and_moments);
                   }).message(),
                   "first_moments"));
}

TEST_CASE("a checkpoint of other parameters is refused") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups);
    Optimizer     larger(cpu(), { { "lora", 0.01, { { "a", { 300, 50 } } } }, { "rows", 0.0, { { "c", { 1500 } } } } });
    save_checkpoint(dir.file("last.gguf"), {}, optimizer, CheckpointContents::weights_and_moments);
    CHECK(contains(error_of([&] {
                       load_checkpoint(dir.file("last.gguf"), larger, CheckpointContents::weights_and_moments);
                   }).message(),
                   "lora.weights"));
    CHECK(error_of([&] { load_checkpoint(dir.file("none.gguf"), optimizer, CheckpointContents::weights); }).kind ==
          ErrorKind::not_found);
}

TEST_CASE("any byte that changes is noticed, and nothing of the file is taken over") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups), other(cpu(), kGroups);
    fill(optimizer, 1.0f);
    RunState state;
    state.update   = 7;
    state.settings = "{}";
    save_checkpoint(dir.file("last.gguf"), state, optimizer, CheckpointContents::weights_and_moments);
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
            const RunState found =
                load_checkpoint(dir.file("bad.gguf"), other, CheckpointContents::weights_and_moments);
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

TEST_CASE("impossible counts are errors even with a valid checksum") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups);
    const auto    refused = [&](const RunState & state) {
        save_checkpoint(dir.file("last.gguf"), state, optimizer, CheckpointContents::weights);
        return error_of([&] { load_checkpoint(dir.file("last.gguf"), optimizer, CheckpointContents::weights); }).kind ==
               ErrorKind::format;
    };
    RunState state;
    state.update = -1;
    CHECK(refused(state));
    state.update    = 5;
    state.validated = 6;
    CHECK(refused(state));
    state.validated   = 0;
    state.best.update = 6;
    CHECK(refused(state));
    state.best.update = 0;
    optimizer.set_step_count(6);
    CHECK(refused(state));
}

TEST_CASE("two checkpoints are kept, and the older takes the place of a damaged one") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    const auto      hold = run.create(false, false);
    const auto      save = [&](const char * text) {
        run.save_previous();
        dir.write("run/new", text);
        std::filesystem::rename(dir.file("run/new"), run.last());
    };
    save("1");
    CHECK(!run.has(run.previous()));
    save("2");
    save("3");
    CHECK(test::read_bytes(run.last()) == "3");
    CHECK(test::read_bytes(run.previous()) == "2");
    run.restore_last(run.previous());
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
        const auto hold = run.create(false, false);
        CHECK(contains(error_of([&] { const auto second = run.create(false, false); }).message(), "another process"));
    }
    CHECK_NOTHROW(DirectoryLock(dir.file("run")));
}

TEST_CASE("a run folder is not started over by accident, and is cleaned of what a killed run left") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    { const auto hold = run.create(false, false); }
    dir.write("run/config.toml", "seed = 1\n");
    dir.write("run/notes.txt", "mine");
    dir.write("run/checkpoint/.penelope-1-0.tmp", "half");
    CHECK(contains(error_of([&] { run.check(false, false); }).hint, "--resume"));
    CHECK(error_of([&] { run.check(true, false); }).kind == ErrorKind::not_found);
    run.check(false, true);
    const auto hold = run.create(false, true);
    CHECK(!std::filesystem::exists(run.config()));
    CHECK(std::filesystem::exists(dir.file("run/notes.txt")));
    CHECK(!std::filesystem::exists(dir.file("run/checkpoint/.penelope-1-0.tmp")));
}

TEST_CASE("metrics after the checkpoint are dropped, a half line too") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    const auto      hold = run.create(false, false);
    for (int update = 1; update <= 5; update++) {
        run.append_metrics({ { "update", update }, { "loss", 1.0 / update } });
    }
    run.append_metrics({ { "update", 3 }, { "k_default", 2 } });
    const std::string all = test::read_bytes(run.metrics());
    dir.write("run/metrics.jsonl", all + "{\"update\":2,\"lo");
    run.cut_metrics(3, 0);
    CHECK(test::read_bytes(run.metrics()) ==
          "{\"update\":1,\"loss\":1.0}\n{\"update\":2,\"loss\":0.5}\n{\"update\":3,\"loss\":0.3333333333333333}\n");
}

TEST_CASE("scores later than the last one the checkpoint knows are dropped, for they are written again") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    const auto      hold = run.create(false, false);
    for (int update = 1; update <= 4; update++) {
        run.append_metrics({ { "update", update }, { "loss", 0.5 } });
        if (update % 2 == 0) {
            run.append_metrics({ { "update", update }, { "valid_loss", 0.5 } });
        }
    }
    run.cut_metrics(4, 2);
    CHECK(test::read_bytes(run.metrics()) == "{\"update\":1,\"loss\":0.5}\n{\"update\":2,\"loss\":0.5}\n"
                                             "{\"update\":2,\"valid_loss\":0.5}\n"
                                             "{\"update\":3,\"loss\":0.5}\n{\"update\":4,\"loss\":0.5}\n");
}

TEST_CASE("unreadable metrics are not truncated, and missing ones are not created") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    const auto      hold = run.create(false, false);
    run.cut_metrics(3, 3);
    CHECK(!run.has(run.metrics()));
    CHECK_NOTHROW(run.sync_metrics());
    std::filesystem::create_directory(run.metrics());
    CHECK(contains(error_of([&] { run.cut_metrics(3, 3); }).message(), "read failed"));
}

TEST_CASE("a failed write keeps both earlier checkpoints") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    const auto      hold = run.create(false, false);
    Optimizer       optimizer(cpu(), kGroups);
    const auto      save = [&](int64_t update) {
        RunState state;
        state.update = update;
        save_checkpoint(run.last(), state, optimizer, CheckpointContents::weights, [&] { run.save_previous(); });
    };
    save(1);
    save(2);
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit     small   = before;
    small.rlim_cur     = 1000;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_THROWS_AS(save(3), Error);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    const auto update_of = [&](const std::string & path) {
        return load_checkpoint(path, optimizer, CheckpointContents::weights).update;
    };
    CHECK(update_of(run.last()) == 2);
    CHECK(update_of(run.previous()) == 1);
    save(3);
    CHECK(update_of(run.previous()) == 2);
}

TEST_CASE("a run is told apart by its settings, whatever the shapes of its weights") {
    const TempDir dir;
    Optimizer     optimizer(cpu(), kGroups);
    RunState      state;
    state.update   = 3;
    state.settings = "{\"seed\":1}";
    save_checkpoint(dir.file("last.gguf"), state, optimizer, CheckpointContents::weights_and_moments);
    Optimizer   other(cpu(), { { "lora", 0.01, { { "a", { 2, 2 } } } } });
    std::string seen;
    const auto  load = [&] {
        load_checkpoint(dir.file("last.gguf"), other, CheckpointContents::weights_and_moments,
                         [&](const RunState & found) { seen = found.settings; });
    };
    CHECK_THROWS_AS(load(), Error);
    CHECK(seen == state.settings);
    std::string bad                 = test::read_bytes(dir.file("last.gguf"));
    bad[bad.find("\"seed\":1") + 7] = '2';
    dir.write("last.gguf", bad);
    CHECK(contains(error_of(load).message(), "is damaged"));
}

TEST_CASE("a checkpoint that was put in place as a link becomes a file, and what it leads to is left alone") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    { const auto hold = run.create(false, false); }
    dir.write("run/checkpoint/update-4.gguf", "4");
    dir.write("run/checkpoint/update-6.gguf.new", "of a killed run");
    std::filesystem::create_symlink("update-4.gguf", run.last());
    const auto hold = run.create(true, false);
    CHECK(!std::filesystem::is_symlink(run.last()));
    run.save_previous();
    dir.write("run/new", "5");
    std::filesystem::rename(dir.file("run/new"), run.last());
    run.save_numbered(5, 2);
    CHECK(test::read_bytes(run.last()) == "5");
    for (const std::string & path : { run.previous(), run.at(4) }) {
        CHECK(!std::filesystem::is_symlink(path));
        CHECK(test::read_bytes(path) == "4");
    }
    CHECK(std::distance(std::filesystem::directory_iterator(dir.file("run/checkpoint")), {}) == 4);
}

TEST_CASE("a run that is replaced is there again unless the new one gets to its first checkpoint") {
    const TempDir   dir;
    const RunFolder run(dir.file("run"));
    { const auto hold = run.create(false, false); }
    const auto write_run = [&](const std::string & text) {
        for (const char * name : { "config.toml", "metrics.jsonl", "model.gguf", "checkpoint/best.gguf",
                                   "checkpoint/update-2.gguf", "checkpoint/last.gguf" }) {
            dir.write(std::string("run/") + name, text);
        }
    };
    const auto is_whole = [&](const std::string & text) {
        return test::read_bytes(run.config()) == text && test::read_bytes(run.metrics()) == text &&
               test::read_bytes(run.model()) == text && test::read_bytes(run.best()) == text &&
               test::read_bytes(run.at(2)) == text && test::read_bytes(run.last()) == text;
    };
    const auto n_files = [&] {
        return std::distance(std::filesystem::recursive_directory_iterator(dir.file("run")), {});
    };
    write_run("old");
    const auto n_before = n_files();
    {
        const auto hold = run.create(false, true);
        CHECK(!run.has(run.config()));
        CHECK(!run.has(run.last()));
        hold->remove_on_failure(run.config());
        hold->remove_on_failure(run.base());
        dir.write("run/config.toml", "new");
        dir.write("run/base.gguf", "new");
    }
    CHECK(is_whole("old"));
    CHECK(n_files() == n_before);

    // Killed: nobody is there to put it back, and some of it may not have been moved yet.
    std::filesystem::create_directory(dir.file("run/checkpoint/.replaced"));
    std::filesystem::rename(run.last(), dir.file("run/checkpoint/.replaced/last.gguf"));
    run.recover();
    CHECK(is_whole("old"));
    std::filesystem::create_directory(dir.file("run/.replaced"));
    std::filesystem::create_directory(dir.file("run/checkpoint/.replaced"));
    std::filesystem::rename(run.last(), dir.file("run/checkpoint/.replaced/last.gguf"));
    std::filesystem::rename(run.config(), dir.file("run/.replaced/config.toml"));
    dir.write("run/config.toml", "new");
    { const auto hold = run.create(true, false); }
    CHECK(is_whole("old"));
    CHECK(n_files() == n_before);

    {
        const auto hold = run.create(false, true);
        write_run("new");
        run.discard_backup();
    }
    CHECK(is_whole("new"));
    CHECK(n_files() == n_before);
}

TEST_CASE("a run is called as its folder is, however that is spelled") {
    for (const char * path : { "runs/a", "runs/a/", "runs/a/.", "runs/b/../a//" }) {
        CHECK(RunFolder(path).name() == "a");
    }
    CHECK(RunFolder(".").name() == std::filesystem::current_path().filename().string());
}
