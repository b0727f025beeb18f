// A Hugging Face directory of a golden case that a test may change before it is converted.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "gguf/reader.h"
#include "support/golden.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace penelope::test {

// Always called "model" so that the name in the file stays the same.
class GoldenCheckpoint {
  public:
    explicit GoldenCheckpoint(const std::string & name) : golden_(name) {
        std::filesystem::copy(golden_.source("model"), path());
    }

    std::filesystem::path path() const { return dir_.path() / "model"; }
    std::string           out() const { return dir_.file("out.gguf"); }
    const GoldenCase &    golden() const { return golden_; }
    const TempDir &       dir() const { return dir_; }

    void edit(const std::string & file, const std::function<void(Json &)> & change) const {
        Json json = std::filesystem::exists(path() / file) ? read_json_file((path() / file).string()) : Json::object();
        change(json);
        std::ofstream(path() / file) << dump_json(json);
    }

    GgufReader convert(const std::string & type = "") const {
        ConvertOptions options;
        options.dir      = path().string();
        options.out_path = out();
        options.type     = type;
        convert_directory(options);
        return GgufReader::open(out());
    }

    std::string refusal() const {
        try {
            convert();
        } catch (const Error & e) {
            CHECK(!std::filesystem::exists(out()));
            return e.message() + " | " + e.hint;
        }
        return "";
    }

    bool same_as_golden() const { return read_bytes(out()) == read_bytes(golden_.backbone()); }

  private:
    GoldenCase golden_;
    TempDir    dir_;
};

} // namespace penelope::test
