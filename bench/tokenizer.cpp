// Tokenizer throughput on one core: megabytes a second, load time, tokens a piece of text.
// Usage: bench-tokenizer VOCAB.gguf TEXT...; the texts are read whole and repeated to 16 MB. Prints a Markdown table.
#include "text/tokenizer.h"
#include "base/error.h"
#include "gguf/reader.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>

namespace {

// Processor time: what one core can do, whatever else the machine is busy with.
double cpu_seconds() {
    return double(std::clock()) / CLOCKS_PER_SEC;
}

} // namespace

int main(int argc, char ** argv) try {
    using namespace penelope;
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s VOCAB.gguf TEXT...\n", argv[0]);
        return 2;
    }
    std::string text;
    for (int i = 2; i < argc; i++) {
        std::ifstream in(argv[i], std::ios::binary);
        if (!in) {
            throw Error(ErrorKind::not_found, std::string(argv[i]) + ": cannot be read");
        }
        text.append(std::istreambuf_iterator<char>(in), {});
    }
    if (text.empty()) {
        throw Error(ErrorKind::usage, "no text");
    }
    std::string long_text;
    while (long_text.size() < 16'000'000) {
        long_text += text;
    }

    double       begin        = cpu_seconds();
    const auto   file         = GgufReader::open(argv[1]);
    const double open_s       = cpu_seconds() - begin;
    begin                     = cpu_seconds();
    const Tokenizer tokenizer = Tokenizer::from_gguf(file);
    const double    load_s    = cpu_seconds() - begin;

    begin               = cpu_seconds();
    const auto   first  = tokenizer.encode(text);
    const double cold_s = cpu_seconds() - begin;

    double               best_s = 1e9, decode_s = 1e9;
    std::vector<int32_t> ids;
    std::string          back;
    for (int repeat = 0; repeat < 5; repeat++) {
        begin  = cpu_seconds();
        ids    = tokenizer.encode(long_text);
        best_s = std::min(best_s, cpu_seconds() - begin);

        begin    = cpu_seconds();
        back     = tokenizer.decode(ids);
        decode_s = std::min(decode_s, cpu_seconds() - begin);
    }
    std::printf("| vocabulary | text | open file | load | first pass | encode | decode | bytes/token | round trip |\n");
    std::printf("|---|---|---|---|---|---|---|---|---|\n");
    std::printf("| %s, %d tokens | %.2f MB | %.1f ms | %.1f ms | %.1f MB/s | %.1f MB/s | %.1f MB/s | %.2f | %s |\n",
                tokenizer.pre().c_str(), tokenizer.n_vocab(), text.size() / 1e6, 1e3 * open_s, 1e3 * load_s,
                text.size() / 1e6 / cold_s, long_text.size() / 1e6 / best_s, long_text.size() / 1e6 / decode_s,
                double(text.size()) / double(first.size()), back == long_text ? "equal" : "DIFFERS");
    return 0;
} catch (const penelope::Error & error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
}
