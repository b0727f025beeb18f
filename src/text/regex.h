// PCRE2 behind two small classes. A Regex is immutable and shared by threads; a Search belongs to one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace penelope {

class Regex {
  public:
    // A pattern of ours for anybody's text: with Unicode properties and JIT. Throws Error(unsupported) if the PCRE2 at
    // hand cannot compile it.
    explicit Regex(std::string_view pattern);
    // Anybody's pattern for names of any bytes: at most 1,000 bytes long, without Unicode, and with a limit on the work
    // of a search. Throws Error(format) saying what is wrong with it.
    static Regex untrusted(std::string_view pattern);

    class Search {
      public:
        explicit Search(const Regex & regex); // which must outlive it

        // The first match at or after pos. Of a pattern of ours, text must be valid UTF-8 and pos on the start of a
        // character. Lookahead ends where the text ends. Throws if PCRE2 runs out of its limits: Error(memory) for a
        // pattern of ours, Error(format) for another.
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

    // Whether it is anywhere in the text.
    bool is_in(std::string_view text) const { return Search(*this).find(text, 0); }

  private:
    Regex();

    std::unique_ptr<pcre2_real_code_8, void (*)(pcre2_real_code_8 *)>                   code_;
    std::unique_ptr<pcre2_real_match_context_8, void (*)(pcre2_real_match_context_8 *)> limits_; // null: PCRE2's own
    bool                                                                                jit_ = false;
};

} // namespace penelope
