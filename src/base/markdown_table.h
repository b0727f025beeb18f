// A table in Markdown.
#pragma once

#include <string>
#include <vector>

namespace penelope {

struct MarkdownTable {
    std::vector<std::string>              columns;
    std::vector<bool>                     numeric; // by column: right-aligned
    std::vector<std::vector<std::string>> rows;    // as many cells each as there are columns

    // pad: columns line up in plain text too.
    std::string text(bool pad) const;
};

} // namespace penelope
