#include "text/stream_decoder.h"

#include "text/utf8.h"

namespace penelope {

StreamDecoder::StreamDecoder(Tokenizer tokenizer, DecodeOptions options)
    : tokenizer_(std::move(tokenizer)), options_(options) {}

std::string StreamDecoder::feed(int32_t id) {
    const TokenType type = tokenizer_.token_type(id);
    if (!options_.special && is_special(type)) {
        return "";
    }
    const std::string bytes = tokenizer_.token_bytes(id);
    const bool        drops = first_ && tokenizer_.drops_first_space() && !bytes.empty() && bytes[0] == ' ';
    pending_.append(bytes, drops ? 1 : 0, std::string::npos);
    first_ = false;

    std::string_view rest = pending_;
    std::string      out;
    while (!rest.empty()) {
        const size_t n_valid = valid_utf8_prefix(rest);
        out.append(rest.substr(0, n_valid));
        rest.remove_prefix(n_valid);
        if (rest.empty()) {
            break;
        }
        const Utf8Unit unit = next_utf8_unit(rest, 0);
        if (unit.state == Utf8State::unfinished) {
            break;
        }
        out.append(utf8_replacement);
        rest.remove_prefix(unit.size);
    }
    pending_.erase(0, pending_.size() - rest.size());
    return out;
}

std::string StreamDecoder::flush() {
    std::string out;
    append_valid_utf8(out, pending_);
    pending_.clear();
    first_ = true;
    return out;
}

} // namespace penelope
