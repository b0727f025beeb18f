// Turns the options of a command into a loaded model, session settings and sampling settings.
#pragma once

#include "infer/prompt.h"
#include "infer/session.h"
#include "interrupt.h"
#include "options.h"
#include "terminal.h"

#include "text/chat_template.h"

#include <memory>

namespace penelope {

// Loads the files of -m, --sidecar and --lora. adapter: a sidecar or LoRA to load instead of --sidecar. On a terminal
// shows progress if loading takes long, and the device chosen.
std::shared_ptr<const Engine> load_engine(const Options & options, Terminal & terminal, const std::string & adapter);
std::shared_ptr<const Engine> load_engine(const Options & options, Terminal & terminal);

// Value of --split, "" if not given. Throws UsageError if --device is given too.
std::string wanted_split(const Options & options);

// Throws Error(usage) if the model does not support the method ("cot", or "" for the sidecar's own) or the number of
// latent steps (-1: the sidecar's default). ignore_mismatch: allow --cot with a LoRA that was not trained on CoT.
void check_method_supported(const Engine & engine, const std::string & method, int n_steps, bool ignore_mismatch);

// --chat-template, --raw, --system and --reasoning. Throws UsageError if they exclude each other.
PromptOptions prompt_choice(const Options & options);
// Prints the chosen template on stderr, and warns if the chat template of an instruct model cannot be used.
PromptWriter prompt_writer(const Engine & engine, const PromptOptions & choice, Terminal & terminal);

// While the returned object exists, Ctrl-C cancels the session's generation.
CancelOnInterrupt cancel_on_interrupt(Session & session);

// The names are those of the option table.
ggml_type       parse_kv_type(const std::string & name);
SessionOptions  session_options(const Options & options, int n_streams);
SamplingOptions sampling_options(const Options & options); // seed 0 where --seed is not given

// For sampling without --seed. 32 bits, so that every reader of JSON has it exactly.
uint64_t random_seed();

// n_steps -1: the sidecar's default.
GenerateOptions generate_options(const Options & options, int n_steps);

// Value of --reasoning.
Thinking thinking_option(const Options & options);

// Sets whether the answer starts inside <think>, and how many prompt tokens the next turn's prompt will share.
void expect_reasoning(const ChatTemplate & chat, size_t n_prompt, GenerateOptions & generate);

} // namespace penelope
