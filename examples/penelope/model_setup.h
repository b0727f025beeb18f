// From the options of a command to a loaded model and the settings of its sessions.
#pragma once

#include "infer/prompt.h"
#include "infer/session.h"
#include "interrupt.h"
#include "options.h"
#include "terminal.h"

#include "text/chat_template.h"

#include <memory>

namespace penelope {

// Loads what -m, --sidecar (or the given adapter instead, a sidecar or a LoRA) and --lora name. On a terminal it says so
// when that takes long, and which device was taken.
std::shared_ptr<const Engine> load_engine(const Options & options, Terminal & terminal, const std::string & adapter);
std::shared_ptr<const Engine> load_engine(const Options & options, Terminal & terminal);

// --split, empty without it. Throws UsageError when --device says otherwise.
std::string wanted_split(const Options & options);

// Throws Error(usage) when the model cannot answer in this way ("cot", "" for its own) or not in so many latent steps; -1:
// as many as it takes by default. insist: visible steps of a sidecar whose LoRA was not found to write them.
void check_method_supported(const Engine & engine, const std::string & method, int n_steps, bool ignore_mismatch);

// --chat-template, --raw, --system and --reasoning. Throws UsageError where they contradict each other.
PromptOptions prompt_choice(const Options & options);
// Says on stderr what the choice comes to, and warns of an instruct model whose template is not understood.
PromptWriter prompt_writer(const Engine & engine, const PromptOptions & choice, Terminal & terminal);

// While the result lives, Ctrl-C cancels what the session generates.
CancelOnInterrupt cancel_on_interrupt(Session & session);

// The names are those of the option table.
ggml_type       parse_kv_type(const std::string & name);
SessionOptions  session_options(const Options & options, int n_streams);
SamplingOptions sampling_options(const Options & options); // seed 0 where --seed is not given

// For sampling without --seed. 32 bits, so that every reader of JSON has it exactly.
uint64_t random_seed();

// n_steps -1: the sidecar's default.
GenerateOptions generate_options(const Options & options, int n_steps);

// What --reasoning says.
Thinking thinking_option(const Options & options);

// Tells a session how an answer to this prompt of the template begins, and what the next prompt shares with it.
void expect_reasoning(const ChatTemplate & chat, size_t n_prompt, GenerateOptions & generate);

} // namespace penelope
