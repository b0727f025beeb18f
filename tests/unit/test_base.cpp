// The small pieces of src/base: formatting, log, paths, stopwatch, memory.
#include <doctest/doctest.h>

#include "base/clock.h"
#include "base/format.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/path.h"
#include "ggml-cpp.h"
#include "support/errors.h"
#include "support/temp_dir.h"

#include <cstdlib>
#include <filesystem>
#include <thread>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#    include <malloc.h>
#endif

using penelope::absolute_directory;
using penelope::absolute_path;
using penelope::available_memory;
using penelope::Error;
using penelope::ErrorKind;
using penelope::format_bytes;
using penelope::format_count;
using penelope::format_duration;
using penelope::format_shape;
using penelope::in_quotes;
using penelope::join;
using penelope::log_debug;
using penelope::log_error;
using penelope::log_info;
using penelope::log_level;
using penelope::log_route_ggml;
using penelope::log_set_level;
using penelope::log_set_sink;
using penelope::log_warning;
using penelope::LogLevel;
using penelope::peak_memory;
using penelope::require_memory;
using penelope::set_mmap_threshold;
using penelope::Stopwatch;
using penelope::test::contains;
using penelope::test::error_of;
using penelope::test::TempDir;

TEST_CASE("sizes") {
    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(1023) == "1023 B");
    CHECK(format_bytes(1024) == "1.00 KiB");
    CHECK(format_bytes(1536) == "1.50 KiB");
    CHECK(format_bytes(1024 * 1024 - 1) == "1.00 MiB");
    CHECK(format_bytes(uint64_t(5) << 30) == "5.00 GiB");
    CHECK(format_bytes(UINT64_MAX) == "16.0 EiB");
}

TEST_CASE("durations") {
    CHECK(format_duration(0.4217) == "0.42 ms");
    CHECK(format_duration(123.4) == "123 ms");
    CHECK(format_duration(999.9) == "1.00 s");
    CHECK(format_duration(12340) == "12.3 s");
    CHECK(format_duration(59990) == "1 min 00 s");
    CHECK(format_duration(245000) == "4 min 05 s");
    CHECK(format_duration(2 * 3600e3 + 3 * 60e3) == "2 h 03 min");
}

TEST_CASE("counts, lists and shapes") {
    CHECK(format_count(999) == "999");
    CHECK(format_count(12345) == "12.3K");
    CHECK(format_count(999999) == "1.00M");
    CHECK(format_count(64080129) == "64.08M");
    CHECK(format_count(1235814400) == "1.24B");
    CHECK(join({}, ", ") == "");
    CHECK(join({ "a", "b", "c" }, ", ") == "a, b, c");
    CHECK(format_shape({ 64, 3 }) == "[64, 3]");
}

TEST_CASE("text from files is safe to print") {
    CHECK(in_quotes("plain") == "'plain'");
    CHECK(in_quotes("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80") == "'caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80'");
    CHECK(in_quotes(std::string_view("a\0\n\x7F", 4)) == "'a\\x00\\n\\x7F'");
    CHECK(in_quotes("\xFF\xC3") == "'\\xFF\\xC3'");
    CHECK(in_quotes("\xED\xA0\x80") == "'\\xED\\xA0\\x80'"); // a surrogate
    CHECK(in_quotes("\xC0\x80") == "'\\xC0\\x80'");          // an overlong NUL
    CHECK(in_quotes(std::string(100, 'x'), 10) == "'xxxxxxxxxx...'");
    CHECK(in_quotes(std::string(10, 'x'), 10) == "'xxxxxxxxxx'");
}

TEST_CASE("the log keeps to its level and its sink") {
    std::vector<std::string> lines;
    log_set_sink([&](LogLevel level, std::string_view line) {
        lines.push_back(std::to_string(int(level)) + std::string(line));
    });
    log_info("one");
    log_debug("hidden");
    log_set_level(LogLevel::debug);
    log_debug("two");
    log_set_level(LogLevel::warning);
    CHECK(log_level() == LogLevel::warning);
    log_info("hidden");
    log_warning("three");
    log_error("four");
    CHECK(lines == std::vector<std::string>{ "2one", "3two", "1three", "0four" });

    lines.clear();
    log_route_ggml();
    log_route_ggml();
    const char not_gguf[] = "this is no GGUF file";
    CHECK(gguf_init_from_buffer(not_gguf, sizeof(not_gguf), { true, nullptr }) == nullptr);
    REQUIRE(lines.size() == 1);
    CHECK(contains(lines[0], "1ggml: "));
    CHECK(contains(lines[0], "invalid magic"));
    CHECK_FALSE(contains(lines[0], "\n"));
    log_set_level(LogLevel::info);
    log_set_sink({});
}

