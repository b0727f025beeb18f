// Directories that appear whole or not at all, and what killed processes leave beside them.
#include "base/output_dir.h"
#include "base/temporary_name.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <doctest/doctest.h>

#include <sys/stat.h>

using penelope::OutputDir;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::n_entries;
using penelope::test::read_bytes;
using penelope::test::TempDir;

namespace fs = std::filesystem;

TEST_CASE("a new directory appears with commit, open to whom a directory usually is") {
    const TempDir dir;
    {
        OutputDir out(dir.file("out/"), false);
        penelope::write_file(out.file("a"), "1", false);
        penelope::write_file(out.file("inner/b"), "2", false);
        CHECK(!fs::exists(dir.file("out")));
        out.commit();
    }
    fs::create_directory(dir.file("usual"));
    CHECK(read_bytes(dir.file("out/inner/b")) == "2");
    CHECK(fs::status(dir.file("out")).permissions() == fs::status(dir.file("usual")).permissions());
    CHECK(n_entries(dir.path()) == 2);
}

TEST_CASE("without commit nothing is left") {
    const TempDir dir;
    {
        OutputDir out(dir.file("out"), false);
        penelope::write_file(out.file("a"), "1", false);
    }
    CHECK(n_entries(dir.path()) == 0);
}

TEST_CASE("two that write the same directory leave each other alone") {
    const TempDir dir;
    OutputDir     first(dir.file("out"), false);
    penelope::write_file(first.file("a"), "1", false);
    {
        OutputDir second(dir.file("out"), false);
        penelope::remove_stale_files(dir.path().string());
        penelope::write_file(second.file("b"), "2", false);
    }
    first.commit();
    CHECK(read_bytes(dir.file("out/a")) == "1");
    CHECK(n_entries(dir.file("out")) == 1);
}

TEST_CASE("a commit that fails half-way into a directory that was there leaves none of the new files") {
    const TempDir dir;
    fs::create_directory(dir.file("out"));
    dir.write("out/mine", "kept");
    {
        OutputDir out(dir.file("out"), false);
        penelope::write_file(out.file("inner/a"), "1", false);
        out.file("b"); // announced and never written
        CHECK(contains(error_of([&] { out.commit(); }).message(), "cannot move the finished file to it"));
        CHECK(n_entries(dir.file("out")) == 1);
    }
    CHECK(read_bytes(dir.file("out/mine")) == "kept");
    CHECK(n_entries(dir.path()) == 1);
}

TEST_CASE("a file created in the meantime is not replaced without force") {
    const TempDir dir;
    fs::create_directory(dir.file("out"));
    {
        OutputDir out(dir.file("out"), false);
        penelope::write_file(out.file("a"), "1", false);
        penelope::write_file(out.file("b"), "2", false);
        dir.write("out/b", "theirs");
        CHECK(contains(error_of([&] { out.commit(); }).message(), "file exists"));
    }
    CHECK(read_bytes(dir.file("out/b")) == "theirs");
    CHECK(n_entries(dir.file("out")) == 1);
}

TEST_CASE("leftovers of the dead go, directories too; nothing else does") {
    const TempDir dir;
    fs::create_directories(dir.file(".penelope-1-0.tmp/inner"));
    dir.write(".penelope-1-0.tmp/inner/file", "half");
    fs::create_directories(dir.file("elsewhere"));
    dir.write("elsewhere/file", "kept");
    fs::create_directory_symlink(dir.file("elsewhere"), dir.file(".penelope-1-1.tmp"));
    fs::create_directory_symlink(dir.file("elsewhere"), dir.file(".penelope-1-0.tmp/link"));
    REQUIRE(mkfifo(dir.file(".penelope-1-2.tmp").c_str(), 0600) == 0);
    dir.write("mine.tmp", "kept");
    penelope::remove_stale_files(dir.path().string());
    CHECK(!fs::exists(dir.file(".penelope-1-0.tmp")));
    CHECK(fs::exists(dir.file("elsewhere/file")));
    CHECK(fs::exists(dir.file("mine.tmp")));
}

TEST_CASE("whoever writes to a directory removes what killed processes left there") {
    const TempDir dir;
    dir.write(".penelope-1-0.tmp", "half");
    fs::create_directories(dir.file(".penelope-1-1.tmp/inner"));
    penelope::write_file(dir.file("a"), "whole", false);
    CHECK(n_entries(dir.path()) == 1);

    const TempDir other;
    fs::create_directories(other.file(".penelope-1-1.tmp/inner"));
    OutputDir out(other.file("out"), false);
    out.commit();
    CHECK(n_entries(other.path()) == 1);
}
