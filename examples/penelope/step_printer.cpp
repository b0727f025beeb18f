#include "step_printer.h"

#include "base/format.h"

namespace penelope {

namespace {

// Escapes control characters and shows spaces.
std::string on_one_line(const std::string & text) {
    std::string out;
    for (char c : text) {
        if (c == '\n') {
            out += "\\n";
        } else if (c == '\t') {
            out += "\\t";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += '?';
        } else {
            out += c == ' ' ? '_' : c;
        }
    }
    return out.empty() ? "-" : out;
}

// At most n bytes, cut at a UTF-8 character boundary.
std::string cut_to(const std::string & text, size_t n) {
    if (text.size() <= n) {
        return text;
    }
    while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) {
        --n;
    }
    return text.substr(0, n);
}

// The best token of every row.
std::string best_words(const std::vector<std::vector<TokenScore>> & rows) {
    std::vector<std::string> words;
    for (const std::vector<TokenScore> & row : rows) {
        words.push_back(row.empty() ? "-" : on_one_line(row.front().text));
    }
    return join(words, " ");
}

} // namespace

StepCallback StepPrinter::callback() {
    return [this](const TraceStep & step) {
        show(step);
        return true;
    };
}

void StepPrinter::show(const TraceStep & step) {
    // Penelope has features H_t; Coconut and CODI have only their thoughts.
    const auto & first = !step.features_top.empty() ? step.features_top
                         : !step.memory_top.empty() ? step.memory_top
                                                    : step.readout_top;
    if (step.t > 0 && !first.empty() && !first.front().empty()) {
        said_.push_back(on_one_line(first.front().front().text));
    }
    line_ = "step " + std::to_string(step.t) + ": " + join(said_, " > ");
    for (const auto & [label, rows] :
         { std::pair("features", &step.features_top), std::pair("memory", &step.memory_top),
           std::pair("readout", &step.readout_top) }) {
        if (!rows->empty()) {
            line_ += std::string(said_.empty() && line_.back() == ' ' ? "| " : " | ") + label + " " + best_words(*rows);
        }
    }
    if (terminal_.err_is_tty()) {
        terminal_.progress(cut_to(line_, terminal_.width() - 1));
    } else {
        terminal_.tell(line_);
    }
}

TokenCallback StepPrinter::before(const TokenCallback & on_token) {
    return [this, on_token](std::string_view text, int32_t token) {
        finish();
        return !on_token || on_token(text, token);
    };
}

void StepPrinter::finish() {
    if (terminal_.err_is_tty() && !line_.empty()) {
        terminal_.tell(line_);
    }
    said_.clear();
    line_.clear();
}

ReasoningCallback ReasoningPrinter::callback() {
    return [this](std::string_view text) {
        open_ = true;
        terminal_.aside(text);
    };
}

TokenCallback ReasoningPrinter::before(const TokenCallback & on_token) {
    return [this, on_token](std::string_view text, int32_t token) {
        if (!text.empty()) {
            finish();
        }
        return !on_token || on_token(text, token);
    };
}

void ReasoningPrinter::finish() {
    if (open_) {
        terminal_.aside("\n\n");
        open_ = false;
    }
}

} // namespace penelope
