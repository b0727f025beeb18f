// llama.cpp as a judge: loads a backbone (and a LoRA), runs token ids through it and prints the logits of every
// position as raw F32 on stdout. Built by bench/files.py against a llama.cpp build; not part of the project's own
// build.
//
//     llama_logits MODEL.gguf LORA.gguf|- ID ID ...
#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char ** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s MODEL.gguf LORA.gguf|- ID...\n", argv[0]);
        return 2;
    }
    llama_log_set(
        [](ggml_log_level level, const char * text, void *) {
            if (level == GGML_LOG_LEVEL_ERROR) {
                std::fputs(text, stderr);
            }
        },
        nullptr);
    std::vector<llama_token> ids;
    for (int i = 3; i < argc; i++) {
        ids.push_back(std::atoi(argv[i]));
    }

    llama_model * model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model) {
        return 1;
    }
    llama_context_params params = llama_context_default_params();
    params.n_ctx                = 256;
    params.n_batch              = 256;
    params.type_k               = GGML_TYPE_F32;
    params.type_v               = GGML_TYPE_F32;
    params.flash_attn_type      = LLAMA_FLASH_ATTN_TYPE_DISABLED;
    llama_context * context     = llama_init_from_model(model, params);
    if (!context) {
        return 1;
    }
    if (std::string(argv[2]) != "-") {
        llama_adapter_lora * lora  = llama_adapter_lora_init(model, argv[2]);
        float                scale = 1.0f;
        if (!lora || llama_set_adapters_lora(context, &lora, 1, &scale) != 0) {
            return 1;
        }
    }
    llama_batch batch = llama_batch_init(int32_t(ids.size()), 0, 1);
    for (size_t i = 0; i < ids.size(); i++) {
        batch.token[i]     = ids[i];
        batch.pos[i]       = llama_pos(i);
        batch.n_seq_id[i]  = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i]    = 1;
    }
    batch.n_tokens = int32_t(ids.size());
    if (llama_decode(context, batch) != 0) {
        return 1;
    }
    const size_t n_vocab = size_t(llama_vocab_n_tokens(llama_model_get_vocab(model)));
    for (size_t i = 0; i < ids.size(); i++) {
        std::fwrite(llama_get_logits_ith(context, int32_t(i)), sizeof(float), n_vocab, stdout);
    }
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    return 0;
}
