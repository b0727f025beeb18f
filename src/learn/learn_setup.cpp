#include "learn/learn_setup.h"

#include "base/error.h"
#include "base/format.h"
#include "base/sha256.h"
#include "gguf/reader.h"
#include "train/random_backbone.h"

#include <filesystem>

namespace penelope {

namespace fs = std::filesystem;

namespace {

int64_t count_parameters(const GgufReader & file) {
    int64_t n = 0;
    for (const GgufTensor & tensor : file.tensors()) {
        int64_t size = 1;
        for (int64_t ne : tensor.ne) {
            size *= ne;
        }
        n += size;
    }
    return n;
}

OrderedJson recorded_options(const LearnOptions & o, const std::string & data_sum) {
    return { { "the data", data_sum },
             { "the base model", o.base.empty() ? "" : sha256_file(o.base) },
             { "--from-scratch", o.from_scratch },
             { "--time", format_duration(1000 * o.seconds) },
             { "--protocol", o.is_paper ? "paper" : "" },
             { "--no-latent", o.with_latent ? "" : "given" },
             { "--no-control", o.with_control ? "" : "given" },
             { "--seed", std::to_string(o.seed) } };
}

// A new folder, or one with the same run. learn.json is written first, so that what follows can be told from files of
// something else.
void open_folder(LearnSetup & setup, const LearnOptions & options, const OrderedJson & recorded) {
    std::error_code error;
    fs::create_directories(options.out, error);
    if (error) {
        throw Error(ErrorKind::io, options.out + ": cannot create directory: " + error.message());
    }
    setup.lock = DirectoryLock(options.out);
    const RunFiles files(options.out, "", true, false);
    if (options.force) {
        files.remove_all();
    }
    if (fs::exists(files.state())) {
        setup.state = read_learn_state(files.state());
        check_same_options(setup.state.options, recorded, options.out);
        return;
    }
    if (!fs::is_empty(options.out)) {
        throw Error(ErrorKind::io, options.out + ": has files of something else",
                    "choose another --out, or replace the run in it with --force");
    }
    setup.state.options = recorded;
    write_learn_state(setup.state, files.state());
}

// A backbone of this shape with a context for the longest example.
void write_new_backbone(const LearnSetup & setup, const RandomBackbone & wanted, const TokenizerData & vocabulary,
                        const std::string & path) {
    RandomBackbone shape     = wanted;
    shape.config.n_ctx_train = scratch_context(setup.facts);
    if (!fs::exists(path)) {
        write_random_backbone(shape, setup.options.seed, path, vocabulary);
    }
}

void drop_what_is_too_long(LearnSetup & setup, const Tokenizer & tokenizer, int n_context) {
    const size_t n_long = drop_longer(setup.data, tokenizer, size_t(n_context));
    if (n_long > 0) {
        setup.notes.push_back(std::to_string(n_long) + " examples left out: they do not fit the context of " +
                              std::to_string(n_context) + " tokens");
    }
}

} // namespace

LearnSetup open_learn_run(const LearnOptions & options) {
    LearnSetup setup;
    setup.options                   = options;
    setup.data                      = read_learn_data(options.data, options.seed);
    const std::string no_latent_why = options.with_latent ? no_steps_reason(setup.data) : "--no-latent was given";
    if (!no_latent_why.empty()) {
        setup.options.with_latent = setup.options.with_control = false;
        setup.notes.push_back("no latent steps are trained: " + no_latent_why);
    }
    if (setup.data.n_leaks > 0) {
        setup.notes.push_back(std::to_string(setup.data.n_leaks) +
                              " training examples left out: valid or test asks the same questions");
    }
    const OrderedJson recorded = recorded_options(options, setup.data.sum);
    std::string       base     = options.base;
    const bool        is_new   = !options.from_scratch.empty();
    if (is_new) {
        const RandomBackbone shape      = scratch_shape(options.from_scratch, mean_bytes(setup.data.parts.train));
        const TokenizerData  vocabulary = backbone_vocabulary(shape, setup.data.parts.train);
        setup.facts                     = data_facts(setup.data, Tokenizer(vocabulary));
        open_folder(setup, options, recorded);
        base = RunFiles(options.out, "", true, false).new_backbone();
        write_new_backbone(setup, shape, vocabulary, base);
    }
    const GgufReader  file   = GgufReader::open(base);
    const ModelConfig config = read_model_config(file);
    setup.model              = { config.n_layer, config.n_embd, count_parameters(file), is_new };
    if (!is_new) {
        const Tokenizer tokenizer = Tokenizer::from_gguf(file);
        drop_what_is_too_long(setup, tokenizer, config.n_ctx_train);
        setup.facts = data_facts(setup.data, tokenizer);
        open_folder(setup, options, recorded);
    }
    RecipeInput input;
    input.model = setup.model;
    input.data  = setup.facts;
    setup.files = std::make_unique<RunFiles>(options.out, base, recipe_settings(input).model.full,
                                             has_bridge(setup.model, setup.facts) && !options.is_paper);
    write_learn_data(setup.data, setup.files->data());
    return setup;
}

} // namespace penelope
