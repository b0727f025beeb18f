// Splits text into the pieces that BPE merges inside and never across. The patterns are those of the models' own
// tokenizers, run by PCRE2; every byte of the text ends up in exactly one piece.
//
// A PreTokenizer is immutable and shared by threads; a PieceScanner belongs to one text and one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace penelope {

class Regex;

class PreTokenizer {
  public:
    // pre: the value of tokenizer.ggml.pre; source: where it was read, for messages. Throws Error(unsupported) naming
    // the known values for any other. has_merges false: the tokens are single bytes whatever the pieces, so the text
    // stays in one piece, unless pieces are looked up whole.
    explicit PreTokenizer(std::string_view pre, const std::string & source = "vocabulary", bool has_merges = true);

    bool ignores_merges() const { return ignores_merges_; } // a piece that is a token is taken whole
    bool implies_bos() const { return implies_bos_; }       // unless the file says otherwise
    bool composes_text() const { return composes_text_; }   // text is put into NFC first, as Qwen's tokenizers do
    bool is_fallback() const { return is_fallback_; } // the file named no pattern: ids may differ from the model's

  private:
    friend class PieceScanner;
    // Applied in order, each inside the pieces of the one before.
    std::vector<std::shared_ptr<const Regex>> patterns_;
    bool                                      ignores_merges_ = false;
    bool                                      implies_bos_    = false;
    bool                                      composes_text_  = false;
    bool                                      is_fallback_    = false;
};

class PieceScanner {
  public:
    // Lookahead ends where the text ends. text must be valid UTF-8 and outlive the scanner.
    PieceScanner(const PreTokenizer & pre_tokenizer, std::string_view text);
    ~PieceScanner();
    PieceScanner(const PieceScanner &)             = delete;
    PieceScanner & operator=(const PieceScanner &) = delete;

    // False at the end of the text.
    bool next(std::string_view & piece);

  private:
    struct Level;
    bool next_at(size_t level, std::string_view & piece);

    std::string_view   rest_;   // without patterns: the text until it is given out
    std::vector<Level> levels_; // one per pattern
};

} // namespace penelope