TEST_CASE("the stopwatch goes forward") {
    Stopwatch watch;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(watch.elapsed_ms() >= 5);
    CHECK(watch.restart() >= 5);
    CHECK(watch.elapsed_ms() < 60000);
}

TEST_CASE("memory of this process and machine") {
    const uint64_t before = peak_memory();
    CHECK(before > 0);
    {
        std::vector<char> block(size_t(64) << 20, 1);
        CHECK(peak_memory() >= (uint64_t(64) << 20));
    }
    CHECK(available_memory().value() > (1 << 20));
    CHECK_NOTHROW(require_memory(1, "a byte"));
    const Error error = error_of([] { require_memory(uint64_t(1) << 60, "the weights", "use a smaller type"); });
    CHECK(error.kind == ErrorKind::memory);
    CHECK(contains(error.message(), "the weights: needs 1.00 EiB of memory but only "));
    CHECK(error.hint == "use a smaller type");
}

TEST_CASE("control groups limit the available memory") {
    const TempDir dir;
    const auto    put = [&](const std::string & name, const std::string & text) {
        std::filesystem::create_directories((dir.path() / name).parent_path());
        dir.write(name, text);
    };
    const std::string root = dir.path().string();
    CHECK_FALSE(available_memory(root));
    put("proc/meminfo", "MemTotal:  1000 kB\nMemAvailable:  800 kB\nSwapFree: 1 kB\n");
    CHECK(available_memory(root).value() == 800 * 1024);

    SUBCASE("version 2, the tightest of nested groups, page cache not counted") {
        put("proc/self/cgroup", "0::/outer/inner\n");
        put("sys/fs/cgroup/outer/inner/memory.max", "max\n");
        put("sys/fs/cgroup/outer/inner/memory.current", "1000\n");
        CHECK(available_memory(root).value() == 800 * 1024);
        put("sys/fs/cgroup/outer/memory.max", "500000\n");
        put("sys/fs/cgroup/outer/memory.current", "300000\n");
        CHECK(available_memory(root).value() == 200000);
        put("sys/fs/cgroup/outer/memory.stat", "anon 5\ninactive_file 100000\n");
        CHECK(available_memory(root).value() == 300000);
        put("sys/fs/cgroup/outer/memory.current", "900000\n");
        CHECK(available_memory(root).value() == 0);
    }
    SUBCASE("version 1") {
        put("proc/self/cgroup", "5:cpu:/\n4:memory:/a\n0::/\n");
        put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "700000\n");
        put("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "100000\n");
        put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        put("sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n");
        CHECK(available_memory(root).value() == 600000);
    }
    SUBCASE("inside a container the own group is the root of the mount") {
        put("proc/self/cgroup", "0::/docker/abc\n");
        put("sys/fs/cgroup/memory.max", "400000\n");
        put("sys/fs/cgroup/memory.current", "150000\n");
        CHECK(available_memory(root).value() == 250000);
    }
    SUBCASE("lines that are not groups are skipped") {
        put("proc/self/cgroup", "\n::\nnonsense\n3:memory\n0::relative\n");
        CHECK(available_memory(root).value() == 800 * 1024);
    }
}

TEST_CASE("paths from the root on") {
    const std::filesystem::path here = std::filesystem::current_path();
    CHECK(absolute_path("a/./b/../c") == here / "a/c");
    CHECK(absolute_path("/x/a/").string() == "/x/a/");
    CHECK(absolute_directory("/x/a/") == "/x/a");
    CHECK(absolute_directory("a/b/..") == here / "a");
    CHECK(absolute_directory("/") == "/");
}

#ifdef M_MMAP_THRESHOLD
TEST_CASE("large blocks go back to the system, also after larger ones were freed") {
    set_mmap_threshold();
    std::free(std::malloc(size_t(16) << 20)); // glibc alone would keep all up to this size from now on
    const size_t before = ::mallinfo2().hblkhd;
    void *       block  = std::malloc(size_t(1) << 20);
    CHECK(::mallinfo2().hblkhd >= before + (size_t(1) << 20));
    std::free(block);
    CHECK(::mallinfo2().hblkhd == before);
}
#endif
