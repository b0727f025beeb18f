#include "option_table.h"

#include "base/format.h"
#include "convert/file_type.h"
#include "infer/random_engine.h"
#include "train/setting_table.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace penelope {

namespace {

std::vector<std::string> words(const std::string & text) {
    std::istringstream       in(text);
    std::vector<std::string> out;
    for (std::string word; in >> word;) {
        out.push_back(word);
    }
    return out;
}

bool belongs_to(const OptionRow & row, std::string_view command) {
    for (const std::string & word : words(row.commands)) {
        if (word == "*" || word == command) {
            return true;
        }
    }
    return false;
}

constexpr OptionKind flag     = OptionKind::flag;
constexpr OptionKind integer  = OptionKind::integer;
constexpr OptionKind number   = OptionKind::number;
constexpr OptionKind text     = OptionKind::text;
constexpr OptionKind choice   = OptionKind::choice;
constexpr OptionKind steps    = OptionKind::steps;
constexpr OptionKind argument = OptionKind::argument;

constexpr const char * g_arguments  = "Arguments";
constexpr const char * g_model      = "Model";
constexpr const char * g_prompt     = "Prompt";
constexpr const char * g_data       = "Data";
constexpr const char * g_generation = "Generation";
constexpr const char * g_output     = "Output";
constexpr const char * g_training   = "Training";
constexpr const char * g_measuring  = "Measuring";
constexpr const char * g_serving    = "Serving";
constexpr const char * g_general    = "General";

OptionKind kind_of(SettingKind kind) {
    switch (kind) {
        case SettingKind::flag: return flag;
        case SettingKind::integer: return integer;
        case SettingKind::number: return number;
        case SettingKind::choice: return choice;
        case SettingKind::text: break;
    }
    return text;
}

std::vector<OptionRow> make_table() {
    static const std::string types          = "type of most weights: " + join(file_type_names(), ", ");
    static const std::string quantize_types = types + " (default for a sidecar: Q8_0)";
    static const std::string shapes         = join(known_shapes(), "|");

    // clang-format off
    std::vector<OptionRow> table = {
        // Arguments.
        { "file", "", argument, "FILE", "", "", g_arguments, "info",
          "a GGUF file of any kind; left out with --hf-repo" },
        { "dir", "", argument, "DIR", "", "1", g_arguments, "convert",
          "Hugging Face model, PEFT adapter or Penelope directory" },
        { "in", "", argument, "IN", "", "1", g_arguments, "quantize",
          "backbone or sidecar GGUF; left out with --hf-repo" },
        { "target", "", argument, "OUT", "", "1", g_arguments, "quantize",
          "file to write, or a directory for a file with the default name" },
        { "type", "", argument, "TYPE", "", "", g_arguments, "quantize", quantize_types.c_str() },
        { "file", "", argument, "SIDECAR", "", "1", g_arguments, "export",
          "sidecar or LoRA; with --as hf the backbone itself; left out with --sidecar-hf" },
        { "what", "", argument, "WHAT", "", "1", g_arguments, "data",
          "task to generate: listops, prosqa, prontoqa or thread; or a command: check describes a file of your own, "
          "split divides it into train, valid and test, audit looks for duplicate ids and questions" },
        { "path", "", argument, "PATH", "", "", g_arguments, "data",
          "with check and split: one file; with audit: a directory or files", true },

        { "name", "", argument, "USER/REPO[:QUANT]", "", "1", g_arguments, "pull",
          "what to download: a repository and the quantization or file of it (default Q4_K_M, else Q8_0, else the "
          "first)", true },
        { "name", "", argument, "USER/REPO[:QUANT]", "", "1", g_arguments, "rm",
          "what to remove: one quantization or file, or all GGUF files of the repository", true },
        { "input", "", argument, "RUN|RESULTS", "", "1", g_arguments, "report",
          "run folders of penelope train, JSON printed by penelope eval --json, or prediction files; each may "
          "be LABEL=PATH", true },
        { "file", "", argument, "FILE|DIR", "", "1", g_arguments, "learn",
          "examples: JSON Lines, a JSON array or CSV; plain text (.txt, .md); or a directory with train.jsonl and "
          "perhaps valid.jsonl and test.jsonl" },
        { "with", "", argument, "B.jsonl", "", "", g_arguments, "eval", "with --compare: the second file", true },

        // Model.
        { "model", "-m", text, "BASE", "", "", g_model, "run chat bench train learn eval export data serve",
          "backbone GGUF, or a bundle of backbone and sidecar" },
        { "hf-repo", "-hf -hfr", text, "USER/REPO[:QUANT]", "", "", g_model,
          "run chat bench train learn eval export data serve info quantize convert",
          "a model of the Hugging Face hub by name instead of a file, downloaded once; QUANT defaults to Q4_K_M, else "
          "Q8_0, else the first file. Of a sidecar's repository the backbone is found, too" },
        { "hf-file", "-hff", text, "FILE", "", "", g_model,
          "run chat bench train learn eval export data serve info quantize convert",
          "with --hf-repo: this file of the repository" },
        { "sidecar", "--latent", text, "FILE", "", "", g_model, "run chat bench eval serve",
          "Penelope, Coconut or CODI sidecar trained for this backbone" },
        { "lora", "--lora-scaled", text, "FILE[:SCALE]", "", "", g_model, "run chat bench eval serve",
          "LoRA adapter and its scale (default 1); repeatable", true },
        { "sidecar-hf", "", text, "USER/REPO[:FILE]", "", "", g_model, "run chat bench eval serve export",
          "a sidecar of the Hugging Face hub by name" },
        { "yes", "-y", flag, "", "", "", g_model, "run chat bench eval serve",
          "download the backbone of a sidecar's repository without asking" },
        { "hf-token", "-hft", text, "TOKEN", "", "", g_model,
          "run chat bench train learn eval export data serve info quantize convert pull",
          "access token for gated and private repositories (default: HF_TOKEN)" },
        { "offline", "", flag, "", "", "", g_model,
          "run chat bench train learn eval export data serve info quantize convert pull",
          "no network: only models that are downloaded already" },
        { "ignore-mismatch", "", flag, "", "", "", g_model, "run chat bench eval serve",
          "only warn when the sidecar was trained on other weights, or when its LoRA was not trained to write steps "
          "(--cot)" },
        { "ctx-size", "-c", integer, "N", "0", "0..", g_model, "run chat eval serve",
          "context size in tokens; 0: the smaller of 4096 and the model's own" },
        { "kv-type", "-ctk --cache-type-k", choice, "TYPE", "f16", "f16|bf16|f32|q8_0", g_model,
          "run chat bench eval serve", "type of the KV cache" },
        { "no-mmap", "", flag, "", "", "", g_model, "run chat bench eval serve",
          "read the weights into memory instead of mapping the file" },
        { "split", "", text, "LIST", "", "", g_model, "run chat bench eval serve info",
          "layers per device: CPU=10,RPC0=20 by number, CPU,RPC0 by free memory, memory: all devices by free memory" },

        // Prompt.
        { "prompt", "-p", text, "TEXT", "", "", g_prompt, "run",
          "the prompt; without -p, -f and --batch it is read from stdin" },
        { "prompt", "-p", text, "TEXT", "", "", g_prompt, "chat", "send this one message, print the answer and exit" },
        { "file", "-f", text, "FILE", "", "", g_prompt, "run",
          "read the prompt from a file; one trailing newline is dropped" },
        { "batch", "", text, "FILE.jsonl", "", "", g_prompt, "run",
          "answer many prompts: one {\"id\", \"prompt\"} or {\"id\", \"question\"} per line in, one JSON result per "
          "line out; -: stdin, answered as lines arrive" },
        { "chat-template", "", text, "NAME|FILE", "auto", "", g_prompt, "run chat",
          "auto: the sidecar's or LoRA's prompt template, else the model's chat template, else none; none: no chat "
          "template; chatml, gemma, llama2, llama3, mistral, phi3, zephyr or a Jinja file: this one" },
        { "chat-template", "", text, "NAME|FILE", "auto", "", g_prompt, "serve",
          "auto: the model's chat template, or the sidecar's prompt template for the last question only; none: no "
          "chat template; chatml, gemma, llama2, llama3, mistral, phi3, zephyr or a Jinja file: this one" },
        { "system", "-sys --system-prompt", text, "TEXT", "", "", g_prompt, "run chat",
          "system message, put before the conversation; needs a chat template" },
        { "raw", "", flag, "", "", "", g_prompt, "run chat",
          "no template: the prompt is tokenized as given, control tokens included" },
        { "history", "", text, "FILE", "", "", g_prompt, "chat",
          "file that keeps the messages you type for the next chat; none: do not keep them (default: "
          "penelope/history in $XDG_STATE_HOME or ~/.local/state)" },
        { "cot", "", flag, "", "", "", g_prompt, "run chat",
          "chain of thought in text: no latent steps, only the sidecar's LoRA" },

        { "reasoning", "-rea", choice, "WHEN", "auto", "auto|on|off", g_prompt, "run chat serve",
          "for models with <think> in the chat template: on, off, or auto: as the template does by default" },

        // Generation.
        { "latent-steps", "-K", steps, "N", "", "0..", g_generation, "run",
          "number of latent steps K, 0 to k_max (default: the sidecar's k_default); 0-6 or 1,3,5: one answer for "
          "each; auto: stop when the readout no longer changes" },
        { "latent-steps", "-K", steps, "N", "", "0..", g_generation, "chat",
          "number of latent steps K, 0 to k_max (default: the sidecar's k_default); auto: stop when the readout no "
          "longer changes" },
        { "latent-steps", "-K", integer, "N", "", "0..", g_generation, "serve",
          "number of latent steps K of requests without one, 0 to k_max (default: the sidecar's k_default)" },
        { "watch", "", flag, "", "", "", g_generation, "run chat",
          "print the nearest tokens of every latent state to stderr, step by step" },
        { "predict", "-n --n-predict", integer, "N", "-1", "-1..2147483647", g_generation, "run chat serve",
          "maximum number of new tokens; -1: until end of text or full context" },
        { "temp", "--temperature", number, "T", "0", "0..", g_generation, "run serve",
          "sampling temperature; 0: greedy" },
        { "temp", "--temperature", number, "T", "", "0..", g_generation, "chat",
          "sampling temperature; 0: greedy (default: 0.7 with a chat template, else 0)" },
        { "top-k", "", integer, "K", "40", "0..", g_generation, "run chat serve",
          "sample from the K most likely tokens; 0: all" },
        { "top-p", "", number, "P", "0.95", "0..1", g_generation, "run chat serve",
          "sample from the most likely tokens with this total probability; 1: all" },
        { "min-p", "", number, "P", "0.05", "0..1", g_generation, "run chat serve",
          "drop tokens below P times the probability of the best one; 0: off" },
        { "seed", "-s", integer, "S", "", "0..", g_generation, "run chat",
          "sampling seed (default: random if the temperature is above 0; -v and --json print it)" },
        { "seed", "-s", integer, "S", "", "0..", g_generation, "serve",
          "sampling seed of requests without one (default: random; the reply contains it)" },
        { "repeat-penalty", "", number, "R", "1", "0.001..1000", g_generation, "run chat serve",
          "divide positive and multiply negative logits of tokens already in the answer by R; 1: off" },
        { "presence-penalty", "", number, "P", "0", "-100..100", g_generation, "run chat serve",
          "P is subtracted once from the logit of every token already in the answer; 0: off" },
        { "frequency-penalty", "", number, "P", "0", "-100..100", g_generation, "run chat serve",
          "count times P is subtracted from the logit of a token already in the answer; 0: off" },
        { "repeat-last-n", "", integer, "N", "64", "-1..", g_generation, "run chat serve",
          "number of last answer tokens the penalties look at; -1: all" },
        { "json-schema", "-j", text, "SCHEMA", "", "", g_generation, "run chat",
          "constrain the answer to this JSON Schema; {}: any JSON. docs/using.md lists the supported keywords" },
        { "json-schema-file", "-jf", text, "FILE", "", "", g_generation, "run chat", "--json-schema from a file" },
        { "grammar", "", text, "GBNF", "", "", g_generation, "run chat",
          "constrain the answer to this grammar in llama.cpp's GBNF notation" },
        { "grammar-file", "", text, "FILE", "", "", g_generation, "run chat", "--grammar from a file" },
        { "stop", "-r --reverse-prompt", text, "TEXT", "", "", g_generation, "run chat",
          "stop the answer before this text; repeatable", true },

        // Serving.
        { "host", "", text, "ADDRESS", "127.0.0.1", "", g_serving, "serve",
          "address to listen on; other than loopback needs an API key" },
        { "port", "", integer, "N", "8080", "0..65535", g_serving, "serve", "port to listen on; 0: any free port" },
        { "slots", "-np --parallel", integer, "N", "4", "1..256", g_serving, "serve",
          "number of answers generated in parallel, each with its own context" },
        { "queue", "", integer, "N", "64", "1..65536", g_serving, "serve",
          "maximum number of waiting answers; more get 503" },
        { "no-batch-invariance", "", flag, "", "", "", g_serving, "serve",
          "allow results to depend on the batch in the last bits: reuses cached answers and faster kernels" },
        { "api-key", "", text, "KEY,...", "", "", g_serving, "serve",
          "accepted API keys; none: no authentication", true },
        { "api-key-file", "", text, "FILE", "", "", g_serving, "serve", "accepted API keys, one per line" },
        { "cert", "--ssl-cert-file", text, "FILE.pem", "", "", g_serving, "serve", "TLS certificate chain" },
        { "key", "--ssl-key-file", text, "FILE.pem", "", "", g_serving, "serve", "private key of the TLS certificate" },
        { "cors-origin", "", text, "ORIGIN", "", "", g_serving, "serve",
          "origin whose web pages may send requests, * for all; repeatable (default: none)", true },
        { "connections", "", integer, "N", "64", "1..4096", g_serving, "serve",
          "maximum number of open connections; more get 503" },
        { "max-body", "", integer, "KIB", "1024", "1..1048576", g_serving, "serve",
          "maximum size of a request in KiB; larger ones get 413" },
        { "request-timeout", "", integer, "SECONDS", "20", "1..3600", g_serving, "serve",
          "seconds a client has to send its request" },
        { "timeout", "", integer, "SECONDS", "600", "1..86400", g_serving, "serve",
          "seconds an answer may take, waiting included; then 504" },

        // Output of run.
        { "json", "", flag, "", "", "", g_output,
          "run chat info convert quantize export data bench eval train learn report serve pull list rm",
          "print JSON on stdout, errors included" },
        { "trace", "", text, "FILE.jsonl", "", "", g_output, "run",
          "write one JSON line per latent step: norms, cosines, alpha, the top tokens of each state" },
        { "dump", "", text, "FILE.safetensors", "", "", g_output, "run",
          "write the intermediate tensors of the first prompt" },

        // Files.
        { "tensors", "", flag, "", "", "", g_output, "info", "list every tensor" },
        { "out", "-o --output", text, "OUT.gguf", "", "", g_output, "convert",
          "file to write, or a directory for a file with the default name" },
        { "out", "-o --output", text, "DIR", "", "", g_output, "export",
          "directory or file to write; in an existing directory a file gets its default name" },
        { "as", "", choice, "KIND", "", "penelope|peft|lora|merged|bundle|hf", g_output, "export",
          "penelope: directory for PyTorch; peft: PEFT directory; lora: GGUF adapter for llama.cpp; merged: backbone "
          "with the LoRA merged; bundle: backbone and sidecar in one file; hf: Hugging Face directory of the "
          "backbone" },
        { "type", "", text, "TYPE", "", "", g_output, "convert", types.c_str() },
        { "type", "", text, "TYPE", "", "", g_output, "export",
          "type of the weights of --as merged (default: that of the base model)" },
        { "base", "", text, "BASE.gguf", "", "", g_model, "convert", "backbone GGUF of an adapter or sidecar" },
        { "lora", "", text, "DIR", "", "", g_model, "convert", "PEFT directory to include in the sidecar" },
        { "tensor-type", "", text, "PATTERN=TYPE", "", "", g_output, "quantize",
          "type of the tensors whose name matches; repeatable", true },
        { "imatrix", "", text, "TEXT.txt", "", "", g_output, "quantize",
          "compute an importance matrix on this text first and quantize with it" },
        { "allow-requantize", "", flag, "", "", "", g_output, "quantize",
          "allow quantizing a file that is already quantized" },
        { "dry-run", "", flag, "", "", "", g_output, "quantize", "print the plan, write nothing" },

        // Data.
        { "out", "-o --output", text, "DIR", "", "", g_output, "data",
          "directory for train.jsonl, valid.jsonl and test.jsonl" },
        { "split", "", text, "SHARES", "80,10,10", "", g_data, "data", "with split: ratios of train, valid and test" },
        { "seed", "-s", integer, "S", "0", "0..", g_data, "data", "seed of the generator and of split" },
        { "train", "", integer, "N", "", "0..", g_data, "data",
          "number of training examples (default for all three: as in the paper)" },
        { "valid", "", integer, "N", "", "0..", g_data, "data", "number of validation examples" },
        { "test", "", integer, "N", "", "0..", g_data, "data", "number of test examples" },
        { "depth", "", steps, "A-B", "", "", g_data, "data",
          "depth of the questions, i.e. number of reasoning steps (default: as in the paper)" },
        { "test-depth", "", steps, "A-B", "", "", g_data, "data", "depth of the test questions (default: --depth)" },
        { "branch", "", number, "P", "0", "0..1", g_data, "data",
          "listops: probability that a digit argument becomes an operator" },
        { "operators", "", text, "LIST", "", "", g_data, "data",
          "listops: operators to use, e.g. MAX,MIN,MED (default: these and SM)" },
        { "max-steps", "", integer, "N", "", "0..", g_data, "data",
          "listops: truncate the reasoning steps of an example after N (default 6)" },
        { "chains", "", integer, "N", "3", "1..52", g_data, "data",
          "thread: number of chains of edges; the question is about one of them" },
        { "min-chains", "", integer, "N", "0", "0..52", g_data, "data",
          "thread: mix in easier training questions: half have N chains, half N to --chains "
          "(default: all have --chains)" },
        { "surface", "", choice, "NAME", "letters", "letters|words", g_data, "data",
          "thread: letters: one-letter nodes; words: multi-hop questions in English" },
        { "task", "", choice, "NAME", "", "listops|prosqa|prontoqa|thread|generic", g_data, "data",
          "with check, split and audit: task of the data (default: recognized by its questions, else generic)" },
        { "exclude", "", text, "FILE", "", "", g_data, "data",
          "exclude questions that occur in this file; repeatable", true },

        // Bench.
        { "shape", "", choice, "NAME", "", shapes.c_str(), g_model, "bench",
          "random weights in the shape of this model, instead of -m" },
        { "type", "", text, "TYPE", "Q8_0", "", g_model, "bench", "type of the weights of --shape" },
        { "prompt", "-p", integer, "N", "512", "0..16777216", g_measuring, "bench",
          "number of prompt tokens; 0: skip this test" },
        { "gen", "-n", integer, "N", "64", "0..16777216", g_measuring, "bench",
          "number of generated tokens; 0: skip this test" },
        { "methods", "", text, "LIST", "", "", g_measuring, "bench",
          "methods to compare with their K (cot: number of visible tokens), e.g. penelope:5,coconut:8,cot:69" },
        { "interval", "", text, "S:E", "", "", g_measuring, "bench",
          "layers S to E-1 that a latent step runs, for Penelope with random modules (default: the last third)" },
        { "phases", "", flag, "", "", "", g_measuring, "bench",
          "also measure K=0 and one layer on 1 to 16 rows, and predict the cost of a latent step" },
        { "repetitions", "-r", integer, "N", "5", "1..1000", g_measuring, "bench",
          "number of measured runs, after one warm-up run" },
        { "format", "-o --output", choice, "FORMAT", "md", "md|csv|json", g_output, "bench", "format of the table" },

        // Evaluation.
        { "data", "", text, "FILE", "", "", g_data, "eval", "questions: JSON Lines, or Coconut's JSON" },
        { "task", "", choice, "NAME", "", "listops|prosqa|prontoqa|thread|generic", g_data, "eval",
          "task that defines how answers are parsed (default: as stored in the model, else recognized by the "
          "questions, else generic: any text)" },
        { "match", "", choice, "HOW", "", "exact|number|choice", g_data, "eval",
          "how answers of the generic task are compared. exact: whole text (default); number: first number; "
          "choice: which known answer they start with" },
        { "limit", "", integer, "N", "", "1..", g_data, "eval", "evaluate only the first N questions" },
        { "sidecars", "", text, "FILE", "", "", g_model, "eval",
          "several sidecars or LoRAs (e.g. one per seed), each evaluated; A,B,C or repeated", true },
        { "latent-steps", "-K", steps, "N", "", "0..", g_generation, "eval",
          "number of latent steps K (default: the sidecar's k_default); 0-6: each of these in one pass; auto: stop "
          "when the readout no longer changes" },
        { "cot", "", flag, "", "", "", g_generation, "eval",
          "chain of thought in text: no latent steps, only the sidecar's LoRA" },
        { "predict", "-n --n-predict", integer, "N", "-1", "-1..1048576", g_generation, "eval",
          "maximum number of new tokens; -1: 32, with a chain of thought 256" },
        { "batch-size", "", integer, "N", "8", "1..64", g_measuring, "eval", "questions evaluated in one batch" },
        { "latency-samples", "", integer, "N", "16", "0..1048576", g_measuring, "eval",
          "questions run once more one at a time to measure latency; 0: none" },
        { "swap-latents", "", flag, "", "", "", g_measuring, "eval",
          "swap test: answer each question from the latent memory of another question of the batch" },
        { "predictions", "", text, "FILE.jsonl", "", "", g_output, "eval", "write one JSON line per question and K" },
        { "calibrate-halting", "", text, "OUT.gguf", "", "", g_output, "eval",
          "find the halting threshold of -K auto on these questions; write a copy of the sidecar with it" },
        { "compare", "", text, "FILE.jsonl", "", "", g_data, "eval",
          "paired difference in exact match of two prediction files, with a 95 % bootstrap interval; "
          "a.jsonl@K=0 selects a K", true },

        { "out", "-o --output", text, "DIR", "", "", g_output, "report", "directory for report.md and its charts" },
        { "out", "-o --output", text, "RUN", "", "", g_output, "train", "run folder to write" },
        { "out", "-o --output", text, "RUN", "", "", g_output, "learn",
          "run folder to write (default: runs/ and the name of the data)" },
        { "time", "", text, "TIME", "60m", "", g_training, "learn",
          "time for everything, scoring included: 90s, 60m, 2h" },
        { "from-scratch", "", choice, "SIZE", "", "tiny|small", g_training, "learn",
          "a new backbone instead of -m; tiny: 3 layers of width 128, small: 6 layers of width 256. Long examples are "
          "read with a vocabulary learned from the data" },
        { "protocol", "", choice, "NAME", "", "paper", g_training, "learn",
          "paper: the paper's objective, curriculum and number of updates" },
        { "no-control", "", flag, "", "", "", g_training, "learn",
          "do not train the control without latent steps; the verdict then compares with the most frequent answer" },
        { "no-latent", "", flag, "", "", "", g_training, "learn", "train written steps only" },
        { "seed", "-s", integer, "S", "0", "0..", g_training, "learn", "seed of the split and of the training" },
    };
    // clang-format on
    for (const SettingRow & row : setting_table()) {
        table.push_back({ row.name, row.aliases, kind_of(row.kind), row.value, row.fallback, row.limits, row.group,
                          "train", row.help });
    }
    // clang-format off
    const std::vector<OptionRow> rest = {
        { "log-every", "", integer, "N", "10", "1..", g_output, "train",
          "updates between log lines; on a terminal one line is updated in place, unless -v is given" },
        { "resume", "", flag, "", "", "", g_output, "train",
          "continue the run in --out; flags not given come from its config.toml; --updates may be larger than before" },
        { "dry-run", "", flag, "", "", "", g_output, "train", "print the plan and the memory it needs, train nothing" },
        { "dump-gradients", "", text, "FILE.safetensors", "", "", g_output, "train",
          "write loss and gradients of the first batch, then exit" },

        { "force", "", flag, "", "", "", g_output, "run convert quantize export data eval train learn report",
          "replace existing files" },

        // General.
        { "threads", "-t", integer, "N", "0", "0..1024", g_general, "*",
          "number of threads; 0: the available physical cores" },
        { "device", "-dev", text, "NAME", "auto", "", g_general, "*", "device to compute on, see --list-devices" },
        { "rpc", "", text, "HOST:PORT,...", "", "", g_general, "*",
          "use other machines that run penelope-rpc-server, as devices RPC0, ...; for trusted networks only" },
        { "list-devices", "", flag, "", "", "", g_general, "*", "list the devices and exit" },
        { "config", "", text, "FILE.toml", "", "", g_general, "*",
          "read options from a TOML file whose keys are long flag names; flags and environment take precedence over "
          "it, and it over the files it includes (include = \"FILE\")" },
        { "color", "", choice, "WHEN", "auto", "auto|on|off", g_general, "*", "colour output on terminals" },
        { "verbose", "-v", flag, "", "", "", g_general, "*", "more on stderr" },
        { "quiet", "-q", flag, "", "", "", g_general, "*", "only errors on stderr" },
        { "help", "-h", flag, "", "", "", g_general, "*", "show this help and exit" },
        { "version", "", flag, "", "", "", g_general, "*",
          "show the versions of penelope, ggml and its backends and exit" },
    };
    // clang-format on
    table.insert(table.end(), rest.begin(), rest.end());
    return table;
}

} // namespace

