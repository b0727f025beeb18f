#include "task/csv.h"

#include "base/error.h"

namespace penelope {

namespace {

// Reads one cell from text[at] on and leaves `at` on what ended it: a comma, a newline or the end.
std::string read_cell(const std::string & text, size_t & at, size_t & line, const std::string & name) {
    std::string cell;
    if (at == text.size() || text[at] != '"') {
        for (; at < text.size() && text[at] != ',' && text[at] != '\n'; at++) {
            cell += text[at];
        }
        if (!cell.empty() && cell.back() == '\r') {
            cell.pop_back();
        }
        return cell;
    }
    const size_t start = line;
    for (at++;; at++) {
        if (at == text.size()) {
            throw Error(ErrorKind::format, name + " line " + std::to_string(start) + ": unterminated quote",
                        "write a quote inside a cell as two quotes");
        }
        if (text[at] == '"' && at + 1 < text.size() && text[at + 1] == '"') {
            at++;
        } else if (text[at] == '"') {
            break;
        }
        line += text[at] == '\n';
        const bool is_line_end = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
        if (!is_line_end) { // lines of a cell end as they do everywhere else
            cell += text[at];
        }
    }
    for (at++; at < text.size() && text[at] != ',' && text[at] != '\n'; at++) {
        if (text[at] != '\r' && text[at] != ' ') {
            throw Error(ErrorKind::format, name + " line " + std::to_string(line) + ": text after a closing quote",
                        "write a quote inside a cell as two quotes");
        }
    }
    return cell;
}

} // namespace

std::vector<CsvRow> parse_csv(const std::string & text, const std::string & name) {
    std::vector<CsvRow> rows;
    size_t              line = 1;
    for (size_t at = 0; at < text.size();) {
        CsvRow row{ {}, line };
        bool   has_text = false;
        while (true) {
            row.cells.push_back(read_cell(text, at, line, name));
            has_text = has_text || !row.cells.back().empty();
            if (at == text.size() || text[at] == '\n') {
                break;
            }
            at++;
        }
        at++;
        line++;
        if (has_text) {
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

} // namespace penelope
