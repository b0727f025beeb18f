#include "commands.h"

namespace penelope {

// Each is defined in the file of its name.
int cmd_run(const Options & options, Terminal & terminal);
int cmd_chat(const Options & options, Terminal & terminal);
int cmd_serve(const Options & options, Terminal & terminal);
int cmd_pull(const Options & options, Terminal & terminal);
int cmd_list(const Options & options, Terminal & terminal);
int cmd_rm(const Options & options, Terminal & terminal);
int cmd_info(const Options & options, Terminal & terminal);
int cmd_convert(const Options & options, Terminal & terminal);
int cmd_quantize(const Options & options, Terminal & terminal);
int cmd_export(const Options & options, Terminal & terminal);
int cmd_data(const Options & options, Terminal & terminal);
int cmd_bench(const Options & options, Terminal & terminal);
int cmd_eval(const Options & options, Terminal & terminal);
int cmd_learn(const Options & options, Terminal & terminal);
int cmd_train(const Options & options, Terminal & terminal);
int cmd_report(const Options & options, Terminal & terminal);

const std::vector<Command> & command_table() {
    static const std::vector<Command> table = {
        { "run", "Answer one prompt, or many",
          "-m BASE [--sidecar FILE] [options] [-p TEXT | -f FILE | --batch FILE.jsonl | < TEXT]",
          "The answer is streamed to stdout, everything else goes to stderr. With a sidecar the prompt is put into\n"
          "the sidecar's prompt template and processed in K latent steps. Without one the model's chat template is\n"
          "used, if it has one.\n",
          "penelope run -m base.gguf -p \"The capital of France is\" -n 16\n"
          "penelope run -m instruct.gguf -p \"Who wrote Faust?\" --json-schema '{\"type\": \"string\"}'\n"
          "penelope run -m base.gguf --sidecar listops.gguf -K 5 -p \"Evaluate: [MAX 3 [MIN 4 7] 2]\"\n"
          "penelope run -m base.gguf --sidecar listops.gguf --batch test.jsonl > answers.jsonl\n",
          cmd_run },
        { "chat", "Talk to a model", "-m BASE [--sidecar FILE] [options] [-p TEXT]",
          "Without a sidecar the model sees the whole conversation in its own chat template; with one, or with\n"
          "--raw, every message is a separate question. Ctrl-C stops an answer, twice exits; Ctrl-D exits. /help\n"
          "lists the commands. When the context is full, the oldest turns are dropped. Input may be a pipe.\n",
          "penelope chat -m SmolLM2-135M-Instruct.Q4_1.gguf -sys \"You are brief.\"\n"
          "penelope chat -m base.gguf --sidecar listops.gguf -K 5\n"
          "penelope chat -m SmolLM2-135M-Instruct.Q4_1.gguf -p \"What is the capital of France?\"\n",
          cmd_chat },
        { "serve", "Serve an OpenAI-compatible API over HTTP",
          "[-m BASE [--sidecar FILE]] [--host 127.0.0.1] [--port 8080] [--slots N] [--api-key KEY]",
          "Without -m the bundled demo model. Requests take latent_steps, reasoning_effort, latent_trace and cot in\n"
          "addition to the usual fields; / is a web page to try it. Ctrl-C or SIGTERM lets running answers finish,\n"
          "a second Ctrl-C stops them.\n",
          "penelope serve\n"
          "penelope serve -m base.gguf --sidecar listops.gguf --port 9000 --slots 8\n"
          "penelope serve -m base.gguf --host 0.0.0.0 --api-key-file keys.txt --cert server.pem --key server.key\n",
          cmd_serve },
        { "pull", "Download a model or sidecar by name", "USER/REPO[:QUANT] ...",
          "Prints the path of the file; -hf USER/REPO[:QUANT] uses it by name. An interrupted download goes on where "
          "it\n"
          "stopped, and every file is checked against the hub's checksum. The cache is that of huggingface_hub and\n"
          "llama.cpp: HF_HUB_CACHE, or hub in HF_HOME (default ~/.cache/huggingface). HF_ENDPOINT names another hub.\n",
          "penelope pull ggml-org/SmolLM2-135M-Instruct-GGUF:Q8_0\n"
          "penelope run -hf ggml-org/SmolLM2-135M-Instruct-GGUF:Q8_0 -p \"Who wrote Faust?\"\n",
          cmd_pull },
        { "list", "List the models that are downloaded", "",
          "Every GGUF file in the cache, with the name -hf takes, its size and when it was last used.\n", "",
          cmd_list },
        { "rm", "Remove downloaded models", "USER/REPO[:QUANT] ...",
          "Removes the files without asking and says how much space they took. Files other than GGUF stay.\n",
          "penelope rm ggml-org/SmolLM2-135M-Instruct-GGUF:Q8_0\n", cmd_rm },
        { "info", "Show what a file is, what it fits and how much memory it needs",
          "FILE [--tensors]\n-hf USER/REPO[:QUANT] [--tensors]",
          "Backbones, LoRAs, sidecars and bundles; with --tensors every tensor too.\n",
          "penelope info model.gguf\n"
          "penelope info sidecar.gguf --json\n",
          cmd_info },
        { "convert", "Turn a directory into a GGUF file", "DIR -o OUT.gguf [--type T] [--base BASE.gguf] [--lora DIR]",
          "The output depends on the directory: config.json gives a backbone, adapter_config.json a LoRA (needs\n"
          "--base), penelope_config.json a sidecar (needs --base, takes --lora).\n",
          "penelope convert Llama-3.2-1B-Instruct -o llama-1b.gguf --type Q8_0\n"
          "penelope convert run/penelope --base llama-1b.gguf --lora run/lora -o sidecar.gguf\n",
          cmd_convert },
        { "quantize", "Write a model or adapter in another type",
          "IN OUT TYPE [--tensor-type PATTERN=TYPE] [--dry-run]\nSIDECAR OUT",
          "Backbones, LoRAs, sidecars and bundles. Each tensor takes the type llama.cpp would give it; in a sidecar\n"
          "norms, biases, step rows and the time network stay F32, and TYPE is Q8_0 unless given.\n",
          "penelope quantize llama-1b-f32.gguf llama-1b-q4.gguf Q4_K_M\n"
          "penelope quantize base.gguf small.gguf Q4_0 --tensor-type attn_v=q8_0 --dry-run\n",
          cmd_quantize },
        { "export", "Convert a GGUF file for PyTorch or llama.cpp",
          "SIDECAR -o OUT --as penelope|peft|lora|merged|bundle [-m BASE]\nBASE -o DIR --as hf",
          "penelope, peft and hf write directories PyTorch reads; lora an adapter llama.cpp loads; merged the\n"
          "backbone with the LoRA merged; bundle one file that runs alone. All but lora and hf need -m BASE.\n",
          "penelope export listops.gguf -m base.gguf -o listops-bundle.gguf --as bundle\n"
          "penelope export listops.gguf -o listops-lora.gguf --as lora\n",
          cmd_export },
        { "data", "Make the data of a task; check, split or audit your own",
          "listops|prosqa|prontoqa|thread --out DIR [--seed S] [--train N --valid N --test N]\n"
          "check FILE [-m BASE]\nsplit FILE --out DIR [--split 80,10,10]\naudit DIR | FILES",
          "Writes train.jsonl, valid.jsonl, test.jsonl and audit.json. The same seed gives the same files\n"
          "everywhere; no question occurs twice, in a file or across files. check describes a file of your own,\n"
          "split divides it into train, valid and test, audit looks for duplicates.\n",
          "penelope data listops --out data/listops --seed 1\n"
          "penelope data check my.jsonl -m base.gguf\n"
          "penelope data split my.jsonl --out data/mine\n"
          "penelope data audit data/listops\n",
          cmd_data },
        { "learn", "Train, score and judge a model on your own examples, in one command",
          "FILE|DIR -m BASE [--out RUN] [--time 60m]\nFILE|DIR --from-scratch tiny|small [--out RUN] [--time 60m]",
          "Checks and splits the data, measures a few updates, prints what it will train, how much memory and how\n"
          "long it takes, then trains written steps, latent steps and a control, scores them on questions never\n"
          "trained on, and ends with a verdict: RUN/model.gguf is the better file, RUN/report.html shows it.\n"
          "Ctrl-C saves and exits with 130; the same command goes on.\n",
          "penelope learn riddles.jsonl -m base.gguf\n"
          "penelope learn riddles.jsonl -m base.gguf --out runs/riddles --time 2h\n"
          "penelope learn data/thread --from-scratch tiny --time 20m\n",
          cmd_learn },
        { "train", "Train visible or latent reasoning",
          "-m BASE --method cot|penelope|coconut|codi --data DIR --out RUN [--init FILE] [options]\n"
          "--init-random SHAPE.toml --full --method cot --data DIR --out RUN [options]\n"
          "--resume --out RUN",
          "Run --method cot first; the latent methods start from its LoRA with --init. The run folder gets\n"
          "config.toml, metrics.jsonl, checkpoints and model.gguf: a LoRA, a sidecar or, with --full, a backbone.\n"
          "Ctrl-C finishes the update, saves and exits with 130; --resume continues exactly where it stopped.\n",
          "penelope train -m base.gguf --method cot --data data/listops --out runs/cot\n"
          "penelope train -m base.gguf --method penelope --init runs/cot/model.gguf --data data/listops --out "
          "runs/latent\n"
          "penelope train --resume --out runs/latent\n",
          cmd_train },
        { "eval", "Evaluate a model on the questions of a task",
          "-m BASE [--sidecar FILE] --data FILE [-K 0-6] [--limit N] [--predictions FILE.jsonl]\n"
          "-m BASE --sidecars A,B,C --data FILE [-K N]\n"
          "--compare A.jsonl B.jsonl [-K N]",
          "Exact match, parse rate, output tokens, latency and layer applications per K, and baselines. Latency is\n"
          "measured one question at a time, without loading and tokenizing. Several runs: mean and standard\n"
          "deviation, each at its default K. --compare gives the paired difference in exact match with a 95 %\n"
          "bootstrap interval over the questions, each file at its own K or both at -K.\n",
          "penelope eval -m base.gguf --sidecar listops.gguf --data test.jsonl -K 0-6\n"
          "penelope eval --compare k0.jsonl k5.jsonl\n",
          cmd_eval },
        { "report", "Show training runs and results in tables and charts", "RUN|RESULTS... -o DIR",
          "Writes report.md and SVG charts: loss and exact match over the updates of the runs; exact match, output\n"
          "tokens, latency and layer applications of the results, one row a label. Results under one label are\n"
          "repetitions with other seeds: the table gives their mean and standard deviation.\n",
          "penelope report runs/cot runs/latent -o report\n"
          "penelope eval -m base.gguf --sidecars a.gguf,b.gguf,c.gguf --data test.jsonl -K 0-6 --json > penelope.json\n"
          "penelope report \"Visible CoT=cot.json\" Penelope=penelope.json -o report\n",
          cmd_report },
        { "bench", "Measure the speed of prefill, latent steps and decoding",
          "-m BASE [--sidecar FILE] [options]\n--shape NAME --type T [options]",
          "ppN: prefill of N tokens, tgN: decoding of N tokens. With --methods: latent is everything before the\n"
          "first answer token, answer the whole answer, by default for 60 prompt and 4 answer tokens. Methods take\n"
          "turns; a method no file brings runs on random modules. Tokenizing and sampling are not measured.\n",
          "penelope bench -m SmolLM2-135M-Instruct.Q4_1.gguf -t 2\n"
          "penelope bench --shape llama-3.2-1b --type Q8_0 --methods penelope:5,coconut:8,cot:69 --phases\n",
          cmd_bench },
    };
    return table;
}

const Command * find_command(std::string_view name) {
    for (const Command & command : command_table()) {
        if (name == command.name) {
            return &command;
        }
    }
    return nullptr;
}

} // namespace penelope
