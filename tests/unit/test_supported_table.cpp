// docs/models.md and the README list the models that the program supports, no more and no less.
#include <doctest/doctest.h>

#include "arch/architecture.h"
#include "base/format.h"
#include "base/trim.h"

#include <filesystem>
#include <fstream>

using namespace penelope;

namespace {

using Row = std::vector<std::string>;

// Rows of the table whose header begins with this cell.
std::vector<Row> table_in(const char * file, const std::string & header) {
    std::ifstream    in(std::filesystem::path(PENELOPE_TEST_DIR) / ".." / file);
    std::vector<Row> rows;
    bool             is_inside = false;
    for (std::string line; std::getline(in, line);) {
        Row cells;
        for (const std::string & cell : split(line, '|')) {
            cells.push_back(trim(cell));
        }
        is_inside = line.rfind("|", 0) == 0 && (is_inside || (cells.size() > 1 && cells[1] == header));
        if (is_inside && cells[1] != header && cells[1].rfind("---", 0) != 0) {
            rows.emplace_back(cells.begin() + 1, cells.end());
        }
    }
    return rows;
}

// "`a`, `b`" -> a, b
std::vector<std::string> names_in(const std::string & cell) {
    std::vector<std::string> names;
    for (const std::string & part : split(cell, ',')) {
        const std::string name = trim(part);
        CHECK_MESSAGE((name.size() > 2 && name.front() == '`' && name.back() == '`'), cell);
        names.push_back(name.substr(1, name.size() - 2));
    }
    return names;
}

} // namespace

TEST_CASE("the table of architectures is the registry") {
    const std::vector<Row> rows = table_in("docs/models.md", "architecture");
    REQUIRE(rows.size() == architectures().size());
    std::vector<std::string> models;
    for (size_t i = 0; i < rows.size(); i++) {
        const Architecture &     arch = *architectures()[i];
        std::vector<std::string> types(arch.hf_types.begin(), arch.hf_types.end()), shapes;
        for (const KnownShape & shape : arch.shapes) {
            shapes.push_back(shape.name);
        }
        CHECK(names_in(rows[i].at(0)) == std::vector<std::string>{ arch.name });
        CHECK(names_in(rows[i].at(1)) == types);
        CHECK(names_in(rows[i].at(3)) == shapes);
        models.push_back(rows[i].at(2));
    }
    for (const Row & row : table_in("README.md", "")) {
        if (row.at(0) == "Models") {
            CHECK(row.at(1).rfind(join(models, "; "), 0) == 0);
            models.clear();
        }
    }
    CHECK(models.empty()); // the README has that row
}
