// Files that appear whole or not at all.
#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "base/temporary_name.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using penelope::AtomicFile;
using penelope::Error;
using penelope::ErrorKind;
using penelope::MappedFile;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::n_entries;
using penelope::test::read_bytes;
using penelope::test::TempDir;

namespace fs = std::filesystem;

TEST_CASE("the target appears with commit, whole") {
    const TempDir     dir;
    const std::string path = dir.file("out");
    std::string       expected;
    {
        AtomicFile file(path, false);
        for (int i = 0; i < 1000; ++i) {
            const std::string line(size_t(i), char('a' + i % 26));
            file.write(line);
            expected += line;
        }
        const std::string large(700000, 'L');
        file.write(large);
        file.write("end");
        expected += large + "end";
        CHECK(file.size() == expected.size());
        CHECK_FALSE(fs::exists(path));
        CHECK(n_entries(dir.path()) == 1);
        file.commit();
        CHECK(fs::exists(path));
    }
    CHECK(read_bytes(path) == expected);
    CHECK(n_entries(dir.path()) == 1);
}

TEST_CASE("without commit nothing is left") {
    const TempDir dir;
    {
        AtomicFile file(dir.file("out"), false);
        file.write("half");
        file.sync();
        CHECK(read_bytes(file.temp_path()) == "half");
    }
    CHECK(n_entries(dir.path()) == 0);
}

TEST_CASE("an existing target is refused, or replaced with force") {
    const TempDir     dir;
    const std::string path  = dir.write("out", "old");
    const Error       error = error_of([&] { AtomicFile(path, false); });
    CHECK(error.kind == ErrorKind::io);
    CHECK(error.message() == "'" + path + "': file exists");
    CHECK(contains(error.hint, "--force"));
    penelope::write_file(path, "new", true);
    CHECK(read_bytes(path) == "new");
    CHECK(n_entries(dir.path()) == 1);
}

TEST_CASE("a target created in the meantime is not replaced without force") {
    const TempDir     dir;
    const std::string path = dir.file("out");
    {
        AtomicFile file(path, false);
        file.write("mine");
        dir.write("out", "theirs");
        CHECK(contains(error_of([&] { file.commit(); }).message(), "file exists"));
    }
    CHECK(read_bytes(path) == "theirs");
    CHECK(n_entries(dir.path()) == 1);
}

TEST_CASE("the mode is that of a new file, or of the replaced one") {
    const TempDir dir;
    const mode_t  mask = umask(022);
    penelope::write_file(dir.file("new"), "x", false);
    umask(mask);
    CHECK((fs::status(dir.file("new")).permissions() & fs::perms::all) == fs::perms(0644));
    const std::string secret = dir.write("secret", "old");
    fs::permissions(secret, fs::perms(0600));
    penelope::write_file(secret, "new", true);
    CHECK((fs::status(secret).permissions() & fs::perms::all) == fs::perms(0600));
}

TEST_CASE("a symbolic link stays, the file it names is replaced") {
    const TempDir dir;
    dir.write("real", "old");
    fs::create_symlink("real", dir.file("link"));
    CHECK_THROWS_AS(AtomicFile(dir.file("link"), false), Error);
    penelope::write_file(dir.file("link"), "new", true);
    CHECK(fs::is_symlink(dir.file("link")));
    CHECK(read_bytes(dir.file("real")) == "new");
    fs::create_symlink("nowhere", dir.file("dangling"));
    CHECK_THROWS_AS(AtomicFile(dir.file("dangling"), true), Error);
}

TEST_CASE("places where no file can be are refused at once") {
    const TempDir dir;
    CHECK(error_of([&] { AtomicFile("", false); }).kind == ErrorKind::usage);
    CHECK(error_of([&] { AtomicFile(dir.file("x/"), false); }).kind == ErrorKind::usage);
    CHECK(contains(error_of([&] { AtomicFile(dir.path().string(), true); }).message(), "is a directory"));
    CHECK(contains(error_of([&] { AtomicFile("/dev/null", true); }).message(), "is not a regular file"));
    const Error missing = error_of([&] { AtomicFile(dir.file("no/such/out"), false); });
    CHECK(missing.kind == ErrorKind::not_found);
    CHECK(contains(missing.message(), "does not exist"));
    dir.write("file", "");
    CHECK_THROWS_AS(AtomicFile(dir.file("file/out"), false), Error);
    CHECK_THROWS_AS(AtomicFile(dir.file(std::string(5000, 'x')), false), Error);
    CHECK(n_entries(dir.path()) == 1);
}

TEST_CASE("more than the disk holds is refused ahead of time") {
    const TempDir    dir;
    const AtomicFile file(dir.file("out"), false);
    CHECK_NOTHROW(file.require_space(1));
    const Error error = error_of([&] { file.require_space(uint64_t(1) << 62); });
    CHECK(error.kind == ErrorKind::io);
    CHECK(contains(error.message(), "needs 4611686018427387904 bytes (4.00 EiB)"));
}

