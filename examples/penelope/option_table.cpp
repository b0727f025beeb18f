#include "option_table.h"

#include "base/format.h"
#include "convert/file_type.h"
#include "infer/random_engine.h"
#include "train/setting_table.h"

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
        { "file", "", argument, "FILE", "", "1", g_arguments, "info", "a GGUF file of any kind" },
        { "dir", "", argument, "DIR", "", "1", g_arguments, "convert",
          "Hugging Face model, PEFT adapter or Penelope directory" },
        { "in", "", argument, "IN", "", "1", g_arguments, "quantize", "backbone or sidecar GGUF" },
        { "target", "", argument, "OUT", "", "1", g_arguments, "quantize",
          "the file to write, or a directory to put it into under its usual name" },
        { "type", "", argument, "TYPE", "", "", g_arguments, "quantize",
          quantize_types.c_str() },
        { "file", "", argument, "SIDECAR", "", "1", g_arguments, "export",
          "sidecar or LoRA; with --as hf the backbone itself" },
        { "what", "", argument, "WHAT", "", "1", g_arguments, "data",
          "listops, prosqa, prontoqa or thread to generate; check to see what a file of your own is; split to divide one into train, valid and "
          "test; audit to look for repeated ids and questions" },
        { "path", "", argument, "PATH", "", "", g_arguments, "data", "with check and split: a file; with audit: a directory or files", true },

        { "input", "", argument, "RUN|RESULTS", "", "1", g_arguments, "report",
          "folders that penelope train made, files that penelope eval --json printed or its predictions; each may be LABEL=PATH", true },
        { "with", "", argument, "B.jsonl", "", "", g_arguments, "eval", "with --compare: the file to compare with", true },

        // Model.
        { "model", "-m", text, "BASE", "", "", g_model, "run chat bench train eval export data serve",
          "backbone GGUF, or a bundle that holds everything" },
        { "sidecar", "--latent", text, "FILE", "", "", g_model, "run chat bench eval serve",
          "Penelope, Coconut or CODI sidecar trained for this backbone" },
        { "lora", "--lora-scaled", text, "FILE[:SCALE]", "", "", g_model, "run chat bench eval serve",
          "LoRA adapter, with its scale (default 1); may be repeated", true },
        { "ignore-mismatch", "", flag, "", "", "", g_model, "run chat bench eval serve",
          "run what the files speak against: a sidecar on changed weights, --cot where it was not trained for" },
        { "ctx-size", "-c", integer, "N", "0", "0..", g_model, "run chat eval serve",
          "rows of context; 0: the smaller of 4096 and the model's own" },
        { "kv-type", "-ctk --cache-type-k", choice, "TYPE", "f16", "f16|bf16|f32|q8_0", g_model, "run chat bench eval serve",
          "storage of keys and values" },
        { "no-mmap", "", flag, "", "", "", g_model, "run chat bench eval serve",
          "read the weights into memory instead of using them from the file, which may then change or shrink" },
        { "split", "", text, "LIST", "", "", g_model, "run chat bench eval serve info",
          "spread the layers over devices: CPU=10,RPC0=20 by number, CPU,RPC0 by free memory, memory over all devices" },

        // Prompt.
        { "prompt", "-p", text, "TEXT", "", "", g_prompt, "run", "the prompt; without -p, -f and --batch it is read from stdin" },
        { "prompt", "-p", text, "TEXT", "", "", g_prompt, "chat", "ask this, print the answer and leave" },
        { "file", "-f", text, "FILE", "", "", g_prompt, "run",
          "read the prompt from a file; one newline at its end is dropped" },
        { "batch", "", text, "FILE.jsonl", "", "", g_prompt, "run",
          "answer many: one {\"id\", \"prompt\"} or {\"id\", \"question\"} a line in, one JSON result a line out; - is stdin, answered as its lines come" },
        { "chat-template", "", text, "NAME|FILE", "auto", "", g_prompt, "run chat",
          "auto: the template of the sidecar's or LoRA's file, else that of an instruct model (one whose file has a chat template), else the "
          "text as it is; none: no chat template; chatml, gemma, llama2, llama3, mistral, phi3, zephyr or a Jinja file: this one in any case" },
        { "chat-template", "", text, "NAME|FILE", "auto", "", g_prompt, "serve",
          "how conversations are written. auto: as the model's file says, or a question at a time as the sidecar does; none: as questions, "
          "or not at all; chatml, gemma, llama2, llama3, mistral, phi3, zephyr or a Jinja file: this template in any case" },
        { "system", "-sys --system-prompt", text, "TEXT", "", "", g_prompt, "run chat",
          "system message at the head of what goes through a chat template" },
        { "raw", "", flag, "", "", "", g_prompt, "run chat", "no template at all: the text goes to the model as it is" },
        { "history", "", text, "FILE", "", "", g_prompt, "chat",
          "where what you type is kept for the next chat, none: nowhere (default: penelope/history below $XDG_STATE_HOME or ~/.local/state)" },
        { "cot", "", flag, "", "", "", g_prompt, "run chat",
          "answer with visible steps, using only the sidecar's LoRA" },

        { "reasoning", "-rea", choice, "WHEN", "auto", "auto|on|off", g_prompt, "run chat serve",
          "whether a model with <think> in its chat template thinks aloud before it answers; auto: as the template does by itself" },

        // Generation.
        { "latent-steps", "-K", steps, "N", "", "0..", g_generation, "run",
          "latent steps, 0 to the sidecar's k_max (default: its k_default); 0-6 or 1,3,5 answers once for each; auto stops "
          "when the trajectory has settled" },
        { "latent-steps", "-K", steps, "N", "", "0..", g_generation, "chat",
          "latent steps, 0 to the sidecar's k_max (default: its k_default); auto stops when the trajectory has settled" },
        { "latent-steps", "-K", integer, "N", "", "0..", g_generation, "serve",
          "latent steps of requests that do not say, 0 to the sidecar's k_max (default: its k_default)" },
        { "watch", "", flag, "", "", "", g_generation, "run chat",
          "show after every latent step the tokens its states are nearest to, on stderr" },
        { "predict", "-n --n-predict", integer, "N", "-1", "-1..2147483647", g_generation, "run chat serve",
          "new tokens at most; -1: until the model stops or the context is full" },
        { "temp", "--temperature", number, "T", "0", "0..", g_generation, "run serve", "temperature; 0 is greedy" },
        { "temp", "--temperature", number, "T", "", "0..", g_generation, "chat",
          "temperature; 0 is greedy (default: 0.7 where messages go through a chat template, else 0)" },
        { "top-k", "", integer, "K", "40", "0..", g_generation, "run chat serve", "sample among the K best tokens; 0: all" },
        { "top-p", "", number, "P", "0.95", "0..1", g_generation, "run chat serve",
          "sample among the best tokens that hold this much probability; 1: all" },
        { "min-p", "", number, "P", "0.05", "0..1", g_generation, "run chat serve",
          "leave out tokens below this fraction of the best one's probability; 0: none" },
        { "seed", "-s", integer, "S", "", "0..", g_generation, "run chat",
          "seed of the sampler (default: drawn at random when the temperature is above 0; -v and --json print it)" },
        { "seed", "-s", integer, "S", "", "0..", g_generation, "serve",
          "seed of requests that give none (default: drawn at random for each; replies have it)" },
        { "repeat-penalty", "", number, "R", "1", "0.001..1000", g_generation, "run chat serve",
          "make tokens the answer already has less likely: divides their logit where it is above 0, multiplies it below; 1: off" },
        { "presence-penalty", "", number, "P", "0", "-100..100", g_generation, "run chat serve",
          "taken once from the logit of every token the answer already has; 0: off" },
        { "frequency-penalty", "", number, "P", "0", "-100..100", g_generation, "run chat serve",
          "taken from it as often as the token was said; 0: off" },
        { "repeat-last-n", "", integer, "N", "64", "-1..", g_generation, "run chat serve",
          "how far back in the answer the penalties look; -1: all of it" },
        { "json-schema", "-j", text, "SCHEMA", "", "", g_generation, "run chat",
          "answer with JSON that this JSON Schema takes, {} for any JSON; docs/using.md lists the keywords that are understood" },
        { "json-schema-file", "-jf", text, "FILE", "", "", g_generation, "run chat", "the same, from a file" },
        { "grammar", "", text, "GBNF", "", "", g_generation, "run chat", "answer with a text of this grammar, in llama.cpp's notation" },
        { "grammar-file", "", text, "FILE", "", "", g_generation, "run chat", "the same, from a file" },
        { "stop", "-r --reverse-prompt", text, "TEXT", "", "", g_generation, "run chat",
          "end the answer before this text; may be repeated", true },

        // Serving.
        { "host", "", text, "ADDRESS", "127.0.0.1", "", g_serving, "serve", "address to listen on; others than this machine's own need a key" },
        { "port", "", integer, "N", "8080", "0..65535", g_serving, "serve", "port; 0: any that is free" },
        { "slots", "-np --parallel", integer, "N", "4", "1..256", g_serving, "serve", "answers written side by side; each has a context of its own" },
        { "queue", "", integer, "N", "64", "1..65536", g_serving, "serve", "answers that may wait for a slot; beyond it 503" },
        { "no-batch-invariance", "", flag, "", "", "", g_serving, "serve", "let the last digits depend on what else runs: chats keep written answers, some types go faster" },
        { "api-key", "", text, "KEY,...", "", "", g_serving, "serve", "keys that open the service; without one it is open", true },
        { "api-key-file", "", text, "FILE", "", "", g_serving, "serve", "keys, one a line" },
        { "cert", "--ssl-cert-file", text, "FILE.pem", "", "", g_serving, "serve", "certificate chain, for TLS" },
        { "key", "--ssl-key-file", text, "FILE.pem", "", "", g_serving, "serve", "private key of the certificate" },
        { "cors-origin", "", text, "ORIGIN", "", "", g_serving, "serve", "web pages of this origin may ask, * for all; may be repeated (default: none)", true },
        { "connections", "", integer, "N", "64", "1..4096", g_serving, "serve", "open connections at most; beyond it 503" },
        { "max-body", "", integer, "KIB", "1024", "1..1048576", g_serving, "serve", "largest request in KiB; beyond it 413" },
        { "request-timeout", "", integer, "SECONDS", "20", "1..3600", g_serving, "serve", "longest time for a request to arrive whole; slower clients are dropped" },
        { "timeout", "", integer, "SECONDS", "600", "1..86400", g_serving, "serve", "longest time for an answer, waiting included; beyond it 504" },

        // Output of run.
        { "json", "", flag, "", "", "", g_output, "run chat info convert quantize export data bench eval train report serve", "print JSON on stdout, errors included" },
        { "trace", "", text, "FILE.jsonl", "", "", g_output, "run",
          "write a line per latent step: norms, cosines, alpha, the top tokens of each state" },
        { "dump", "", text, "FILE.safetensors", "", "", g_output, "run",
          "write the intermediate tensors of the first prompt" },

        // Files.
        { "tensors", "", flag, "", "", "", g_output, "info", "list every tensor" },
        { "out", "-o --output", text, "OUT.gguf", "", "", g_output, "convert",
          "the file to write, or a directory to put it into under its usual name" },
        { "out", "-o --output", text, "DIR", "", "", g_output, "export",
          "the directory or file to write; a file given as a directory gets its usual name there" },
        { "as", "", choice, "KIND", "", "penelope|peft|lora|merged|bundle|hf", g_output, "export",
          "penelope: directory for PyTorch; peft: PEFT directory; lora: GGUF adapter for llama.cpp; merged: backbone with "
          "the LoRA folded in; bundle: everything in one file; hf: Hugging Face directory of the backbone" },
        { "type", "", text, "TYPE", "", "", g_output, "convert", types.c_str() },
        { "type", "", text, "TYPE", "", "", g_output, "export", "type of the weights of --as merged (default: that of the base)" },
        { "base", "", text, "BASE.gguf", "", "", g_model, "convert", "the backbone an adapter belongs to" },
        { "lora", "", text, "DIR", "", "", g_model, "convert", "PEFT directory to put into the sidecar" },
        { "tensor-type", "", text, "PATTERN=TYPE", "", "", g_output, "quantize",
          "type of the tensors whose name matches; may be repeated", true },
        { "imatrix", "", text, "TEXT.txt", "", "", g_output, "quantize",
          "protect what matters most on this text: IN reads it first, which takes its time" },
        { "allow-requantize", "", flag, "", "", "", g_output, "quantize", "quantize a file that is quantized already" },
        { "dry-run", "", flag, "", "", "", g_output, "quantize", "only say what would be written" },

        // Data.
        { "out", "-o --output", text, "DIR", "", "", g_output, "data", "the directory for train, valid and test.jsonl" },
        { "split", "", text, "SHARES", "80,10,10", "", g_data, "data", "with split: shares of train, valid and test" },
        { "seed", "-s", integer, "S", "0", "0..", g_data, "data", "seed of the generator and of split" },
        { "train", "", integer, "N", "", "0..", g_data, "data", "examples to train on (default of all three: the sizes of the paper)" },
        { "valid", "", integer, "N", "", "0..", g_data, "data", "examples to validate on" },
        { "test", "", integer, "N", "", "0..", g_data, "data", "examples to test on" },
        { "depth", "", steps, "A-B", "", "", g_data, "data", "depth of the questions (default: as in the paper)" },
        { "test-depth", "", steps, "A-B", "", "", g_data, "data", "depth of the test questions, if another" },
        { "branch", "", number, "P", "0", "0..1", g_data, "data",
          "listops: how often a digit becomes an operator of its own, beside the nested one" },
        { "operators", "", text, "LIST", "", "", g_data, "data", "listops: those to draw from, e.g. MAX,MIN,MED (default: these and SM)" },
        { "max-steps", "", integer, "N", "", "0..", g_data, "data",
          "listops: steps kept of a longer reduction (default 6)" },
        { "chains", "", integer, "N", "3", "1..52", g_data, "data", "thread: chains of edges, one of which is asked about" },
        { "min-chains", "", integer, "N", "0", "0..52", g_data, "data",
          "thread: mix easier questions to train on: half have N chains, half N to --chains (default: all have --chains)" },
        { "surface", "", choice, "NAME", "letters", "letters|words", g_data, "data", "thread: how it is told" },
        { "task", "", choice, "NAME", "", "listops|prosqa|prontoqa|thread|generic", g_data, "data",
          "with check, split and audit: treat the data as this task's (default: by the marks of its questions, else generic)" },
        { "exclude", "", text, "FILE", "", "", g_data, "data", "leave out the questions of this file; may be repeated", true },

        // Bench.
        { "shape", "", choice, "NAME", "", shapes.c_str(), g_model, "bench",
          "a backbone of this shape with random weights, instead of -m" },
        { "type", "", text, "TYPE", "Q8_0", "", g_model, "bench", "type of the weights of --shape" },
        { "prompt", "-p", integer, "N", "512", "0..16777216", g_measuring, "bench", "prompt tokens; 0 leaves the row out" },
        { "gen", "-n", integer, "N", "64", "0..16777216", g_measuring, "bench", "generated tokens; 0 leaves the row out" },
        { "methods", "", text, "LIST", "", "", g_measuring, "bench",
          "compare ways to answer, e.g. penelope:5,coconut:8,cot:69 (latent steps, or visible tokens for cot)" },
        { "interval", "", text, "S:E", "", "", g_measuring, "bench",
          "layers a Penelope with random modules repeats (default: the last third)" },
        { "phases", "", flag, "", "", "", g_measuring, "bench", "also the time without latent steps, the cost of a layer on 1, 2, 4, 8 and 16 rows, and what follows from it for latent steps" },
        { "repetitions", "-r", integer, "N", "5", "1..1000", g_measuring, "bench", "measured runs; one more to warm up" },
        { "format", "-o --output", choice, "FORMAT", "md", "md|csv|json", g_output, "bench", "form of the table" },

        // Evaluation.
        { "data", "", text, "FILE", "", "", g_data, "eval", "questions: JSON Lines, or Coconut's JSON" },
        { "task", "", choice, "NAME", "", "listops|prosqa|prontoqa|thread|generic", g_data, "eval", "how answers are read (default: as the model's file says, else by the questions, else generic: any text)" },
        { "match", "", choice, "HOW", "", "exact|number|choice", g_data, "eval",
          "generic task: compare whole answers (default), their first numbers, or which of the data's answers they begin with" },
        { "limit", "", integer, "N", "", "1..", g_data, "eval", "only the first N questions" },
        { "sidecars", "", text, "FILE", "", "", g_model, "eval", "sidecars or LoRAs of several training runs, each scored; A,B,C or repeated", true },
        { "latent-steps", "-K", steps, "N", "", "0..", g_generation, "eval", "latent steps; 0-6 scores each in one pass; auto stops when the trajectory has settled (default: the sidecar's k_default)" },
        { "cot", "", flag, "", "", "", g_generation, "eval", "answer with visible steps, using only the sidecar's LoRA" },
        { "predict", "-n --n-predict", integer, "N", "-1", "-1..1048576", g_generation, "eval", "new tokens at most; -1: 32, and 256 with visible steps" },
        { "batch-size", "", integer, "N", "8", "1..64", g_measuring, "eval", "questions side by side" },
        { "latency-samples", "", integer, "N", "16", "0..1048576", g_measuring, "eval", "questions answered once more, alone, to measure the latency; 0: none" },
        { "swap-latents", "", flag, "", "", "", g_measuring, "eval",
          "answer each question from the latent memory of another one: what is then still right owes nothing to the steps" },
        { "predictions", "", text, "FILE.jsonl", "", "", g_output, "eval", "write a line per question and K" },
        { "calibrate-halting", "", text, "OUT.gguf", "", "", g_output, "eval",
          "choose the threshold of -K auto on these questions and write a copy of the sidecar that holds it" },
        { "compare", "", text, "FILE.jsonl", "", "", g_data, "eval", "the paired difference of this file of predictions and another; a.jsonl@K=0 takes its answers at that K", true },

        { "out", "-o --output", text, "DIR", "", "", g_output, "report", "the directory for report.md and its charts" },
        { "out", "-o --output", text, "RUN", "", "", g_output, "train", "the run folder to write" },
    };
    // clang-format on
    for (const SettingRow & row : setting_table()) {
        table.push_back({ row.name, row.aliases, kind_of(row.kind), row.value, row.fallback, row.limits, row.group,
                          "train", row.help });
    }
    // clang-format off
    const std::vector<OptionRow> rest = {
        { "log-every", "", integer, "N", "10", "1..", g_output, "train", "updates between lines on stderr; on a terminal one line is kept up to date instead, unless -v is given" },
        { "resume", "", flag, "", "", "", g_output, "train", "continue the run of --out; flags not given come from its config.toml, a larger --updates makes it longer" },
        { "dry-run", "", flag, "", "", "", g_output, "train", "only say what would be trained, and what it would need" },
        { "dump-gradients", "", text, "FILE.safetensors", "", "", g_output, "train",
          "write loss and gradients of the first examples at the first stage, then stop" },

        { "force", "", flag, "", "", "", g_output, "run convert quantize export data eval train report", "replace existing files" },

        // General.
        { "threads", "-t", integer, "N", "0", "0..1024", g_general, "*", "threads; 0: the physical cores available" },
        { "device", "-dev", text, "NAME", "auto", "", g_general, "*", "where to compute, see --list-devices" },
        { "rpc", "", text, "HOST:PORT,...", "", "", g_general, "*",
          "compute on other machines that run penelope-rpc-server, as devices RPC0, ...; for trusted networks only" },
        { "list-devices", "", flag, "", "", "", g_general, "*", "list the devices and exit" },
        { "config", "", text, "FILE.toml", "", "", g_general, "*",
          "read options from a file whose keys are long flag names; flags and environment go first, include = \"FILE\" last" },
        { "color", "", choice, "WHEN", "auto", "auto|on|off", g_general, "*", "colour on terminals" },
        { "verbose", "-v", flag, "", "", "", g_general, "*", "say more on stderr" },
        { "quiet", "-q", flag, "", "", "", g_general, "*", "only errors on stderr" },
        { "help", "-h", flag, "", "", "", g_general, "*", "show this help and exit" },
        { "version", "", flag, "", "", "", g_general, "*", "show the versions of penelope, ggml and its backends and exit" },
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
        { "-ngl", "--device NAME chooses where the model runs, --split LIST spreads its layers" },
        { "--n-gpu-layers", "--device NAME chooses where the model runs, --split LIST spreads its layers" },
        { "--gpu-layers", "--device NAME chooses where the model runs, --split LIST spreads its layers" },
        { "-ts", "--split LIST spreads the layers, e.g. --split CPU=10,RPC0=20" },
        { "--tensor-split", "--split LIST spreads the layers, e.g. --split CPU=10,RPC0=20" },
        { "-sm", "--split LIST spreads the layers, e.g. --split CPU=10,RPC0=20" },
        { "--split",
          "only inference spreads layers over devices; training runs on one, and with mpirun on several machines" },
        { "-cnv", "use 'penelope chat'" },
        { "-no-cnv", "use 'penelope run'" },
        { "-i", "use 'penelope chat'" },
        { "-st", "use 'penelope chat -p TEXT'" },
        { "-ctv", "--kv-type sets the type of keys and values together" },
        { "-hf", "download the GGUF first and give it with -m" },
        { "-ub", "the batch size is chosen by the program" },
        { "-fa", "flash attention is used where it pays" },
    };
    for (const Foreign & row : foreign) {
        if (flag_text == row.flag) {
            return row.hint;
        }
    }
    return "";
}

} // namespace penelope
