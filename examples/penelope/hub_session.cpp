#include "hub_session.h"

#include "base/clock.h"
#include "base/format.h"
#include "interrupt.h"

namespace penelope {

namespace {

// "model-Q8_0.gguf: 45 % of 1.1 GiB | 12.3 MiB/s | 48 s left"
class ProgressLine {
  public:
    explicit ProgressLine(Terminal & terminal) : terminal_(terminal) {}

    void show(const DownloadProgress & progress) {
        if (progress.file != file_) {
            file_  = progress.file;
            shown_ = -1000.0;
            clock_.restart();
            begin_ = progress.done;
        }
        const double ms = clock_.elapsed_ms();
        if (ms - shown_ < 100.0) {
            return;
        }
        shown_           = ms;
        std::string text = file_ + ": " +
                           std::to_string(progress.total > 0 ? progress.done * 100 / progress.total : 100) + " % of " +
                           format_bytes(progress.total);
        const double done = double(progress.done - std::min(progress.done, begin_));
        if (ms > 500.0 && done > 0) {
            text += " | " + format_bytes(uint64_t(done / ms * 1000.0)) + "/s | " +
                    format_duration(ms * double(progress.total - progress.done) / done) + " left";
        }
        terminal_.progress(text);
    }

  private:
    Terminal &  terminal_;
    std::string file_;
    Stopwatch   clock_;
    double      shown_ = 0;
    uint64_t    begin_ = 0; // bytes that were there when the clock started
};

} // namespace

HubSettings hub_settings(const Options & options) {
    HubSettings settings = hub_settings_from_environment();
    if (has_option(options.command(), "hf-token") && options.given("hf-token")) {
        settings.token = checked_token(options.text("hf-token"), "--hf-token");
    }
    if (has_option(options.command(), "offline") && options.flag("offline")) {
        settings.offline = true;
    }
    return settings;
}

HubSession::HubSession(const Options & options, Terminal & terminal)
    : settings_(hub_settings(options)), terminal_(terminal) {}

DownloadCallbacks HubSession::callbacks() const {
    DownloadCallbacks callbacks;
    callbacks.cancelled = [] { return interrupt_count() > 0; };
    callbacks.message   = [this](const std::string & text) { terminal_.warning(text); };
    if (terminal_.err_is_tty() && !terminal_.quiet()) {
        const auto line    = std::make_shared<ProgressLine>(terminal_);
        callbacks.progress = [line](const DownloadProgress & progress) { line->show(progress); };
    }
    return callbacks;
}

FetchPlan HubSession::plan(const RepoName & name) const {
    const InterruptDeferral hold(InterruptDeferral::all_signals);
    return plan_fetch(settings_, name, callbacks());
}

std::string HubSession::fetch(const FetchPlan & plan) const {
    for (const RepoFile & file : plan.missing) {
        terminal_.tell("downloading " + plan.name.repo + "/" + file.path + " (" + format_bytes(file.size) + ")");
    }
    const InterruptDeferral hold(InterruptDeferral::all_signals);
    const Stopwatch         clock;
    const std::string       path = penelope::fetch(settings_, plan, callbacks());
    terminal_.progress("");
    if (!plan.missing.empty()) {
        terminal_.note("downloaded in " + format_duration(clock.elapsed_ms()) + ": " + path);
    }
    return path;
}

} // namespace penelope
