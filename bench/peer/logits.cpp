// What llama_logits.cpp prints of llama.cpp, of this program: the logits after every one of some token ids as raw F32
// on stdout.
//
//     bench-logits MODEL.gguf LORA.gguf|- ID ID ...
#include "base/error.h"
#include "infer/session.h"
#include "method/decode.h"

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char ** argv) {
    using namespace penelope;
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s MODEL.gguf LORA.gguf|- ID...\n", argv[0]);
        return 2;
    }
    try {
        LoadOptions load;
        load.base   = argv[1];
        load.repack = false; // as llama.cpp reads its files here
        if (std::string(argv[2]) != "-") {
            load.loras.push_back({ argv[2], 1.0f });
        }
        SessionOptions options;
        options.n_ctx   = 256;
        options.kv_type = GGML_TYPE_F32;
        Session session(Engine::load(load), options);
        Tokens  ids;
        for (int i = 3; i < argc; i++) {
            ids.push_back(std::atoi(argv[i]));
            int        applications = 0;
            const auto logits       = prefill(session.context(), fresh_prompts({ ids }), applications);
            std::fwrite(logits[0].data(), sizeof(float), logits[0].size(), stdout);
        }
    } catch (const Error & error) {
        std::fprintf(stderr, "error: %s\n", error.message().c_str());
        return 1;
    }
    return 0;
}
