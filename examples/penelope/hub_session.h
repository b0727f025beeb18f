// Models by name on a terminal: settings from options and environment, progress lines, Ctrl-C.
#pragma once

#include "hub/fetch.h"
#include "options.h"
#include "terminal.h"

namespace penelope {

// --hf-token and --offline, where the command has them, else the environment.
HubSettings hub_settings(const Options & options);

// Downloads with a progress line on a terminal and one line per file elsewhere. The first Ctrl-C ends a download and
// keeps what has come.
class HubSession {
  public:
    HubSession(const Options & options, Terminal & terminal);

    const HubSettings & settings() const { return settings_; }

    FetchPlan   plan(const RepoName & name) const;
    std::string fetch(const FetchPlan & plan) const; // path of the first file
    std::string fetch(const RepoName & name) const { return fetch(plan(name)); }

  private:
    DownloadCallbacks callbacks() const;

    HubSettings settings_;
    Terminal &  terminal_;
};

} // namespace penelope
