// The one log of the process: four levels, one sink (stderr unless replaced). Messages are whole lines without a
// newline. ggml's own messages pass through here as well, see log_route_ggml().
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace penelope {

enum class LogLevel { error, warning, info, debug };

using LogSink = std::function<void(LogLevel level, std::string_view line)>;

// Messages above the level are dropped. The default is info; -q sets warning, -v sets debug.
void     log_set_level(LogLevel level);
LogLevel log_level();

// Replaces the sink; an empty one restores stderr. The sink is called by one thread at a time and must not log itself.
void log_set_sink(LogSink sink);

void        log_message(LogLevel level, std::string_view line);
inline void log_error(std::string_view line) {
    log_message(LogLevel::error, line);
}
inline void log_warning(std::string_view line) {
    log_message(LogLevel::warning, line);
}
inline void log_info(std::string_view line) {
    log_message(LogLevel::info, line);
}
inline void log_debug(std::string_view line) {
    log_message(LogLevel::debug, line);
}

// Sends what ggml logs to this log: its errors and warnings as warnings (an Error tells the user what failed), the rest
// as debug. Takes effect once per process; cheap to call again.
void log_route_ggml();

} // namespace penelope
