// penelope quantize: the same model in fewer bits.
#include "commands.h"
#include "file_commands.h"
#include "gguf/reader.h"
#include "latent/sidecar.h"

namespace penelope {

namespace {

constexpr const char * sidecar_type = "Q8_0"; // unless another is asked for

TypeOverride parse_override(const std::string & text) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
        throw UsageError("--tensor-type: '" + text + "' is not PATTERN=TYPE", "e.g. --tensor-type attn_v=q8_0");
    }
    return { text.substr(0, equals), parse_tensor_type(text.substr(equals + 1)) };
}

} // namespace

int cmd_quantize(const Options & options, Terminal & terminal) {
    QuantizeOptions quantize;
    quantize.in_path          = options.required("in");
    quantize.out_path         = options.required("target");
    quantize.type             = !options.given("type") && is_sidecar(GgufReader::open(quantize.in_path)) ? sidecar_type
                                                                                                         : options.required("type");
    quantize.dry_run          = options.flag("dry-run");
    quantize.allow_requantize = options.flag("allow-requantize");
    quantize.force            = options.flag("force");
    quantize.stream           = stream_options(options, terminal);
    for (const std::string & text : options.list("tensor-type")) {
        quantize.overrides.push_back(parse_override(text));
    }

    const InterruptHold hold(InterruptHold::all_signals);
    report_file(quantize_file(quantize), options, terminal, quantize.dry_run);
    return 0;
}

} // namespace penelope
