// Every GGUF key this project reads or writes, in one place. Keys under an architecture's name ("llama.block_count")
// are made with arch(): arch("llama", keys::block_count).
#pragma once

#include <string>
#include <string_view>

namespace penelope::keys {

// Any file. Types as in ggml's description of GGUF.
inline constexpr const char * general_architecture         = "general.architecture"; // str
inline constexpr const char * general_type                 = "general.type";         // str: "model", "adapter"
inline constexpr const char * general_name                 = "general.name";
inline constexpr const char * general_author               = "general.author";
inline constexpr const char * general_organization         = "general.organization";
inline constexpr const char * general_basename             = "general.basename";
inline constexpr const char * general_size_label           = "general.size_label";
inline constexpr const char * general_finetune             = "general.finetune";
inline constexpr const char * general_version              = "general.version";
inline constexpr const char * general_description          = "general.description";
inline constexpr const char * general_license              = "general.license"; // SPDX
inline constexpr const char * general_license_name         = "general.license.name";
inline constexpr const char * general_license_link         = "general.license.link";
inline constexpr const char * general_repo_url             = "general.repo_url";
inline constexpr const char * general_source_repo_url      = "general.source.repo_url";
inline constexpr const char * general_quantized_by         = "general.quantized_by";
inline constexpr const char * general_tags                 = "general.tags";                   // str[]
inline constexpr const char * general_languages            = "general.languages";              // str[]
inline constexpr const char * general_base_model_count     = "general.base_model.count";       // u32
inline constexpr const char * general_dataset_count        = "general.dataset.count";          // u32
inline constexpr const char * general_file_type            = "general.file_type";              // u32
inline constexpr const char * general_quantization_version = "general.quantization_version";   // u32: 2
inline constexpr const char * quantize_imatrix_file        = "quantize.imatrix.file";          // str, of llama.cpp too
inline constexpr const char * quantize_imatrix_entries     = "quantize.imatrix.entries_count"; // i32
inline constexpr const char * general_alignment            = "general.alignment";              // u32
inline constexpr const char * split_number                 = "split.no";                       // u16, from 0
inline constexpr const char * split_count                  = "split.count"; // u16; above 1 the file is one of several
inline constexpr const char * split_tensors_count          = "split.tensors.count"; // i32, of all parts

// "general.base_model.0.name", "general.dataset.1.repo_url": field is name, organization, repo_url, ...
inline std::string general_base_model(int index, std::string_view field) {
    return "general.base_model." + std::to_string(index) + "." + std::string(field);
}
inline std::string general_dataset(int index, std::string_view field) {
    return "general.dataset." + std::to_string(index) + "." + std::string(field);
}

// Hyper-parameters, under the name of the architecture.
inline std::string arch(std::string_view architecture, std::string_view key) {
    return std::string(architecture) + "." + std::string(key);
}
inline constexpr const char * block_count              = "block_count";
inline constexpr const char * context_length           = "context_length";
inline constexpr const char * embedding_length         = "embedding_length";
inline constexpr const char * feed_forward_length      = "feed_forward_length";
inline constexpr const char * vocab_size               = "vocab_size";
inline constexpr const char * head_count               = "attention.head_count";
inline constexpr const char * head_count_kv            = "attention.head_count_kv";
inline constexpr const char * key_length               = "attention.key_length";
inline constexpr const char * value_length             = "attention.value_length";
inline constexpr const char * layer_norm_rms_epsilon   = "attention.layer_norm_rms_epsilon"; // f32
inline constexpr const char * attention_scale          = "attention.scale";                  // f32
inline constexpr const char * sliding_window           = "attention.sliding_window";         // u32, 0: none
inline constexpr const char * sliding_window_pattern   = "attention.sliding_window_pattern"; // u32: every n-th sees all
inline constexpr const char * embedding_scale          = "embedding_scale";                  // f32
inline constexpr const char * residual_scale           = "residual_scale";                   // f32
inline constexpr const char * logit_scale              = "logit_scale";                      // f32, a divisor
inline constexpr const char * final_logit_softcapping  = "final_logit_softcapping";          // f32
inline constexpr const char * expert_count             = "expert_count";
inline constexpr const char * recurrent_layers         = "attention.recurrent_layers"; // bool[block_count]
inline constexpr const char * full_attention_interval  = "full_attention_interval";
inline constexpr const char * nextn_predict_layers     = "nextn_predict_layers";
inline constexpr const char * rope_freq_base           = "rope.freq_base";     // f32
inline constexpr const char * rope_freq_base_swa       = "rope.freq_base_swa"; // f32, layers with a window
inline constexpr const char * rope_dimension_count     = "rope.dimension_count";
inline constexpr const char * rope_dimension_sections  = "rope.dimension_sections"; // i32[4]
inline constexpr const char * rope_scaling_type        = "rope.scaling.type";
inline constexpr const char * rope_scaling_factor      = "rope.scaling.factor"; // f32
inline constexpr const char * rope_scaling_orig_length = "rope.scaling.original_context_length";
inline constexpr const char * rope_scaling_attn_factor = "rope.scaling.attn_factor"; // f32
inline constexpr const char * rope_scaling_finetuned   = "rope.scaling.finetuned";   // bool
inline constexpr const char * rope_scale_linear        = "rope.scale_linear";        // f32, older files
inline constexpr const char * ssm_conv_kernel          = "ssm.conv_kernel";
inline constexpr const char * ssm_state_size           = "ssm.state_size";
inline constexpr const char * ssm_group_count          = "ssm.group_count";
inline constexpr const char * ssm_time_step_rank       = "ssm.time_step_rank";
inline constexpr const char * ssm_inner_size           = "ssm.inner_size";

// Tokenizer.
inline constexpr const char * tokenizer_model            = "tokenizer.ggml.model";      // str: "gpt2", "llama", ...
inline constexpr const char * tokenizer_pre              = "tokenizer.ggml.pre";        // str: "llama-bpe", ...
inline constexpr const char * tokenizer_tokens           = "tokenizer.ggml.tokens";     // str[]
inline constexpr const char * tokenizer_token_type       = "tokenizer.ggml.token_type"; // i32[]
inline constexpr const char * tokenizer_merges           = "tokenizer.ggml.merges";     // str[]: "left right"
inline constexpr const char * tokenizer_scores           = "tokenizer.ggml.scores";     // f32[]: of SentencePiece
inline constexpr const char * tokenizer_add_space_prefix = "tokenizer.ggml.add_space_prefix";         // bool
inline constexpr const char * tokenizer_remove_spaces    = "tokenizer.ggml.remove_extra_whitespaces"; // bool
inline constexpr const char * tokenizer_charsmap =
    "tokenizer.ggml.precompiled_charsmap"; // of SentencePiece's normalizer
inline constexpr const char * tokenizer_bos_token_id     = "tokenizer.ggml.bos_token_id";
inline constexpr const char * tokenizer_eos_token_id     = "tokenizer.ggml.eos_token_id";
inline constexpr const char * tokenizer_eot_token_id     = "tokenizer.ggml.eot_token_id";
inline constexpr const char * tokenizer_eom_token_id     = "tokenizer.ggml.eom_token_id";
inline constexpr const char * tokenizer_unknown_token_id = "tokenizer.ggml.unknown_token_id";
inline constexpr const char * tokenizer_padding_token_id = "tokenizer.ggml.padding_token_id";
inline constexpr const char * tokenizer_add_bos_token    = "tokenizer.ggml.add_bos_token"; // bool
inline constexpr const char * tokenizer_add_eos_token    = "tokenizer.ggml.add_eos_token"; // bool
inline constexpr const char * tokenizer_chat_template    = "tokenizer.chat_template";
inline constexpr const char * tokenizer_chat_templates   = "tokenizer.chat_templates"; // str[]: names of the others

inline std::string tokenizer_named_chat_template(std::string_view name) {
    return std::string(tokenizer_chat_template) + "." + std::string(name);
}

// Adapters.
inline constexpr const char * adapter_type                    = "adapter.type";       // str: "lora", "penelope"
inline constexpr const char * adapter_lora_alpha              = "adapter.lora.alpha"; // f32
inline constexpr const char * adapter_lora_task_name          = "adapter.lora.task_name";
inline constexpr const char * adapter_lora_prompt_prefix      = "adapter.lora.prompt_prefix";
inline constexpr const char * adapter_alora_invocation_tokens = "adapter.alora.invocation_tokens"; // u32[]

// The Penelope sidecar.
inline constexpr const char * penelope_version               = "penelope.version"; // u32
inline constexpr const char * penelope_method                = "penelope.method";  // str: "penelope", "coconut", ...
inline constexpr const char * penelope_interval_start        = "penelope.interval.start";    // u32, s
inline constexpr const char * penelope_interval_end          = "penelope.interval.end";      // u32, e
inline constexpr const char * penelope_memory_count          = "penelope.memory_count";      // u32, m
inline constexpr const char * penelope_readout_count         = "penelope.readout_count";     // u32, q
inline constexpr const char * penelope_k_max                 = "penelope.k_max";             // u32
inline constexpr const char * penelope_k_default             = "penelope.k_default";         // u32
inline constexpr const char * penelope_time_length           = "penelope.time_length";       // u32, h
inline constexpr const char * penelope_adapter_length        = "penelope.adapter_length";    // u32, b
inline constexpr const char * penelope_transition            = "penelope.transition";        // str: "gru", "overwrite"
inline constexpr const char * penelope_projection_length     = "penelope.projection_length"; // u32
inline constexpr const char * penelope_settled               = "penelope.settled";           // f32
inline constexpr const char * penelope_prompt_template       = "penelope.prompt_template";
inline constexpr const char * penelope_answer_prefix         = "penelope.answer_prefix";
inline constexpr const char * penelope_task                  = "penelope.task";
inline constexpr const char * penelope_match                 = "penelope.match"; // str: "exact", "number", "choice"
inline constexpr const char * penelope_visible_steps         = "penelope.visible_steps"; // bool: by the LoRA alone
inline constexpr const char * penelope_base_name             = "penelope.base.name";
inline constexpr const char * penelope_base_architecture     = "penelope.base.architecture";
inline constexpr const char * penelope_base_block_count      = "penelope.base.block_count";      // u32
inline constexpr const char * penelope_base_embedding_length = "penelope.base.embedding_length"; // u32
inline constexpr const char * penelope_base_vocab_size       = "penelope.base.vocab_size";       // u32
inline constexpr const char * penelope_base_tokens_sha256    = "penelope.base.tokens_sha256";    // str, hexadecimal
inline constexpr const char * penelope_base_repo             = "penelope.base.repo"; // str: "USER/REPO" of the hub
inline constexpr const char * penelope_base_file             = "penelope.base.file"; // str: its file in there
inline constexpr const char * penelope_base_sample        = "penelope.base.sample";  // f32[], see weight_fingerprint.h
inline constexpr const char * penelope_base_sample_types  = "penelope.base.sample_types";  // i32[], of ggml
inline constexpr const char * penelope_base_by_importance = "penelope.base.by_importance"; // bool
inline constexpr const char * penelope_train_config       = "penelope.train.config";       // str, JSON
inline constexpr const char * penelope_eval_results       = "penelope.eval.results";       // str, JSON

// Checkpoints of a training run.
inline constexpr const char * checkpoint_state    = "penelope.checkpoint.state";    // str, JSON
inline constexpr const char * checkpoint_settings = "penelope.checkpoint.settings"; // str, JSON

} // namespace penelope::keys
