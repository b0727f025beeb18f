// The commands that work on files: entry points for the program, the tests and anyone who embeds the library.
//
// Every function either leaves its complete output at the given path or throws an Error and leaves nothing; an existing
// output needs `force`. Output is read back before it appears under its name. Peak memory does not grow with the model.
#pragma once

#include "convert/file_type.h"
#include "convert/tensor_stream.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace penelope {

struct TensorResult {
    std::string          name;
    std::vector<int64_t> ne; // ggml order
    ggml_type            source;
    ggml_type            type;
    uint64_t             bytes_in;
    uint64_t             bytes_out;
};

// A tensor whose rows do not fit the blocks of the wanted type.
struct TypeFallback {
    std::string name;
    ggml_type   wanted;
    ggml_type   used;
};

struct FileResult {
    std::string               kind; // what was written: "model", "lora", "penelope", ...
    std::string               path;
    std::string               type; // name of the output type
    size_t                    n_tensors    = 0;
    uint64_t                  n_parameters = 0;
    uint64_t                  bytes_in     = 0; // of tensor data read
    uint64_t                  bytes_out    = 0; // of tensor data written
    double                    seconds      = 0;
    std::vector<TensorResult> tensors; // in the order of the file
    std::vector<TypeFallback> fallbacks;
};

// A directory becomes a GGUF file. What it holds decides what comes out:
//   config.json           a Hugging Face Llama checkpoint -> backbone
//   adapter_config.json   a PEFT LoRA (needs base_path)   -> llama.cpp LoRA
//   penelope_config.json  a Penelope directory (needs base_path; LoRA from lora_dir or its subdirectory "lora")
//                         -> sidecar
struct ConvertOptions {
    std::string               dir;
    std::string               out_path;
    std::string               type; // see file_type.h; empty: the type of the source (backbone), F32 (adapters)
    std::string               base_path;
    std::string               lora_dir;
    std::vector<TypeOverride> overrides;
    bool                      force = false;
    StreamOptions             stream;
};
FileResult convert_directory(const ConvertOptions & options);

// A GGUF file (backbone, LoRA, sidecar or bundle) with other tensor types. Going from one quantized type to another
// needs allow_requantize; going back to F32, F16 or BF16 does not. With dry_run nothing is written and the result is
// the plan.
struct QuantizeOptions {
    std::string               in_path;
    std::string               out_path;
    std::string               type;
    std::vector<TypeOverride> overrides;
    // By tensor name, one number per input: what to protect when rounding (see convert/importance_matrix.h). Empty:
    // nothing.
    std::map<std::string, std::vector<float>> importance;
    std::string                               importance_from; // the text it was measured on, for the file's metadata
    bool                                      dry_run          = false;
    bool                                      allow_requantize = false;
    bool                                      force            = false;
    StreamOptions                             stream;
};
FileResult quantize_file(const QuantizeOptions & options);

// A GGUF file leaves for another format. `as` says what comes out:
//   penelope  a Penelope directory (and lora/ with a PEFT adapter), from a sidecar or bundle
//   peft      a PEFT directory, from anything with LoRA pairs
//   lora      a llama.cpp LoRA GGUF, from a sidecar or bundle
//   merged    the backbone with the LoRA folded in, GGUF
//   bundle    backbone and sidecar in one GGUF that runs alone
//   hf        a Hugging Face checkpoint in F32, from a backbone
// base_path is needed for peft, penelope with LoRA pairs, merged and bundle, unless the input is a bundle itself.
struct ExportOptions {
    std::string   in_path;
    std::string   out_path;
    std::string   as;
    std::string   base_path;
    std::string   type; // merged only; empty: each tensor keeps the type it has in the base
    bool          force = false;
    StreamOptions stream;
};
FileResult export_sidecar(const ExportOptions & options);

} // namespace penelope
