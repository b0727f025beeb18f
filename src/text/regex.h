// PCRE2 with Unicode properties and JIT, behind two small classes. Patterns are ours, texts are anybody's.
// A Regex is immutable and shared by threads; a Search belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;

namespace penelope {

class Regex {
  public:
    // Throws Error(unsupported) if the PCRE2 at hand cannot compile it.
    explicit Regex(std::string_view pattern);

    class Search {
      public:
        explicit Search(const Regex & regex); // which must outlive it

        // The first match at or after pos. text must be valid UTF-8, pos on the start of a character; lookahead ends
        // where the text ends. Throws Error(memory) if PCRE2 runs out of its limits.
        bool find(std::string_view text, size_t pos);

        // Of the last match; group 0 is all of it. A group that took no part is empty.
        size_t           begin(int group = 0) const;
        size_t           end(int group = 0) const;
        std::string_view text(int group = 0) const { return subject_.substr(begin(group), end(group) - begin(group)); }

      private:
        const Regex *                                                                 regex_;
        std::unique_ptr<pcre2_real_match_data_8, void (*)(pcre2_real_match_data_8 *)> match_;
        const size_t *                                                                ranges_;
        std::string_view                                                              subject_;
    };

  private:
    std::unique_ptr<pcre2_real_code_8, void (*)(pcre2_real_code_8 *)> code_;
    bool                                                              jit_;
};

} // namespace penelope
