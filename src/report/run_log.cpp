#include "report/run_log.h"

#include "base/error.h"
#include "base/json.h"
#include "train/run_folder.h"

#include <algorithm>
#include <fstream>

namespace penelope {

namespace {

void read_line(const Json & line, const std::string & where, RunLog & log, double & tokens) {
    const double update = double(json_get<int64_t>(line, "update", where));
    if (const auto loss = json_find<double>(line, "loss", where)) {
        log.loss.push_back({ update, *loss });
        log.n_updates = int64_t(update);
        log.seconds += json_get<double>(line, "ms", where) / 1000;
        tokens += json_get<double>(line, "target_tokens", where);
        log.peak_memory = std::max(log.peak_memory, uint64_t(json_get<int64_t>(line, "peak_memory", where)));
    } else if (const auto exact = json_find<double>(line, "valid_exact", where)) {
        log.valid_exact.push_back({ update, *exact });
        log.valid_loss.push_back({ update, json_get<double>(line, "valid_loss", where) });
    } else if (const auto shares = line.find("exact_by_K"); shares != line.end() && shares->is_array()) {
        log.exact_by_depth.clear();
        for (const Json & share : *shares) {
            if (!share.is_number()) {
                throw Error(ErrorKind::format, where + ": exact_by_K: expected an array of numbers");
            }
            log.exact_by_depth.push_back(share.get<double>());
        }
        log.k_default = int(json_get<int64_t>(line, "k_default", where));
    }
}

} // namespace

RunLog read_run_log(const std::string & folder) {
    const std::string path = RunFolder(folder).metrics();
    std::ifstream     in(path, std::ios::binary);
    if (!in) {
        throw Error(ErrorKind::not_found, folder + ": not found: metrics.jsonl",
                    "give run folders of penelope train --out");
    }
    RunLog log;
    double tokens = 0;
    int    n_line = 0;
    for (std::string text; std::getline(in, text);) {
        if (in.eof()) {
            break; // no newline: the run was killed while writing
        }
        const std::string where = path + ", line " + std::to_string(++n_line);
        read_line(parse_json_line(text, where), where, log, tokens);
    }
    if (log.loss.empty()) {
        throw Error(ErrorKind::format, path + ": no update logged yet",
                    "leave the run out, or continue it with penelope train --resume");
    }
    log.tokens_per_second = log.seconds > 0 ? tokens / log.seconds : 0;
    return log;
}

} // namespace penelope
