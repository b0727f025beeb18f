#include "convert/convert.h"

#include "base/error.h"
#include "base/format.h"
#include "convert/convert_model.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>

namespace penelope {

namespace fs = std::filesystem;

void record_tensor(FileResult & result, const TensorJob & job, const TypeChoice & choice, ggml_type source,
                   size_t bytes_in) {
    result.tensors.push_back({ job.name, job.ne, source, choice.type, bytes_in, job.size() });
    if (choice.type != choice.wanted) {
        result.fallbacks.push_back({ job.name, choice.wanted, choice.type });
    }
    result.n_tensors++;
    result.n_parameters += uint64_t(job.n_rows() * job.ne[0]);
    result.bytes_in += bytes_in;
    result.bytes_out += job.size();
}

std::string most_frequent_type(const FileResult & result) {
    std::map<ggml_type, int64_t> n_elements;
    for (const TensorResult & tensor : result.tensors) {
        n_elements[tensor.type] += std::accumulate(tensor.ne.begin(), tensor.ne.end(), int64_t(1), std::multiplies<>());
    }
    const auto most = std::max_element(n_elements.begin(), n_elements.end(),
                                       [](const auto & a, const auto & b) { return a.second < b.second; });
    return most == n_elements.end() ? "" : to_upper(ggml_type_name(most->first));
}

FileResult convert_directory(const ConvertOptions & options) {
    const auto     start = std::chrono::steady_clock::now();
    const fs::path dir   = options.dir;
    if (!fs::is_directory(dir)) {
        const bool exists = fs::exists(dir);
        throw Error(exists ? ErrorKind::usage : ErrorKind::not_found,
                    options.dir + (exists ? ": is not a directory" : ": no such directory"),
                    "convert takes the directory of a model or adapter");
    }
    FileResult result;
    if (fs::exists(dir / "penelope_config.json")) {
        result = convert_penelope(options);
    } else if (fs::exists(dir / "adapter_config.json")) {
        result = convert_lora(options);
    } else if (fs::exists(dir / "config.json")) {
        result = convert_model(options);
    } else {
        throw Error(ErrorKind::unsupported,
                    options.dir + ": has none of config.json, adapter_config.json, penelope_config.json",
                    "convert takes a Hugging Face model, a PEFT LoRA or a Penelope directory");
    }
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

} // namespace penelope
