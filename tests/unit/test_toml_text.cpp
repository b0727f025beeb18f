// TOML files: read within limits, and errors that say where.
#include <doctest/doctest.h>

#include "base/toml_text.h"
#include "support/errors.h"
#include "support/temp_dir.h"

using namespace penelope;
using test::contains;
using test::error_of;
using test::TempDir;

namespace {

std::string repeat(const std::string & text, size_t n) {
    std::string out;
    for (size_t i = 0; i < n; i++) {
        out += text;
    }
    return out;
}

} // namespace

TEST_CASE("a file is read whole") {
    const TempDir dir;
    const auto    path  = dir.write("a.toml", "a = 1\nb.c = [ 0.5, \"x.y\" ]\n");
    const auto    table = parse_toml(read_toml_text(path), path);
    CHECK(table["a"].value<int>() == 1);
    CHECK(table["b"]["c"][0].value<double>() == 0.5);
}

TEST_CASE("errors say where, and are of the kind asked for") {
    const TempDir dir;
    CHECK(error_of([] { parse_toml("a = 1\nb = =\n", "x.toml"); }).message().rfind("x.toml, line 2: ", 0) == 0);
    CHECK(error_of([] { parse_toml("b = =\n", "x.toml", ErrorKind::usage); }).kind == ErrorKind::usage);
    CHECK(error_of([&] { read_toml_text(dir.file("none.toml")); }).kind == ErrorKind::not_found);
    CHECK(error_of([&] { read_toml_text(dir.file("")); }).kind == ErrorKind::not_found);
}

TEST_CASE("long files and deep keys are refused") {
    const TempDir dir;
    const auto    refused = [](const std::string & text) {
        return contains(error_of([&] { parse_toml(text, "x.toml"); }).message(), "dots");
    };
    CHECK(contains(error_of([&] { read_toml_text(dir.write("a.toml", repeat("# long\n", 10000))); }).message(),
                   "64 KiB"));
    CHECK(refused("a" + repeat(".a", 30000) + " = 1\n"));
    CHECK(refused("[a" + repeat(".a", 30000) + "]\n"));
    CHECK(refused("a = " + repeat("{ a.a.a = [\n", 200) + repeat("] }", 200) + repeat("\n[[a.a.a.a.a.a]]", 200)));
    CHECK_NOTHROW(parse_toml("a" + repeat(".a", 1000) + " = 1\n", "x.toml"));
    CHECK_NOTHROW(parse_toml(repeat("# One. Two. Three.\n", 3000) + "a = 1\n", "x.toml"));
}