const std::vector<OptionRow> & option_table() {
    static const std::vector<OptionRow> table = make_table();
    return table;
}

std::vector<const OptionRow *> command_options(std::string_view command) {
    std::vector<const OptionRow *> rows;
    for (const OptionRow & row : option_table()) {
        if (belongs_to(row, command)) {
            rows.push_back(&row);
        }
    }
    return rows;
}

bool has_option(std::string_view command, std::string_view name) {
    const std::vector<const OptionRow *> rows = command_options(command);
    return std::any_of(rows.begin(), rows.end(), [&](const OptionRow * row) { return name == row->name; });
}

std::vector<std::string> aliases_of(const OptionRow & row) {
    return words(row.aliases);
}

std::string environment_name(const OptionRow & row) {
    std::string name = "PENELOPE_";
    for (const char * c = row.name; *c != '\0'; ++c) {
        name += *c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
    }
    return name;
}

std::string foreign_flag_hint(std::string_view flag_text) {
    struct Foreign {
        const char * flag;
        const char * hint;
    };
    static const Foreign foreign[] = {
        { "-ngl", "--device NAME selects the device, --split LIST distributes layers over several" },
        { "--n-gpu-layers", "--device NAME selects the device, --split LIST distributes layers over several" },
        { "--gpu-layers", "--device NAME selects the device, --split LIST distributes layers over several" },
        { "-ts", "--split LIST distributes the layers, e.g. --split CPU=10,RPC0=20" },
        { "--tensor-split", "--split LIST distributes the layers, e.g. --split CPU=10,RPC0=20" },
        { "-sm", "--split LIST distributes the layers, e.g. --split CPU=10,RPC0=20" },
        { "--split",
          "training runs on one device, or with mpirun on several machines; only inference can split layers" },
        { "-cnv", "use 'penelope chat'" },
        { "-no-cnv", "use 'penelope run'" },
        { "-i", "use 'penelope chat'" },
        { "-st", "use 'penelope chat -p TEXT'" },
        { "-ctv", "--kv-type sets the type of keys and values together" },
        { "-ub", "the physical batch size is chosen automatically" },
        { "-fa", "flash attention is used automatically where it is faster" },
    };
    for (const Foreign & row : foreign) {
        if (flag_text == row.flag) {
            return row.hint;
        }
    }
    return "";
}

} // namespace penelope
