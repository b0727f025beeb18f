#include "model_names.h"

#include "base/format.h"
#include "base/hub_path.h"
#include "gguf/reader.h"
#include "hub_session.h"
#include "sidecar/sidecar.h"

#include <iostream>

namespace penelope {

namespace {

bool is_given(const Options & options, const char * name) {
    return has_option(options.command(), name) && options.given(name);
}

// Which option or argument of the command takes the path of the model.
const char * model_option(const std::string & command) {
    return command == "info" ? "file" : command == "quantize" ? "in" : command == "convert" ? "base" : "model";
}

// The same for the path of a sidecar.
const char * sidecar_option(const std::string & command) {
    return command == "export" ? "file" : "sidecar";
}

// True if the name counts; a path of higher precedence (flag over environment over config file) hides it.
bool name_counts(const Options & options, const char * name, const char * path) {
    if (!is_given(options, name)) {
        return false;
    }
    if (options.given(path) && options.source(path) == options.source(name)) {
        throw UsageError("--" + std::string(name) + " and " + options.text(path) + ": exclude each other",
                         "give a name or a file");
    }
    return !options.given(path) || options.source(path) < options.source(name);
}

bool ask(Terminal & terminal, const std::string & question) {
    terminal.aside(question + " [Y/n] ");
    std::string answer;
    if (!std::getline(std::cin, answer)) {
        return false;
    }
    return answer.empty() || answer[0] == 'y' || answer[0] == 'Y';
}

// The backbone a sidecar was trained on, downloaded after asking.
std::string backbone_of(const std::string & sidecar, const std::string & name, const Options & options,
                        const HubSession & hub, Terminal & terminal) {
    const BaseInfo    base   = read_sidecar_config(GgufReader::open(sidecar)).base;
    const std::string prefix = "penelope " + options.command();
    if (!is_repo_id(base.repo) || base.file.empty()) {
        throw Error(ErrorKind::not_found,
                    name + ": is a sidecar for " + in_quotes(base.name) + " and does not say where its backbone is",
                    prefix + " -m BACKBONE.gguf --sidecar-hf " + name);
    }
    const RepoName    wanted{ base.repo, base.file };
    const FetchPlan   plan = hub.plan(wanted);
    const std::string what = repo_name_text(wanted) + " (" + format_bytes(plan.bytes_missing()) + ")";
    if (!plan.missing.empty() && !options.flag("yes")) {
        if (!terminal.in_is_tty() || !terminal.err_is_tty()) {
            throw Error(ErrorKind::not_found, name + ": is a sidecar, and its backbone " + what + " is not downloaded",
                        "add --yes, or: " + prefix + " -hf " + repo_name_text(wanted) + " --sidecar-hf " + name);
        }
        if (!ask(terminal, name + " is a sidecar. Download its backbone " + what + "?")) {
            throw Error(ErrorKind::not_found, name + ": its backbone was not downloaded",
                        prefix + " -m BACKBONE.gguf --sidecar-hf " + name + " uses a file you have");
        }
    }
    return hub.fetch(plan);
}

// quantize -hf NAME OUT TYPE: the arguments move up.
void shift_arguments(const Options & options, Options & out) {
    if (options.given("type")) {
        throw UsageError("--hf-repo and " + options.text("in") + ": exclude each other",
                         "penelope quantize -hf USER/REPO[:QUANT] OUT TYPE");
    }
    if (options.given("target")) {
        out.replace("type", options.text("target"));
    }
    out.replace("target", options.required("in"));
}

void set_model(const std::string & name, const std::string & path, const Options & options, const HubSession & hub,
               Terminal & terminal, Options & out) {
    const bool takes_sidecar = has_option(options.command(), "sidecar");
    if (takes_sidecar && is_sidecar(GgufReader::open(path))) {
        if (out.given("sidecar")) {
            throw UsageError("--hf-repo " + name + ": is a sidecar, and another one is given",
                             "-hf takes the backbone beside --sidecar or --sidecar-hf");
        }
        out.replace("sidecar", path);
        out.replace("model", backbone_of(path, name, options, hub, terminal));
        return;
    }
    out.replace(model_option(options.command()), path);
}

} // namespace

Options with_named_models(const Options & options, Terminal & terminal) {
    const char * command     = options.command().c_str();
    const bool   has_names   = has_option(command, "hf-repo");
    const bool   is_quantize = options.command() == "quantize"; // its arguments say what a name leaves out
    const bool   use_model =
        has_names && (is_quantize ? options.given("hf-repo") : name_counts(options, "hf-repo", model_option(command)));
    const bool use_sidecar =
        has_option(command, "sidecar-hf") && name_counts(options, "sidecar-hf", sidecar_option(command));
    if (is_given(options, "hf-file") && !is_given(options, "hf-repo")) {
        throw UsageError("--hf-file: needs the repository", "give it with -hf USER/REPO");
    }
    if (!use_model && !use_sidecar) {
        return options;
    }
    Options out = options;
    if (is_quantize) {
        shift_arguments(options, out);
    }
    const HubSession hub(options, terminal);
    if (use_sidecar) {
        const RepoName    name = parse_repo_name(options.text("sidecar-hf"), "--sidecar-hf");
        const std::string path = hub.fetch(name);
        if (!is_sidecar(GgufReader::open(path))) {
            throw UsageError("--sidecar-hf " + repo_name_text(name) + ": is not a sidecar",
                             "'penelope info " + path + "' shows what it is");
        }
        out.replace(sidecar_option(command), path);
    }
    if (use_model) {
        RepoName name = parse_repo_name(options.text("hf-repo"), "--hf-repo");
        if (options.given("hf-file")) {
            name.choice = options.text("hf-file");
        }
        set_model(repo_name_text(name), hub.fetch(name), options, hub, terminal, out);
    }
    return out;
}

} // namespace penelope
