// Typed access to the fields of a request's JSON object. An invalid field throws RequestError(400) that names it. null
// counts as absent.
#pragma once

#include "base/json.h"

#include <optional>
#include <string>
#include <vector>

namespace penelope {

class Fields {
  public:
    // object must outlive this. path is the prefix of names in messages: "reasoning.".
    explicit Fields(const Json & object, std::string path = "");

    bool         has(const std::string & name) const { return find(name) != nullptr; }
    const Json * find(const std::string & name) const; // null when absent

    std::optional<int64_t>     integer(const std::string & name, int64_t least, int64_t most) const;
    std::optional<double>      number(const std::string & name, double least, double most) const;
    std::optional<bool>        boolean(const std::string & name) const;
    std::optional<std::string> text(const std::string & name) const;
    std::optional<std::string> nonempty_text(const std::string & name) const; // "" counts as absent
    std::optional<Fields>      object(const std::string & name) const;
    // A string or a list of strings.
    std::vector<std::string> texts(const std::string & name, size_t most, size_t longest) const;

    [[noreturn]] void fail(const std::string & name, const std::string & why) const;

  private:
    const Json & object_;
    std::string  path_;
};

// Parses the JSON object of a request body. Throws RequestError(400).
Json parse_body(const std::string & body);

} // namespace penelope
