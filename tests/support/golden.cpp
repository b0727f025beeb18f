#include "support/golden.h"

#include <fstream>

namespace penelope::test {

GoldenCase::GoldenCase(const std::string & name)
    : source_(std::filesystem::path(PENELOPE_TEST_DIR) / "golden" / name),
      json_(read_json_file((source_ / "expected.json").string())),
      expected_(SafetensorsReader::open((source_ / "expected.safetensors").string())) {}

std::string GoldenCase::backbone() const {
    return once("backbone.gguf", [&](ConvertOptions & options) { options.dir = source("model"); });
}

std::string GoldenCase::lora() const {
    return once("lora.gguf", [&](ConvertOptions & options) {
        options.dir       = source("lora");
        options.base_path = backbone();
    });
}

std::string GoldenCase::sidecar() const {
    return once("sidecar.gguf", [&](ConvertOptions & options) {
        options.dir       = source("penelope");
        options.lora_dir  = source("lora");
        options.base_path = backbone();
    });
}

std::string GoldenCase::coconut_sidecar() const {
    return baseline("coconut", Json::object());
}

std::string GoldenCase::codi_sidecar() const {
    return baseline("codi", { { "projection_length", 48 }, { "answer_prefix", "The answer is: " } });
}

size_t GoldenCase::n_examples() const {
    return json_["examples"].size();
}

std::string GoldenCase::prompt(size_t example) const {
    return json_["examples"].at(example)["prompt"];
}

std::vector<int32_t> GoldenCase::prompt_ids(size_t example) const {
    return json_["examples"].at(example)["prompt_ids"];
}

std::vector<int32_t> GoldenCase::target_ids(size_t example) const {
    return json_["examples"].at(example)["target_ids"];
}

std::vector<int32_t> GoldenCase::greedy(int n_steps, size_t example) const {
    return json_["greedy"].at("K" + std::to_string(n_steps) + ".ex" + std::to_string(example));
}

int GoldenCase::layer_applications(int n_steps) const {
    return json_["layer_applications"].at(std::to_string(n_steps));
}

GoldenRecipe GoldenCase::recipe() const {
    const Json & train = json_["train"];
    GoldenRecipe recipe;
    recipe.n_steps      = train["K"];
    recipe.n_updates    = train["updates"];
    recipe.lora_lr      = train["lora_rate"];
    recipe.module_lr    = train["module_rate"];
    recipe.clip         = train["clip"];
    recipe.losses       = train["losses"].get<std::vector<double>>();
    recipe.norms        = train["grad_norms"].get<std::vector<double>>();
    recipe.rate_factors = train["rate_factor"].get<std::vector<double>>();
    return recipe;
}

// The tensors of the method in <method>.safetensors as a directory, converted.
std::string GoldenCase::baseline(const std::string & method, const Json & own_fields) const {
    return once(method + ".gguf", [&](ConvertOptions & options) {
        const auto        all = SafetensorsReader::open(source(method + ".safetensors"));
        const std::string dir = file(method);
        std::filesystem::create_directory(dir);
        std::vector<const SafetensorsTensor *> tensors;
        SafetensorsWriter                      writer(dir + "/penelope.safetensors", false);
        for (const SafetensorsTensor & tensor : all.tensors()) {
            if (tensor.name.compare(0, method.size() + 1, method + ".") == 0) {
                writer.add_tensor(tensor.name, tensor.type, tensor.shape);
                tensors.push_back(&tensor);
            }
        }
        writer.begin_data();
        for (const SafetensorsTensor * tensor : tensors) {
            writer.write(tensor->data, tensor->size);
        }
        writer.finish();
        Json config = {
            { "version", 1 }, { "method", method }, { "k_max", 8 }, { "k_default", 3 }, { "task", "golden" }
        };
        config.update(own_fields);
        std::ofstream(dir + "/penelope_config.json") << dump_json(config);
        options.dir       = dir;
        options.lora_dir  = source("lora");
        options.base_path = backbone();
    });
}

std::string GoldenCase::once(const std::string &                                   name,
                             const std::function<void(ConvertOptions & options)> & fill) const {
    ConvertOptions options;
    options.out_path = file(name);
    options.type     = "F32";
    if (!std::filesystem::exists(options.out_path)) {
        fill(options);
        convert_directory(options);
    }
    return options.out_path;
}

} // namespace penelope::test
