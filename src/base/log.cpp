#include "base/log.h"

#include "ggml.h"

#include <atomic>
#include <cstdio>
#include <mutex>

namespace penelope {

namespace {

struct Log {
    std::atomic<LogLevel> level{ LogLevel::info };
    std::mutex            mutex;
    LogSink               sink;      // guarded by mutex; empty means stderr
    std::string           ggml_line; // guarded by mutex; ggml sends lines in pieces
    LogLevel              ggml_level = LogLevel::debug;
};

Log & the_log() {
    static Log log;
    return log;
}

void emit(Log & log, LogLevel level, std::string_view line) {
    if (level > log.level.load(std::memory_order_relaxed)) {
        return;
    }
    if (log.sink) {
        log.sink(level, line);
        return;
    }
    const char * prefix = level == LogLevel::error ? "error: " : level == LogLevel::warning ? "warning: " : "";
    // One call per line keeps lines whole when several processes share the stream.
    std::string text = prefix;
    text.append(line).push_back('\n');
    std::fwrite(text.data(), 1, text.size(), stderr);
}

void from_ggml(ggml_log_level level, const char * text, void *) {
    Log &                       log = the_log();
    std::lock_guard<std::mutex> lock(log.mutex);
    if (level != GGML_LOG_LEVEL_CONT) {
        log.ggml_level =
            level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_WARN ? LogLevel::warning : LogLevel::debug;
    }
    for (const char * c = text; *c != '\0'; ++c) {
        if (*c != '\n') {
            log.ggml_line += *c;
            continue;
        }
        if (!log.ggml_line.empty()) {
            emit(log, log.ggml_level, "ggml: " + log.ggml_line);
        }
        log.ggml_line.clear();
    }
}

} // namespace

void log_set_level(LogLevel level) {
    the_log().level.store(level, std::memory_order_relaxed);
}

LogLevel log_level() {
    return the_log().level.load(std::memory_order_relaxed);
}

void log_set_sink(LogSink sink) {
    Log &                       log = the_log();
    std::lock_guard<std::mutex> lock(log.mutex);
    log.sink = std::move(sink);
}

void log_message(LogLevel level, std::string_view line) {
    Log &                       log = the_log();
    std::lock_guard<std::mutex> lock(log.mutex);
    emit(log, level, line);
}

void log_route_ggml() {
    static std::once_flag once;
    std::call_once(once, [] { ggml_log_set(from_ggml, nullptr); });
}

} // namespace penelope
