// A tiny model for targets that mutate one of its files and decode a token.
#pragma once

#include "infer/engine.h"

#include <string>
#include <vector>

namespace penelope::fuzz {

// Paths of files made on the first call, about 60 kB each: one or two layers of width 32, the block size of most types,
// and a byte-level vocabulary. The Llama also has a matrix of width 256, the block size of all other types.
std::string tiny_backbone(const std::string & architecture = "llama");
std::string tiny_sidecar(const std::string & method = "penelope"); // of the Llama; two latent steps, with a LoRA pair
std::string tiny_lora();

// All that there are.
std::vector<std::string> tiny_backbones();
std::vector<std::string> tiny_sidecars();

// Each of these files through `export --as` a kind of directory; the paths of those.
std::vector<std::string> exported(const std::vector<std::string> & files, const std::string & as,
                                  const std::string & base = "");

void compute_a_token(const LoadOptions & load);

// What the program does with a file beside running it: `info`, and `quantize` to any other type.
void describe_and_quantize(const std::string & path);
// `export --as` into a form that needs the base: merged, peft, penelope.
void export_beside_base(const std::string & path, const std::string & as);

} // namespace penelope::fuzz
