// penelope quantize: writes a model or adapter in another type.
#include "base/trim.h"
#include "commands.h"
#include "convert/importance_matrix.h"
#include "file_commands.h"
#include "gguf/keys.h"
#include "gguf/reader.h"
#include "prompt_input.h"
#include "sidecar/sidecar.h"
#include "text/tokenizer.h"

#include <filesystem>

namespace penelope {

namespace {

constexpr const char * sidecar_type = "Q8_0"; // default type of sidecars

TypeOverride parse_override(const std::string & text) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
        throw UsageError("--tensor-type: '" + text + "' is not PATTERN=TYPE", "e.g. --tensor-type attn_v=q8_0");
    }
    return { text.substr(0, equals), parse_tensor_type(text.substr(equals + 1)) };
}

// Importance matrix of the backbone on a text.
ImportanceMatrix importance_on(const std::string & text_path, const std::string & backbone, const Options & options,
                               Terminal & terminal) {
    if (GgufReader::open(backbone).find_str(keys::adapter_type)) {
        throw UsageError("--imatrix: " + backbone + " is not a backbone", "adapters are too small to need it");
    }
    const std::string text = read_text(text_path);
    if (is_blank(text)) {
        throw UsageError("--imatrix: " + text_path + " is empty", "give a text of the kind the model will see");
    }
    LoadOptions load;
    load.base                = backbone;
    load.repack              = false; // activations are collected from plain ggml products
    const auto        engine = Engine::load(load);
    const auto        tokens = engine->tokenizer().encode(text, { true, false });
    ImportanceOptions measuring;
    measuring.n_threads = static_cast<int>(options.integer("threads"));
    measuring.cancelled = [] { return interrupt_count() > 0; };
    measuring.progress  = [&](size_t done) {
        if (terminal.err_is_tty() && !terminal.quiet()) {
            terminal.progress("importance: " + std::to_string(done) + "/" + std::to_string(tokens.size()) + " tokens");
        }
    };
    const ImportanceMatrix importance = compute_imatrix(*engine, tokens, measuring);
    terminal.progress("");
    return importance;
}

} // namespace

int cmd_quantize(const Options & options, Terminal & terminal) {
    QuantizeOptions quantize;
    quantize.in_path          = options.required("in");
    quantize.out_path         = options.required("target");
    const bool default_type   = !options.given("type") && is_sidecar(GgufReader::open(quantize.in_path));
    quantize.type             = default_type ? sidecar_type : options.required("type");
    quantize.dry_run          = options.flag("dry-run");
    quantize.allow_requantize = options.flag("allow-requantize");
    quantize.force            = options.flag("force");
    quantize.stream           = stream_options(options, terminal);
    for (const std::string & text : options.list("tensor-type")) {
        quantize.overrides.push_back(parse_override(text));
    }

    const InterruptDeferral hold(InterruptDeferral::all_signals);
    if (options.given("imatrix")) {
        quantize.importance_from = std::filesystem::path(options.text("imatrix")).filename().string();
        quantize.importance      = importance_on(options.text("imatrix"), quantize.in_path, options, terminal);
    }
    report_file(quantize_file(quantize), options, terminal, quantize.dry_run);
    return 0;
}

} // namespace penelope
