// A loaded model: backbone weights, adapters, tokenizer and, when a sidecar is given, the modules of its latent method.
// Const after load() and shared by any number of sessions on any number of threads.
#pragma once

#include "base/mapped_file.h"
#include "model/layer_split.h"

#include <memory>
#include <string>
#include <vector>

namespace penelope {

class Tokenizer;
class Method;
struct Backbone;
struct ModelConfig;
struct SidecarConfig;
struct PromptFormat;

struct LoraFile {
    std::string path;
    float       scale = 1.0f;
    ByteView    bytes; // see LoadOptions::base_bytes
};

struct LoadOptions {
    std::string base;    // backbone GGUF or a bundle
    std::string sidecar; // empty: none
    // The files in memory, used in place for as long as the engine lives; the paths above are then names for messages.
    ByteView              base_bytes, sidecar_bytes;
    std::vector<LoraFile> loras;
    std::string           device = "auto";
    std::string           split; // spreads the layers over several devices, see model/layer_split.h; empty: one device
    bool                  repack = true;  // copy weights into the CPU's faster layouts where it has one
    bool ignore_mismatch         = false; // only warn when the base's weights are not those the sidecar was trained on
    bool use_mmap                = true;  // use weights from the file's map; else they are read into memory
};

class Engine {
  public:
    // Reads and checks the files, places the weights. Throws Error for every defect of a file and when memory is short.
    static std::shared_ptr<const Engine> load(const LoadOptions & options);
    ~Engine();

    const DeviceInfo &    device() const; // the first, when there are several
    const LayerSplit &    split() const;
    const ModelConfig &   config() const;
    const Tokenizer &     tokenizer() const;
    const SidecarConfig * sidecar() const; // null without one
    // How the model is asked, by the sidecar, else the LoRAs, else the base; null when none of the files says.
    const PromptFormat * prompt_format() const;
    const Backbone &     backbone() const; // with the adapters applied
    double               load_ms() const;
    size_t               weight_bytes() const;
    std::string          type_name() const; // of most weights: "Q4_1"
    // Whether the rounding of a prompt's row depends on where it stands among those of others
    // (graph/batch_invariance.h).
    bool        depends_on_batch_position() const;
    std::string name() const; // general.name or the file's stem

    // Ways to fill the context: "plain" always; "penelope" or "coconut", and "cot", with a sidecar of that method. An
    // empty name gives the file's own: the sidecar's method, else "plain". Throws Error(usage) naming the known ones.
    const Method & method(const std::string & name) const;

    // For logits that are not finite: throws Error(format) naming the first tensor of the files that is not either. The
    // weights are not looked through when they are loaded, because that would read all of a large file.
    [[noreturn]] void throw_not_finite() const;

    struct Impl;
    explicit Engine(std::unique_ptr<Impl> impl); // see engine_impl.h

  private:
    std::unique_ptr<Impl> impl_;
};

} // namespace penelope