TEST_CASE("a write beyond the limit fails with bytes and path, wherever it happens") {
    const TempDir dir;
    rlimit        before{};
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    rlimit     small   = before;
    small.rlim_cur     = 1000;
    std::string messages[2];
    {
        AtomicFile buffered(dir.file("buffered"), false);
        AtomicFile direct(dir.file("direct"), false);
        REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
        buffered.write(std::string(2000, 'x'));
        messages[0] = error_of([&] { buffered.commit(); }).message();
        messages[1] = error_of([&] { direct.write(std::string(1 << 20, 'x')); }).message();
        setrlimit(RLIMIT_FSIZE, &before);
    }
    std::signal(SIGXFSZ, handler);
    CHECK(contains(messages[0], "buffered': cannot write 1000 bytes after 1000"));
    CHECK(contains(messages[1], "direct': cannot write 1047576 bytes after 1000"));
    CHECK(n_entries(dir.path()) == 0);
}

TEST_CASE("an interrupt can remove what is being written") {
    const TempDir dir;
    int           ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::signal(SIGINT, [](int) {
            penelope::remove_temporary_files();
            _exit(130);
        });
        AtomicFile kept(dir.file("kept"), false);
        kept.write("done");
        kept.commit();
        AtomicFile first(dir.file("first"), false);
        AtomicFile second(dir.file("second"), false);
        first.write("half");
        first.sync();
        const std::string folder = dir.file("folder");
        fs::create_directories(folder + "/inner");
        const penelope::TemporaryPath paths[] = { penelope::TemporaryPath(folder),
                                                  penelope::TemporaryPath(folder + "/inner"),
                                                  penelope::TemporaryPath(folder + "/inner/file") };
        penelope::write_file(folder + "/inner/file", "finished", false);
        (void) !write(ready[1], "x", 1);
        for (;;) {
            pause();
        }
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    CHECK(n_entries(dir.path()) == 4);
    kill(child, SIGINT);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    close(ready[0]);
    close(ready[1]);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 130);
    CHECK(n_entries(dir.path()) == 1);
    CHECK(read_bytes(dir.file("kept")) == "done");
}

TEST_CASE("many files after each other and at once") {
    const TempDir dir;
    for (int i = 0; i < 100; ++i) {
        penelope::write_file(dir.file("same"), std::to_string(i), i > 0);
    }
    CHECK(read_bytes(dir.file("same")) == "99");
    std::vector<std::unique_ptr<AtomicFile>> open;
    const Error                              error = error_of([&] {
        for (int i = 0; i < 1000; ++i) {
            open.push_back(std::make_unique<AtomicFile>(dir.file("out" + std::to_string(i)), false));
        }
    });
    CHECK(contains(error.message(), "too many files being written at once"));
    CHECK(open.size() >= 16);
    open.clear();
    CHECK(n_entries(dir.path()) == 1);
}

TEST_CASE("a mapped file shows its bytes, before and after its pages are dropped") {
    const TempDir     dir;
    const std::string bytes(100000, 'm');
    MappedFile        file = MappedFile::open(dir.write("map", bytes));
    REQUIRE(file.size() == bytes.size());
    file.will_need(0, SIZE_MAX);
    file.will_need(bytes.size(), 1);
    CHECK(std::string(file.data(), file.data() + file.size()) == bytes);
    file.drop(1, 90000);
    file.drop(0, SIZE_MAX);
    file.drop(SIZE_MAX, SIZE_MAX);
    CHECK(std::string(file.data(), file.data() + file.size()) == bytes);
    MappedFile other = MappedFile::open(dir.write("empty", ""));
    CHECK(other.size() == 0);
    CHECK(other.data() == nullptr);
    other = std::move(file);
    CHECK(other.size() == bytes.size());
    CHECK(error_of([&] { MappedFile::open(dir.file("missing")); }).kind == ErrorKind::not_found);
    CHECK(error_of([&] { MappedFile::open(dir.path().string()); }).kind == ErrorKind::format);
    REQUIRE(mkfifo(dir.file("pipe").c_str(), 0600) == 0);
    CHECK(error_of([&] { MappedFile::open(dir.file("pipe")); }).kind == ErrorKind::format);
}

TEST_CASE("leftovers of the dead are removed, what is being written stays") {
    const TempDir dir;
    AtomicFile    file(dir.file("a"), false);
    file.write("whole");
    dir.write(".penelope-1-0.tmp", "half");
    dir.write("mine.tmp", "kept");
    penelope::remove_stale_files(dir.path().string());
    CHECK(!std::filesystem::exists(dir.file(".penelope-1-0.tmp")));
    CHECK(std::filesystem::exists(dir.file("mine.tmp")));
    file.commit();
    CHECK(read_bytes(dir.file("a")) == "whole");
}
